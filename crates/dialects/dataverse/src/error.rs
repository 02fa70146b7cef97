//! Errors in Dataverse's formats (section 0.2 of the contract).

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode};
use pinakes_accounts::AccountsError;
use pinakes_http::{Refusal, answer};
use pinakes_store::StoreError;
use serde_json::{Map, Value, json};

/// Result of handlers.
pub(crate) type Answer = Result<Response, ApiError>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An error: `{"status":"ERROR","message":…}`, in some cases with further members.
#[derive(Debug)]
pub struct ApiError {
    /// Status of the answer.
    pub status: StatusCode,
    /// What is wrong.
    pub message: String,
    /// Further members of the envelope, e.g. `fieldErrors`.
    pub more: Map<String, Value>,
    /// A refusal of the shell's helpers, which adds `Retry-After` and is logged.
    refused: Option<Box<Refusal>>,
}

impl ApiError {
    /// Returns an error with a status and a message.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), more: Map::new(), refused: None }
    }

    /// Returns a 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Returns a 401: the caller lacks the right.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    /// Returns a 403: not allowed in the current state.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// Returns a 404: there is no such object.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// Returns a 409: conflicts with the existing state.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// Returns a 500 with a text that clients expect (collections with unusable fields).
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Adds a member to the envelope.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the error in the router's format: with `code`, `requestUrl` and `requestMethod`.
    #[must_use]
    pub fn routed(self, url: &str, method: &str) -> Self {
        let code = self.status.as_u16();
        self.with("code", code).with("requestUrl", url).with("requestMethod", method)
    }

    fn json(&self) -> Value {
        let mut map = Map::new();
        map.insert("status".into(), "ERROR".into());
        if let Some(code) = self.more.get("code") {
            map.insert("code".into(), code.clone());
        }
        map.insert("message".into(), self.message.as_str().into());
        map.extend(self.more.iter().filter(|(name, _)| *name != "code").map(|(k, v)| (k.clone(), v.clone())));
        Value::Object(map)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match &self.refused {
            Some(refusal) => render(refusal),
            None => answer::bytes(self.status, JSON, self.json().to_string()),
        }
    }
}

/// Renders refusals of the shell in the envelope.
pub(crate) fn render(refusal: &Refusal) -> Response {
    let body = if refusal.status() == StatusCode::INTERNAL_SERVER_ERROR {
        let message = "Internal server error. More details available at the server logs.";
        json!({"status": "ERROR", "code": 500, "message": message})
    } else {
        json!({"status": "ERROR", "message": refusal.message()})
    };
    refusal.with_body(JSON, body.to_string())
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        if let Refusal::Json(fault) = &refusal {
            return Self::bad_request(format!("Error parsing Json: {fault}"));
        }
        Self { refused: Some(Box::new(refusal)), ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "") }.named()
    }
}

impl ApiError {
    /// Sets status and message from the wrapped refusal.
    fn named(mut self) -> Self {
        if let Some(refusal) = &self.refused {
            (self.status, self.message) = (refusal.status(), refusal.message());
        }
        self
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Refusal::from(error).into()
    }
}

impl From<AccountsError> for ApiError {
    fn from(error: AccountsError) -> Self {
        Refusal::from(error).into()
    }
}
