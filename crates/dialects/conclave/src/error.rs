//! Errors of the dialect, as `application/problem+json` (RFC 9457; section 10 of the contract).

use axum::response::{IntoResponse, Response};
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};
use pinakes_accounts::AccountsError;
use pinakes_http::Refusal;
use pinakes_store::StoreError;
use serde_json::json;

/// Result of the dialect's functions.
pub type Result<T> = std::result::Result<T, ConclaveError>;

/// Why a request was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConclaveError {
    /// Refused by the dialect itself.
    #[error("{detail}")]
    Refused {
        /// Status of the answer.
        status: StatusCode,
        /// What is wrong, with which input, and what was expected.
        detail: String,
    },
    /// Refused by the shell's helpers or by the store.
    #[error(transparent)]
    Shell(#[from] Refusal),
}

impl ConclaveError {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::Refused { status, detail: detail.into() }
    }

    /// Returns a 400: the request is malformed.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Returns a 401: nobody is signed in.
    pub fn unauthenticated() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "sign in to do this")
    }

    /// Returns a 401: name and password do not match. Says no more than that.
    pub fn wrong_password() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "name and password do not belong together")
    }

    /// Returns a 403: the caller lacks the right.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// Returns a 404.
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    /// Returns a 404 for a topic.
    pub fn no_topic(id: &str) -> Self {
        Self::not_found(format!("there is no topic {id:?}"))
    }

    /// Returns a 409: the object already exists.
    pub fn exists(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// Returns a 412: the object was changed meanwhile.
    pub fn precondition(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, detail)
    }

    /// Returns a 422: a rule of the model forbids it.
    pub fn rule(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Returns a 500: what is stored cannot be read.
    pub(crate) fn damaged(reason: String) -> Self {
        Self::Shell(Refusal::Store(StoreError::Damaged(reason)))
    }

    /// Returns the status of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Refused { status, .. } => *status,
            Self::Shell(refusal) => refusal.status(),
        }
    }

    /// Returns the message for the client.
    pub fn detail(&self) -> String {
        match self {
            Self::Refused { detail, .. } => detail.clone(),
            Self::Shell(refusal) => refusal.message(),
        }
    }
}

impl From<StoreError> for ConclaveError {
    fn from(error: StoreError) -> Self {
        Self::Shell(error.into())
    }
}

impl From<AccountsError> for ConclaveError {
    fn from(error: AccountsError) -> Self {
        Self::Shell(error.into())
    }
}

impl From<pinakes_topicmap::Error> for ConclaveError {
    fn from(error: pinakes_topicmap::Error) -> Self {
        Self::rule(error.to_string())
    }
}

impl IntoResponse for ConclaveError {
    fn into_response(self) -> Response {
        let problem = HeaderValue::from_static("application/problem+json");
        let status = self.status();
        let title = status.canonical_reason().unwrap_or("Error");
        let body = json!({"status": status.as_u16(), "title": title, "detail": self.detail()}).to_string();
        let told = Told { status, detail: self.detail() };
        let mut response = match self {
            Self::Shell(refusal) => refusal.with_body(problem, body),
            Self::Refused { .. } => pinakes_http::answer::bytes(status, problem, body),
        };
        if status == StatusCode::UNAUTHORIZED {
            // RFC 9110, section 15.5.2: names the accepted schemes.
            let basic = HeaderValue::from_static("Basic realm=\"topics\", charset=\"UTF-8\"");
            response.headers_mut().append(WWW_AUTHENTICATE, basic);
            response.headers_mut().append(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(told);
        response
    }
}

/// A refusal that is kept beside the body, so that it can be rendered as a page.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// Status of the answer.
    pub(crate) status: StatusCode,
    /// What is wrong.
    pub(crate) detail: String,
}

/// Renders the shell's own refusals in this dialect's format.
pub(crate) fn render(refusal: Refusal) -> Response {
    ConclaveError::Shell(refusal).into_response()
}
