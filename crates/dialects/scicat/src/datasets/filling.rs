//! Completes a dataset before it is stored.

use serde_json::{Map, Value};

use crate::datasets::forms::{Api, scalars_to_lists};
use crate::datasets::incoming::METADATA;
use crate::dto::dataset as dto;
use crate::error::ScicatError;
use crate::faults::Fault;
use crate::validate::Dto;
use crate::{dates, scientific};

/// Dates of a dataset that are sent in one format.
pub(crate) const DATES: [&str; 3] = ["creationTime", "startTime", "endTime"];

/// Returns faults in the shape of the API's version.
pub(crate) fn refused(faults: &[Fault], api: Api) -> ScicatError {
    match api {
        Api::V3 => ScicatError::faults_as_text(faults),
        Api::V4 => ScicatError::faults_as_list(faults),
    }
}

/// Adds a checked body to the fields already set: defaults, dates, quantities, and lists for scalars.
pub(crate) fn fill(stored: &mut Map<String, Value>, table: &Dto, mut body: Map<String, Value>) {
    dto::complete(table, &mut body);
    scalars_to_lists(&mut body);
    normalise(&mut body);
    for list in ["proposalIds", "sampleIds", "instrumentIds"] {
        body.entry(list.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
    }
    for (name, value) in body {
        if !stored.contains_key(&name) && !value.is_null() {
            stored.insert(name, value);
        }
    }
}

/// Normalises dates and adds the SI values of quantities.
pub(crate) fn normalise(body: &mut Map<String, Value>) {
    for name in DATES {
        if let Some(Value::String(text)) = body.get_mut(name)
            && let Some(normal) = dates::normalise(text)
        {
            *text = normal;
        }
    }
    if let Some(Value::Object(metadata)) = body.get_mut(METADATA) {
        scientific::enrich(metadata);
    }
}
