//! Origdatablocks: the file lists of a dataset.

use super::*;
use crate::validate::Dto;

const SIZE: Field = Field::required("size", &[Rule::Integer, Rule::NotNegative, Rule::Countable]);
const CHECKSUM_ALGORITHM: Field = Field::optional("chkAlg", FILLED);
const DATA_FILE_LIST: Field =
    Field::required("dataFileList", &[Rule::ListNotEmpty, Rule::List]).each(&DATA_FILE);

/// One file of a block.
pub static DATA_FILE: Dto = Dto {
    fields: &[
        Field::required("path", TEXT),
        Field::required("size", &[Rule::Number, Rule::NotNegative, Rule::Countable]),
        Field::required("time", DATE),
        Field::optional("chk", TEXT),
        Field::optional("uid", TEXT),
        Field::optional("gid", TEXT),
        Field::optional("perm", TEXT),
        Field::optional("type", TEXT),
        Field::optional("metadata", OBJECT),
    ],
};

/// `POST /origdatablocks`.
pub static ORIG_DATABLOCK: Dto = Dto {
    fields: &[
        OWNER_GROUP_OF_BLOCK,
        ACCESS_GROUPS_OF_BLOCK,
        INSTRUMENT_GROUP,
        IS_PUBLISHED_OF_BLOCK,
        Field::required("datasetId", TEXT).on_create(),
        SIZE,
        CHECKSUM_ALGORITHM,
        DATA_FILE_LIST,
    ],
};

/// `POST /datasets/{pid}/origdatablocks`: the same without `datasetId`.
pub static ORIG_DATABLOCK_OF_DATASET: Dto = Dto {
    fields: &[
        OWNER_GROUP_OF_BLOCK,
        ACCESS_GROUPS_OF_BLOCK,
        INSTRUMENT_GROUP,
        IS_PUBLISHED_OF_BLOCK,
        SIZE,
        CHECKSUM_ALGORITHM,
        DATA_FILE_LIST,
    ],
};

// A block takes these from its dataset and ignores what was sent.
pub(super) const OWNER_GROUP_OF_BLOCK: Field = Field::optional("ownerGroup", TEXT);
pub(super) const ACCESS_GROUPS_OF_BLOCK: Field = Field::optional("accessGroups", TEXTS);
pub(super) const IS_PUBLISHED_OF_BLOCK: Field = Field::optional("isPublished", BOOLEAN);
