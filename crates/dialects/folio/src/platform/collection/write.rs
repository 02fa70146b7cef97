//! The rules of writing a record of a collection, within a transaction.

use bytes::Bytes;
use http::StatusCode;
use pinakes_store::{Document, StoreError, Txn};
use serde_json::{Map, Value};

use super::check::{check_references, check_schema, complete, not_a_uuid, refuse_used};
use crate::platform::collection::declared::{Collection, Locking, Manner, Metadata, Writer};
use crate::platform::error::{Fault, FolioError};
use crate::platform::values::parse_uuid;
use crate::platform::{coerce, json};

/// A stored record.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its id.
    pub id: String,
    /// The body as it is stored.
    pub bytes: Bytes,
    /// The same, parsed.
    pub body: Value,
}

/// What to do if the record to be replaced does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Answer 404.
    Refuse,
    /// Create it.
    Insert,
}

/// Whether `_version` is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// It must equal the stored one.
    Checked,
    /// It is ignored.
    Ignored,
}

/// Creates a record. An id is generated if none is given.
///
/// Errors: 422 for a violation of the schema or an id that is taken; 400 for a unique value that is taken or a
/// reference to a record that does not exist; the collection's own rules.
pub fn insert(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    mut body: Map<String, Value>,
) -> Result<Stored, FolioError> {
    coerce::declared(collection, &mut body);
    let id = given_id(&body)?.unwrap_or_else(|| writer.new_uuid());
    body.insert("id".into(), id.clone().into());
    (collection.hooks.prepare)(txn, writer, &mut body, None)?;
    let version = match collection.locking {
        Locking::Off => None,
        Locking::From(first) => Some(first),
    };
    let document = document(txn, writer, collection, body, version, None)?;
    // If the collection has its own message for an id that is taken, it is checked before other unique values.
    if collection.unique.iter().any(|it| it.column == "id") && txn.has(&collection.kind, &id)? {
        let (kind, column) = (collection.kind.name, "id");
        return Err(taken(collection, StoreError::Duplicate { kind, column, value: id }, &document.1));
    }
    txn.insert_document(&document.0).map_err(|error| taken(collection, error, &document.1))?;
    let stored = Stored { id, bytes: document.0.body().clone(), body: document.1 };
    (collection.hooks.stored)(txn, writer, &stored.body, None)?;
    Ok(stored)
}

/// Replaces a record.
///
/// Errors: those of [`insert`]; 404 if the record does not exist; 409 if `_version` is not the stored one.
pub fn put(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    id: &str,
    mut body: Map<String, Value>,
    missing: Missing,
    lock: Lock,
) -> Result<Stored, FolioError> {
    coerce::declared(collection, &mut body);
    body.insert("id".into(), id.into());
    let Some(old) = txn.get(&collection.kind, id)? else {
        return match missing {
            Missing::Refuse => Err(absent(collection, id)),
            Missing::Insert => insert(txn, writer, collection, body),
        };
    };
    let old = old.json()?;
    let mut version = None;
    if let Locking::From(first) = collection.locking {
        let stored = old.get("_version").and_then(Value::as_u64).unwrap_or(first);
        if lock == Lock::Checked && body.get("_version").and_then(Value::as_u64) != Some(stored) {
            let found = body.get("_version").map_or_else(|| "<NULL>".to_owned(), Value::to_string);
            return Err(conflict(collection, id, stored, &found));
        }
        version = Some(stored + 1);
    }
    (collection.hooks.prepare)(txn, writer, &mut body, Some(&old)).map_err(|it| plainly(collection, it))?;
    let document = document(txn, writer, collection, body, version, Some(&old))?;
    let refused = |error| plainly(collection, taken(collection, error, &document.1));
    txn.update_document(&document.0).map_err(refused)?;
    let stored = Stored { id: id.to_owned(), bytes: document.0.body().clone(), body: document.1 };
    (collection.hooks.stored)(txn, writer, &stored.body, Some(&old))?;
    Ok(stored)
}

/// Words the refusal of a `PUT` as the module does.
fn plainly(collection: &Collection, refused: FolioError) -> FolioError {
    match refused.status {
        StatusCode::UNPROCESSABLE_ENTITY if collection.is_put_refused_plainly => {
            FolioError::bad_request(refused.message())
        }
        _ => refused,
    }
}

/// When instances and items got their status: set by the server, and kept for a moved record.
const STATUS_DATES: [&str; 2] = ["/statusUpdatedDate", "/status/date"];

/// Stores a record exported elsewhere, with its dates: the collection's rules apply, but not the consequences of
/// creating a record (notices, histories, marks of change), which were applied there. An existing record is replaced.
///
/// Errors: those of [`insert`].
pub(crate) fn moved_in(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    mut body: Map<String, Value>,
) -> Result<(), FolioError> {
    coerce::declared(collection, &mut body);
    let id = given_id(&body)?.unwrap_or_else(|| writer.new_uuid());
    body.insert("id".into(), id.clone().into());
    let metadata = body.get("metadata").filter(|it| it.is_object()).cloned();
    let moved = Value::Object(body.clone());
    let version = body.get("_version").and_then(Value::as_u64);
    let old = txn.get(&collection.kind, &id)?.map(|it| it.json()).transpose()?;
    (collection.hooks.prepare)(txn, writer, &mut body, old.as_ref())?;
    let version = match collection.locking {
        Locking::Off => None,
        Locking::From(first) => Some(version.unwrap_or(first)),
    };
    let (_, mut whole) = document(txn, writer, collection, body, version, old.as_ref())?;
    if let (Some(metadata), Value::Object(map)) = (metadata, &mut whole)
        && collection.metadata != Metadata::Off
    {
        map.insert("metadata".into(), metadata);
    }
    for pointer in STATUS_DATES {
        if let (Some(kept @ Value::String(_)), Some(date)) =
            (moved.pointer(pointer), whole.pointer_mut(pointer))
        {
            *date = kept.clone();
        }
    }
    let document = Document::with_bytes(&collection.kind, id, &whole, json::bytes(&whole))?;
    let written = match old {
        Some(_) => txn.update_document(&document),
        None => txn.insert_document(&document),
    };
    written.map(drop).map_err(|error| taken(collection, error, &whole))
}

/// Deletes a record and returns it.
///
/// Errors: 404 if it does not exist; 400 if other records refer to it; the collection's own rules.
pub fn delete(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    id: &str,
) -> Result<Value, FolioError> {
    let Some(old) = txn.get(&collection.kind, id)? else { return Err(absent(collection, id)) };
    let old = old.json()?;
    (collection.hooks.deleting)(txn, writer, &old)?;
    refuse_used(txn, writer, collection, id)?;
    txn.delete(&collection.kind, id)?;
    writer.known.borrow_mut().clear();
    Ok(old)
}

fn absent(collection: &Collection, id: &str) -> FolioError {
    if collection.missing.is_some() { collection.not_found(id) } else { FolioError::not_found("Not found") }
}

/// Builds the stored form of a record and checks it.
fn document(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    body: Map<String, Value>,
    version: Option<u64>,
    old: Option<&Value>,
) -> Result<(Document, Value), FolioError> {
    let (document, whole) = made(writer, collection, body, version, old)?;
    check_references(txn, writer, collection, &whole)?;
    Ok((document, whole))
}

/// Builds the stored form of a record without a transaction, for bulk work that prepares many records before writing
/// them. References and the collection's own rules are not checked.
///
/// `body` has an `id`; `version` goes into `_version`; `old` is the record it replaces.
///
/// Errors: violations of the schema.
pub fn made(
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
    // A null property counts as not given.
    whole.extend(body.into_iter().filter(|(_, value)| !value.is_null()));
    whole.extend(writer.metadata(collection.metadata, old).map(|it| ("metadata".to_owned(), it)));
    let whole = Value::Object(whole);
    let document = Document::with_bytes(&collection.kind, id_text, &whole, json::bytes(&whole))?;
    Ok((document, whole))
}

/// Returns the id given in a body, in lower case.
fn given_id(body: &Map<String, Value>) -> Result<Option<String>, FolioError> {
    match body.get("id") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => parse_uuid(text).map(Some).ok_or_else(|| not_a_uuid("id", text)),
        Some(other) => Err(not_a_uuid("id", &other.to_string())),
    }
}

/// Builds the error for a `_version` that is not the stored one; a database reports it, except for authorities.
fn conflict(collection: &Collection, id: &str, stored: u64, found: &str) -> FolioError {
    let begin = if collection.metadata == Metadata::Rmb { "ERROR: " } else { "" };
    FolioError::text(
        StatusCode::CONFLICT,
        format!(
            "{begin}Cannot update record {id} because it has been changed (optimistic locking): \
             Stored _version is {stored}, _version of request is {found} (23F09)"
        ),
    )
}

/// Builds FOLIO's error for a value that another record has.
fn taken(collection: &Collection, error: StoreError, body: &Value) -> FolioError {
    let StoreError::Duplicate { column, value, .. } = error else { return error.into() };
    if let Some(text) = collection.taken {
        return FolioError::bad_request(text);
    }
    let path = collection.kind.columns.iter().find(|it| it.name == column).map_or("", |it| it.path);
    let given = json::text_at(body, path).filter(|it| pinakes_store::fold(it) == value);
    let value = given.map_or(value.clone(), str::to_owned);
    if column == "id" && collection.locking != Locking::Off {
        let message = format!("id value already exists in table {}: {value}", collection.table);
        return FolioError::unprocessable(Fault::new(message).ty("1").code("-1").with("id", value));
    }
    let message = collection.unique.iter().find(|it| it.column == column).map_or("", |it| it.message);
    if message.is_empty() && matches!(collection.locking, Locking::From(_)) {
        let key = format!("lower(f_unaccent(jsonb ->> '{column}'::text))");
        let message = format!("{key} value already exists in table {}: {value}", collection.table);
        return FolioError::unprocessable(Fault::new(message).ty("1").code("-1").with(key, value));
    }
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
    let fault = Fault::new(message.replace("{value}", &value)).with(column, value);
    FolioError::unprocessable(match collection.manner {
        // As mod-entities-links: `/authority-source-files` gives `duplicate.authority-source-file.name`.
        Manner::Links => {
            let what = collection.path.trim_start_matches('/').trim_end_matches('s');
            fault.ty("DataIntegrityViolationException").code(format!("duplicate.{what}.{column}"))
        }
        _ => fault.ty("1").code("-1"),
    })
}
