//! The filters of v4, which are checked strictly: top keys, limits, field names and operators (section 4.8).
//!
//! `{"where":{},"include":[],"fields":[],"limits":{"limit":10,"skip":0,"sort":{"createdAt":"asc"}}}`.

use pinakes_store::{Direction, Expr, Kind, Order, Path};
use serde_json::{Map, Value};

use crate::app::{QueryText, json_parameter};
use crate::condition::{self, Language};
use crate::error::ScicatError;
use crate::filter::{Filter, Include, MAX_SORT_FIELDS, Window, too_many_sort_fields};
use crate::projection::Projection;

/// Number of rows of a v4 list if the request does not say, and for `limit: 0`.
const DEFAULT_LIMIT: u64 = 10;

const TOP_KEYS: [&str; 4] = ["where", "include", "fields", "limits"];
const LIMIT_KEYS: [&str; 3] = ["limit", "skip", "sort"];
const OPERATORS: [&str; 16] = [
    "$in", "$nin", "$or", "$and", "$nor", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$not", "$exists",
    "$regex", "$options", "$match",
];

/// Parses the filter of a v4 request over `kind`, whose fields are `known_fields`.
///
/// Errors: 400 in shape E1 that names the unknown part.
pub fn parse(query: &QueryText, kind: &Kind, known_fields: &[&str]) -> Result<Filter, ScicatError> {
    let value = match query.get("filter").filter(|it| !it.is_empty()) {
        Some(text) => json_parameter("filter", text)?,
        None => Value::Object(Map::new()),
    };
    let Value::Object(filter) = value else {
        return Err(ScicatError::bad_request(format!("the filter must be an object, found {value}")));
    };
    refuse_others(&filter, &TOP_KEYS, "")?;
    let condition = match filter.get("where") {
        None | Some(Value::Null) => Expr::All,
        Some(Value::Object(map)) => {
            check_names(map, kind, known_fields, "where")?;
            condition::parse(map, kind, Language::Mongo)?
        }
        Some(other) => {
            return Err(ScicatError::bad_request(format!("where must be an object, found {other}")));
        }
    };
    let fields = filter.get("fields").unwrap_or(&Value::Null);
    check_fields(fields, known_fields)?;
    Ok(Filter {
        condition,
        fields: Projection::parse(fields)?,
        include: includes(filter.get("include"), query)?,
        window: window(filter.get("limits"), known_fields)?,
    })
}

fn refuse_others(map: &Map<String, Value>, known: &[&str], at: &str) -> Result<(), ScicatError> {
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(unknown(&format!("{at}{key}"))),
        None => Ok(()),
    }
}

fn unknown(property: &str) -> ScicatError {
    ScicatError::bad_request(format!("Property {property} should not exist in the filter object"))
}

fn check_names(map: &Map<String, Value>, kind: &Kind, known: &[&str], at: &str) -> Result<(), ScicatError> {
    for (name, value) in map {
        let place = format!("{at}.{name}");
        if name.starts_with('$') {
            if !OPERATORS.contains(&name.as_str()) {
                return Err(unknown(&place));
            }
            for inner in value.as_array().into_iter().flatten().filter_map(Value::as_object) {
                check_names(inner, kind, known, &place)?;
            }
            continue;
        }
        if !is_known(name, known) {
            return Err(unknown(&place));
        }
        if let Value::Object(operators) = value {
            let holds_value = kind.column_of(&Path::dotted(name)).is_some();
            check_operators(operators, holds_value, &place)?;
        }
    }
    Ok(())
}

/// Checks the operators on a field. A field with plain values allows only operators, not nested names.
fn check_operators(operators: &Map<String, Value>, holds_value: bool, at: &str) -> Result<(), ScicatError> {
    let is_wrong = |name: &&String| match name.starts_with('$') {
        true => !OPERATORS.contains(&name.as_str()),
        false => holds_value,
    };
    match operators.keys().find(is_wrong) {
        Some(name) => Err(unknown(&format!("{at}.{name}"))),
        None => Ok(()),
    }
}

fn is_known(name: &str, known: &[&str]) -> bool {
    let top = name.split('.').next().unwrap_or(name);
    known.contains(&top)
}

fn check_fields(fields: &Value, known: &[&str]) -> Result<(), ScicatError> {
    let names: Vec<&str> = match fields {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        Value::Object(map) => map.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    match names.into_iter().find(|name| !is_known(name, known)) {
        Some(name) => Err(unknown(&format!("fields.{name}"))),
        None => Ok(()),
    }
}

fn includes(include: Option<&Value>, query: &QueryText) -> Result<Vec<Include>, ScicatError> {
    let mut list: Vec<Include> =
        query.all("include").map(|relation| Include { relation: relation.to_owned(), scope: None }).collect();
    let items = match include {
        None | Some(Value::Null) => return Ok(list),
        Some(Value::Array(items)) => items.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    for item in items {
        match item {
            Value::String(relation) => list.push(Include { relation: relation.clone(), scope: None }),
            Value::Object(map) if map.get("relation").is_some_and(Value::is_string) => list.push(Include {
                relation: map["relation"].as_str().unwrap_or_default().to_owned(),
                scope: map.get("scope").cloned(),
            }),
            other => {
                return Err(ScicatError::bad_request(format!(
                    "an include must be a name or an object, found {other}"
                )));
            }
        }
    }
    Ok(list)
}

/// Parses the limits. The default order is newest first.
fn window(limits: Option<&Value>, known_fields: &[&str]) -> Result<Window, ScicatError> {
    let empty = Map::new();
    let limits = match limits {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(map)) => map,
        Some(other) => {
            return Err(ScicatError::bad_request(format!("limits must be an object, found {other}")));
        }
    };
    refuse_others(limits, &LIMIT_KEYS, "limits.")?;
    let limit = match number(limits, "limit")? {
        None | Some(0) => DEFAULT_LIMIT,
        Some(limit) => limit,
    };
    let order = match limits.get("sort") {
        None | Some(Value::Null) => {
            vec![Order { path: Path::dotted("createdAt"), direction: Direction::Descending }]
        }
        Some(wanted) => {
            let names = wanted.as_object().into_iter().flat_map(Map::keys);
            if let Some(name) = names.into_iter().find(|it| !is_known(it, known_fields)) {
                return Err(unknown(&format!("limits.sort.{name}")));
            }
            sort(wanted)?
        }
    };
    Ok(Window { skip: number(limits, "skip")?.unwrap_or(0), limit, order })
}

/// Parses a sort in v4's form: `{"createdAt":"asc","size":"desc"}`.
///
/// Errors: 400 in shape E1 if it is not an object, and for an unknown direction.
pub(crate) fn sort(wanted: &Value) -> Result<Vec<Order>, ScicatError> {
    let Value::Object(map) = wanted else {
        return Err(ScicatError::bad_request(format!("limits.sort must be an object, found {wanted}")));
    };
    if MAX_SORT_FIELDS < map.len() {
        return Err(too_many_sort_fields());
    }
    let order = |(name, direction): (&String, &Value)| {
        let direction = match direction {
            Value::String(text) if text == "asc" => Direction::Ascending,
            Value::String(text) if text == "desc" => Direction::Descending,
            Value::Number(number) if number.as_i64() == Some(1) => Direction::Ascending,
            Value::Number(number) if number.as_i64() == Some(-1) => Direction::Descending,
            other => {
                return Err(ScicatError::bad_request(format!(
                    "limits.sort.{name} must be asc or desc, found {other}"
                )));
            }
        };
        Ok(Order { path: Path::dotted(name), direction })
    };
    map.iter().map(order).collect()
}

fn number(limits: &Map<String, Value>, name: &str) -> Result<Option<u64>, ScicatError> {
    match limits.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| {
            ScicatError::bad_request(format!(
                "limits.{name} must be a whole number that is not negative, found {value}"
            ))
        }),
    }
}
