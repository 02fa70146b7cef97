//! What is wrong with a record that the editor sends.

use http::StatusCode;
use serde_json::{Value, json};

use super::unprocessable;
use super::wire::subfields;
use crate::error::{FolioError, Shape};
use crate::json::{self, text_at};

/// Tags that a record of holdings has once, and must have.
const OF_HOLDINGS: [&str; 3] = ["004", "008", "852"];

fn tags(body: &Value) -> Vec<&str> {
    let fields = body.get("fields").and_then(Value::as_array).into_iter().flatten();
    fields.filter_map(|it| text_at(it, "tag")).collect()
}

fn issue(tag: &str, at: usize, message: &str) -> Value {
    json!({
        "tag": format!("{tag}[{at}]"), "severity": "error", "definitionType": "field", "message": message,
        "helpUrl": format!("https://www.loc.gov/marc/{tag}.html"),
    })
}

/// The issues of a bibliographic or authority record, as the specifications of MARC 21 have them.
pub(super) fn issues(body: &Value) -> Vec<Value> {
    let tags = tags(body);
    match text_at(body, "marcFormat").unwrap_or("BIBLIOGRAPHIC") {
        "AUTHORITY" => {
            const WANTED: &str = "Field 1XX is non-repeatable and required.";
            let headings: Vec<&str> = tags.iter().copied().filter(|it| it.starts_with('1')).collect();
            let mut issues = Vec::new();
            match headings.as_slice() {
                [] => issues.push(issue("1XX", 0, WANTED)),
                [_] => {}
                several => {
                    for (n, tag) in several.iter().enumerate() {
                        let at = several[..n].iter().filter(|it| *it == tag).count();
                        issues.push(issue(tag, at, WANTED));
                        if 0 < at {
                            issues.push(issue(tag, at, "Field is non-repeatable."));
                        }
                    }
                }
            }
            issues
        }
        "BIBLIOGRAPHIC" => {
            let mut issues = Vec::new();
            match tags.iter().filter(|it| **it == "245").count() {
                0 => issues.push(issue("245", 0, "Field 245 is required.")),
                1 => {}
                n => issues.extend((1..n).map(|at| issue("245", at, "Field is non-repeatable."))),
            }
            issues.extend(
                (1..tags.iter().filter(|it| it.starts_with('1')).count())
                    .map(|at| issue("1XX", at, "Field 1XX is non-repeatable.")),
            );
            issues
        }
        _ => Vec::new(),
    }
}

/// The same for a record that is new: its control number is made when it brings none.
pub(super) fn refuse_new(body: &Value, format: &str) -> Result<(), FolioError> {
    refuse(body, format)
}

/// Refuses a record that cannot be stored so.
///
/// Errors: 422 with `issues`, or with the message of one rule.
pub(super) fn refuse(body: &Value, format: &str) -> Result<(), FolioError> {
    let tags = tags(body);
    if format == "HOLDINGS" {
        for tag in OF_HOLDINGS {
            match tags.iter().filter(|it| **it == tag).count() {
                0 => return Err(unprocessable("Is required tag")),
                1 => {}
                _ => return Err(unprocessable("Is unique tag")),
            }
        }
    }
    for tag in ["001", "008"] {
        if 1 < tags.iter().filter(|it| **it == tag).count() {
            return Err(unprocessable("Is unique tag"));
        }
    }
    for field in body.get("fields").and_then(Value::as_array).into_iter().flatten() {
        let content = field.get("content").and_then(Value::as_str).unwrap_or_default();
        let is_linked = field.get("linkDetails").is_some_and(Value::is_object);
        let subfields = subfields(content);
        if is_linked && subfields.iter().filter(|it| it.0 == '9').count() > 1 {
            return Err(unprocessable("$9 is an invalid subfield for linkable bib fields"));
        }
    }
    let issues = issues(body);
    if issues.is_empty() {
        return Ok(());
    }
    let body = json!({"issues": issues});
    Err(FolioError { status: StatusCode::UNPROCESSABLE_ENTITY, shape: Shape::Json(json::text(&body)) })
}
