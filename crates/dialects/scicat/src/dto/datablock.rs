//! Datablocks: the archived packages of a dataset.

use super::origdatablock::{ACCESS_GROUPS_OF_BLOCK, DATA_FILE, IS_PUBLISHED_OF_BLOCK, OWNER_GROUP_OF_BLOCK};
use super::*;
use crate::validate::Dto;

const ARCHIVE_ID: Field = Field::required("archiveId", TEXT);
const BYTES: &[Rule] = &[Rule::Number, Rule::NotNegative, Rule::Countable];
const SIZE: Field = Field::required("size", BYTES);
const PACKED_SIZE: Field = Field::required("packedSize", BYTES);
const CHECKSUM_ALGORITHM: Field = Field::optional("chkAlg", TEXT);
const VERSION: Field = Field::required("version", TEXT);
const DATA_FILE_LIST: Field = Field::required("dataFileList", LIST).each(&DATA_FILE);

/// `POST /datablocks`.
pub static DATABLOCK: Dto = Dto {
    fields: &[
        OWNER_GROUP_OF_BLOCK,
        ACCESS_GROUPS_OF_BLOCK,
        INSTRUMENT_GROUP,
        IS_PUBLISHED_OF_BLOCK,
        ARCHIVE_ID,
        SIZE,
        PACKED_SIZE,
        CHECKSUM_ALGORITHM,
        VERSION,
        DATA_FILE_LIST,
        Field::required("datasetId", TEXT).on_create(),
    ],
};

/// `POST /datasets/{pid}/datablocks`: the same without `datasetId`.
pub static DATABLOCK_OF_DATASET: Dto = Dto {
    fields: &[
        OWNER_GROUP_OF_BLOCK,
        ACCESS_GROUPS_OF_BLOCK,
        INSTRUMENT_GROUP,
        IS_PUBLISHED_OF_BLOCK,
        ARCHIVE_ID,
        SIZE,
        PACKED_SIZE,
        CHECKSUM_ALGORITHM,
        VERSION,
        DATA_FILE_LIST,
    ],
};
