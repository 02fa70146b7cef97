//! What follows from a change of a collection or dataset, in the same transaction.

use pinakes_store::Txn;

use crate::app::Dataverse;
use crate::error::ApiError;

/// A collection was made or changed.
pub(crate) fn collection(txn: &mut Txn<'_>, _app: &Dataverse, id: i64) -> Result<(), ApiError> {
    crate::search::index::index_collection(txn, id)
}

/// A dataset, one of its versions or what the versions say was made or changed.
pub(crate) fn dataset(txn: &mut Txn<'_>, app: &Dataverse, id: i64) -> Result<(), ApiError> {
    crate::search::index::index_dataset(txn, app, id)
}

/// A collection or dataset is gone.
pub(crate) fn removed(txn: &mut Txn<'_>, _app: &Dataverse, id: i64) -> Result<(), ApiError> {
    crate::search::index::forget_object(txn, id)
}

/// The place of a collection changed: whatever lies below it is found elsewhere now.
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
