//! Every kind of record that the dialect keeps.

use pinakes_store::Kind;

/// To be declared when the catalogue is opened.
pub static KINDS: &[&Kind] = &[
    &crate::datasets::DATASET,
    &crate::blocks::ORIG_DATABLOCK,
    &crate::blocks::DATABLOCK,
    &crate::attachments::ATTACHMENT,
    &crate::proposals::PROPOSAL,
    &crate::samples::SAMPLE,
    &crate::instruments::INSTRUMENT,
    &crate::policies::POLICY,
    &crate::jobs::JOB,
    &crate::published_data::PUBLISHED_DATA,
    &crate::users::USER_SETTINGS,
    &crate::site::RUNTIME_CONFIG,
    &crate::history::HISTORY,
];
