//! The error bodies of SciCat: five shapes, which clients display to users (section 1 of the contract).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode};
use pinakes_http::Refusal;
use pinakes_store::StoreError;
use serde_json::{Value, json};

use crate::faults::{self, Fault};

/// Content type of every answer with a body.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// An error answer.
#[derive(Debug)]
pub enum ScicatError {
    /// An error with a body of its own.
    Said {
        /// Its status.
        status: StatusCode,
        /// Its body.
        body: Value,
    },
    /// An error from the shell or the store.
    Refused(Refusal),
}

/// Result of a handler.
pub type Answer<T = Response> = Result<T, ScicatError>;

impl ScicatError {
    /// Creates an error in shape E1: `{"message","error","statusCode"}`.
    pub fn with(status: StatusCode, message: impl Into<Value>) -> Self {
        let body = json!({
            "message": message.into(),
            "error": status.canonical_reason().unwrap_or("Error"),
            "statusCode": status.as_u16(),
        });
        Self::Said { status, body }
    }

    /// Creates a 400 in shape E1.
    pub fn bad_request(message: impl Into<Value>) -> Self {
        Self::with(StatusCode::BAD_REQUEST, message)
    }

    /// Creates a 403 in shape E1.
    pub fn forbidden(message: &str) -> Self {
        Self::with(StatusCode::FORBIDDEN, message)
    }

    /// Creates the 403 for callers whose groups never allow the action.
    pub fn forbidden_resource() -> Self {
        Self::forbidden("Forbidden resource")
    }

    /// Creates a 404 in shape E1.
    pub fn not_found(message: impl Into<Value>) -> Self {
        Self::with(StatusCode::NOT_FOUND, message)
    }

    /// Creates a 409 in shape E1.
    pub fn conflict(message: impl Into<Value>) -> Self {
        Self::with(StatusCode::CONFLICT, message)
    }

    /// Creates the 401 of routes that require a login.
    pub fn unauthenticated() -> Self {
        Self::with(StatusCode::UNAUTHORIZED, "Unauthenticated")
    }

    /// Creates the 401 for an expired token.
    pub fn session_expired() -> Self {
        Self::with(StatusCode::UNAUTHORIZED, "SESSION_EXPIRED")
    }

    /// Creates an error in shape E2: `{"status","message"}`.
    pub fn short(status: StatusCode, message: impl Into<Value>) -> Self {
        Self::Said { status, body: json!({"status": status.as_u16(), "message": message.into()}) }
    }

    /// Creates an E2 error with the faults of a v3 dataset; its message is itself JSON.
    pub fn faults_as_text(faults: &[Fault]) -> Self {
        Self::short(StatusCode::BAD_REQUEST, faults::tree(faults).to_string())
    }

    /// Creates an E1 error with the faults as a list of texts.
    pub fn faults_as_list(faults: &[Fault]) -> Self {
        Self::bad_request(faults::texts(faults))
    }

    /// Creates an error in shape E3: `{"message":"Not Found","statusCode":404}`.
    pub fn bare_not_found() -> Self {
        Self::bare(StatusCode::NOT_FOUND)
    }

    /// Creates an error in shape E3: `{"message","statusCode"}` with the standard phrase of the status.
    pub fn bare(status: StatusCode) -> Self {
        let body =
            json!({"message": status.canonical_reason().unwrap_or("Error"), "statusCode": status.as_u16()});
        Self::Said { status, body }
    }

    /// Creates an error in shape E4: a JSON string.
    pub fn text(status: StatusCode, text: &str) -> Self {
        Self::Said { status, body: Value::from(text) }
    }
}

/// For the log, when an answer fails after it has begun.
impl std::fmt::Display for ScicatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Said { status, body } => write!(f, "{} {body}", status.as_u16()),
            Self::Refused(refusal) => f.write_str(&refusal.message()),
        }
    }
}

impl IntoResponse for ScicatError {
    fn into_response(self) -> Response {
        match self {
            Self::Said { status, body } => said(status, &body),
            Self::Refused(refusal) => render(&refusal),
        }
    }
}

/// Renders an error of the shell or the store in SciCat's shape.
pub fn render(refusal: &Refusal) -> Response {
    let status = refusal.status();
    let body = match (refusal, status) {
        (_, StatusCode::INTERNAL_SERVER_ERROR) => Value::from("Internal server error"),
        (Refusal::NotFound { path }, _) => json!({
            "message": format!("Cannot GET {path}"), "error": "Not Found", "statusCode": 404
        }),
        _ => json!({
            "message": refusal.message(),
            "error": status.canonical_reason().unwrap_or("Error"),
            "statusCode": status.as_u16(),
        }),
    };
    refusal.with_body(JSON, body.to_string())
}

fn said(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(axum::body::Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, JSON);
    response
}

impl From<Refusal> for ScicatError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for ScicatError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<pinakes_accounts::AccountsError> for ScicatError {
    fn from(error: pinakes_accounts::AccountsError) -> Self {
        Self::Refused(error.into())
    }
}
