//! Access control for `/api/admin` and `/api/builtin-users`.

use http::{StatusCode, Version};
use serde_json::json;

use crate::app::Call;
use crate::error::ApiError;
use crate::settings::AdminAccess;

/// Checks that the configuration allows a call of `/api/admin` or `/api/builtin-users`.
///
/// Errors: 503 in the format of the original's filter.
pub(crate) fn check(call: &Call, version: Version) -> Result<(), ApiError> {
    let path = call.uri.path();
    let below_api = path.strip_prefix("/api/v1").or_else(|| path.strip_prefix("/api")).unwrap_or(path);
    let area = below_api.trim_start_matches('/').split('/').next().unwrap_or_default();
    if area != "admin" && area != "builtin-users" {
        return Ok(());
    }
    let settings = &call.app.settings;
    let is_open = match settings.admin_access {
        AdminAccess::Loopback => pinakes_http::is_of_this_machine(call.asker.peer, version, &call.headers),
        AdminAccess::Key => {
            let given = call.header("x-dataverse-unblock-key").or_else(|| call.query.get("unblock-key"));
            !settings.admin_unblock_key.is_empty() && given == Some(settings.admin_unblock_key.as_str())
        }
        AdminAccess::Nobody => false,
    };
    if is_open {
        return Ok(());
    }
    let message = "Endpoint blocked. Please contact the dataverse administrator";
    let mut refused = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message);
    refused.more.insert("status".to_owned(), json!("error"));
    Err(refused)
}
