//! Human-readable ids, assigned in order: the next numbers are in one record.

use pinakes_store::{Kind, Txn, View};
use serde_json::{Map, Value, json};

use crate::platform::collection::declared::Writer;
use crate::platform::error::FolioError;
use crate::platform::hrids::{Numbered, Reserved};

/// Settings and next numbers of a tenant, one record.
pub(crate) static HRID_SETTINGS: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_hrid_settings") };

/// FOLIO's id of that record.
pub(crate) const ID: &str = "a501f2a8-5b31-48b2-874d-2191e48db8cd";

/// The largest number with that many digits.
pub(crate) const MAX_NUMBER: u64 = 99_999_999_999;

pub(crate) fn defaults() -> Value {
    let mut map = Map::new();
    map.insert("id".into(), ID.into());
    for it in Numbered::ALL {
        map.insert(it.name().into(), json!({"prefix": it.prefix(), "startNumber": 1, "currentNumber": 0}));
    }
    map.insert("commonRetainLeadingZeroes".into(), true.into());
    Value::Object(map)
}

pub(crate) fn settings(view: &mut View<'_>) -> Result<Value, FolioError> {
    match view.get(&HRID_SETTINGS, ID)? {
        Some(record) => Ok(record.json()?),
        None => Ok(defaults()),
    }
}

/// Reserves numbers for the records that this transaction will create.
pub(crate) fn reserve(
    txn: &mut Txn<'_>,
    writer: &Writer,
    numbered: Numbered,
    n: u64,
) -> Result<(), FolioError> {
    if n == 0 {
        return Ok(());
    }
    let mut all = settings(txn)?;
    let keeps_zeroes = all["commonRetainLeadingZeroes"].as_bool().unwrap_or(true);
    let own = &mut all[numbered.name()];
    let last = own["currentNumber"].as_u64().unwrap_or(0);
    let prefix = own["prefix"].as_str().unwrap_or_default().to_owned();
    if MAX_NUMBER < last.saturating_add(n) {
        return Err(FolioError::bad_request(format!("hrids of {} are used up", numbered.name())));
    }
    own["currentNumber"] = (last + n).into();
    txn.put(&HRID_SETTINGS, ID, &all)?;
    writer.reserve(numbered, Reserved { prefix, next: last + 1, left: n, keeps_zeroes });
    Ok(())
}

/// Returns the next id.
pub(crate) fn next(txn: &mut Txn<'_>, writer: &Writer, numbered: Numbered) -> Result<String, FolioError> {
    if let Some(id) = writer.next_reserved(numbered) {
        return Ok(id);
    }
    reserve(txn, writer, numbered, 1)?;
    writer.next_reserved(numbered).ok_or_else(|| FolioError::bad_request("no hrid was reserved"))
}
