//! `links/suggestion`: suggests for each heading of the record being edited the authority that its `$0` or `$9` names.

use http::StatusCode;
use pinakes_store::{View, Weight};
use serde_json::{Map, Value, json};

use super::wire;
use crate::links::{self, Wish};
use crate::platform::app::Call;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::values::json_answer;

/// Returns the record sent, with `linkDetails` in each field that can be linked; linked fields get the content of the
/// authority. All others stay unchanged, in the same order.
pub(super) async fn suggest(mut call: Call) -> Answer {
    let body = Value::Object(call.object().await?);
    let wish = Wish::of(&call.query);
    let read = move |view: &mut View<'_>| suggested(view, body.clone(), wish);
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn suggested(view: &mut View<'_>, mut body: Value, wish: Wish) -> Result<Value, FolioError> {
    let Some(shown) = body.get_mut("fields").and_then(Value::as_array_mut) else { return Ok(body) };
    let mut fields: Vec<Value> = shown.iter().map(in_marc_json).collect();
    links::suggest_for(view, fields.iter_mut(), wish)?;
    for (shown, field) in shown.iter_mut().zip(&fields) {
        let field = field.as_object().and_then(|it| it.values().next());
        let details = field.and_then(|it| it.get("linkDetails"));
        let (Some(shown), Some(field), Some(details)) = (shown.as_object_mut(), field, details) else {
            continue;
        };
        if details.get("authorityId").is_some() {
            shown.insert("content".into(), content(field).into());
        }
        shown.insert("linkDetails".into(), details.clone());
    }
    Ok(body)
}

/// Converts a field of the editor to MARC-in-JSON; of a control field only the tag is used.
fn in_marc_json(shown: &Value) -> Value {
    let tag = text_at(shown, "tag").unwrap_or_default();
    let subfields: Vec<Value> = wire::subfields(text_at(shown, "content").unwrap_or_default())
        .into_iter()
        .map(|(code, value)| json!({code.to_string(): value}))
        .collect();
    json!({tag: {"subfields": subfields}})
}

/// Formats the subfields of a field for the editor.
fn content(field: &Value) -> String {
    let subfields = field.get("subfields").and_then(Value::as_array).into_iter().flatten();
    let pairs = subfields.filter_map(Value::as_object).flat_map(Map::iter);
    pairs
        .map(|(code, value)| wire::subfield_shown(code, value.as_str().unwrap_or_default()))
        .collect::<Vec<_>>()
        .join(" ")
}
