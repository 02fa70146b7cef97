//! FOLIO's error answers: plain text, or a list of errors with parameters (sections 1.1 and 1.3 of the contract).

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode};
use pinakes_accounts::AccountsError;
use pinakes_http::{Refusal, answer};
use pinakes_store::StoreError;
use serde_json::{Value, json};

use crate::platform::json;

/// The result of a handler.
pub type Answer = Result<Response, FolioError>;

/// `text/plain` as FOLIO sends it.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An error in FOLIO's format.
#[derive(Debug)]
pub struct FolioError {
    /// Status of the answer.
    pub status: StatusCode,
    /// Its body.
    pub shape: Shape,
}

/// The body of an error answer.
#[derive(Debug)]
pub enum Shape {
    /// `text/plain`.
    Text(String),
    /// JSON in another format.
    Json(String),
    /// `{"errors":[…],"total_records":n}`.
    Errors(Vec<Fault>),
    /// An error of the shell's helpers, with its own status and `Retry-After`.
    Refused(Refusal),
}

/// One entry of `errors`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fault {
    /// The error message.
    pub message: String,
    /// `type`, omitted if empty.
    pub ty: String,
    /// `code`, omitted if empty.
    pub code: String,
    /// Names and values.
    pub parameters: Vec<(String, String)>,
    /// `overridableBlock`: the block that staff may override.
    pub overridable: Option<Value>,
}

impl Fault {
    /// Creates a fault with a message only.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Adds a type.
    pub fn ty(mut self, ty: impl Into<String>) -> Self {
        self.ty = ty.into();
        self
    }

    /// Adds a code.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    /// Adds a parameter.
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((key.into(), value.into()));
        self
    }

    /// Adds the block that staff with the right permissions may override.
    pub fn overridable(mut self, block: Value) -> Self {
        self.overridable = Some(block);
        self
    }

    /// Creates the fault for a missing required property.
    pub fn missing(property: &str) -> Self {
        Self::new("must not be null")
            .ty("1")
            .code("jakarta.validation.constraints.NotNull.message")
            .with(property, "null")
    }

    fn json(&self) -> Value {
        let mut map = serde_json::Map::new();
        map.insert("message".into(), self.message.as_str().into());
        for (name, value) in [("type", &self.ty), ("code", &self.code)] {
            if !value.is_empty() {
                map.insert(name.into(), value.as_str().into());
            }
        }
        let parameters = self.parameters.iter().map(|(key, value)| json!({"key": key, "value": value}));
        map.insert("parameters".into(), parameters.collect());
        map.extend(self.overridable.iter().map(|block| ("overridableBlock".to_owned(), block.clone())));
        Value::Object(map)
    }
}

impl FolioError {
    /// Creates an answer in plain text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, shape: Shape::Text(text.into()) }
    }

    /// Creates a 400 in plain text.
    pub fn bad_request(text: impl Into<String>) -> Self {
        Self::text(StatusCode::BAD_REQUEST, text)
    }

    /// Creates a 404 in plain text.
    pub fn not_found(text: impl Into<String>) -> Self {
        Self::text(StatusCode::NOT_FOUND, text)
    }

    /// Creates a 422 with one entry.
    pub fn unprocessable(fault: Fault) -> Self {
        Self::faults(StatusCode::UNPROCESSABLE_ENTITY, vec![fault])
    }

    /// Creates an answer with several entries.
    pub fn faults(status: StatusCode, faults: Vec<Fault>) -> Self {
        Self { status, shape: Shape::Errors(faults) }
    }

    /// Returns the first message, for logs and for answers that count failures.
    pub fn message(&self) -> String {
        match &self.shape {
            Shape::Text(text) | Shape::Json(text) => text.clone(),
            Shape::Errors(faults) => {
                faults.iter().map(|it| it.message.as_str()).collect::<Vec<_>>().join("; ")
            }
            Shape::Refused(refusal) => refusal.message(),
        }
    }
}

impl fmt::Display for FolioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl std::error::Error for FolioError {}

impl IntoResponse for FolioError {
    fn into_response(self) -> Response {
        match self.shape {
            Shape::Text(text) => answer::bytes(self.status, TEXT, text),
            Shape::Json(text) => answer::bytes(self.status, JSON, text),
            Shape::Errors(faults) => {
                let list: Vec<Value> = faults.iter().map(Fault::json).collect();
                let body = json!({"errors": list, "total_records": faults.len()});
                answer::bytes(self.status, JSON, json::bytes(&body))
            }
            Shape::Refused(refusal) => render(&refusal),
        }
    }
}

/// Renders an error of the shell as plain text.
pub(crate) fn render(refusal: &Refusal) -> Response {
    refusal.with_body(TEXT, refusal.message())
}

impl From<Refusal> for FolioError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(StoreError::UnknownTenant(name) | StoreError::TenantName(name)) => {
                Self::bad_request(format!("No such Tenant {name}"))
            }
            other => Self { status: other.status(), shape: Shape::Refused(other) },
        }
    }
}

impl From<StoreError> for FolioError {
    fn from(error: StoreError) -> Self {
        Refusal::from(error).into()
    }
}

impl From<AccountsError> for FolioError {
    fn from(error: AccountsError) -> Self {
        Refusal::from(error).into()
    }
}
