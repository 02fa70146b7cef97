//! Editors for staff: metadata of datasets, topics, and mapping profiles of the library. Changes are saved through the
//! dialects' own routes, on behalf of the signed-in user, and only if the record has not changed since it was read.
//!
//! | file | what |
//! |---|---|
//! | `dataset.rs` | datasets of SciCat's dialect |
//! | `topic.rs`, `topic_form.rs` | topics of Conclave's dialect |
//! | `profile.rs`, `profile_form.rs` | mapping profiles of FOLIO's dialect, with a preview on a record |
//! | `marc_form.rs` | the changes of MARC fields in mapping profiles |

pub(crate) mod dataset;
mod marc_form;
pub(crate) mod profile;
mod profile_form;
pub(crate) mod topic;
mod topic_form;

use std::collections::BTreeMap;

use http::StatusCode;
use pinakes_http::Said;
use serde_json::Value;

use crate::app::Visitor;
use crate::error::{Result, SiteError};
use crate::fields::Fields;
use crate::record::text;

/// Maximum number of rows of one type in a form; further members of a record stay as they are.
const ROWS_MAX: usize = 200;
/// Number of empty rows that are added on request.
const MORE_ROWS: usize = 4;

/// Faults by the names of the form's fields.
type Faults = BTreeMap<String, String>;

/// The reason why nothing was saved.
#[derive(Debug, Default)]
struct Trouble {
    /// Somebody else has saved a change in between.
    is_conflict: bool,
    /// Faults of single fields.
    faults: Faults,
    /// The dialect's error message, if it names no field.
    refused: Option<String>,
}

impl Trouble {
    fn conflict() -> Self {
        Self { is_conflict: true, ..Self::default() }
    }

    fn of_faults(faults: Faults) -> Self {
        Self { faults, ..Self::default() }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self { is_conflict: true, .. } => StatusCode::CONFLICT,
            Self { refused: None, faults, .. } if faults.is_empty() => StatusCode::OK,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    /// Reads a dialect's answer: `None` if it has saved. `faults` extracts the faults of single fields from an answer.
    ///
    /// Errors: the dialect failed.
    fn of(visitor: &Visitor, said: &Said, faults: impl FnOnce(&Value) -> Faults) -> Result<Option<Self>> {
        if said.status.is_success() {
            return Ok(None);
        }
        let answer: Value = serde_json::from_slice(&said.body).unwrap_or(Value::Null);
        Ok(Some(match said.status {
            StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => Self::conflict(),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Self { refused: Some(visitor.text("error_forbidden")), ..Self::default() }
            }
            status if status.is_server_error() => return Err(SiteError::Failed(status)),
            _ => match faults(&answer) {
                faults if faults.is_empty() => {
                    Self { refused: Some(reason(said, &answer)), ..Self::default() }
                }
                faults => Self::of_faults(faults),
            },
        }))
    }
}

/// Returns the message of an error, from wherever the dialect puts it.
fn reason(said: &Said, answer: &Value) -> String {
    let places = ["message", "detail", "title"];
    let of_list = answer.get("errors").and_then(|it| it.get(0)).map(|it| text(it, "message"));
    let named = places.iter().map(|it| text(answer, it)).chain(of_list).find(|it| !it.is_empty());
    let plain = || String::from_utf8_lossy(&said.body).trim().to_owned();
    let whole = named.unwrap_or_else(plain);
    let whole = if whole.is_empty() { said.status.to_string() } else { whole };
    whole.chars().take(500).collect()
}

/// Returns the number of rows of a form that were sent: `part.0.name`, `part.1.name` and so on.
fn n_rows(sent: &Fields, part: &str, first: &str) -> usize {
    (0..ROWS_MAX).take_while(|at| sent.has(&format!("{part}.{at}.{first}"))).count()
}

fn cell(sent: &Fields, part: &str, at: usize, name: &str) -> String {
    sent.text(&format!("{part}.{at}.{name}")).replace("\r\n", "\n")
}

/// Returns the lines that are not empty.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Returns how many rows a form shows: one empty one, or some more on request.
fn with_empty(n_now: usize, is_more_wanted: bool) -> usize {
    (n_now + if is_more_wanted { MORE_ROWS } else { 1 }).min(ROWS_MAX.max(n_now))
}
