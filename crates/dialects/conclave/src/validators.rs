//! Entity tags and dates for caches, and conditional writes.

use axum::response::Response;
use http::header::{CACHE_CONTROL, ETAG, IF_MATCH, IF_NONE_MATCH, LAST_MODIFIED, VARY};
use http::{HeaderMap, HeaderValue};

use crate::call::Reading;
use crate::edit::{Edit, Found};
use crate::error::{ConclaveError, Result};
use crate::text::hash;

/// Returns the entity tag of a topic's document: its revision, and what else the bytes depend on.
pub(crate) fn tag(found: &Found, form: &[String]) -> String {
    let form: Vec<&str> = form.iter().map(String::as_str).collect();
    format!("\"{}\"", mark((found.version, found.sequence), &form))
}

/// Returns the tag, without quotes, for a version and sequence. `form`, which may be any text, is hashed.
pub(crate) fn mark((version, sequence): (u64, u64), form: &[&str]) -> String {
    let form = hash(form.join("\u{1F}").as_bytes());
    format!("{version:x}-{sequence:x}-{form:x}")
}

/// Returns whether the client already has the document with this tag.
pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lists = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    let tag = tag.trim_start_matches("W/");
    lists
        .flat_map(|it| it.split(','))
        .map(str::trim)
        .any(|it| it == "*" || it.trim_start_matches("W/") == tag)
}

/// Returns a 304 with the tag.
pub(crate) fn not_modified(tag: &str) -> Response {
    let response = pinakes_http::answer::empty(http::StatusCode::NOT_MODIFIED);
    pinakes_http::answer::with_header(response, ETAG, tag)
}

/// The condition of `If-Match` and `If-None-Match` on a write, checked in its transaction.
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

    /// Checks the condition. Errors: 412 if it is not met. `version` is 0 if there is no topic.
    pub(crate) fn check(&self, version: u64) -> Result<()> {
        if self.is_create_only && version != 0 {
            return Err(ConclaveError::precondition(
                "the topic exists, and If-None-Match: * asks that it does not",
            ));
        }
        self.is_met(version)
    }

    /// Checks `If-Match` for a write to a member, whose revision is that of its topic.
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

/// Adds the header fields for caches to an answer.
pub(crate) fn cached(call: &Reading, mut response: Response, modified_ms: i64) -> Response {
    let headers = response.headers_mut();
    let cache = match (call.asker.caller.is_anonymous(), call.app.settings.max_age_s) {
        (true, seconds) if seconds > 0 => HeaderValue::from_str(&format!("public, max-age={seconds}")).ok(),
        _ => None,
    };
    headers.insert(CACHE_CONTROL, cache.unwrap_or(HeaderValue::from_static("no-cache")));
    headers.insert(VARY, HeaderValue::from_static("Accept, Cookie"));
    if let Some(value) = http_date(modified_ms) {
        headers.insert(LAST_MODIFIED, value);
    }
    response
}

pub(crate) const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

pub(crate) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Returns a time in the format of HTTP (RFC 9110, section 5.6.7).
pub(crate) fn http_date(ms: i64) -> Option<HeaderValue> {
    let at = time::OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000)).ok().filter(|_| ms > 0)?;
    let (date, time) = (at.date(), at.time());
    let day = DAYS[usize::from(date.weekday().number_days_from_monday())];
    let month = MONTHS[usize::from(u8::from(date.month())) - 1];
    let (hour, minute, second) = time.as_hms();
    let text =
        format!("{day}, {:02} {month} {} {hour:02}:{minute:02}:{second:02} GMT", date.day(), date.year());
    HeaderValue::try_from(text).ok()
}
