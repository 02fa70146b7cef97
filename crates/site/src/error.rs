//! Errors of the site, which are shown as pages.

use std::path::PathBuf;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use pinakes_http::{Refusal, Unheard};

/// The site cannot be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The brand file cannot be read.
    #[error("site.brand: the style sheet {} cannot be read: {source}", path.display())]
    Brand {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A template or a text is invalid: a bug of ours.
    #[error("the template {name}: {reason}")]
    Template {
        /// Its name.
        name: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// Reason why a page is not shown. It is shown as a page in the visitor's language, or, if that fails, as
/// plain text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SiteError {
    /// There is nothing there, or nothing that the visitor may see: the two are not distinguished.
    #[error("there is nothing here, or nothing you may see")]
    NotFound,
    /// Signing in may help.
    #[error("sign in to see this page")]
    SignIn,
    /// The visitor is signed in but lacks the right.
    #[error("you may not do this")]
    Forbidden,
    /// A form of another site, or of an expired session.
    #[error("the form was not made by this site for this session; load the page again")]
    ForeignForm,
    /// A dialect could not be reached.
    #[error("the records cannot be shown: {0}")]
    Unheard(Unheard),
    /// A dialect failed.
    #[error("the records cannot be shown now (status {0})")]
    Failed(StatusCode),
    /// A page could not be rendered: a bug of ours.
    #[error("the page cannot be rendered: {0}")]
    Damaged(String),
    /// The shell refused.
    #[error(transparent)]
    Refused(Refusal),
}

impl<E: Into<Refusal>> From<E> for SiteError {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

impl SiteError {
    /// Converts a dialect's error status.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::SignIn,
            StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::GONE => {
                Self::NotFound
            }
            other => Self::Failed(other),
        }
    }

    /// Returns the status of the page.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::SignIn => StatusCode::UNAUTHORIZED,
            Self::Forbidden | Self::ForeignForm => StatusCode::FORBIDDEN,
            Self::Unheard(_) | Self::Failed(_) => StatusCode::BAD_GATEWAY,
            Self::Damaged(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Refused(refusal) => refusal.status(),
        }
    }

    /// Returns the key of the sentence that describes it.
    pub(crate) fn text_key(&self) -> &'static str {
        match self {
            Self::NotFound => "error_not_found",
            Self::SignIn => "error_sign_in",
            Self::Forbidden => "error_forbidden",
            Self::ForeignForm => "error_form",
            Self::Unheard(_) | Self::Failed(_) => "error_failed",
            Self::Damaged(_) | Self::Refused(_) => "error_damaged",
        }
    }
}

impl IntoResponse for SiteError {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(refusal) => refusal.plain(),
            other => pinakes_http::answer::text(other.status(), other.to_string()),
        }
    }
}

/// A page, or an error.
pub(crate) type Result<T> = std::result::Result<T, SiteError>;
