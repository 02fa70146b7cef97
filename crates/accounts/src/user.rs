//! Users: the record, its kind, and the synchronous operations on it.
//!
//! A user is a record of the kind `accounts_user`, by `id`. All functions here run inside a closure of the
//! store; [`crate::Accounts`] wraps them for servers and also invalidates its cache.

mod record;

use pinakes_store::{StoreError, Txn};

use crate::error::{AccountsError, Result};
use crate::token;

pub use self::record::{USER, User, by_external_id, by_id, by_username, by_uuid, count, find, id_of};
pub(crate) use self::record::{sequence, with_sequence};

/// Stores a new user.
///
/// Errors: [`AccountsError::UsernameTaken`], [`AccountsError::IdTaken`], [`AccountsError::Username`].
pub fn insert(txn: &mut Txn<'_>, user: &User) -> Result<()> {
    txn.insert(&USER, &user.id, &user.to_body()?).map_err(taken)?;
    Ok(())
}

/// Reads the user, applies `change` and stores the result; id, UUID and the time of creation stay. Nothing is
/// written if nothing changed.
pub fn change(txn: &mut Txn<'_>, id: &str, now_ms: i64, change: impl FnOnce(&mut User)) -> Result<User> {
    let before = by_id(txn, id)?.ok_or_else(|| AccountsError::UnknownUser(id.into()))?;
    let mut after = before.clone();
    change(&mut after);
    (after.id, after.uuid) = (before.id.clone(), before.uuid);
    (after.created_at_ms, after.version) = (before.created_at_ms, before.version);
    if after == before {
        return Ok(before);
    }
    after.updated_at_ms = now_ms;
    txn.update(&USER, id, &after.to_body()?).map_err(taken)?;
    by_id(txn, id)?.ok_or_else(|| AccountsError::UnknownUser(id.into()))
}

/// Removes the user and its tokens, and returns the user.
pub fn remove(txn: &mut Txn<'_>, id: &str) -> Result<Option<User>> {
    let Some(user) = by_id(txn, id)? else { return Ok(None) };
    for it in token::of_user(txn, id)? {
        token::remove(txn, &it.id)?;
    }
    txn.delete(&USER, id)?;
    Ok(Some(user))
}

/// Converts the store's error about a unique value that is already used.
fn taken(error: StoreError) -> AccountsError {
    match error {
        StoreError::Duplicate { column: "username", value, .. } => AccountsError::UsernameTaken(value),
        StoreError::Duplicate { column, value, .. } => AccountsError::IdTaken { column, value },
        other => other.into(),
    }
}
