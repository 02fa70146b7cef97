//! Samples.

use serde_json::{Map, Value};

use super::*;
use crate::validate::Dto;

/// `/api/v3/samples`.
pub static SAMPLE: Dto = Dto {
    fields: &[
        OWNER_GROUP,
        ACCESS_GROUPS,
        INSTRUMENT_GROUP,
        Field::optional("sampleId", TEXT).on_create(),
        Field::optional("owner", TEXT),
        Field::required("sampleName", FILLED),
        Field::optional("type", TEXT),
        Field::optional("proposalId", TEXT),
        Field::optional("parentSampleId", TEXT),
        Field::optional("description", TEXT),
        Field::optional("sampleCharacteristics", OBJECT).default_to(Default::EmptyObject),
        IS_PUBLISHED,
    ],
};

/// Names a sample without a name, as samples of version 4 are, after its description or its id.
pub fn name_sample(body: &mut Map<String, Value>, id: &str) {
    if body.get("sampleName").is_some_and(|it| !it.is_null()) {
        return;
    }
    let description = body.get("description").and_then(Value::as_str).filter(|it| !it.is_empty());
    let name = description.unwrap_or(id).to_owned();
    body.insert("sampleName".to_owned(), name.into());
}
