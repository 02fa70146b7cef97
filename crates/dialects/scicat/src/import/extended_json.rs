//! MongoDB's extended JSON, as mongoexport and mongodump's tools write it: `{"$date": …}`, `{"$oid": …}`,
//! `{"$numberLong": "…"}` and similar values are converted to plain JSON.
//!
//! Source: the specification of MongoDB Extended JSON v2, canonical and relaxed, and v1's dates.

use serde_json::{Map, Number, Value};

use crate::dates;

/// Maximum nesting that is searched; the parser allows no more.
const MAX_DEPTH: u32 = 128;

/// Says whether a text may contain extended JSON. Never false if it does.
pub(super) fn is_likely(text: &[u8]) -> bool {
    memchr::memmem::find(text, br#""$"#).is_some()
}

/// Converts a value to plain JSON, in place.
pub(super) fn make_plain(value: &mut Value) {
    make_plain_within(value, MAX_DEPTH);
}

fn make_plain_within(value: &mut Value, depth: u32) {
    if depth == 0 {
        return;
    }
    match value {
        Value::Array(list) => list.iter_mut().for_each(|it| make_plain_within(it, depth - 1)),
        Value::Object(map) => match plain(map) {
            Some(it) => *value = it,
            None => map.values_mut().for_each(|it| make_plain_within(it, depth - 1)),
        },
        _ => {}
    }
}

/// Returns the plain value of an object with a single `$` key.
fn plain(map: &Map<String, Value>) -> Option<Value> {
    let (name, value) = map.iter().next().filter(|_| map.len() == 1)?;
    match name.as_str() {
        "$oid" | "$symbol" | "$uuid" => value.is_string().then(|| value.clone()),
        "$date" => date(value),
        "$numberInt" | "$numberLong" => whole(value),
        "$numberDouble" | "$numberDecimal" => real(value),
        "$undefined" => Some(Value::Null),
        _ => None,
    }
}

/// Converts a text, or milliseconds since 1970 as a number or a `$numberLong`.
fn date(value: &Value) -> Option<Value> {
    let ms = match value {
        Value::String(text) => return Some(dates::normalise(text).unwrap_or_else(|| text.clone()).into()),
        Value::Object(inner) => plain(inner)?.as_i64()?,
        other => other.as_i64()?,
    };
    Some(dates::format_ms(ms).into())
}

fn whole(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => text.parse::<i64>().ok().map(Value::from),
        Value::Number(_) => Some(value.clone()),
        _ => None,
    }
}

/// Converts a number. JSON has no infinities, so these stay texts.
fn real(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => {
            let number = text.parse::<f64>().ok().and_then(Number::from_f64);
            Some(number.map_or_else(|| value.clone(), Value::Number))
        }
        Value::Number(_) => Some(value.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_become_plain() {
        for (extended, expected) in [
            (json!({"$oid": "6b00e640a38974763ecd9ea4"}), json!("6b00e640a38974763ecd9ea4")),
            (json!({"$date": "2020-02-07T14:46:43+01:00"}), json!("2020-02-07T13:46:43.000Z")),
            (json!({"$date": 1_581_083_203_000_i64}), json!("2020-02-07T13:46:43.000Z")),
            (json!({"$date": {"$numberLong": "1581083203000"}}), json!("2020-02-07T13:46:43.000Z")),
            (json!({"$numberLong": "9007199254740993"}), json!(9_007_199_254_740_993_i64)),
            (json!({"$numberDouble": "2.5"}), json!(2.5)),
            (json!({"$numberDouble": "Infinity"}), json!("Infinity")),
            (json!({"$numberDecimal": "0.1"}), json!(0.1)),
            (json!([{"a": {"$numberInt": "7"}}]), json!([{"a": 7}])),
            (json!({"$set": {"$numberInt": "7"}}), json!({"$set": 7})),
            (json!({"$oid": 1}), json!({"$oid": 1})),
            (json!({"$date": true, "b": 1}), json!({"$date": true, "b": 1})),
        ] {
            let mut value = extended.clone();
            make_plain(&mut value);
            assert_eq!(value, expected, "{extended}");
            assert!(is_likely(extended.to_string().as_bytes()));
        }
    }
}
