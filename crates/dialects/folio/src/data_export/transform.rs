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
const NAMED: [(&str, &Collection); 9] = [
    ("permanentLocationId", &places::LOCATIONS),
    ("temporaryLocationId", &places::LOCATIONS),
    ("effectiveLocationId", &places::LOCATIONS),
    ("materialTypeId", &vocabularies::MATERIAL_TYPES),
    ("permanentLoanTypeId", &vocabularies::LOAN_TYPES),
    ("temporaryLoanTypeId", &vocabularies::LOAN_TYPES),
    ("callNumberTypeId", &vocabularies::CALL_NUMBER_TYPES),
    ("holdingsTypeId", &vocabularies::HOLDINGS_TYPES),
    ("instanceTypeId", &vocabularies::INSTANCE_TYPES),
];

/// The record that a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Instance,
    Holdings,
    Item,
}

/// One line of a mapping profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transformation {
    of: Of,
    /// Dotted path within the record.
    path: String,
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
        let path = path.replace("[*]", "");
        let (place, code) = text_at(line, "transformation")?.split_once('$')?;
        let tag = Tag::try_from(place.get(..3)?).ok()?;
        let mut signs = place.chars().skip(3);
        let indicators = [signs.next().unwrap_or(' '), signs.next().unwrap_or(' ')];
        let code = code.chars().next()?;
        Some(Self { of, path, tag, indicators, code })
    }
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
        let steps: Vec<&str> = it.path.split('.').collect();
        let mut texts = Vec::new();
        push_texts(body, &steps, &mut texts);
        for text in texts {
            let text = named(view, steps.last().copied().unwrap_or_default(), text)?;
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
fn push_texts(body: &Value, steps: &[&str], texts: &mut Vec<String>) {
    match (body, steps) {
        (Value::Array(list), _) => list.iter().for_each(|it| push_texts(it, steps, texts)),
        (Value::Object(map), [first, rest @ ..]) => {
            if let Some(value) = map.get(*first) {
                push_texts(value, rest, texts);
            }
        }
        (Value::String(text), []) if !text.is_empty() => texts.push(text.clone()),
        (Value::Bool(_) | Value::Number(_), []) => texts.push(body.to_string()),
        _ => {}
    }
}

/// Returns the name of the record that an id refers to.
fn named(view: &mut View<'_>, property: &str, text: String) -> Result<String, FolioError> {
    let Some((_, collection)) = NAMED.iter().find(|(name, _)| *name == property) else { return Ok(text) };
    let found = view.get(&collection.kind, &text)?.map(|it| it.json()).transpose()?;
    Ok(found.and_then(|it| text_at(&it, "name").map(str::to_owned)).unwrap_or(text))
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
        assert_eq!(read, Some(("barcode".to_owned(), "952".to_owned(), ['f', 'f'], 'm')));
        let blank = line("$.items[*].notes[*].note", "900  $a").map(|it| (it.path, it.indicators));
        assert_eq!(blank, Some(("notes.note".to_owned(), [' ', ' '])));
        for place in ["", "95", "952ff", "952ff$"] {
            assert_eq!(line("$.items[*].barcode", place), None, "{place:?}");
        }
    }
}
