//! Editors for staff: metadata of datasets, topics, and mapping profiles of the library. What they save goes through the
//! dialects' own routes, in the name of whoever is signed in, and only onto the record as it was read.
//!
//! | file | what |
//! |---|---|
//! | `dataset.rs` | datasets of SciCat's dialect |
//! | `topic.rs`, `topic_form.rs` | topics of Conclave's dialect |
//! | `profile.rs`, `profile_form.rs` | mapping profiles of FOLIO's dialect, with a preview on a record |
//! | `marc_form.rs` | the changes of MARC fields that they make |

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

/// Most rows of one sort that a form has; what a record has beyond stays as it is.
const ROWS_MAX: usize = 200;
/// Empty rows that are added when more are asked for.
const MORE_ROWS: usize = 4;

/// What is wrong with fields of a form, by their names.
type Faults = BTreeMap<String, String>;

/// What became of an attempt to save, where nothing was saved.
#[derive(Debug, Default)]
struct Trouble {
    /// Somebody else has saved in between.
    is_conflict: bool,
    /// What is wrong with single fields.
    faults: Faults,
    /// What the dialect said, where it names no field.
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

    /// Of a dialect's answer: nothing where it has saved. `faults` finds what an answer says about single fields.
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

/// The sentence of a refusal, wherever the dialect puts it.
fn reason(said: &Said, answer: &Value) -> String {
    let places = ["message", "detail", "title"];
    let of_list = answer.get("errors").and_then(|it| it.get(0)).map(|it| text(it, "message"));
    let named = places.iter().map(|it| text(answer, it)).chain(of_list).find(|it| !it.is_empty());
    let plain = || String::from_utf8_lossy(&said.body).trim().to_owned();
    let whole = named.unwrap_or_else(plain);
    let whole = if whole.is_empty() { said.status.to_string() } else { whole };
    whole.chars().take(500).collect()
}

/// Rows of a form: `part.0.name`, `part.1.name` and so on, as far as they were sent.
fn n_rows(sent: &Fields, part: &str, first: &str) -> usize {
    (0..ROWS_MAX).take_while(|at| sent.has(&format!("{part}.{at}.{first}"))).count()
}

fn cell(sent: &Fields, part: &str, at: usize, name: &str) -> String {
    sent.text(&format!("{part}.{at}.{name}")).replace("\r\n", "\n")
}

/// Lines that say something.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// How many rows a form shows: one to write into, or some more where more are asked for.
fn with_empty(n_now: usize, is_more_wanted: bool) -> usize {
    (n_now + if is_more_wanted { MORE_ROWS } else { 1 }).min(ROWS_MAX.max(n_now))
}
