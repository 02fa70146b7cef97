//! Templates.

use pinakes_store::Txn;

use crate::error::ApiError;

/// Removes the templates of a collection that goes away.
pub(crate) fn remove_of_collection(_txn: &mut Txn<'_>, _collection: i64) -> Result<(), ApiError> {
    Ok(())
}
