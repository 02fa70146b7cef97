//! Evaluates conditions on a body in memory: the reference that the SQL of both engines must agree with, and the way to
//! decide conditions that no column answers.

use std::cmp::Ordering;

use serde_json::{Map, Value as Json};
use time::OffsetDateTime;
use time::format_description::well_known::Iso8601;

use crate::fold::fold;
use crate::join_keys::join_text;
use crate::{End, Expr, Path, Value};

/// Returns whether a body satisfies a condition. [`Expr::Text`] and [`Expr::Ids`] do not depend on the body alone: they
/// count as true here and are decided by the engine.
pub fn matches(expr: &Expr, body: &Json) -> bool {
    matches_with(expr, body, &|_| true)
}

/// Returns whether a body satisfies a condition, calling `decided` for conditions that do not depend on the body alone.
pub(crate) fn matches_with(expr: &Expr, body: &Json, decided: &dyn Fn(&Expr) -> bool) -> bool {
    match expr {
        Expr::All => true,
        Expr::Text(_) | Expr::Ids(_) => decided(expr),
        Expr::Nothing => false,
        Expr::And(list) => list.iter().all(|it| matches_with(it, body, decided)),
        Expr::Or(list) => list.iter().any(|it| matches_with(it, body, decided)),
        Expr::Not(it) => !matches_with(it, body, decided),
        Expr::Is(path, value) => equals_somewhere(body, path, value),
        Expr::In(path, values) => values.iter().any(|value| equals_somewhere(body, path, value)),
        Expr::Range(path, lower, upper) => {
            any_value(body, path.as_steps(), &mut |it| in_range(it, lower, upper))
        }
        Expr::Exists(path) => exists(body, path.as_steps()),
        Expr::Prefix(path, prefix) => any_value(body, path.as_steps(), &mut |it| {
            it.as_str().is_some_and(|text| text.starts_with(prefix))
        }),
        Expr::Regex(path, pattern) => {
            any_value(body, path.as_steps(), &mut |it| it.as_str().is_some_and(|text| pattern.is_match(text)))
        }
        Expr::Word(path, word) => {
            any_value(body, path.as_steps(), &mut |it| it.as_str().is_some_and(|text| word.is_in(text)))
        }
        Expr::Element(path, inner) => {
            let fits = |element: &Json| matches_with(inner, element, decided);
            any_list(body, path.as_steps(), &mut |list| list.iter().any(&fits))
        }
        Expr::Joined(path, keys) => {
            any_value(body, path.as_steps(), &mut |it| join_text(it).is_some_and(|text| keys.has(&text)))
        }
        Expr::Size(path, n) => any_list(body, path.as_steps(), &mut |list| list.len() as u64 == *n),
    }
}

/// Returns the milliseconds since 1970 of a date or date-time in ISO 8601; without an offset it is UTC.
pub(crate) fn instant_ms(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    if let Some(ms) = canonical_instant_ms(bytes) {
        return Some(ms);
    }
    if bytes.len() == 10 {
        return instant_ms(&format!("{text}T00:00:00Z"));
    }
    let parsed = OffsetDateTime::parse(text, &Iso8601::PARSING)
        .or_else(|_| OffsetDateTime::parse(&format!("{text}Z"), &Iso8601::PARSING))
        .ok()?;
    i64::try_from(parsed.unix_timestamp_nanos() / 1_000_000).ok()
}

/// Parses the form that stored bodies use, `YYYY-MM-DDTHH:mm:ss.sssZ`, without the general parser.
fn canonical_instant_ms(text: &[u8]) -> Option<i64> {
    if text.len() != 24 || text[10] != b'T' || text[19] != b'.' || text[23] != b'Z' {
        return None;
    }
    let number = |range: std::ops::Range<usize>| {
        text[range]
            .iter()
            .try_fold(0_i64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let month = time::Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date =
        time::Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?).ok()?;
    if 23 < hour || 59 < minute || 59 < second {
        return None;
    }
    let days = i64::from(date.to_julian_day()) - i64::from(UNIX_EPOCH_JULIAN_DAY);
    Some(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000 + number(20..23)?)
}

/// Julian day of 1970-01-01.
const UNIX_EPOCH_JULIAN_DAY: i32 = 2_440_588;

fn equals_somewhere(body: &Json, path: &Path, value: &Value) -> bool {
    if matches!(value, Value::Null) {
        return is_null_or_absent(body, path.as_steps());
    }
    if let Value::Json(whole @ Json::Array(_)) = value
        && any_list(body, path.as_steps(), &mut |list| Json::Array(list.to_vec()) == *whole)
    {
        return true;
    }
    any_value(body, path.as_steps(), &mut |it| equals(it, value))
}

fn equals(found: &Json, value: &Value) -> bool {
    match value {
        Value::Null => found.is_null(),
        Value::Json(json) => found == json,
        other => compare(found, other) == Some(Ordering::Equal),
    }
}

/// Calls `test` with each value at the path, descending into lists on the way and at the end.
pub(crate) fn any_value(at: &Json, steps: &[String], test: &mut impl FnMut(&Json) -> bool) -> bool {
    match (at, steps) {
        (Json::Array(list), []) => list.iter().any(&mut *test),
        (_, []) => test(at),
        (Json::Object(map), [step, rest @ ..]) => map.get(step).is_some_and(|it| any_value(it, rest, test)),
        (Json::Array(list), [step, rest @ ..]) => {
            element(list, step).is_some_and(|it| any_value(it, rest, test))
                || list.iter().any(|it| !it.is_array() && any_value(it, steps, test))
        }
        _ => false,
    }
}

/// Calls `visit` with each text at a path, descending into lists as [`any_value`] does.
pub(crate) fn each_text(body: &Json, path: &Path, mut visit: impl FnMut(&str)) {
    any_value(body, path.as_steps(), &mut |value| {
        value.as_str().into_iter().for_each(&mut visit);
        false
    });
}

/// Calls `test` with each list at the path itself.
pub(crate) fn any_list(at: &Json, steps: &[String], test: &mut impl FnMut(&[Json]) -> bool) -> bool {
    match (at, steps) {
        (Json::Array(list), []) => test(list),
        (Json::Object(map), [step, rest @ ..]) => map.get(step).is_some_and(|it| any_list(it, rest, test)),
        (Json::Array(list), [step, rest @ ..]) => {
            element(list, step).is_some_and(|it| any_list(it, rest, test))
                || list.iter().any(|it| !it.is_array() && any_list(it, steps, test))
        }
        _ => false,
    }
}

fn element<'a>(list: &'a [Json], step: &str) -> Option<&'a Json> {
    Path::position(step).and_then(|index| list.get(index))
}

fn exists(at: &Json, steps: &[String]) -> bool {
    match (at, steps) {
        (_, []) => true,
        (Json::Object(map), [step, rest @ ..]) => map.get(step).is_some_and(|it| exists(it, rest)),
        (Json::Array(list), [step, rest @ ..]) => {
            element(list, step).is_some_and(|it| exists(it, rest)) || list.iter().any(|it| exists(it, steps))
        }
        _ => false,
    }
}

fn is_null_or_absent(at: &Json, steps: &[String]) -> bool {
    match (at, steps) {
        (Json::Null, []) => true,
        (Json::Array(list), []) => list.iter().any(Json::is_null),
        (_, []) => false,
        (Json::Object(map), [step, rest @ ..]) => map.get(step).is_none_or(|it| is_null_or_absent(it, rest)),
        (Json::Array(list), _) => list.iter().any(|it| is_null_or_absent(it, steps)),
        _ => true,
    }
}

pub(crate) fn in_range(found: &Json, lower: &End, upper: &End) -> bool {
    let above = match lower {
        End::Open => true,
        End::Included(value) => matches!(compare(found, value), Some(Ordering::Greater | Ordering::Equal)),
        End::Excluded(value) => compare(found, value) == Some(Ordering::Greater),
    };
    above
        && match upper {
            End::Open => true,
            End::Included(value) => matches!(compare(found, value), Some(Ordering::Less | Ordering::Equal)),
            End::Excluded(value) => compare(found, value) == Some(Ordering::Less),
        }
}

/// Compares a value of a body with one of a condition; `None` when their types differ.
pub(crate) fn compare(found: &Json, value: &Value) -> Option<Ordering> {
    match (found, value) {
        (Json::Bool(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Json::String(a), Value::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Json::String(a), Value::Folded(b)) => Some(fold(a).as_bytes().cmp(fold(b).as_bytes())),
        (Json::String(a), Value::Instant(b)) => Some(instant_ms(a)?.cmp(b)),
        (Json::Number(a), Value::Integer(b)) => match a.as_i64() {
            Some(a) => Some(a.cmp(b)),
            None => a.as_f64()?.partial_cmp(&(*b as f64)),
        },
        (Json::Number(a), Value::Real(b)) => a.as_f64()?.partial_cmp(b),
        _ => None,
    }
}

/// Compares values in the total order used for sorting, which is MongoDB's: absent and null, numbers, strings, objects,
/// lists (by their smallest element when ascending), booleans.
pub(crate) fn sort_order(a: Option<&Json>, b: Option<&Json>) -> Ordering {
    let rank = |it: Option<&Json>| match it {
        None | Some(Json::Null) => 0,
        Some(Json::Number(_)) => 1,
        Some(Json::String(_)) => 2,
        Some(Json::Object(_)) => 3,
        Some(Json::Array(_)) => 4,
        Some(Json::Bool(_)) => 5,
    };
    match (a, b) {
        (Some(Json::Number(x)), Some(Json::Number(y))) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => x.cmp(&y),
            _ => x.as_f64().partial_cmp(&y.as_f64()).unwrap_or(Ordering::Equal),
        },
        (Some(Json::String(x)), Some(Json::String(y))) => x.as_bytes().cmp(y.as_bytes()),
        (Some(Json::Bool(x)), Some(Json::Bool(y))) => x.cmp(y),
        (Some(Json::Array(x)), Some(Json::Array(y))) => sort_order(x.first(), y.first()),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Returns the first value at a path, taking the first element of each list: the value that a sort compares.
pub(crate) fn value_at<'a>(at: &'a Json, steps: &[String]) -> Option<&'a Json> {
    match (at, steps) {
        (_, []) => Some(at),
        (Json::Object(map), [step, rest @ ..]) => value_at(map.get(step)?, rest),
        (Json::Array(list), _) => value_at(list.first()?, steps),
        _ => None,
    }
}

/// Returns what [`sort_order`] compares of a value: no more than the first element of a list, and nothing of an object.
pub(crate) fn sort_value(value: &Json) -> Json {
    match value {
        Json::Object(_) => Json::Object(Map::new()),
        Json::Array(list) => list.iter().take(1).map(sort_value).collect(),
        scalar => scalar.clone(),
    }
}

/// Calls `visit` with each scalar at a dotted path, descending into lists.
pub(crate) fn each_at<'a>(at: &'a Json, dotted: &str, visit: &mut impl FnMut(&'a Json)) {
    let (step, rest) = match dotted.split_once('.') {
        Some((step, rest)) => (step, Some(rest)),
        None => (dotted, None),
    };
    match at {
        Json::Object(map) => match (map.get(step), rest) {
            (Some(it), Some(rest)) => each_at(it, rest, visit),
            (Some(Json::Array(list)), None) => list.iter().for_each(visit),
            (Some(it), None) => visit(it),
            (None, _) => {}
        },
        Json::Array(list) => list.iter().for_each(|it| each_at(it, dotted, visit)),
        _ => {}
    }
}
