//! Guestbooks.

use pinakes_store::{Txn, View};

use crate::collections::Collection;
use crate::error::ApiError;

/// Removes the guestbooks of a collection that goes away.
pub(crate) fn remove_of_collection(_txn: &mut Txn<'_>, _collection: i64) -> Result<(), ApiError> {
    Ok(())
}

/// Whether a guestbook may be used in a collection.
pub(crate) fn is_available(_view: &mut View<'_>, _id: i64, _at: &Collection) -> Result<bool, ApiError> {
    Ok(false)
}

/// Whether a user has left an entry in a guestbook.
pub(crate) fn has_responses_of(_view: &mut View<'_>, _user: i64) -> Result<bool, ApiError> {
    Ok(false)
}
