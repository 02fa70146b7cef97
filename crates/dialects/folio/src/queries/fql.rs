//! FOLIO's query language as JSON: `{"$and":[{"users.active":{"$eq":true}},{"users.last_name":{"$starts_with":"A"}}]}`.

use pinakes_store::{End, Expr, Path, Pattern, Value as StoreValue, fold};
use serde_json::Value;

use super::types::{EntityType, Sort};
use crate::platform::dates;
use crate::platform::error::{Fault, FolioError};
use crate::platform::limits::QUERY_CONDITIONS;
use crate::platform::values::parse_uuid;

fn refused(message: impl Into<String>, name: &str) -> FolioError {
    FolioError::unprocessable(Fault::new(message).with("fqlQuery", name))
}

/// Translates a query for a type into a condition.
///
/// Errors: 422 for an invalid query, an unknown field or operator, or a value of the wrong type.
pub(crate) fn read(entity: &EntityType, text: &str) -> Result<Expr, FolioError> {
    let query: Value = serde_json::from_str(text)
        .map_err(|error| refused(format!("the query is no JSON: {error}"), text))?;
    let mut n_conditions = 0;
    let is_own = |name: &str| name.starts_with('_');
    match query.as_object() {
        Some(map) if map.keys().all(|it| is_own(it)) => Ok(Expr::All),
        Some(_) => node(entity, &query, &mut n_conditions),
        None => Err(refused("the query must be an object", text)),
    }
}

fn node(entity: &EntityType, query: &Value, n_conditions: &mut usize) -> Result<Expr, FolioError> {
    let Some(map) = query.as_object() else {
        return Err(refused("a condition must be an object", &query.to_string()));
    };
    let mut all = Vec::new();
    for (name, value) in map.iter().filter(|it| !it.0.starts_with('_')) {
        *n_conditions += 1;
        if QUERY_CONDITIONS < *n_conditions {
            let message = format!("the query has more than {QUERY_CONDITIONS} conditions");
            return Err(refused(message, name));
        }
        match (name.as_str(), value) {
            ("$and" | "$or", Value::Array(list)) => {
                let parts =
                    list.iter().map(|it| node(entity, it, n_conditions)).collect::<Result<Vec<_>, _>>()?;
                all.push(if name == "$and" { Expr::And(parts) } else { Expr::Or(parts) });
            }
            (other, _) if other.starts_with('$') => {
                return Err(refused(format!("{other} is not known"), other));
            }
            (name, Value::Object(conditions)) => {
                let Some((_, path, sort)) = entity.field(name) else {
                    let message = format!("{} has no field {name}", entity.name);
                    return Err(refused(message, name));
                };
                for (operator, value) in conditions {
                    all.push(condition(name, path, *sort, operator, value)?);
                }
            }
            (name, _) => return Err(refused(format!("{name} must be an object of operators"), name)),
        }
    }
    Ok(Expr::And(all))
}

/// Converts a value to the form that the store compares.
fn wanted(sort: Sort, name: &str, value: &Value) -> Result<StoreValue, FolioError> {
    let unfit = || refused(format!("{value} is no value for {name}"), name);
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => return Err(unfit()),
    };
    Ok(match sort {
        Sort::Text | Sort::Texts => StoreValue::Folded(fold(&text)),
        Sort::Id => text.to_lowercase().into(),
        Sort::Flag => match text.as_str() {
            "true" | "True" => true.into(),
            "false" | "False" => false.into(),
            _ => return Err(unfit()),
        },
        Sort::Instant => StoreValue::Instant(dates::parse_ms(&text).ok_or_else(unfit)?),
        Sort::Number => text.parse::<i64>().map_err(|_| unfit())?.into(),
    })
}

fn is(path: &str, values: Vec<StoreValue>) -> Expr {
    if path != "id" {
        return Expr::In(path.into(), values);
    }
    let ids = values.into_iter().filter_map(|it| match it {
        StoreValue::Text(text) => parse_uuid(&text),
        _ => None,
    });
    Expr::Ids(ids.collect())
}

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

fn condition(name: &str, path: &str, sort: Sort, operator: &str, value: &Value) -> Result<Expr, FolioError> {
    let list = || -> Result<Vec<StoreValue>, FolioError> {
        match value {
            Value::Array(list) => list.iter().map(|it| wanted(sort, name, it)).collect(),
            one => Ok(vec![wanted(sort, name, one)?]),
        }
    };
    let range = |low: bool, is_included: bool| -> Result<Expr, FolioError> {
        let value = wanted(sort, name, value)?;
        let end = if is_included { End::Included(value) } else { End::Excluded(value) };
        let (low, high) = if low { (end, End::Open) } else { (End::Open, end) };
        Ok(Expr::Range(path.into(), low, high))
    };
    let pattern = |text: String| -> Result<Expr, FolioError> {
        let pattern = Pattern::new(&text, "f").map_err(|error| refused(error.to_string(), name))?;
        Ok(Expr::Regex(path.into(), pattern))
    };
    let text = || value.as_str().map(fold).ok_or_else(|| refused(format!("{operator} needs a text"), name));
    let each = |all: Vec<StoreValue>| Expr::And(all.into_iter().map(|it| is(path, vec![it])).collect());
    Ok(match operator {
        "$eq" => is(path, list()?),
        "$ne" => not(is(path, list()?)),
        "$in" | "$contains_any" => is(path, list()?),
        "$nin" | "$not_contains_any" => not(is(path, list()?)),
        "$contains_all" => each(list()?),
        "$not_contains_all" => not(each(list()?)),
        "$gt" => range(true, false)?,
        "$gte" => range(true, true)?,
        "$lt" => range(false, false)?,
        "$lte" => range(false, true)?,
        "$starts_with" => pattern(format!("^{}", regex::escape(&text()?)))?,
        "$contains" => pattern(regex::escape(&text()?))?,
        "$regex" => pattern(text()?)?,
        "$empty" => {
            let none = Expr::Or(vec![
                not(Expr::Exists(Path::from(path))),
                Expr::Is(path.into(), StoreValue::Null),
                Expr::Is(path.into(), StoreValue::Folded(String::new())),
            ]);
            match value.as_bool().or_else(|| value.as_str().map(|it| it == "true")) {
                Some(true) => none,
                Some(false) => not(none),
                None => return Err(refused("$empty must be true or false", name)),
            }
        }
        other => return Err(refused(format!("the operator {other} is not known"), name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinakes_store::matches;
    use serde_json::json;

    #[test]
    fn queries_say_which_records_fit() -> Result<(), FolioError> {
        let users = &super::super::types::TYPES[0];
        let ann = json!({
            "id": "00000000-0000-4000-8000-000000000001", "active": true, "username": "ann",
            "personal": {"lastName": "Éxample"}, "expirationDate": "2026-05-01T00:00:00.000+00:00",
            "tags": {"tagList": ["a", "b"]},
        });
        for (query, fits) in [
            (json!({"users.active": {"$eq": "true"}}), true),
            (json!({"users.active": {"$eq": false}}), false),
            (
                json!({"$and": [{"users.last_name": {"$starts_with": "exa"}}, {"users.username": {"$ne": "bob"}}]}),
                true,
            ),
            (
                json!({"$or": [{"users.username": {"$in": ["bob"]}}, {"users.username": {"$contains": "nn"}}]}),
                true,
            ),
            (json!({"users.expiration_date": {"$gte": "2026-06-01"}}), false),
            (json!({"users.tags": {"$contains_all": ["a", "b"]}}), true),
            (json!({"users.tags": {"$contains_all": ["a", "c"]}}), false),
            (json!({"users.barcode": {"$empty": true}}), true),
            (json!({"users.username": {"$regex": "^a.n$"}, "_version": "1"}), true),
        ] {
            assert_eq!(matches(&read(users, &query.to_string())?, &ann), fits, "{query}");
        }
        for query in
            ["[]", "{\"users.shoe\": {\"$eq\": 1}}", "{\"users.active\": {\"$near\": 1}}", "{\"$nor\": []}"]
        {
            assert!(read(users, query).is_err(), "{query}");
        }
        Ok(())
    }
}
