//! `/records-editor` and `/marc-records-editor`: editing single MARC records (mod-quick-marc).
//!
//! | file | what |
//! |---|---|
//! | `wire.rs` | a record as the editor shows it, and back: `\` for a blank, `{dollar}` for `$` |
//! | `fixed.rs` | fields 006 to 008 split into named values |
//! | `check.rs` | validation of a record |
//! | `save.rs` | storing a record, with what it describes and its links |
//! | `suggest.rs` | the authorities to which its headings can be linked |

mod check;
mod fixed;
pub(crate) mod refused;
mod save;
mod suggest;
pub(crate) mod view;
mod wire;

use http::StatusCode;
use pinakes_store::{View, Weight};
use serde_json::{Value, json};

use crate::platform::app::Call;
use crate::platform::error::Answer;
use crate::platform::json;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};
use crate::quick_marc::refused::refused;
use crate::quick_marc::view::shown;

/// Both names of the module's interface.
const BASES: [&str; 2] = ["/records-editor", "/marc-records-editor"];

pub(crate) fn routes(mut routes: Routes) -> Routes {
    let to = Access::to;
    for base in BASES {
        let (list, item) = (format!("{base}/records"), format!("{base}/records/{{id}}"));
        routes = routes
            .get(&list, to("marc-records-editor.item.get"), show)
            .post(&list, to("marc-records-editor.item.post"), save::create)
            .put(&item, to("marc-records-editor.item.put"), save::replace)
            .post(&format!("{base}/validate"), to("marc-records-editor.validate.post"), validate)
            .post(
                &format!("{base}/links/suggestion"),
                to("marc-records-editor.links.suggestion.post"),
                suggest::suggest,
            );
    }
    routes.get(
        "/marc-specifications/{recordType}/{fieldTag}",
        to("marc-specifications.item.get"),
        specification,
    )
}

/// Returns the structure of a field of fixed length.
///
/// Errors: 404 for an unknown field.
async fn specification(call: Call) -> Answer {
    let (sort, tag) = (call.param("recordType").to_lowercase(), call.param("fieldTag").to_owned());
    let found = fixed::specification(&sort, &tag).ok_or_else(|| {
        let message = format!("there is no specification of field {tag} of {sort} records");
        refused(StatusCode::NOT_FOUND, "EXTERNAL_OR_UNDEFINED", message)
    })?;
    Ok(json_answer(StatusCode::OK, &found))
}

/// Returns the record of the instance, holdings record or authority with the id `externalId`.
async fn show(call: Call) -> Answer {
    let text = call.query.get("externalId").unwrap_or_default();
    let id = parse_uuid(text).ok_or_else(|| {
        let message = format!("Parameter 'externalId' is invalid: {text} is no UUID");
        refused(StatusCode::BAD_REQUEST, "INTERNAL", message)
    })?;
    let read = move |view: &mut View<'_>| shown(view, &id);
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Validates a record and returns its faults in `issues`; always 200.
async fn validate(mut call: Call) -> Answer {
    let body = call.object().await?;
    let body = Value::Object(body);
    let format = json::text_at(&body, "marcFormat").unwrap_or("BIBLIOGRAPHIC").to_owned();
    let issues =
        call.db().read(Weight::Point, move |view| check::issues(view, &body, &format, false)).await?;
    Ok(json_answer(StatusCode::OK, &json!({"issues": issues})))
}
