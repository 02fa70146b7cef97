//! Mapping bibliographic records to instances (section 7.3 of the contract).

use pinakes_marc::Record;
use serde_json::{Map, Value};

use super::fields::INSTANCE;
use super::reference::Reference;
use super::rules::Rules;

/// Id of the instance type for an unspecified content type.
const UNSPECIFIED_TYPE: &str = "30fffe0e-e985-4144-b2e2-1e8179bdb41f";

/// Maps a record to the properties of an instance, without its id. The hrid is taken from the record's 001.
pub(crate) fn instance(rules: &Rules, record: &Record, reference: &Reference) -> Map<String, Value> {
    let mapped = super::map(rules, record, reference, &INSTANCE);
    let mut instance = Map::new();
    instance.insert("source".to_owned(), "MARC".into());
    instance.extend(mapped);
    // The rules set `MARC21`, but FOLIO stores this.
    instance.insert("source".to_owned(), "MARC".into());
    if instance.get("title").is_none() {
        instance.insert("title".to_owned(), "No title".into());
    }
    if instance.get("instanceTypeId").is_none() {
        let id = reference.by_code("instanceTypes", "zzz").unwrap_or(UNSPECIFIED_TYPE);
        instance.insert("instanceTypeId".to_owned(), id.into());
    }
    if record.leader.status() == 'd' {
        for name in ["discoverySuppress", "staffSuppress", "deleted"] {
            instance.insert(name.to_owned(), true.into());
        }
    }
    instance
}
