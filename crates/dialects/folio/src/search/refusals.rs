//! Refusals of searches, as mod-search words them.

use http::StatusCode;

use crate::platform::error::{Fault, FolioError};

/// Code of invalid requests.
pub(super) const INVALID: &str = "validation_error";

/// Returns the refusal of a request with a wrong value.
pub(super) fn invalid(message: impl Into<String>, key: &str, value: &str) -> FolioError {
    let fault = Fault::new(message).ty("RequestValidationException").code(INVALID);
    FolioError::faults(StatusCode::BAD_REQUEST, vec![fault.with(key, value)])
}

/// Returns the refusal of a request without a query.
pub(super) fn no_query() -> FolioError {
    let message = "Required request parameter 'query' for method parameter type String is not present";
    let fault = Fault::new(message).ty("MissingServletRequestParameterException").code(INVALID);
    FolioError::faults(StatusCode::BAD_REQUEST, vec![fault])
}

/// Returns the refusal of a field that records do not have.
pub(super) fn no_such_field(name: &str) -> FolioError {
    invalid("Invalid search field provided in the CQL query", "field", name)
}

/// Translates the refusal of a field that records do not have.
pub(super) fn unknown_field(error: FolioError) -> FolioError {
    let message = error.message();
    let field = message
        .split_once(" have no field \"")
        .and_then(|it| it.1.split_once("\" to search in"))
        .map(|it| it.0);
    match field {
        Some(field) => no_such_field(field),
        None => error,
    }
}
