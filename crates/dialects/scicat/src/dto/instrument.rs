//! Instruments.

use super::*;
use crate::validate::Dto;

/// `/api/v3/instruments`.
pub static INSTRUMENT: Dto = Dto {
    fields: &[
        Field::optional("pid", TEXT).on_create(),
        Field::required("uniqueName", FILLED),
        Field::required("name", FILLED),
        Field::optional("customMetadata", OBJECT).default_to(Default::EmptyObject),
    ],
};
