//! `If-Unmodified-Since`, as SciCat interprets it.

use http::header::IF_UNMODIFIED_SINCE;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};

use crate::dates;
use crate::error::ScicatError;

/// `If-Unmodified-Since`: a change is applied only if the record was not modified after this date. The comparison is
/// exact to the millisecond if the date contains milliseconds, as when a client sends back `updatedAt`; an HTTP date
/// covers a whole second. A date that cannot be parsed is ignored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Precondition(Option<Since>);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Since {
    ms: i64,
    /// Precision of the date, in milliseconds.
    unit_ms: i64,
}

impl Precondition {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = headers.get(IF_UNMODIFIED_SINCE).and_then(|it| it.to_str().ok());
        let since = |text: &str| {
            let unit_ms = if text.contains('.') { 1 } else { 1_000 };
            dates::parse_ms(text).map(|ms| Since { ms, unit_ms })
        };
        Self(text.and_then(since))
    }

    /// Refuses with 412 if the record has changed since; `what` and `place` are inserted into the message.
    pub(crate) fn check(
        self,
        what: &str,
        place: &str,
        id: &str,
        body: &Map<String, Value>,
    ) -> Result<(), ScicatError> {
        let Some(since) = self.0 else { return Ok(()) };
        let updated_ms = body.get("updatedAt").and_then(Value::as_str).and_then(dates::parse_ms).unwrap_or(0);
        if updated_ms.div_euclid(since.unit_ms) <= since.ms.div_euclid(since.unit_ms) {
            return Ok(());
        }
        let since = dates::format_http(since.ms);
        let message = format!("{what} #{id} has been modified {place} since {since}.");
        Err(ScicatError::with(StatusCode::PRECONDITION_FAILED, message))
    }
}
