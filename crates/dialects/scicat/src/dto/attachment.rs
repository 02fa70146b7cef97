//! Attachments: the v4 entity, and the v3 view below a dataset, a sample or a proposal.

use super::*;
use crate::validate::Dto;

/// Types of records that an attachment can belong to.
pub const TARGET_TYPES: &[&str] = &["dataset", "proposal", "sample", "published_data"];

/// A record that an attachment belongs to.
pub static RELATIONSHIP: Dto = Dto {
    fields: &[
        Field::required("targetId", TEXT),
        Field::required("targetType", &[Rule::Enum(TARGET_TYPES)]),
        Field::optional("relationType", TEXT).default_to(Default::Text("is attached to")),
    ],
};

/// `/api/v4/attachments`.
pub static V4: Dto = Dto {
    fields: &[
        OWNER_GROUP,
        ACCESS_GROUPS,
        INSTRUMENT_GROUP,
        Field::required("isPublished", BOOLEAN),
        Field::optional("aid", TEXT).on_create(),
        Field::optional("thumbnail", TEXT),
        Field::required("caption", TEXT),
        Field::optional("relationships", LIST).each(&RELATIONSHIP).default_to(Default::EmptyList),
    ],
};

/// Below a dataset, a sample or a proposal in v3. The ids of the parent may be sent along.
pub static V3: Dto = Dto {
    fields: &[
        OWNER_GROUP,
        ACCESS_GROUPS,
        INSTRUMENT_GROUP,
        Field::optional("isPublished", BOOLEAN),
        Field::optional("aid", TEXT).on_create(),
        Field::optional("id", TEXT).on_create(),
        Field::optional("thumbnail", TEXT),
        Field::required("caption", TEXT),
        Field::optional("datasetId", TEXT),
        Field::optional("sampleId", TEXT),
        Field::optional("proposalId", TEXT),
    ],
};
