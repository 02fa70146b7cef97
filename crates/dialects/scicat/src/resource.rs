//! What all resources share: how a resource describes itself, and how records that are one JSON document each are
//! created, changed and deleted.
//!
//! A new resource is a kind in `kinds.rs`, a file with its routes, handlers and a [`Resource`], and a line in
//! `resources.rs`; if its changes can be tracked, also a line in `tracking.rs` and one in `history.rs`. Its operations
//! are described in `openapi/operations.txt`.

use axum::Router;
use bytes::Bytes;
use http::StatusCode;
use pinakes_http::{Refusal, answer};
use pinakes_store::{Document, Kind, Record, StoreError, Txn};
use serde_json::{Map, Value};

use crate::app::{Asker, Scicat};
use crate::documents::{object, stamp};
use crate::error::{Answer, ScicatError};
use crate::faults::Fault;
use crate::import::imported::Imported;
use crate::tracking::Tracking;
use crate::validate::Dto;

/// A resource: what the rest of the dialect needs to know about it.
pub(crate) struct Resource {
    /// The kinds of its records.
    pub(crate) kinds: &'static [&'static Kind],
    /// Its routes, in lower case.
    pub(crate) routes: fn() -> Router<Scicat>,
    /// The types of its records that are imported and exported.
    pub(crate) imported: &'static [Imported],
}

impl Resource {
    /// Creates a resource without records; also the base for others.
    pub(crate) const fn of_routes(routes: fn() -> Router<Scicat>) -> Self {
        Self { kinds: &[], routes, imported: &[] }
    }
}

/// Refuses a body with faults, in shape E1.
pub(crate) fn require_sound(faults: &[Fault]) -> Result<(), ScicatError> {
    if faults.is_empty() { Ok(()) } else { Err(ScicatError::faults_as_list(faults)) }
}

/// Adds a checked body to what the server has set: `null` counts as absent, and defaults are filled in.
pub(crate) fn complete(document: &mut Map<String, Value>, mut body: Map<String, Value>, table: &Dto) {
    body.retain(|_, value| !value.is_null());
    table.fill_defaults(&mut body);
    for (name, value) in body {
        document.entry(name).or_insert(value);
    }
}

/// Stores a new record and returns its bytes.
///
/// Errors: `taken` if its id, or another unique value, is already used.
pub(crate) async fn insert(
    asker: &Asker,
    kind: &'static Kind,
    id: &str,
    document: Map<String, Value>,
    taken: ScicatError,
) -> Result<Bytes, ScicatError> {
    let document = Document::new(kind, id, &Value::Object(document))?;
    let bytes = document.body().clone();
    let written = asker.db.write(move |txn| txn.insert_document(&document).map(|_| ())).await;
    match written {
        Ok(()) => Ok(bytes),
        Err(StoreError::Duplicate { .. }) => Err(taken),
        Err(error) => Err(error.into()),
    }
}

/// Applies `change` to a stored document, records who changed it and returns its bytes.
///
/// Errors: 404 in shape E3 if it does not exist; whatever `change` refuses.
pub(crate) async fn change(
    asker: &Asker,
    kind: &'static Kind,
    id: String,
    now: String,
    mut change: impl FnMut(&mut Txn<'_>, &Record, &mut Map<String, Value>) -> Result<(), ScicatError>
    + Send
    + 'static,
) -> Result<Bytes, ScicatError> {
    let (username, tracking) = (asker.username(), asker.tracking(kind));
    asker
        .db
        .write(move |txn| {
            let record = txn.get(kind, &id)?.ok_or_else(ScicatError::bare_not_found)?;
            let mut document = object(&record)?;
            change(txn, &record, &mut document)?;
            stamp(&mut document, &username, &now);
            update(txn, kind, &record, document, tracking)
        })
        .await
}

/// Replaces a stored document within a transaction, tracks the change and returns the new bytes.
pub(crate) fn update(
    txn: &mut Txn<'_>,
    kind: &'static Kind,
    before: &Record,
    document: Map<String, Value>,
    tracking: Tracking,
) -> Result<Bytes, ScicatError> {
    if tracking != Tracking::Off {
        tracking.note_change(txn, &before.id, before.version, &object(before)?, &document)?;
    }
    let document = Document::new(kind, before.id.as_str(), &Value::Object(document))?;
    txn.update_document(&document)?;
    Ok(document.body().clone())
}

/// Replaces the fields that a patch names.
pub(crate) fn apply(document: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (name, value) in changes {
        document.insert(name.clone(), value.clone());
    }
}

/// Returns `taken` instead of the store's error about a unique value that is already used.
pub(crate) fn or_taken(error: ScicatError, taken: ScicatError) -> ScicatError {
    match error {
        ScicatError::Refused(Refusal::Store(StoreError::Duplicate { .. })) => taken,
        other => other,
    }
}

/// Deletes a record and answers with its last content.
///
/// Errors: 404 in shape E3 if it does not exist; whatever `allow` refuses.
pub(crate) async fn delete(
    asker: &Asker,
    kind: &'static Kind,
    id: String,
    now: String,
    mut allow: impl FnMut(&mut Txn<'_>, &Record) -> Result<(), ScicatError> + Send + 'static,
) -> Answer {
    let (username, tracking) = (asker.username(), asker.tracking(kind));
    let record = asker
        .db
        .write(move |txn| {
            let record = txn.get(kind, &id)?.ok_or_else(ScicatError::bare_not_found)?;
            allow(txn, &record)?;
            tracking.note_deletion(txn, &id, record.version, &object(&record)?, &username, &now)?;
            txn.delete(kind, &id)?;
            Ok::<_, ScicatError>(record)
        })
        .await?;
    Ok(answer::stored_json(StatusCode::OK, record.body))
}
