//! Checks of a collection's records: their schema, their references, and that no record refers to one being deleted.

use http::StatusCode;
use pinakes_store::{Direction, Expr, Query, StoreError, Txn, Value as StoreValue};
use serde_json::{Map, Value, json};

use crate::platform::collection::declared::{Collection, Kinds, Manner, Writer};
use crate::platform::error::{Fault, FolioError};
use crate::platform::values::parse_uuid;

/// Builds the error for a text that is not a UUID, as FOLIO's validators word it.
pub(crate) fn not_a_uuid(property: &str, found: &str) -> FolioError {
    let pattern =
        "^[a-fA-F0-9]{8}-[a-fA-F0-9]{4}-[1-5][a-fA-F0-9]{3}-[89abAB][a-fA-F0-9]{3}-[a-fA-F0-9]{12}$";
    FolioError::unprocessable(
        Fault::new(format!("must match \"{pattern}\""))
            .ty("1")
            .code("jakarta.validation.constraints.Pattern.message")
            .with(property, found),
    )
}

/// Narrows a query to the records with a value in a column. Without a value, puts the records that have none first. An
/// index that goes on with the column leads to either, however many records have other values.
pub(crate) fn with_or_without(query: Query, path: &str, value: Option<StoreValue>) -> Query {
    match value {
        Some(value) => Query { filter: query.filter.and(Expr::Is(path.into(), value)), ..query },
        None => query.sorted(path, Direction::Ascending),
    }
}

/// Fills in the defaults of properties that are not given.
pub(super) fn complete(collection: &Collection, body: &mut Map<String, Value>) -> Result<(), FolioError> {
    let is_absent = |body: &Map<String, Value>, name: &str| body.get(name).is_none_or(Value::is_null);
    for name in collection.schema.lists {
        if is_absent(body, name) {
            body.insert((*name).to_owned(), json!([]));
        }
    }
    for (name, value) in collection.schema.defaults {
        if is_absent(body, name) {
            let value = serde_json::from_str(value).map_err(|error| {
                StoreError::Damaged(format!("default of {}.{name}: {error}", collection.table))
            })?;
            body.insert((*name).to_owned(), value);
        }
    }
    Ok(())
}

pub(super) fn check_schema(collection: &Collection, body: &Map<String, Value>) -> Result<(), FolioError> {
    let schema = &collection.schema;
    const ALWAYS: [&str; 3] = ["id", "metadata", "_version"];
    if !schema.known.is_empty() {
        let unknown =
            body.keys().find(|it| !schema.known.contains(&it.as_str()) && !ALWAYS.contains(&it.as_str()));
        if let Some(name) = unknown {
            return Err(FolioError::unprocessable(
                Fault::new(format!(
                    "Unrecognized field \"{name}\" (of a record of {}), not marked as ignorable",
                    collection.table
                ))
                .ty("1")
                .code("-1"),
            ));
        }
    }
    let mut faults = Vec::new();
    for path in schema.required {
        if is_missing(body, path) {
            faults.push(Fault::missing(path));
        }
    }
    if !faults.is_empty() {
        return Err(FolioError::faults(StatusCode::UNPROCESSABLE_ENTITY, faults));
    }
    for (path, kinds) in schema.types {
        each_at(body, path, &mut |value| match kinds.is_fit(value) {
            true => Ok(()),
            false if *kinds == Kinds::Uuid && value.is_string() => {
                Err(not_a_uuid(path, value.as_str().unwrap_or_default()))
            }
            false => Err(FolioError::bad_request(format!(
                "Json content error: {path} is {}, expected {}",
                shortened(value),
                kinds.name()
            ))),
        })?;
    }
    Ok(())
}

fn shortened(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}

/// Checks whether a required property is missing. `a.b` is required only if `a` is present.
fn is_missing(body: &Map<String, Value>, path: &str) -> bool {
    match path.split_once('.') {
        None => body.get(path).is_none_or(Value::is_null),
        Some((first, rest)) => match body.get(first) {
            Some(Value::Object(inner)) => is_missing(inner, rest),
            Some(Value::Array(list)) => {
                list.iter().any(|it| it.as_object().is_some_and(|it| is_missing(it, rest)))
            }
            _ => false,
        },
    }
}

/// Calls `visit` with each value at a path that is present and not null, including those inside lists.
fn each_at(
    body: &Map<String, Value>,
    path: &str,
    visit: &mut impl FnMut(&Value) -> Result<(), FolioError>,
) -> Result<(), FolioError> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Some(value) = body.get(first).filter(|it| !it.is_null()) else { return Ok(()) };
    let Some(rest) = rest else { return visit(value) };
    match value {
        Value::Object(inner) => each_at(inner, rest, visit),
        Value::Array(list) => {
            list.iter().filter_map(Value::as_object).try_for_each(|inner| each_at(inner, rest, visit))
        }
        _ => Ok(()),
    }
}

impl Kinds {
    fn is_fit(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Uuid => value.as_str().is_some_and(|it| parse_uuid(it).is_some()),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Uuid => "a UUID",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

pub(super) fn check_references(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    body: &Value,
) -> Result<(), FolioError> {
    let Value::Object(body) = body else { return Ok(()) };
    for reference in collection.references {
        let target = (reference.to)();
        let mut ids: Vec<String> = Vec::new();
        each_at(body, reference.path, &mut |value| {
            match value {
                Value::String(id) => ids.push(id.clone()),
                Value::Array(list) => ids.extend(list.iter().filter_map(Value::as_str).map(str::to_owned)),
                _ => {}
            }
            Ok(())
        })?;
        for id in ids {
            let known = (target.kind.name, id.to_lowercase());
            if writer.known.borrow().contains(&known) {
                continue;
            }
            if !txn.has(&target.kind, &known.1)? {
                let field = reference.path.replace('.', "").to_lowercase();
                let message = format!(
                    "Cannot set {}.{field} = {id} because it does not exist in {}.id.",
                    collection.table, target.table
                );
                return Err(relation_broken(collection, target, message));
            }
            writer.known.borrow_mut().insert(known);
        }
    }
    Ok(())
}

/// Refuses the deletion of a record that others refer to.
pub(super) fn refuse_used(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    id: &str,
) -> Result<(), FolioError> {
    for other in writer.collections {
        for reference in other.references {
            if !std::ptr::eq((reference.to)(), collection) || !is_used(txn, other, reference.path, id)? {
                continue;
            }
            let message = format!(
                "Cannot delete {}.id = {id} because id is still referenced from table {}.",
                collection.table, other.table
            );
            return Err(relation_broken(other, collection, message));
        }
    }
    Ok(())
}

/// Words the refusal of what would break a reference: the database's text, or the exception of mod-entities-links.
fn relation_broken(from: &Collection, to: &Collection, message: String) -> FolioError {
    let (Manner::Links, Some((from, _)), Some((to, _))) = (from.manner, from.missing, to.missing) else {
        return FolioError::bad_request(message);
    };
    let fault =
        Fault::new(format!("Cannot complete operation on the entity due to it's relation with {from}/{to}."));
    let code = format!("violation-of-relation-between-{from}-and-{to}").to_lowercase().replace(' ', "-");
    FolioError::unprocessable(fault.ty("DataIntegrityViolationException").code(code))
}

/// Checks whether a record refers to `id`: by the counts of a facet, by a column's index, or by a scan.
fn is_used(
    txn: &mut Txn<'_>,
    collection: &'static Collection,
    path: &str,
    id: &str,
) -> Result<bool, FolioError> {
    if collection.kind.facet_named(path).is_some() {
        let counts = txn.facets(&collection.kind, &Expr::All, &[path])?;
        return Ok(counts.iter().flatten().any(|it| it.value == id));
    }
    Ok(txn.first(&collection.kind, Expr::Is(path.into(), id.into()))?.is_some())
}
