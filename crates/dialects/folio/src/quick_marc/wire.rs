//! Conversion of a record to the editor's form and back.

use std::fmt::Display;

use http::StatusCode;
use pinakes_marc::{ControlField, DataField, Field, Leader, Record, Tag};
use pinakes_store::View;
use serde_json::{Map, Value, json};

use super::{fixed, refused};
use crate::links;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;
use crate::quick_marc::refused::unprocessable;
use crate::source_records::marc;

/// Formats of the editor, with the record types of source storage and the names of what they describe.
const FORMATS: [(&str, &str, &str); 3] = [
    ("BIBLIOGRAPHIC", "MARC_BIB", "instance"),
    ("HOLDINGS", "MARC_HOLDING", "holdings"),
    ("AUTHORITY", "MARC_AUTHORITY", "authority"),
];

/// Returns the record type of a format, and the name of what its records describe.
pub(super) fn of_format(format: &str) -> Option<(&'static str, &'static str)> {
    FORMATS.iter().find(|it| it.0 == format).map(|it| (it.1, it.2))
}

/// Converts a source record to the editor's form.
pub(super) fn shown(view: &mut View<'_>, source: &Value) -> Result<Value, FolioError> {
    let ty = text_at(source, "recordType").unwrap_or("MARC_BIB");
    let (format, _, name) = FORMATS.iter().find(|it| it.1 == ty).copied().unwrap_or(FORMATS[0]);
    let external =
        |end: &str| source.pointer(&format!("/externalIdsHolder/{name}{end}")).cloned().unwrap_or_default();
    let id = external("Id");
    let content = source.pointer("/parsedRecord/content");
    let record = content
        .and_then(marc::from_value)
        .ok_or_else(|| refused(StatusCode::NOT_FOUND, "INTERNAL", "The record has no content"))?;
    let links = match (format, id.as_str()) {
        ("BIBLIOGRAPHIC", Some(id)) => links::of_instance(view, id)?,
        _ => Vec::new(),
    };
    let fields: Vec<Value> =
        record.fields.iter().map(|it| field_shown(it, format, record.leader.as_str(), &links)).collect();
    let mut body = json!({
        "parsedRecordId": source.get("id"),
        "parsedRecordDtoId": source.get("matchedId"),
        "externalId": id,
        "externalHrid": external("Hrid"),
        "marcFormat": format,
        "leader": record.leader.as_str().replace(' ', "\\"),
        "fields": fields,
        "suppressDiscovery": source.pointer("/additionalInfo/suppressDiscovery").cloned().unwrap_or(false.into()),
        "sourceVersion": source.get("generation"),
        "updateInfo": {
            "recordState": source.get("state"),
            "updateDate": source.pointer("/metadata/updatedDate"),
        },
    });
    if let Some(by) = source.pointer("/metadata/updatedByUserId") {
        body["updateInfo"]["updatedBy"] = json!({"userId": by});
    }
    if let Some(map) = body.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
    Ok(body)
}

fn field_shown(field: &Field, format: &str, leader: &str, links: &[Value]) -> Value {
    let mut map = Map::new();
    let tag = field.tag().as_str();
    map.insert("tag".into(), tag.into());
    match field {
        Field::Control(control) if tag == "008" => {
            map.insert("content".into(), fixed::shown(format, leader, &control.value));
        }
        Field::Control(control) if matches!(tag, "006" | "007") => {
            map.insert("content".into(), fixed::additional_shown(tag, &control.value));
        }
        Field::Control(control) => _ = map.insert("content".into(), control.value.as_str().into()),
        Field::Data(data) => {
            let indicator = |it: char| if it == ' ' { "\\".to_owned() } else { it.to_string() };
            map.insert("indicators".into(), data.indicators.map(indicator).to_vec().into());
            let parts: Vec<String> =
                data.subfields.iter().map(|it| subfield_shown(it.code, &it.value)).collect();
            map.insert("content".into(), parts.join(" ").into());
        }
    }
    map.insert("isProtected".into(), is_protected(field).into());
    if let Field::Data(data) = field
        && let Some(link) = link_of(data, links)
    {
        map.insert(
            "linkDetails".into(),
            json!({
                "authorityId": link.get("authorityId"), "authorityNaturalId": link.get("authorityNaturalId"),
                "linkingRuleId": link.get("linkingRuleId"), "status": link.get("status"),
            }),
        );
    }
    Value::Object(map)
}

/// Formats a subfield for the editor: `$a value`.
pub(super) fn subfield_shown(code: impl Display, value: &str) -> String {
    format!("${code} {}", value.replace('$', "{dollar}"))
}

/// Checks whether the editor must not change a field.
fn is_protected(field: &Field) -> bool {
    let tag = field.tag().as_str();
    tag == "001" || tag == "999" && field.as_data().is_some_and(|it| it.indicators == ['f', 'f'])
}

/// Returns the link of a field: one with its authority, under a rule for its tag.
fn link_of<'l>(field: &DataField, links: &'l [Value]) -> Option<&'l Value> {
    let authority = field.value('9')?;
    links.iter().find(|it| {
        let rule = it.get("linkingRuleId").and_then(Value::as_u64).unwrap_or(0);
        text_at(it, "authorityId") == Some(authority) && links::bib_field(rule) == Some(field.tag.as_str())
    })
}

/// Converts a record from the editor's form.
///
/// Errors: 422 for an invalid leader or field, and for values of 008 of the wrong length.
pub(super) fn read(body: &Value, format: &str, today: &str) -> Result<Record, FolioError> {
    // Any kind of blank counts as one: text pasted into an editor contains others than the ASCII blank.
    let is_blank = |it: char| it == '\\' || it.is_whitespace();
    let leader = text_at(body, "leader").unwrap_or_default().replace(is_blank, " ");
    if leader.chars().count() != 24 || !leader.is_ascii() {
        return Err(unprocessable("Wrong leader length"));
    }
    let mut record = Record { leader: Leader::from_text(&leader), fields: Vec::new() };
    for field in body.get("fields").and_then(Value::as_array).into_iter().flatten() {
        let tag = text_at(field, "tag").unwrap_or_default();
        let bytes: Option<[u8; 3]> =
            tag.as_bytes().try_into().ok().filter(|_| tag.bytes().all(|it| it.is_ascii_alphanumeric()));
        let Some(bytes) = bytes else {
            return Err(unprocessable(format!("A MARC tag must contain three characters, found {tag:?}")));
        };
        let content = field.get("content").unwrap_or(&Value::Null);
        if tag.starts_with("00") {
            let value = match content {
                Value::Object(map) => {
                    let read = match tag {
                        "008" => fixed::read(format, &leader, map, today),
                        _ => fixed::additional_read(tag, map),
                    };
                    read.map_err(|(name, n)| {
                        unprocessable(format!("Invalid {name} field length, must be {n} characters"))
                    })?
                }
                Value::String(text) => text.clone(),
                _ => continue,
            };
            record.fields.push(ControlField::new(Tag::new(&bytes), value).into());
            continue;
        }
        let indicators: Vec<char> = field
            .get("indicators")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|it| it.as_str()?.chars().next())
            .map(|it| if it == '\\' { ' ' } else { it })
            .collect();
        let indicator = |at: usize| indicators.get(at).copied().unwrap_or(' ');
        let mut data = DataField::new(Tag::new(&bytes), [indicator(0), indicator(1)]);
        for (code, value) in subfields(content.as_str().unwrap_or_default()) {
            data = data.with(code, value);
        }
        if !data.subfields.is_empty() {
            record.fields.push(data.into());
        }
    }
    Ok(record)
}

/// Parses `$a one $b two` into codes and values; empty subfields are dropped.
pub(super) fn subfields(content: &str) -> Vec<(char, String)> {
    let parts = content.split('$').skip(1);
    parts
        .filter_map(|part| {
            let code = part.chars().next()?;
            let value = part[code.len_utf8()..].trim().replace("{dollar}", "$");
            (!value.is_empty()).then_some((code.to_ascii_lowercase(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subfields_are_cut_at_dollars() {
        let cut = |text: &str| subfields(text);
        let one = |code: char, value: &str| (code, value.to_owned());
        assert_eq!(cut("$a{dollar}1 {dollar}{dollar}2 $b x"), [one('a', "$1 $$2"), one('b', "x")]);
        assert_eq!(cut("$a$1 $7 rep"), [one('7', "rep")]);
        assert_eq!(cut("no subfield"), []);
    }
}
