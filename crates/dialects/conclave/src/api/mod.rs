//! The HTTP API below `/topics/v1` (section 10 of the contract). Ids hold slashes, so they travel as parameters.

mod arcs;
mod batch;
mod exchange;
mod finding;
mod members;
mod neighbours;
mod topics;

use axum::Router;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};

use crate::app::Conclave;
use crate::edit::{Edit, Found};
use crate::error::{ConclaveError, Result};
use crate::text::hash;

pub(crate) use exchange::written;
pub(crate) use finding::Search;
pub(crate) use neighbours::{Which, navigation_view, pointing_page};

/// What handlers give.
pub(crate) type Answer = Result<Response>;

pub(crate) fn routes() -> Router<Conclave> {
    Router::new()
        .merge(topics::routes())
        .merge(finding::routes())
        .merge(members::routes())
        .merge(arcs::routes())
        .merge(neighbours::routes())
        .merge(batch::routes())
        .merge(exchange::routes())
}

/// The tag of a topic's document: its revision, and what else decides the bytes.
pub(crate) fn tag(found: &Found, form: &[String]) -> String {
    let form: Vec<&str> = form.iter().map(String::as_str).collect();
    format!("\"{}\"", mark((found.version, found.sequence), &form))
}

/// The same without quotes, of version and sequence. What decides the bytes is hashed: it may hold anything.
pub(crate) fn mark((version, sequence): (u64, u64), form: &[&str]) -> String {
    let form = hash(form.join("\u{1F}").as_bytes());
    format!("{version:x}-{sequence:x}-{form:x}")
}

/// Whether the client has a document of this tag already.
pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lists = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    let tag = tag.trim_start_matches("W/");
    lists
        .flat_map(|it| it.split(','))
        .map(str::trim)
        .any(|it| it == "*" || it.trim_start_matches("W/") == tag)
}

/// 304 with the tag.
pub(crate) fn not_modified(tag: &str) -> Response {
    let response = pinakes_http::answer::empty(http::StatusCode::NOT_MODIFIED);
    pinakes_http::answer::with_header(response, ETAG, tag)
}

/// What `If-Match` and `If-None-Match` ask of a write: checked in the transaction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Condition {
    if_match: Option<String>,
    is_create_only: bool,
}

impl Condition {
    pub(crate) fn of(headers: &HeaderMap) -> Condition {
        let text = |name| headers.get(name).and_then(|it| it.to_str().ok()).map(str::trim);
        Condition {
            if_match: text(IF_MATCH).map(str::to_owned),
            is_create_only: text(IF_NONE_MATCH) == Some("*"),
        }
    }

    /// Errors: 412 when the topic is not as the caller believes. `version` is 0 where there is none.
    pub(crate) fn check(&self, version: u64) -> Result<()> {
        if self.is_create_only && version != 0 {
            return Err(ConclaveError::precondition(
                "the topic exists, and If-None-Match: * asks that it does not",
            ));
        }
        self.is_met(version)
    }

    /// What `If-Match` asks of a write to a member: the revision is that of its topic.
    pub(crate) fn check_match(&self, edit: &mut Edit<'_, '_>, parent: &str) -> Result<()> {
        if self.if_match.is_none() {
            return Ok(());
        }
        let version = edit.version_of_parent(parent)?;
        self.is_met(version)
    }

    fn is_met(&self, version: u64) -> Result<()> {
        let Some(wanted) = &self.if_match else { return Ok(()) };
        let is_met = match wanted.as_str() {
            "*" => version != 0,
            wanted => wanted.split(',').any(|it| {
                let digits =
                    it.trim().trim_start_matches("W/").trim_matches('"').split('-').next().unwrap_or("");
                u64::from_str_radix(digits, 16) == Ok(version) && version != 0
            }),
        };
        if is_met {
            return Ok(());
        }
        Err(ConclaveError::precondition(format!(
            "the topic was changed meanwhile: its revision is {version:x}, If-Match asks for {wanted}"
        )))
    }
}

/// A position in a list, as clients hand it back.
pub(crate) fn cursor(parts: &[&str]) -> String {
    URL_SAFE_NO_PAD.encode(parts.join("\n"))
}

/// The parts of a position. Errors: 400 for what never was one.
pub(crate) fn cursor_parts(text: &str) -> Result<Vec<String>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok().and_then(|it| String::from_utf8(it).ok());
    let parts = bytes.ok_or_else(|| {
        ConclaveError::bad_request(format!("after is {text:?}; expected what an earlier answer gave as next"))
    })?;
    Ok(parts.split('\n').map(str::to_owned).collect())
}
