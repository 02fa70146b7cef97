//! Checks of the values in a dataset's JSON, in the words of the original's checks (`JSONDataValidation`); only the
//! first fault is reported.

use serde_json::{Map, Value};

use crate::blocks::Registry;
use crate::blocks::validate::Levels;

/// Returns the first fault in a body, or in its part under `key`.
pub(super) fn fault(registry: &Registry, levels: &Levels, key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Object(map) => {
            let own = || of_field(registry, levels, key, map);
            own().or_else(|| map.iter().find_map(|(name, it)| fault(registry, levels, name, it)))
        }
        Value::Array(list) => list.iter().find_map(|it| fault(registry, levels, key, it)),
        _ => None,
    }
}

/// Returns the first fault of an object with a `typeClass`.
fn of_field(registry: &Registry, levels: &Levels, key: &str, field: &Map<String, Value>) -> Option<String> {
    let class = field.get("typeClass")?.as_str().unwrap_or_default();
    let name = field.get("typeName").and_then(Value::as_str).unwrap_or_default();
    let is_multiple = field.get("multiple").is_some_and(|it| *it == true);
    let invalid = |what: &str| Some(format!("Invalid data for key:{key} typeName:{name}. {what}"));
    let value = match field.get("value") {
        None | Some(Value::Null) => return invalid("'value' missing."),
        Some(value) => value,
    };
    match (is_multiple, value.is_array()) {
        (true, false) => return invalid("Fields with 'multiple' set to true must be a list."),
        (false, true) => return invalid("Found value as list but 'multiple' is set to false."),
        _ => {}
    }
    let entries = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    match class {
        "controlledVocabulary" => entries.iter().find_map(|it| unknown_term(registry, key, name, it)),
        "compound" => entries.iter().find_map(|it| of_entry(registry, levels, name, it)),
        _ => None,
    }
}

fn unknown_term(registry: &Registry, key: &str, name: &str, value: &Value) -> Option<String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let field = registry.field(name).filter(|it| !it.vocabulary.is_empty())?;
    match field.term(&text) {
        Some(_) => None,
        None => {
            Some(format!("Controlled vocabulary for key:{key} typeName:{name} value:'{text}' is not valid."))
        }
    }
}

/// Returns the first fault of an entry of a compound field: each part must be under the name of its type, required
/// parts must be present, and no others.
fn of_entry(registry: &Registry, levels: &Levels, name: &str, entry: &Value) -> Option<String> {
    let Some(parts) = entry.as_object() else {
        return Some(
            "Compound data type must be accompanied by a value that is either an object (multiple=false) or a list of objects (multiple=true)"
                .to_owned(),
        );
    };
    for (key, part) in parts {
        let own = part.get("typeName").and_then(Value::as_str).unwrap_or_default();
        if own != key {
            return Some(format!("Compound value {key} must match typeName of the object. Found {own}"));
        }
    }
    let field = registry.field(name)?;
    let children = || field.children.iter().map(|at| registry.at(*at));
    if let Some(other) = parts.keys().find(|key| children().all(|it| it.name != **key)) {
        let allowed = children().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
        return Some(format!("Invalid data for key:{name} typeName:{other}. Only {allowed} allowed."));
    }
    let lacking = children().filter(|it| levels.is_required(it) && !parts.contains_key(&it.name));
    let lacking = lacking.map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
    let what = format!("Invalid data for key:{name}. {lacking} is(are) required if field type is {name}.");
    (!lacking.is_empty()).then_some(what)
}
