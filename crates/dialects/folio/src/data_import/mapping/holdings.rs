//! Mapping MARC holdings to holdings records (section 7.4 of the contract).

use pinakes_marc::Record;
use serde_json::{Map, Value};

use super::fields::HOLDINGS;
use super::reference::{Reference, UNKNOWN_ID};
use super::rules::Rules;

/// Id of the source of holdings that have a MARC record.
const SOURCE_MARC: &str = "036ee84a-6afd-4c3c-9ad3-4a12ab875f59";

/// Why no holdings record can be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HoldingsError {
    /// 852 names an unknown location, or none.
    #[error("852 $b {code:?} is not the code of a location")]
    Location {
        /// The code in 852.
        code: String,
    },
}

/// Maps a record to the properties of a holdings record, without its id and its instance.
pub(crate) fn holdings(
    rules: &Rules,
    record: &Record,
    reference: &Reference,
) -> Result<Map<String, Value>, HoldingsError> {
    let mut holdings = Map::new();
    let source = reference.by_name("holdingsRecordsSources", "MARC").unwrap_or(SOURCE_MARC);
    holdings.insert("sourceId".to_owned(), source.into());
    holdings.extend(super::map(rules, record, reference, &HOLDINGS));
    // FOLIO assigns unknown locations a fixed id; a site that has a location with that id accepts such records.
    if holdings.get("permanentLocationId").is_none()
        && let Some(unknown) = reference.find("locations", UNKNOWN_ID)
    {
        holdings.insert("permanentLocationId".to_owned(), unknown.into());
    }
    if holdings.get("permanentLocationId").is_none() {
        let code = record.subfield("852", 'b').unwrap_or_default().to_owned();
        return Err(HoldingsError::Location { code });
    }
    Ok(holdings)
}
