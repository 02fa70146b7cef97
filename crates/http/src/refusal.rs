//! Refusals of the shell and its helpers, before or beside a dialect's own errors.
//!
//! A dialect renders a [`Refusal`] in its own shape (`Mount::refuse`, or `From<Refusal>` of its error type);
//! the shell renders those of its own routes with [`Refusal::plain`].

use axum::response::Response;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use pinakes_accounts::AccountsError;
use pinakes_store::StoreError;

use crate::json::JsonFault;

/// Why a request was not served.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No dialect is mounted there, or it has no such route.
    #[error("nothing is served at {path:?}")]
    NotFound {
        /// The path asked for.
        path: String,
    },
    /// The body is longer than the route accepts.
    #[error("the body is larger than {limit_bytes} bytes{}", stated(*.stated_bytes))]
    BodyTooLarge {
        /// Maximum number of bytes.
        limit_bytes: u64,
        /// What `Content-Length` says, if it was given.
        stated_bytes: Option<u64>,
    },
    /// The client stopped sending.
    #[error("no byte of the body arrived for {timeout_ms} ms")]
    BodyTimeout {
        /// The longest pause allowed.
        timeout_ms: u64,
    },
    /// The client sends too slowly.
    #[error("the body arrived too slowly; at least {least_bytes_s} bytes per second are expected on average")]
    BodyTooSlow {
        /// The minimum speed.
        least_bytes_s: u64,
    },
    /// The body ended early or its framing is wrong.
    #[error("the body could not be received: {0}")]
    BodyBroken(String),
    /// The body is compressed with an unsupported encoding.
    #[error(
        "unsupported content encoding {found:?}; send the body as it is, or as gzip, deflate, br or zstd"
    )]
    Encoding {
        /// What `Content-Encoding` says.
        found: String,
    },
    /// The body is not the expected JSON.
    #[error(transparent)]
    Json(JsonFault),
    /// The tenant named in the request is not a valid name.
    #[error("the header {header} does not name a tenant")]
    TenantHeader {
        /// The header.
        header: &'static str,
    },
    /// Two different tokens came with one request.
    #[error("the request carries two different tokens ({0}); send one")]
    TwoTokens(String),
    /// The host is missing, or given more than once.
    #[error("a request names the host in one field Host, {n_found} were found")]
    Host {
        /// Number of fields of that name.
        n_found: usize,
    },
    /// No answer began in time.
    #[error("no answer after {timeout_ms} ms")]
    Timeout {
        /// The longest time until an answer must begin.
        timeout_ms: u64,
    },
    /// A handler panicked: a bug. The details are in the log, under the request's id.
    #[error("a fault in the server; its log has the details")]
    Panic,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Draining,
    /// Accounts refused or failed.
    #[error(transparent)]
    Accounts(AccountsError),
    /// The store refused or failed.
    #[error(transparent)]
    Store(StoreError),
}

fn stated(bytes: Option<u64>) -> String {
    bytes.map_or_else(String::new, |it| format!(" ({it} are announced)"))
}

impl Refusal {
    /// Returns the status for it.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotFound { .. } => StatusCode::NOT_FOUND,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout { .. } | Self::BodyTooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Encoding { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::BodyBroken(_)
            | Self::Json(_)
            | Self::TenantHeader { .. }
            | Self::TwoTokens(_)
            | Self::Host { .. } => StatusCode::BAD_REQUEST,
            Self::Timeout { .. } | Self::Draining => StatusCode::SERVICE_UNAVAILABLE,
            Self::Panic => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Accounts(AccountsError::Store(error)) | Self::Store(error) => status_of_store(error),
            Self::Accounts(error) => status_of_accounts(error),
        }
    }

    /// Returns the seconds after which a retry makes sense, for `Retry-After`.
    pub fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::Accounts(AccountsError::Store(error)) | Self::Store(error) => retry_after_s(error),
            Self::Accounts(
                AccountsError::Busy { retry_after_s, .. } | AccountsError::TooManyFailures { retry_after_s },
            ) => Some(*retry_after_s),
            Self::Draining | Self::Timeout { .. } => Some(1),
            _ => None,
        }
    }

    /// Returns the message for the client. Internal faults, and where data are, are described only in the log.
    pub fn message(&self) -> String {
        if self.status() == StatusCode::INTERNAL_SERVER_ERROR {
            Self::Panic.to_string()
        } else if self.is_newer_format() {
            "the data were written by a newer version of this server; its log has the details".to_owned()
        } else {
            self.to_string()
        }
    }

    fn is_newer_format(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::Newer { .. })
                | Self::Accounts(AccountsError::Store(StoreError::Newer { .. }))
        )
    }

    /// Makes the answer where no dialect's shape applies: `{"error":{"status":404,"message":"…"}}`.
    pub fn plain(self) -> Response {
        let status = self.status();
        let body = serde_json::json!({"error": {"status": status.as_u16(), "message": self.message()}});
        self.with_body(HeaderValue::from_static("application/json; charset=utf-8"), body.to_string())
    }

    /// Makes an answer with the status, `Retry-After` where it belongs, and a body of the dialect's. Logs
    /// internal faults, once.
    pub fn with_body(&self, content_type: HeaderValue, body: impl Into<Bytes>) -> Response {
        self.log();
        let mut response = Response::new(axum::body::Body::from(body.into()));
        *response.status_mut() = self.status();
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        if let Some(seconds) = self.retry_after_s() {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }

    /// Writes what an operator has to mend to the log; client errors are in the access log already.
    pub fn log(&self) {
        // A panic was logged where it was caught.
        let is_fault = self.status() == StatusCode::INTERNAL_SERVER_ERROR && !matches!(self, Self::Panic);
        if is_fault || self.is_newer_format() {
            tracing::error!(error = %self, "request failed");
        }
    }
}

/// Returns the status for an error of the store.
pub fn status_of_store(error: &StoreError) -> StatusCode {
    match error {
        StoreError::Duplicate { .. } | StoreError::TenantExists(_) | StoreError::LeaseLost { .. } => {
            StatusCode::CONFLICT
        }
        StoreError::Missing { .. } => StatusCode::NOT_FOUND,
        StoreError::UnknownTenant(_) | StoreError::TenantName(_) | StoreError::Query(_) => {
            StatusCode::BAD_REQUEST
        }
        StoreError::Busy { .. }
        | StoreError::Crowded { .. }
        | StoreError::Remaking { .. }
        | StoreError::Halted(_)
        | StoreError::NotFlushed(_)
        | StoreError::Commit(_)
        | StoreError::Closed
        | StoreError::Conflict(_)
        | StoreError::Unavailable(_)
        | StoreError::Uncertain(_)
        | StoreError::Newer { .. }
        | StoreError::TooLong => StatusCode::SERVICE_UNAVAILABLE,
        StoreError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns the seconds after which a request that the store refused may work.
pub fn retry_after_s(error: &StoreError) -> Option<u32> {
    match error {
        StoreError::Busy { retry_after_s, .. }
        | StoreError::Crowded { retry_after_s, .. }
        | StoreError::Remaking { retry_after_s, .. } => Some(*retry_after_s),
        StoreError::Closed | StoreError::Conflict(_) | StoreError::Unavailable(_) => Some(1),
        _ => None,
    }
}

fn status_of_accounts(error: &AccountsError) -> StatusCode {
    match error {
        AccountsError::UsernameTaken(_)
        | AccountsError::IdTaken { .. }
        | AccountsError::TokenNameTaken { .. } => StatusCode::CONFLICT,
        AccountsError::UnknownUser(_) | AccountsError::UnknownToken(_) => StatusCode::NOT_FOUND,
        AccountsError::Username { .. }
        | AccountsError::UserId(_)
        | AccountsError::Password { .. }
        | AccountsError::FunctionalAccounts(_) => StatusCode::BAD_REQUEST,
        AccountsError::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
        AccountsError::TooManyFailures { .. } => StatusCode::TOO_MANY_REQUESTS,
        AccountsError::Elsewhere { .. } => StatusCode::BAD_GATEWAY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<AccountsError> for Refusal {
    fn from(error: AccountsError) -> Self {
        match error {
            AccountsError::Store(error) => Self::Store(error),
            other => Self::Accounts(other),
        }
    }
}

impl From<JsonFault> for Refusal {
    fn from(fault: JsonFault) -> Self {
        Self::Json(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_format_is_no_fault_and_its_place_stays_in_the_log() {
        let newer = || StoreError::Newer { place: "/var/lib/pinakes/a.db".into(), found: 9, known: 4 };
        for refusal in [Refusal::from(newer()), Refusal::from(AccountsError::Store(newer()))] {
            assert_eq!(refusal.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(
                refusal.message(),
                "the data were written by a newer version of this server; its log has the details"
            );
        }
    }
}
