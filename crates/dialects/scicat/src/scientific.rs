//! Scientific metadata: quantities and their SI values.
//!
//! A quantity is an object with a value and a unit: a key that starts with `v` and one that starts with `u`, neither
//! ending in `SI`, the last of each. On write it gains `valueSI` and `unitSI`, which searches compare. Objects that are
//! no quantity are searched inside; lists are left alone. Sources: sections 4.4 to 4.6 of the `SciCat` contract.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use pinakes_units::Unit;
use serde_json::{Map, Number, Value};

const VALUE_SI: &str = "valueSI";
const UNIT_SI: &str = "unitSI";

/// Deepest nesting that is searched for quantities.
const MAX_DEPTH: usize = 64;

/// Digits of a value that was converted for an answer.
const N_ANSWER_DIGITS: usize = 3;

/// Numbers up to this are written without a fraction if they have none: 2^53, beyond which doubles skip integers.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Gives every quantity in `metadata` its `valueSI` and `unitSI`, replacing those it has. Of a quantity whose unit is
/// empty those that were sent along are removed: they would be found by searches and be wrong.
///
/// An unknown unit, and a value that is no number, are their own SI value and unit.
pub fn enrich(metadata: &mut Map<String, Value>) {
    enrich_inside(metadata, MAX_DEPTH);
}

/// Removes `valueSI` and `unitSI` of every quantity.
pub fn strip(metadata: &mut Map<String, Value>) {
    strip_inside(metadata, MAX_DEPTH);
}

/// Shows the quantity at the top-level key `key` in unit `unit_text`: value and unit are converted, the value to three
/// significant digits; `valueSI` and `unitSI` stay. Nothing happens if it is no quantity or cannot be converted.
pub fn show_in_unit(metadata: &mut Map<String, Value>, key: &str, unit_text: &str) {
    let Some(Value::Object(object)) = metadata.get_mut(key) else { return };
    let Some((value_key, unit_key)) = quantity_keys(object) else { return };
    let Some(to) = pinakes_units::unit(unit_text) else { return };
    let Some(from) = object.get(&unit_key).and_then(Value::as_str).and_then(pinakes_units::unit) else {
        return;
    };
    let shown = object
        .get(&value_key)
        .and_then(|value| converted(value, &|it| from.convert(it, &to).map_or(f64::NAN, round_to_answer)));
    if let Some(shown) = shown.filter(is_free_of_null) {
        object.insert(value_key, shown);
        object.insert(unit_key, Value::from(to.text()));
    }
}

/// A number of unit `unit_text` in SI and the SI unit's text, for a search condition. `None` if the unit is unknown.
pub fn condition_in_si(value: f64, unit_text: &str) -> Option<(f64, String)> {
    pinakes_units::to_si(value, unit_text)
}

/// Adds the dotted keys of `metadata`, in order: quantities, lists and plain values by their key, objects by those
/// inside (`parent.child`). Keys of the original's junk list are left out. A key that is met on two ways comes twice.
pub fn add_keys(metadata: &Map<String, Value>, keys: &mut Vec<String>) {
    add_keys_inside(metadata, &mut String::new(), keys, MAX_DEPTH);
}

fn enrich_inside(object: &mut Map<String, Value>, depth: usize) {
    for inner in object.values_mut().filter_map(Value::as_object_mut) {
        if let Some((value, unit)) = quantity(inner) {
            if unit.is_empty() {
                inner.shift_remove(VALUE_SI);
                inner.shift_remove(UNIT_SI);
            } else {
                let (value_si, unit_si) = in_si(value, unit);
                inner.insert(VALUE_SI.to_owned(), value_si);
                inner.insert(UNIT_SI.to_owned(), Value::String(unit_si));
            }
        } else if 0 < depth {
            enrich_inside(inner, depth - 1);
        }
    }
}

fn strip_inside(object: &mut Map<String, Value>, depth: usize) {
    for inner in object.values_mut().filter_map(Value::as_object_mut) {
        if quantity(inner).is_some() {
            inner.shift_remove(VALUE_SI);
            inner.shift_remove(UNIT_SI);
        } else if 0 < depth {
            strip_inside(inner, depth - 1);
        }
    }
}

/// Value and unit of an object that is a quantity. One whose `u` key holds no text (a `user`, say) is none.
fn quantity(object: &Map<String, Value>) -> Option<(&Value, &str)> {
    let (mut value, mut unit) = (None, None);
    for (key, inner) in object {
        match key.as_bytes().first() {
            Some(b'v') if !key.ends_with("SI") => value = Some(inner),
            Some(b'u') if !key.ends_with("SI") => unit = Some(inner),
            _ => {}
        }
    }
    Some((value?, unit?.as_str()?))
}

fn quantity_keys(object: &Map<String, Value>) -> Option<(String, String)> {
    quantity(object)?;
    let last =
        |initial: char| object.keys().rfind(|key| key.starts_with(initial) && !key.ends_with("SI")).cloned();
    Some((last('v')?, last('u')?))
}

fn in_si(value: &Value, unit_text: &str) -> (Value, String) {
    let unit = pinakes_units::unit(unit_text);
    let known = unit.as_deref().and_then(|unit| Some((unit, unit.si_text()?)));
    let in_si = known.and_then(|(unit, si_text)| Some((value_in_si(value, unit)?, si_text.to_owned())));
    in_si.unwrap_or_else(|| (value.clone(), unit_text.to_owned()))
}

fn value_in_si(value: &Value, unit: &Unit) -> Option<Value> {
    converted(value, &|it| unit.value_to_si(it))
}

/// A number, a numeric text or a list of these, each through `convert`. `None` for anything else.
fn converted(value: &Value, convert: &impl Fn(f64) -> f64) -> Option<Value> {
    match value {
        Value::Array(items) => items.iter().map(|it| Some(json_number(convert(number(it)?)))).collect(),
        single => Some(json_number(convert(number(single)?))),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => numeric_text(text),
        _ => None,
    }
}

/// A text of decimal digits, as a number. Rust would also read `inf` and `nan`.
fn numeric_text(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_decimal = text.bytes().all(|it| it.is_ascii_digit() || b"+-.eE".contains(&it));
    text.parse().ok().filter(|_| is_decimal)
}

/// A double as JSON: integers without a fraction, as JavaScript writes them; what JSON has no number for is `null`.
fn json_number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER {
        // The bound makes the conversion exact.
        #[expect(clippy::cast_possible_truncation, reason = "integral and within 2^53")]
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Three significant digits, halves away from zero, decided on the shortest decimal digits of the value.
fn round_to_answer(value: f64) -> f64 {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return value };
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|it| it - b'0').collect();
    let Ok(exponent) = exponent.parse::<i32>() else { return value };
    let sign = if value < 0.0 { "-" } else { "" };
    let kept = digits.iter().take(N_ANSWER_DIGITS).fold(0_u32, |sum, digit| sum * 10 + u32::from(*digit));
    let is_rounded_up = digits.get(N_ANSWER_DIGITS).is_some_and(|it| 5 <= *it);
    let rounded = kept + u32::from(is_rounded_up);
    let n_kept = i32::try_from(digits.len().min(N_ANSWER_DIGITS)).unwrap_or(1);
    format!("{sign}{rounded}e{}", exponent - n_kept + 1).parse().unwrap_or(value)
}

fn is_free_of_null(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_free_of_null),
        single => !single.is_null(),
    }
}

fn add_keys_inside(object: &Map<String, Value>, path: &mut String, keys: &mut Vec<String>, depth: usize) {
    for (key, inner) in object {
        let n_before = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        match inner {
            Value::Object(inner) if 0 < depth && !is_leaf(inner) => {
                add_keys_inside(inner, path, keys, depth - 1);
            }
            _ if is_junk(path) => {}
            _ => keys.push(path.clone()),
        }
        path.truncate(n_before);
    }
}

fn is_leaf(object: &Map<String, Value>) -> bool {
    object.contains_key("value") || object.contains_key("v") || quantity(object).is_some()
}

fn is_junk(key: &str) -> bool {
    static JUNK: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| ["_date", "runNumber"].map(|it| Finder::new(it.as_bytes())));
    JUNK.iter().any(|it| it.find(key.as_bytes()).is_some())
}
