//! Default values from a metadata schema for what a publication leaves out: `default`, and `dynamicDefaults` as
//! in ajv-keywords.

use serde_json::{Map, Value, json};

use crate::dates;

/// Maximum nesting of a schema that is followed.
const MAX_DEPTH: usize = 32;

/// Fills in what `value` leaves out. `now_ms` is the current time, in milliseconds since 1970.
pub(super) fn fill(schema: &Value, value: &mut Value, now_ms: i64) {
    fill_at(schema, value, now_ms, MAX_DEPTH);
}

fn fill_at(schema: &Value, value: &mut Value, now_ms: i64, depth: usize) {
    let Some(rules) = schema.as_object().filter(|_| 0 < depth) else { return };
    for part in rules.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        fill_at(part, value, now_ms, depth - 1);
    }
    match value {
        Value::Object(object) => fill_object(rules, object, now_ms, depth),
        Value::Array(items) => {
            if let Some(of_items) = rules.get("items") {
                items.iter_mut().for_each(|it| fill_at(of_items, it, now_ms, depth - 1));
            }
        }
        _ => {}
    }
}

fn fill_object(rules: &Map<String, Value>, object: &mut Map<String, Value>, now_ms: i64, depth: usize) {
    for (name, wanted) in rules.get("dynamicDefaults").and_then(Value::as_object).into_iter().flatten() {
        if is_left_out(object, name)
            && let Some(value) = dynamic(wanted, now_ms)
        {
            object.insert(name.clone(), value);
        }
    }
    for (name, schema) in rules.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(default) = schema.get("default").filter(|_| !object.contains_key(name)) {
            object.insert(name.clone(), default.clone());
        }
        if let Some(value) = object.get_mut(name) {
            fill_at(schema, value, now_ms, depth - 1);
        }
    }
}

/// Says whether a member is absent, `null` or an empty text, which all count as left out in SciCat.
fn is_left_out(object: &Map<String, Value>, name: &str) -> bool {
    object.get(name).is_none_or(|it| it.is_null() || it.as_str() == Some(""))
}

/// Returns the value of a dynamic default; `None` for an unknown one.
fn dynamic(wanted: &Value, now_ms: i64) -> Option<Value> {
    let name = wanted.as_str().or_else(|| wanted.get("func")?.as_str())?;
    let now = dates::format_ms(now_ms);
    Some(match name {
        "currentYear" => json!(now.get(..4)?.parse::<i64>().ok()?),
        "timestamp" => json!(now_ms),
        "datetime" => json!(now),
        "date" => json!(now.get(..10)?),
        "time" => json!(now.get(11..)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_filled_in() {
        let schema = json!({"allOf": [
            {"dynamicDefaults": {"publicationYear": "currentYear", "seen": "date", "odd": "random"}},
            {"properties": {
                "language": {"default": "en"},
                "creators": {"items": {"properties": {"nameType": {"default": "Personal"}}}},
            }},
        ]});
        let mut metadata = json!({"creators": [{"name": "N"}, {"nameType": "Organizational"}]});
        fill(&schema, &mut metadata, 1_769_940_000_000);
        assert_eq!(
            metadata,
            json!({
                "creators": [{"name": "N", "nameType": "Personal"}, {"nameType": "Organizational"}],
                "publicationYear": 2026, "seen": "2026-02-01", "language": "en",
            })
        );
        let mut given = json!({"publicationYear": 2020, "language": "de"});
        fill(&schema, &mut given, 0);
        assert_eq!(given["publicationYear"], 2020);
        assert_eq!(given["language"], "de");
    }
}
