//! Updates of the search index after a change of a collection or dataset, in the same transaction.

use pinakes_store::Txn;

use crate::app::Dataverse;
use crate::error::ApiError;

/// Updates the index after a collection was created or changed.
pub(crate) fn collection(txn: &mut Txn<'_>, _app: &Dataverse, id: i64) -> Result<(), ApiError> {
    crate::search::index::index_collection(txn, id)
}

/// Updates the index after a dataset, one of its versions or their contents were created or changed.
pub(crate) fn dataset(txn: &mut Txn<'_>, app: &Dataverse, id: i64) -> Result<(), ApiError> {
    crate::search::index::index_dataset(txn, app, id)
}

/// Updates the index after a collection or dataset was deleted.
pub(crate) fn removed(txn: &mut Txn<'_>, _app: &Dataverse, id: i64) -> Result<(), ApiError> {
    crate::search::index::forget_object(txn, id)
}

/// Updates the index after a collection was moved: the paths of everything below it change.
pub(crate) fn below(txn: &mut Txn<'_>, app: &Dataverse, id: i64) -> Result<(), ApiError> {
    let mut waiting = vec![id];
    while let Some(id) = waiting.pop() {
        for record in
            crate::stored::find_by::<crate::datasets::Dataset>(txn, &crate::datasets::DATASET, "owner", id)?
        {
            dataset(txn, app, record.id)?;
        }
        for child in crate::collections::children(txn, id)? {
            collection(txn, app, child.id)?;
            waiting.push(child.id);
        }
    }
    Ok(())
}
