//! Updates of the instance, holdings record or authority after its MARC record was edited.

use pinakes_marc::Record;
use pinakes_store::Txn;
use serde_json::{Map, Value};

use super::actions::remapped;
use super::engine::collection_of;
use super::setup::{reference, rules, source_files};
use super::tree::Entity;
use crate::data_import::mapping::{self, RuleSet};
use crate::platform::collection::{self, Collection, Collections, Lock, Missing, Writer};
use crate::platform::error::{Fault, FolioError};
use crate::platform::json::text_at;

/// Maps a new MARC record: returns the collection, and the properties without an id.
///
/// Errors: those of [`follow`].
pub(crate) fn described(
    txn: &mut Txn<'_>,
    collections: Collections,
    record_type: &str,
    record: &Record,
) -> Result<(&'static Collection, Map<String, Value>), FolioError> {
    let refused = |message: String| FolioError::unprocessable(Fault::new(message));
    let (entity, set) = match record_type {
        "MARC_HOLDING" => (Entity::Holdings, RuleSet::Holdings),
        "MARC_AUTHORITY" => (Entity::Authority, RuleSet::Authority),
        _ => (Entity::Instance, RuleSet::Bib),
    };
    let collection =
        collection_of(entity).ok_or_else(|| refused(format!("{record_type} describes nothing")))?;
    let reference = reference(txn, collections)?;
    let rules = rules(txn, set).map_err(|error| refused(error.to_string()))?;
    let body = match entity {
        Entity::Holdings => {
            mapping::holdings(&rules, record, &reference).map_err(|error| refused(error.to_string()))?
        }
        Entity::Authority => {
            let files = source_files(txn, collections)?;
            mapping::authority(&rules, record, &reference, &files)
        }
        _ => mapping::instance(&rules, record, &reference),
    };
    Ok((collection, body))
}

/// Maps another MARC record to an existing instance; properties that do not come from MARC are kept.
///
/// Errors: rules that cannot be read.
pub(crate) fn instance_by(
    txn: &mut Txn<'_>,
    collections: Collections,
    record: &Record,
    old: &Value,
) -> Result<Map<String, Value>, FolioError> {
    let reference = reference(txn, collections)?;
    let rules =
        rules(txn, RuleSet::Bib).map_err(|error| FolioError::unprocessable(Fault::new(error.to_string())))?;
    Ok(remapped(&rules, record, &reference, old))
}

/// Updates the instance, holdings record or authority of a source record from its new content.
///
/// Errors: unreadable rules; holdings with an unknown location; the collection's own rules.
pub(crate) fn follow(
    txn: &mut Txn<'_>,
    writer: &Writer,
    source: &Value,
    record: &Record,
) -> Result<(), FolioError> {
    let of = |name: &str| text_at(source, &format!("externalIdsHolder.{name}")).map(str::to_owned);
    let refused = |message: String| FolioError::unprocessable(Fault::new(message));
    let reference = reference(txn, writer.collections)?;
    let (entity, id) = match (of("instanceId"), of("holdingsId"), of("authorityId")) {
        (Some(id), _, _) => (Entity::Instance, id),
        (_, Some(id), _) => (Entity::Holdings, id),
        (_, _, Some(id)) => (Entity::Authority, id),
        _ => return Ok(()),
    };
    let Some(collection) = collection_of(entity) else { return Ok(()) };
    let Some(old) = txn.get(&collection.kind, &id)? else { return Ok(()) };
    let old = old.json()?;
    let mut read = |set| rules(txn, set).map_err(|error| refused(error.to_string()));
    let body = match entity {
        Entity::Instance => remapped(&read(RuleSet::Bib)?, record, &reference, &old),
        Entity::Holdings => {
            let rules = read(RuleSet::Holdings)?;
            let mut body =
                mapping::holdings(&rules, record, &reference).map_err(|error| refused(error.to_string()))?;
            for name in ["instanceId", "hrid", "sourceId"] {
                body.extend(old.get(name).map(|it| (name.to_owned(), it.clone())));
            }
            body
        }
        _ => {
            let rules = read(RuleSet::Authority)?;
            let files = source_files(txn, writer.collections)?;
            let mut body = mapping::authority(&rules, record, &reference, &files);
            if let (None, Some(natural)) = (body.get("naturalId"), old.get("naturalId")) {
                body.insert("naturalId".to_owned(), natural.clone());
            }
            // A list of references that existed before stays, as an empty list if need be.
            for (name, _) in old.as_object().into_iter().flatten().filter(|it| it.1.is_array()) {
                if name.starts_with("sft") || name.starts_with("saft") {
                    body.entry(name.as_str()).or_insert_with(|| serde_json::json!([]));
                }
            }
            body
        }
    };
    collection::put(txn, writer, collection, &id, body, Missing::Refuse, Lock::Ignored)?;
    Ok(())
}
