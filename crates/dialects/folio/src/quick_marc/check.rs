//! Validation of a record sent by the editor.

use http::StatusCode;
use pinakes_store::{View, Weight};
use serde_json::{Value, json};

use super::wire::subfields;
use crate::platform::app::Call;
use crate::platform::error::{FolioError, Shape};
use crate::platform::json::{self, text_at};
use crate::quick_marc::refused::unprocessable;
use crate::source_records::specifications::{self, Tailored, are_errors};

/// Tags that a holdings record must have exactly once.
const OF_HOLDINGS: [&str; 3] = ["004", "008", "852"];

fn tags(body: &Value) -> Vec<&str> {
    let fields = body.get("fields").and_then(Value::as_array).into_iter().flatten();
    fields.filter_map(|it| text_at(it, "tag")).collect()
}

/// Returns the faults of a record according to the tenant's specification; none for holdings, which have no
/// specification.
pub(super) fn issues(
    view: &mut View<'_>,
    body: &Value,
    format: &str,
    is_new: bool,
) -> Result<Vec<Value>, FolioError> {
    let found = Tailored::for_format(view, format)?;
    Ok(found.map(|it| specifications::issues(&it, body, is_new, subfields)).unwrap_or_default())
}

/// Refuses a record that cannot be stored as it is.
///
/// `is_new`: a missing control number is allowed, because it will be assigned.
///
/// Errors: 422 with `issues`, or with the message of one rule.
pub(super) async fn refuse(call: &Call, body: &Value, format: &str, is_new: bool) -> Result<(), FolioError> {
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
    let (asked, format) = (body.clone(), format.to_owned());
    let issues = call.db().read(Weight::Point, move |view| issues(view, &asked, &format, is_new)).await?;
    if !are_errors(&issues) {
        return Ok(());
    }
    let body = json!({"issues": issues});
    Err(FolioError { status: StatusCode::UNPROCESSABLE_ENTITY, shape: Shape::Json(json::text(&body)) })
}
