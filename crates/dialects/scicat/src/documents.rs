//! Stored documents as JSON objects: reading, stamping with user and time of a change, patching.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use pinakes_store::Record;
use serde_json::{Map, Value, json};

use crate::dates;
use crate::error::ScicatError;

/// Records who changed a document and when. The time is later than that of the change before, so that
/// [`Precondition`](crate::precondition::Precondition) can tell any two versions apart.
pub(crate) fn stamp(body: &mut Map<String, Value>, username: &str, now: &str) {
    let before_ms = body.get("updatedAt").and_then(Value::as_str).and_then(dates::parse_ms);
    let at = match (before_ms, dates::parse_ms(now)) {
        (Some(before_ms), Some(now_ms)) if now_ms <= before_ms => dates::format_ms(before_ms + 1),
        _ => now.to_owned(),
    };
    body.insert("updatedBy".to_owned(), username.into());
    body.insert("updatedAt".to_owned(), at.into());
}

/// Returns a stored body as an object; anything else is reported as damage.
pub(crate) fn object(record: &Record) -> Result<Map<String, Value>, ScicatError> {
    match record.json()? {
        Value::Object(map) => Ok(map),
        _ => Err(pinakes_store::StoreError::Damaged(format!("{:?} is no object", record.id)).into()),
    }
}

/// Says whether the content type of a body is JSON merge patch (RFC 7396).
pub(crate) fn is_merge_patch(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE);
    content_type.is_some_and(|it| it.as_bytes().starts_with(b"application/merge-patch+json"))
}

/// Applies a JSON merge patch (RFC 7396).
pub(crate) fn merge_patch(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(map) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            map.shift_remove(&name);
        } else {
            merge_patch(map.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Appends who created a record and when.
pub(crate) fn sign(document: &mut Map<String, Value>, username: &str, now: &str) {
    document.insert("createdBy".to_owned(), username.into());
    document.insert("updatedBy".to_owned(), username.into());
    document.insert("createdAt".to_owned(), now.into());
    document.insert("updatedAt".to_owned(), now.into());
    document.insert("__v".to_owned(), 0.into());
}

/// Normalises the dates in these fields to the format in which they are sent.
pub(crate) fn normalise_dates(body: &mut Map<String, Value>, fields: &[&str]) {
    for field in fields {
        if let Some(Value::String(text)) = body.get_mut(*field)
            && let Some(normal) = dates::normalise(text)
        {
            *text = normal;
        }
    }
}

/// Returns a text field of a body; empty if it is absent or not a text.
pub(crate) fn text<'a>(body: &'a Map<String, Value>, field: &str) -> &'a str {
    body.get(field).and_then(Value::as_str).unwrap_or_default()
}
