//! A patron as the patron interface shows them.

use pinakes_store::View;
use serde_json::Value;

use crate::circulation::neighbours::USERS;
use crate::platform::error::FolioError;

/// Reads the patron whose account a path names.
///
/// Errors: 404 for a user who does not exist or is not active.
pub(crate) fn patron(view: &mut View<'_>, id: &str, now_ms: i64) -> Result<Value, FolioError> {
    let Some(user) = view.get(&USERS.kind, id)? else {
        return Err(FolioError::not_found(format!("User {id} does not exist")));
    };
    let user = user.json()?;
    if crate::circulation::inactive(&user, now_ms, "").is_some() {
        return Err(FolioError::not_found(format!("User {id} is not active")));
    }
    Ok(user)
}
