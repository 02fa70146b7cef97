//! The `datasetlifecycle` of a dataset, as its own routes accept it.

use super::*;
use crate::validate::Dto;

/// The fields of a lifecycle, all optional; a patch is merged into the stored value.
pub static LIFECYCLE: Dto = Dto {
    fields: &[
        Field::optional("archivable", BOOLEAN),
        Field::optional("retrievable", BOOLEAN),
        Field::optional("publishable", BOOLEAN),
        Field::optional("dateOfDiskPurging", DATE),
        Field::optional("archiveRetentionTime", DATE),
        Field::optional("dateOfPublishing", DATE),
        Field::optional("publishedOn", DATE),
        Field::optional("isOnCentralDisk", BOOLEAN),
        Field::optional("archiveStatusMessage", TEXT),
        Field::optional("retrieveStatusMessage", TEXT),
        Field::optional("archiveReturnMessage", OBJECT),
        Field::optional("retrieveReturnMessage", OBJECT),
        Field::optional("exportedTo", TEXT),
        Field::optional("retrieveIntegrityCheck", BOOLEAN),
        Field::optional("storageLocation", TEXT),
        Field::optional("_id", TEXT),
    ],
};
