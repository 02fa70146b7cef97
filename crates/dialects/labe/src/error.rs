//! Errors at the start, and errors of requests in `labed`'s shape.

use std::path::PathBuf;

use axum::response::{IntoResponse, Response};
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderValue, StatusCode};
use pinakes_citations::GraphError;
use pinakes_citations::source::SourceError;
use pinakes_http::{Refusal, answer};
use pinakes_store::StoreError;

/// Reason why the dialect cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The graph cannot be opened.
    #[error("labe.graph: {0}")]
    Graph(#[from] GraphError),
    /// The graph's file cannot be accessed.
    #[error("labe.graph: {path}: {error}; build it with `pinakes citations build`")]
    GraphFile {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The table of ids cannot be read.
    #[error("labe.ids: {0}")]
    Ids(#[from] SourceError),
    /// The table of ids has too many rows to be held in memory.
    #[error(
        "labe.ids: {path} has more than {rows_max} rows; build them into the graph with \
         `pinakes citations build --ids`, or raise labe.ids_rows"
    )]
    IdsTooLong {
        /// The file.
        path: PathBuf,
        /// The limit.
        rows_max: usize,
    },
    /// A kind that does not exist on this server.
    #[error("labe.public_kinds: there is no kind {name:?}; known are {known}")]
    UnknownKind {
        /// The name in the setting.
        name: String,
        /// The existing kinds.
        known: String,
    },
}

/// Reason why a request of `labed`'s interface is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LabeError {
    /// The parameter `i` is not an ISIL.
    #[error("the parameter i is no ISIL")]
    Isil,
    /// No map contains the id.
    #[error("the id is not known")]
    UnknownId,
    /// A document's list of institutions is invalid.
    #[error("document {id:?}: institution is not a list of strings; import it anew with a list")]
    Institution {
        /// The document.
        id: String,
    },
    /// An error from the shell or the store.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl From<StoreError> for LabeError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.into())
    }
}

impl LabeError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Isil => StatusCode::BAD_REQUEST,
            Self::UnknownId => StatusCode::NOT_FOUND,
            Self::Institution { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Refused(refusal) => refusal.status(),
        }
    }
}

impl IntoResponse for LabeError {
    fn into_response(self) -> Response {
        match &self {
            Self::Refused(refusal) => render(refusal),
            Self::Institution { .. } => {
                tracing::error!(error = %self, "request failed");
                said(self.status())
            }
            Self::Isil | Self::UnknownId => said(self.status()),
        }
    }
}

/// Renders an error of the shell or the store in `labed`'s shape.
pub(crate) fn render(refusal: &Refusal) -> Response {
    if matches!(refusal, Refusal::NotFound { .. }) {
        return page_not_found();
    }
    let response = refusal.with_body(answer::TEXT, body(refusal.status()));
    nosniff(response)
}

/// Answers like `labed`'s router for unknown paths.
pub(crate) fn page_not_found() -> Response {
    nosniff(answer::text(StatusCode::NOT_FOUND, "404 page not found\n"))
}

fn said(status: StatusCode) -> Response {
    nosniff(answer::text(status, body(status)))
}

/// Renders the body of an error. `err` is always an empty object: programs use the status.
fn body(status: StatusCode) -> String {
    format!("{{\"status\":{},\"err\":{{}}}}\n", status.as_u16())
}

fn nosniff(mut response: Response) -> Response {
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
