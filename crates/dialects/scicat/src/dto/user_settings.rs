//! Settings that the frontend keeps for each user.

use super::*;
use crate::validate::Dto;

/// `/api/v3/users/{id}/settings`.
pub static USER_SETTINGS: Dto = Dto {
    fields: &[
        Field::optional("userId", TEXT),
        Field::optional("datasetCount", NUMBER).default_to(Default::Number(25)),
        Field::optional("jobCount", NUMBER).default_to(Default::Number(25)),
        Field::optional("externalSettings", OBJECT).default_to(Default::EmptyObject),
    ],
};
