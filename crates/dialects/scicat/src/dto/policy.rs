//! Policies: what happens to an owner group's data.

use super::*;
use crate::validate::Dto;

/// `/api/v3/policies`, also the `data` of `updateWhere`.
pub static POLICY: Dto = Dto {
    fields: &[
        OWNER_GROUP,
        ACCESS_GROUPS,
        INSTRUMENT_GROUP,
        Field::optional("manager", TEXTS).default_to(Default::EmptyList),
        Field::optional("tapeRedundancy", TEXT).default_to(Default::Text("low")),
        Field::optional("autoArchive", BOOLEAN).default_to(Default::False),
        Field::optional("autoArchiveDelay", NUMBER).default_to(Default::Number(7)),
        Field::optional("archiveEmailNotification", BOOLEAN).default_to(Default::True),
        Field::optional("archiveEmailsToBeNotified", TEXTS).default_to(Default::EmptyList),
        Field::optional("retrieveEmailNotification", BOOLEAN).default_to(Default::True),
        Field::optional("retrieveEmailsToBeNotified", TEXTS).default_to(Default::EmptyList),
        Field::optional("embargoPeriod", NUMBER).default_to(Default::Number(3)),
        Field::optional("isPublished", BOOLEAN),
    ],
};
