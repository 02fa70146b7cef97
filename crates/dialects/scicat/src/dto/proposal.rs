//! Proposals.

use super::*;
use crate::validate::Dto;

/// One period of measurement at an instrument.
pub static MEASUREMENT_PERIOD: Dto = Dto {
    fields: &[
        Field::optional("_id", TEXT),
        Field::required("instrument", TEXT),
        Field::required("start", DATE),
        Field::required("end", DATE),
        Field::optional("comment", TEXT),
    ],
};

/// `/api/v3/proposals`. The handler checks whether the site knows the `type`; see [`type_fault`].
pub static PROPOSAL: Dto = Dto {
    fields: &[
        OWNER_GROUP,
        ACCESS_GROUPS,
        INSTRUMENT_GROUP,
        Field::required("proposalId", TEXT).on_create(),
        Field::optional("pi_email", EMAIL),
        Field::optional("pi_firstname", TEXT),
        Field::optional("pi_lastname", TEXT),
        Field::required("email", EMAIL),
        Field::optional("firstname", TEXT),
        Field::optional("lastname", TEXT),
        Field::required("title", TEXT),
        Field::optional("abstract", TEXT),
        Field::optional("startTime", DATE),
        Field::optional("endTime", DATE),
        Field::optional("MeasurementPeriodList", LIST)
            .each(&MEASUREMENT_PERIOD)
            .default_to(Default::EmptyList),
        Field::optional("metadata", OBJECT).default_to(Default::EmptyObject),
        Field::optional("parentProposalId", TEXT).default_to(Default::Null),
        Field::optional("type", TEXT).default_to(Default::Text(DEFAULT_TYPE)),
        Field::optional("instrumentIds", TEXTS).default_to(Default::EmptyList),
        Field::optional("keywords", TEXTS).default_to(Default::EmptyList),
        Field::optional("isPublished", BOOLEAN),
    ],
};

/// The type of a proposal that does not name one.
pub const DEFAULT_TYPE: &str = "Default Proposal";

/// Returns the error text for a type that is not among `known`, the site's list.
pub fn type_fault(known: &[String]) -> String {
    let mut choices: Vec<&str> = known.iter().map(String::as_str).collect();
    if !choices.contains(&DEFAULT_TYPE) {
        choices.push(DEFAULT_TYPE);
    }
    format!("type must be one of the following values: {}", choices.join(", "))
}
