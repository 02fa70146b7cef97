//! Which account a request is about, and who may see it.

use pinakes_accounts::User;
use pinakes_accounts::sign_in::strategy;
use serde_json::{Map, Value, json};

use crate::app::{Asker, Scicat};
use crate::error::ScicatError;

/// Creates the error for what a caller may not see of others, or do to them.
pub(crate) fn refused() -> ScicatError {
    ScicatError::forbidden("Access Forbidden or Unauthorized")
}

/// Returns the calling user. Errors: 401 for anonymous callers.
pub(crate) fn myself(asker: &Asker) -> Result<&User, ScicatError> {
    asker.caller().user.as_deref().ok_or_else(ScicatError::unauthenticated)
}

/// Refuses callers who are neither the user `id` nor an admin.
pub(crate) fn require_own(asker: &Asker, id: &str) -> Result<(), ScicatError> {
    if myself(asker)?.id == id || asker.rights.is_admin { Ok(()) } else { Err(refused()) }
}

/// Returns the user `id`, or `None` if there is none.
pub(crate) async fn user(app: &Scicat, asker: &Asker, id: &str) -> Result<Option<User>, ScicatError> {
    Ok(app.context.accounts().by_id(asker.db.tenant(), id).await?)
}

/// Returns a user as SciCat shows one.
pub(crate) fn shown(user: &User) -> Map<String, Value> {
    let value = json!({
        "username": user.username, "email": user.email, "authStrategy": strategy(user),
        "_id": user.id, "__v": 0, "id": user.id,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
