//! What staff may not write, beyond what storage refuses (mod-inventory).

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::items::STATUSES;
use crate::platform::error::{Fault, FolioError, Shape};

/// Properties of instances that are derived from their MARC records.
pub(super) const INSTANCE_FIELDS: [&str; 20] = [
    "hrid",
    "source",
    "title",
    "alternativeTitles",
    "editions",
    "series",
    "identifiers",
    "contributors",
    "subjects",
    "classifications",
    "publication",
    "publicationFrequency",
    "publicationRange",
    "electronicAccess",
    "instanceTypeId",
    "instanceFormatIds",
    "physicalDescriptions",
    "languages",
    "notes",
    "modeOfIssuanceId",
];

/// Refuses an instance without a title.
pub(super) fn require_title(body: &Map<String, Value>) -> Result<(), FolioError> {
    let title = body.get("title").and_then(Value::as_str).unwrap_or_default();
    if title.trim().is_empty() {
        return Err(FolioError::bad_request("Title must be provided for an instance"));
    }
    Ok(())
}

/// Refuses an item without a status, or with one that items do not have.
pub(super) fn require_status(body: &Map<String, Value>) -> Result<(), FolioError> {
    let Some(status) = body.get("status").filter(|it| !it.is_null()) else {
        let fault = Fault::new("Status is a required field").with("status", "null");
        return Err(FolioError::unprocessable(fault));
    };
    match status.get("name").and_then(Value::as_str) {
        Some(name) if STATUSES.contains(&name) => Ok(()),
        name => {
            let fault = Fault::new("Undefined status specified");
            Err(FolioError::unprocessable(fault.with("status.name", name.unwrap_or("null"))))
        }
    }
}

/// Refuses another `hrid` than the stored one.
pub(super) fn keep_hrid(body: &Map<String, Value>, old: &Value) -> Result<(), FolioError> {
    match body.get("hrid").filter(|it| !it.is_null()) {
        Some(hrid) if Some(hrid) != old.get("hrid") => {
            let hrid = hrid.as_str().map_or_else(|| hrid.to_string(), str::to_owned);
            let fault = Fault::new("HRID can not be updated").with("hrid", hrid);
            Err(FolioError::unprocessable(fault))
        }
        _ => Ok(()),
    }
}

/// Refuses a change of what an instance has from its MARC record.
pub(super) fn keep_marc_fields(body: &Map<String, Value>, old: &Value) -> Result<(), FolioError> {
    let absent = |it: &Value| it.is_null() || *it == json!([]);
    let is_same = |name: &&str| match (body.get(*name), old.get(*name)) {
        (Some(new), Some(old)) => new == old || (absent(new) && absent(old)),
        (new, old) => new.is_none_or(absent) && old.is_none_or(absent),
    };
    // A hrid that is left out stays.
    let mut fields = INSTANCE_FIELDS.iter().filter(|it| **it != "hrid");
    if old.get("source").and_then(Value::as_str) != Some("MARC") || fields.all(is_same) {
        return Ok(());
    }
    Err(FolioError::unprocessable(Fault::new(format!(
        "Instance is controlled by MARC record, these fields are blocked and can not be updated: {}",
        INSTANCE_FIELDS.join(",")
    ))))
}

/// Translates the error into `Barcode must be unique, X is already assigned to another item`.
pub(super) fn barcode_taken(error: FolioError) -> FolioError {
    let Shape::Errors(faults) = &error.shape else { return error };
    let taken = faults.iter().flat_map(|it| &it.parameters).find(|it| it.0.contains("'barcode'"));
    match taken {
        Some((_, value)) => {
            let message = format!("Barcode must be unique, {value} is already assigned to another item");
            FolioError::text(StatusCode::BAD_REQUEST, message)
        }
        None => error,
    }
}
