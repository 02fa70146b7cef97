//! Fields that a mapping profile adds to a MARC record: values of the instance, its holdings and its items, each in a
//! place such as `900ff$a`. For each tag with its indicators, every holdings record or item gives one field.

use pinakes_marc::{DataField, Record, Tag};
use pinakes_store::{Expr, Query, View};
use serde_json::Value;

use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::platform::collection::Collection;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;
use crate::{places, vocabularies};

/// Maximum number of transformations of a profile that are applied.
const TRANSFORMATIONS_MAX: usize = 500;
/// Properties that hold ids, for which the name is exported.
const NAMED: [(&str, &Collection); 10] = [
    ("materialTypeId", &vocabularies::MATERIAL_TYPES),
    ("permanentLoanTypeId", &vocabularies::LOAN_TYPES),
    ("temporaryLoanTypeId", &vocabularies::LOAN_TYPES),
    ("callNumberTypeId", &vocabularies::CALL_NUMBER_TYPES),
    ("holdingsTypeId", &vocabularies::HOLDINGS_TYPES),
    ("instanceTypeId", &vocabularies::INSTANCE_TYPES),
    ("instanceFormatIds", &vocabularies::INSTANCE_FORMATS),
    ("modeOfIssuanceId", &vocabularies::MODES_OF_ISSUANCE),
    ("natureOfContentTermIds", &vocabularies::NATURE_OF_CONTENT_TERMS),
    ("statusId", &vocabularies::INSTANCE_STATUSES),
];
/// Properties that hold the id of a location.
const LOCATED: [&str; 3] = ["permanentLocationId", "temporaryLocationId", "effectiveLocationId"];
/// Units that a location belongs to: their name in the ids of fields, the property of the location, and the records.
const UNITS: [(&str, &str, &Collection); 3] = [
    ("library", "libraryId", &places::LIBRARIES),
    ("campus", "campusId", &places::CAMPUSES),
    ("institution", "institutionId", &places::INSTITUTIONS),
];

/// The record that a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Instance,
    Holdings,
    Item,
}

/// One step of a path: a property, and what the elements of its list must have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    name: String,
    /// `[?(@.noteTypeId=='…')]`: the property and its value.
    filter: Option<(String, String)>,
}

/// One line of a mapping profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transformation {
    of: Of,
    /// Path within the record.
    path: Vec<Step>,
    /// The id of the field, `holdings.permanentlocation.code`: which text of a location is exported.
    field: String,
    tag: Tag,
    indicators: [char; 2],
    code: char,
}

impl Transformation {
    /// Reads the transformations of a profile; those that are switched off or have no place are skipped.
    pub(super) fn all_of(profile: &Value) -> Vec<Self> {
        let list = profile.get("transformations").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Self::of).take(TRANSFORMATIONS_MAX).collect()
    }

    fn of(line: &Value) -> Option<Self> {
        if line.get("enabled") == Some(&Value::Bool(false)) {
            return None;
        }
        let of = match text_at(line, "recordType")? {
            "INSTANCE" => Of::Instance,
            "HOLDINGS" => Of::Holdings,
            "ITEM" => Of::Item,
            _ => return None,
        };
        // `$.holdings[*].items[*].barcode`: take what follows the last list of records.
        let path = text_at(line, "path")?;
        let records = ["$.holdings[*].items[*].", "$.items[*].", "$.holdings[*].", "$.instance.", "$."];
        let path = records.iter().find_map(|it| path.strip_prefix(it)).unwrap_or(path);
        let path = steps(path);
        let field = text_at(line, "fieldId").unwrap_or_default().to_ascii_lowercase();
        let (place, code) = text_at(line, "transformation")?.split_once('$')?;
        let tag = Tag::try_from(place.get(..3)?).ok()?;
        let mut signs = place.chars().skip(3);
        let indicators = [signs.next().unwrap_or(' '), signs.next().unwrap_or(' ')];
        let code = code.chars().next()?;
        Some(Self { of, path, field, tag, indicators, code })
    }
}

/// Splits a path at the points that are not within brackets.
fn steps(path: &str) -> Vec<Step> {
    let mut depth = 0_usize;
    let parts = path.split(|sign: char| {
        match sign {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        sign == '.' && depth == 0
    });
    let step = |part: &str| {
        let (name, brackets) = part.split_once('[').unwrap_or((part, ""));
        Step { name: name.to_owned(), filter: filter(brackets) }
    };
    parts.map(step).collect()
}

/// Reads `?(@.noteTypeId=='…')]`, with either kind of quotes.
fn filter(brackets: &str) -> Option<(String, String)> {
    let (name, value) = brackets.split_once("@.")?.1.split_once("==")?;
    let value = value.trim_start();
    let quote = value.chars().next().filter(|it| matches!(it, '\'' | '"'))?;
    let (value, _) = value[1..].split_once(quote)?;
    Some((name.trim().to_owned(), value.to_owned()))
}

/// Applies the transformations to the MARC record of an instance.
pub(super) fn add(
    view: &mut View<'_>,
    record: &mut Record,
    instance_id: &str,
    wanted: &[Transformation],
) -> Result<(), FolioError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let has = |of: Of| wanted.iter().any(|it| it.of == of);
    if has(Of::Instance)
        && let Some(instance) = view.get(&INSTANCES.kind, instance_id)?
    {
        fields_of(view, record, &instance.json()?, Of::Instance, wanted)?;
    }
    if !has(Of::Holdings) && !has(Of::Item) {
        return Ok(());
    }
    let under = |name: &str, ids: Vec<pinakes_store::Value>| Query::filter(Expr::In(name.into(), ids));
    for holdings in view.find(&HOLDINGS.kind, &under("instanceId", vec![instance_id.into()]))? {
        fields_of(view, record, &holdings.json()?, Of::Holdings, wanted)?;
        if !has(Of::Item) {
            continue;
        }
        for item in view.find(&ITEMS.kind, &under("holdingsRecordId", vec![holdings.id.as_str().into()]))? {
            fields_of(view, record, &item.json()?, Of::Item, wanted)?;
        }
    }
    Ok(())
}

fn fields_of(
    view: &mut View<'_>,
    record: &mut Record,
    body: &Value,
    of: Of,
    wanted: &[Transformation],
) -> Result<(), FolioError> {
    let mut fields: Vec<DataField> = Vec::new();
    for it in wanted.iter().filter(|it| it.of == of) {
        let mut texts = Vec::new();
        push_texts(body, &it.path, &mut texts);
        let property = it.path.last().map_or("", |step| step.name.as_str());
        for text in texts {
            let text = named(view, property, &it.field, text)?;
            let at = fields.iter().position(|field| field.tag == it.tag && field.indicators == it.indicators);
            match at {
                Some(at) => {
                    let field = fields.remove(at).with(it.code, text);
                    fields.insert(at, field);
                }
                None => fields.push(DataField::new(it.tag, it.indicators).with(it.code, text)),
            }
        }
    }
    fields.into_iter().for_each(|field| record.push(field));
    Ok(())
}

/// Collects the texts at a path, including those inside lists.
fn push_texts(body: &Value, steps: &[Step], texts: &mut Vec<String>) {
    match (body, steps) {
        (Value::Array(list), _) => list.iter().for_each(|it| push_texts(it, steps, texts)),
        (Value::Object(map), [first, rest @ ..]) => {
            let fits = |it: &&Value| {
                first.filter.as_ref().is_none_or(|(name, value)| text_at(it, name) == Some(value.as_str()))
            };
            match map.get(&first.name) {
                Some(Value::Array(list)) => {
                    list.iter().filter(fits).for_each(|it| push_texts(it, rest, texts));
                }
                Some(value) => push_texts(value, rest, texts),
                None => {}
            }
        }
        (Value::String(text), []) if !text.is_empty() => texts.push(text.clone()),
        (Value::Bool(_) | Value::Number(_), []) => texts.push(body.to_string()),
        _ => {}
    }
}

/// Returns the name of the record that an id refers to; of a location what the id of the field asks for.
fn named(view: &mut View<'_>, property: &str, field: &str, text: String) -> Result<String, FolioError> {
    let mut read = |collection: &'static Collection, id: &str| -> Result<Option<Value>, FolioError> {
        Ok(view.get(&collection.kind, id)?.map(|it| it.json()).transpose()?)
    };
    let wanted = if field.ends_with(".code") { "code" } else { "name" };
    let found = if LOCATED.contains(&property) {
        let location = read(&places::LOCATIONS, &text)?;
        match UNITS.iter().find(|(name, ..)| field.contains(&format!(".{name}."))) {
            None => location,
            Some((_, id, units)) => match location.as_ref().and_then(|it| text_at(it, id)) {
                Some(id) => read(units, id)?,
                None => None,
            },
        }
    } else {
        match NAMED.iter().find(|(name, _)| *name == property) {
            Some((_, collection)) => read(collection, &text)?,
            None => None,
        }
    };
    Ok(found.and_then(|it| text_at(&it, wanted).map(str::to_owned)).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_of_profiles_are_read() {
        let line = |path: &str, place: &str| {
            Transformation::of(
                &json!({"recordType": "ITEM", "path": path, "transformation": place, "enabled": true}),
            )
        };
        let read = line("$.holdings[*].items[*].barcode", "952ff$m");
        let read = read.map(|it| (it.path, it.tag.as_str().to_owned(), it.indicators, it.code));
        assert_eq!(read, Some((steps("barcode"), "952".to_owned(), ['f', 'f'], 'm')));
        let blank = line("$.items[*].notes[*].note", "900  $a").map(|it| (it.path, it.indicators));
        assert_eq!(blank, Some((steps("notes.note"), [' ', ' '])));
        for place in ["", "95", "952ff", "952ff$"] {
            assert_eq!(line("$.items[*].barcode", place), None, "{place:?}");
        }
    }

    #[test]
    fn paths_choose_elements_of_lists() {
        let body = json!({"notes": [{"ty": "a.b", "note": "one"}, {"ty": "c", "note": "two"}], "formerIds": ["x", "y"]});
        for (path, expected) in [
            ("notes[?(@.ty=='a.b')].note", vec!["one"]),
            ("notes[*]?(@.ty==\"c\")].note", vec!["two"]),
            ("notes[*].note", vec!["one", "two"]),
            ("notes[?(@.ty=='d')].note", vec![]),
            ("formerIds", vec!["x", "y"]),
        ] {
            let mut texts = Vec::new();
            push_texts(&body, &steps(path), &mut texts);
            assert_eq!(texts, expected, "{path}");
        }
    }
}
