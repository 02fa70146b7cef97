//! Errors in the editor's format.

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use serde_json::{Value, json};

use crate::platform::error::{Answer, FolioError, Shape};
use crate::platform::json;
use crate::platform::values::json_answer;

/// Builds an error in the editor's format.
pub(crate) fn refused(status: StatusCode, ty: &str, message: impl Into<String>) -> FolioError {
    let body = json!({"message": message.into(), "type": ty, "code": status.canonical_reason()});
    FolioError { status, shape: Shape::Json(json::text(&body)) }
}

pub(crate) fn unprocessable(message: impl Into<String>) -> FolioError {
    refused(StatusCode::UNPROCESSABLE_ENTITY, "INTERNAL", message)
}

pub(crate) fn created(body: &Value) -> Answer {
    let location =
        format!("/records-editor/records?externalId={}", body["externalId"].as_str().unwrap_or_default());
    Ok(answer::with_header(json_answer(StatusCode::CREATED, body), LOCATION, &location))
}
