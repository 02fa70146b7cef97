//! Texts and values of requests and answers.

use std::ops::Deref;

use http::StatusCode;
use pinakes_http::{Parameters, Stage, answer, stages};
use serde_json::{Map, Value};

use crate::platform::error::{Fault, FolioError};
use crate::platform::json;

/// Parses a UUID in its usual form of five groups; returns it in lower case.
pub(crate) fn parse_uuid(text: &str) -> Option<String> {
    (text.len() == 36).then(|| uuid::Uuid::parse_str(text).ok())?.map(|it| it.to_string())
}

/// Answers with JSON in this dialect's spacing.
pub(crate) fn json_answer(status: StatusCode, value: &Value) -> axum::response::Response {
    let body = stages::timed(Stage::Render, || json::bytes(value));
    answer::bytes(status, http::HeaderValue::from_static("application/json"), body)
}

/// Returns a field of a body that must be a text. Errors: 422 as for any missing property.
pub(crate) fn required_text<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a str, FolioError> {
    body.get(name).and_then(Value::as_str).ok_or_else(|| FolioError::unprocessable(Fault::missing(name)))
}

/// The query string of a request.
#[derive(Debug, Clone, Default)]
pub struct QueryText(Parameters);

impl Deref for QueryText {
    type Target = Parameters;

    fn deref(&self) -> &Parameters {
        &self.0
    }
}

impl QueryText {
    /// Parses the text after `?`.
    pub fn parse(query: &str) -> Self {
        Self(Parameters::parse(query))
    }

    /// Returns a whole number, or the default if it is not given.
    ///
    /// Errors: 400 in the wording of FOLIO's modules, `For input string: "abc"`.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, FolioError> {
        match self.get(name) {
            None | Some("") => Ok(default),
            Some(text) => match text.parse::<i64>() {
                Ok(number) if 0 <= number => Ok(number.unsigned_abs()),
                Ok(number) => Err(FolioError::bad_request(format!(
                    "'{name}' parameter is incorrect. parameter value {{{number}}} is not valid: must be greater than \
                     or equal to 0"
                ))),
                Err(_) => Err(FolioError::bad_request(format!("For input string: \"{text}\""))),
            },
        }
    }
}
