//! Removal of a user, with everything granted to them, their notifications and requests for access.

use pinakes_store::Txn;

use crate::access::requests;
use crate::error::ApiError;
use crate::grants::{self, GRANT};
use crate::users::{USER, User};
use crate::{groups, notifications, tokens};

/// Removes a user with their account, tokens, grants and memberships.
pub(crate) fn remove(txn: &mut Txn<'_>, user: &User) -> Result<(), ApiError> {
    tokens::remove(txn, "user", user.id)?;
    for grant in grants::grants_to(txn, &[user.identifier()])? {
        let id = grants::grant_id(grant.object, &grant.assignee);
        txn.delete(&GRANT, &id)?;
    }
    groups::remove_member(txn, &user.identifier())?;
    notifications::remove_of_user(txn, user.id)?;
    requests::remove_of_user(txn, user.id)?;
    if let Some(account) = &user.account {
        pinakes_accounts::user::remove(txn, account)?;
    }
    txn.delete(&USER, &user.id.to_string())?;
    Ok(())
}
