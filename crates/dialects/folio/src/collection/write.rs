//! The rules of writing a record of a collection, within a transaction.

use std::cell::RefCell;
use std::collections::HashSet;

use bytes::Bytes;
use http::StatusCode;
use pinakes_accounts::Entropy;
use pinakes_store::{Document, Expr, StoreError, Txn};
use serde_json::{Map, Value, json};

use super::{Collection, Kinds, Locking, Metadata};
use crate::app::{Call, parse_uuid};
use crate::error::{Fault, FolioError};
use crate::{dates, json, modules};

/// Who writes, and when. Made anew for each run of a transaction.
#[derive(Debug)]
pub struct Writer {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// UUID of the user; none for the server itself.
    pub user: Option<String>,
    /// Makes ids.
    pub entropy: Entropy,
    /// Records of other collections that this transaction has found to be there.
    known: RefCell<HashSet<(&'static str, String)>>,
}

impl Writer {
    /// Of its parts.
    pub fn new(now_ms: i64, user: Option<String>, entropy: Entropy) -> Self {
        Self { now_ms, user, entropy, known: RefCell::default() }
    }

    /// What a caller's transactions make their writer of.
    pub fn of(call: &Call) -> impl Fn() -> Self + Clone + Send + Sync + 'static {
        let (now_ms, user) = (call.app.now_ms(), call.asker.user_id());
        let entropy = call.app.context.entropy().clone();
        move || Self::new(now_ms, user.clone(), entropy.clone())
    }

    /// A new UUID.
    pub fn new_uuid(&self) -> String {
        self.entropy.uuid().to_string()
    }

    fn metadata(&self, form: Metadata, old: Option<&Value>) -> Option<Value> {
        let now = match form {
            Metadata::Off => return None,
            Metadata::Rmb => dates::rmb(self.now_ms),
            Metadata::Micros => dates::micros(self.now_ms),
        };
        let before = old.and_then(|it| it.get("metadata"));
        let field = |name: &str| before.and_then(|it| it.get(name)).cloned();
        let user = || self.user.clone().map(Value::from);
        let created_by = if old.is_some() { field("createdByUserId") } else { user() };
        let mut map = Map::new();
        map.insert("createdDate".into(), field("createdDate").unwrap_or_else(|| now.as_str().into()));
        map.extend(created_by.map(|it| ("createdByUserId".to_owned(), it)));
        map.insert("updatedDate".into(), now.into());
        map.extend(user().map(|it| ("updatedByUserId".to_owned(), it)));
        Some(Value::Object(map))
    }
}

/// A record that was written.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its id.
    pub id: String,
    /// The body as it is stored.
    pub bytes: Bytes,
    /// The same, parsed.
    pub body: Value,
}

/// What to do when the record to be replaced is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// 404.
    Refuse,
    /// Make it.
    Insert,
}

/// Whether `_version` is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// It must be the stored one.
    Checked,
    /// It does not matter.
    Ignored,
}

/// Makes a record. An id is made when none is given.
///
/// Errors: 422 for what the schema does not allow or an id that is taken; 400 for a unique value that is taken or a
/// reference to nothing; the collection's own rules.
pub fn insert(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    mut body: Map<String, Value>,
) -> Result<Stored, FolioError> {
    let id = given_id(&body)?.unwrap_or_else(|| writer.new_uuid());
    body.insert("id".into(), id.clone().into());
    (collection.hooks.prepare)(txn, writer, &mut body, None)?;
    let version = match collection.locking {
        Locking::Off => None,
        Locking::From(first) => Some(first),
    };
    let document = document(txn, writer, collection, body, version, None)?;
    txn.insert_document(&document.0).map_err(|error| taken(collection, error))?;
    let stored = Stored { id, bytes: document.0.body().clone(), body: document.1 };
    (collection.hooks.stored)(txn, writer, &stored.body, None)?;
    Ok(stored)
}

/// Replaces a record.
///
/// Errors: as [`insert`]; 404 when it is not there; 409 when `_version` is not the stored one.
pub fn put(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    id: &str,
    mut body: Map<String, Value>,
    missing: Missing,
    lock: Lock,
) -> Result<Stored, FolioError> {
    body.insert("id".into(), id.into());
    let Some(old) = txn.get(&collection.kind, id)? else {
        return match missing {
            Missing::Refuse => Err(FolioError::not_found("Not found")),
            Missing::Insert => insert(txn, writer, collection, body),
        };
    };
    let old = old.json()?;
    let mut version = None;
    if let Locking::From(first) = collection.locking {
        let stored = old.get("_version").and_then(Value::as_u64).unwrap_or(first);
        if lock == Lock::Checked && body.get("_version").and_then(Value::as_u64) != Some(stored) {
            let found = body.get("_version").map_or_else(|| "<NULL>".to_owned(), Value::to_string);
            return Err(conflict(id, stored, &found));
        }
        version = Some(stored + 1);
    }
    (collection.hooks.prepare)(txn, writer, &mut body, Some(&old))?;
    let document = document(txn, writer, collection, body, version, Some(&old))?;
    txn.update_document(&document.0).map_err(|error| taken(collection, error))?;
    let stored = Stored { id: id.to_owned(), bytes: document.0.body().clone(), body: document.1 };
    (collection.hooks.stored)(txn, writer, &stored.body, Some(&old))?;
    Ok(stored)
}

/// Deletes a record and gives what it was.
///
/// Errors: 404 when it is not there; 400 when others refer to it; the collection's own rules.
pub fn delete(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    id: &str,
) -> Result<Value, FolioError> {
    let Some(old) = txn.get(&collection.kind, id)? else { return Err(FolioError::not_found("Not found")) };
    let old = old.json()?;
    (collection.hooks.deleting)(txn, writer, &old)?;
    refuse_used(txn, collection, id)?;
    txn.delete(&collection.kind, id)?;
    writer.known.borrow_mut().clear();
    Ok(old)
}

/// The record as it will be stored, checked.
fn document(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    mut body: Map<String, Value>,
    version: Option<u64>,
    old: Option<&Value>,
) -> Result<(Document, Value), FolioError> {
    complete(collection, &mut body)?;
    check_schema(collection, &body)?;
    let mut whole = Map::with_capacity(body.len() + 2);
    let id = body.shift_remove("id").unwrap_or_default();
    let id_text = id.as_str().unwrap_or_default().to_owned();
    whole.insert("id".into(), id);
    body.shift_remove("_version");
    whole.extend(version.map(|it| ("_version".to_owned(), it.into())));
    if collection.metadata != Metadata::Off {
        body.shift_remove("metadata");
    }
    // What is null is as good as not given.
    whole.extend(body.into_iter().filter(|(_, value)| !value.is_null()));
    whole.extend(writer.metadata(collection.metadata, old).map(|it| ("metadata".to_owned(), it)));
    let whole = Value::Object(whole);
    check_references(txn, writer, collection, &whole)?;
    let document = Document::with_bytes(&collection.kind, id_text, &whole, json::bytes(&whole))?;
    Ok((document, whole))
}

/// The id that a body brings, in lower case.
fn given_id(body: &Map<String, Value>) -> Result<Option<String>, FolioError> {
    match body.get("id") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => parse_uuid(text).map(Some).ok_or_else(|| not_a_uuid("id", text)),
        Some(other) => Err(not_a_uuid("id", &other.to_string())),
    }
}

fn not_a_uuid(property: &str, found: &str) -> FolioError {
    let pattern =
        "^[a-fA-F0-9]{8}-[a-fA-F0-9]{4}-[1-5][a-fA-F0-9]{3}-[89abAB][a-fA-F0-9]{3}-[a-fA-F0-9]{12}$";
    FolioError::unprocessable(
        Fault::new(format!("must match \"{pattern}\""))
            .ty("1")
            .code("jakarta.validation.constraints.Pattern.message")
            .with(property, found),
    )
}

/// Fills in what stands for properties that are not given.
fn complete(collection: &Collection, body: &mut Map<String, Value>) -> Result<(), FolioError> {
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

fn check_schema(collection: &Collection, body: &Map<String, Value>) -> Result<(), FolioError> {
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

/// Whether a required property is not there. Of `a.b`, only where there is an `a`.
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

/// Calls `visit` with each value at a path that is there and not null; lists are entered on the way.
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

fn check_references(
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
                return Err(FolioError::bad_request(format!(
                    "Cannot set {}.{field} = {id} because it does not exist in {}.id.",
                    collection.table, target.table
                )));
            }
            writer.known.borrow_mut().insert(known);
        }
    }
    Ok(())
}

/// Refuses that a record goes while others refer to it.
fn refuse_used(txn: &mut Txn<'_>, collection: &'static Collection, id: &str) -> Result<(), FolioError> {
    for other in modules::COLLECTIONS {
        for reference in other.references {
            if !std::ptr::eq((reference.to)(), collection) || !is_used(txn, other, reference.path, id)? {
                continue;
            }
            return Err(FolioError::bad_request(format!(
                "update or delete on table \"{}\" violates foreign key constraint on table \"{1}\": \
                 Key (id)=({id}) is still referenced from table \"{1}\".",
                collection.table, other.table
            )));
        }
    }
    Ok(())
}

/// Whether a record refers to `id`: by a column's index, by the counts of a facet, or by looking at each.
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

fn conflict(id: &str, stored: u64, found: &str) -> FolioError {
    FolioError::text(
        StatusCode::CONFLICT,
        format!(
            "Cannot update record {id} because it has been changed (optimistic locking): \
             Stored _version is {stored}, _version of request is {found} (23F09)"
        ),
    )
}

/// A value that another record has, as FOLIO says it.
fn taken(collection: &Collection, error: StoreError) -> FolioError {
    let StoreError::Duplicate { column, value, .. } = error else { return error.into() };
    if column == "id" && collection.locking != Locking::Off {
        let message = format!("id value already exists in table {}: {value}", collection.table);
        return FolioError::unprocessable(Fault::new(message).ty("1").code("-1").with("id", value));
    }
    let message = collection.unique.iter().find(|it| it.column == column).map_or("", |it| it.message);
    if message.is_empty() {
        let constraint = if column == "id" {
            format!("{}_pkey\": Key (id)", collection.table)
        } else {
            format!(
                "{}_{column}_idx_unique\": Key (lower(f_unaccent(jsonb ->> '{column}'::text)))",
                collection.table
            )
        };
        return FolioError::bad_request(format!(
            "duplicate key value violates unique constraint \"{constraint}=({value}) already exists."
        ));
    }
    let message = message.replace("{value}", &value);
    FolioError::unprocessable(Fault::new(message).ty("1").code("-1").with(column, value))
}
