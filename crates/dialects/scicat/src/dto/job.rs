//! Jobs, in the two shapes of v3 and v4.

use super::*;
use crate::validate::Dto;

/// One dataset of a v3 job and its files that are meant; an empty list means all.
pub static JOB_DATASET: Dto =
    Dto { fields: &[Field::required("pid", TEXT), Field::required("files", &[Rule::List, Rule::EachText])] };

/// `POST /api/v3/jobs`.
pub static V3_CREATE: Dto = Dto {
    fields: &[
        Field::required("type", FILLED),
        Field::optional("emailJobInitiator", EMAIL),
        Field::optional("jobParams", OBJECT).default_to(Default::EmptyObject),
        Field::optional("datasetList", LIST).each(&JOB_DATASET),
        Field::optional("jobStatusMessage", TEXT),
        Field::optional("executionTime", DATE),
        Field::optional("jobResultObject", OBJECT),
        Field::optional("ownerUser", TEXT),
        Field::optional("ownerGroup", TEXT),
    ],
};

/// `PATCH /api/v3/jobs/{id}`.
pub static V3_UPDATE: Dto = Dto {
    fields: &[
        Field::optional("jobStatusMessage", TEXT),
        Field::optional("jobResultObject", OBJECT),
        Field::optional("executionTime", DATE),
    ],
};

/// `POST /api/v4/jobs`.
pub static V4_CREATE: Dto = Dto {
    fields: &[
        Field::required("type", FILLED),
        Field::required("jobParams", OBJECT),
        Field::optional("ownerUser", TEXT),
        Field::optional("ownerGroup", TEXT),
        Field::optional("contactEmail", EMAIL),
    ],
};

/// `PATCH /api/v4/jobs/{id}`; check it as [`crate::validate::Form::Replace`], as its fields are required.
pub static V4_UPDATE: Dto = Dto {
    fields: &[
        Field::required("statusCode", TEXT),
        Field::required("statusMessage", TEXT),
        Field::optional("jobResultObject", OBJECT),
    ],
};
