//! Samples.

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
