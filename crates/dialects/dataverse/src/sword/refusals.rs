//! Refusals of the SWORD interface, in the words of the original: scripts compare them.

use axum::response::Response;
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;

use crate::asker::Asker;
use crate::datasets::Dataset;
use crate::error::ApiError;
use crate::exports::xml::Xml;

/// Returns a `sword:error`; every error that is not the server's fault gets status 400 here.
pub(super) fn refusal(error: &ApiError) -> Response {
    let status = match error.status {
        StatusCode::INTERNAL_SERVER_ERROR
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::METHOD_NOT_ALLOWED => error.status,
        _ => StatusCode::BAD_REQUEST,
    };
    let href = match status {
        StatusCode::METHOD_NOT_ALLOWED => "http://purl.org/net/sword/error/MethodNotAllowed",
        _ => "http://purl.org/net/sword/error/ErrorBadRequest",
    };
    let mut xml = Xml::document();
    xml.open(
        "sword:error",
        &[
            ("xmlns:sword", "http://purl.org/net/sword/terms/"),
            ("xmlns:atom", "http://www.w3.org/2005/Atom"),
            ("href", href),
        ],
    );
    xml.leaf("atom:title", "ERROR")
        .leaf("atom:summary", &error.message)
        .leaf("sword:treatment", "Processing failed");
    answer::bytes(status, HeaderValue::from_static("text/xml"), xml.finish())
}

/// Returns the refusal of a change, in the words of the original.
pub(super) fn no_permission(asker: &Asker, alias: &str) -> ApiError {
    may_not_modify(asker, &format!("dataverse {alias}"))
}

/// Returns the refusal of a change to something.
pub(super) fn may_not_modify(asker: &Asker, what: &str) -> ApiError {
    ApiError::bad_request(format!("User {} is not authorized to modify {what}", name_of(asker)))
}

/// Returns the refusal of something other than a change, in the words of the original.
pub(super) fn not_authorized(asker: &Asker, to: &str) -> ApiError {
    ApiError::bad_request(format!("user {} is not authorized to {to}", name_of(asker)))
}

fn name_of(asker: &Asker) -> String {
    asker.user.as_ref().map(|it| it.display_name()).unwrap_or_default()
}

/// Returns the refusal because of a lock, in the words of the original.
pub(super) fn locked(doing: &str, dataset: &Dataset) -> ApiError {
    let lock = dataset.locks.first().map_or("", |it| it.lock_type.as_str());
    let colon = if doing.starts_with("problem") { ":" } else { "" };
    let name = match lock {
        "InReview" => "In Review",
        other => other,
    };
    ApiError::bad_request(format!(
        "{doing} dataset{colon} edu.harvard.iq.dataverse.engine.command.exception.IllegalCommandException: Dataset cannot \
         be edited due to {name} dataset lock."
    ))
}
