//! Typed access to records: reading and writing bodies as structs.

use pinakes_store::{Expr, Kind, Query, Record, StoreError, Txn, View};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ApiError;

/// Parses the body of a record.
///
/// Errors: the stored body is not of that type.
pub(crate) fn parsed<T: DeserializeOwned>(record: &Record) -> Result<T, ApiError> {
    serde_json::from_slice(&record.body)
        .map_err(|error| StoreError::Damaged(format!("record {:?}: {error}", record.id)).into())
}

/// Returns the record with this id.
pub(crate) fn get<T: DeserializeOwned>(
    view: &mut View<'_>,
    kind: &'static Kind,
    id: &str,
) -> Result<Option<T>, ApiError> {
    view.get(kind, id)?.as_ref().map(parsed).transpose()
}

/// Returns the records that match a query.
pub(crate) fn find<T: DeserializeOwned>(
    view: &mut View<'_>,
    kind: &'static Kind,
    query: &Query,
) -> Result<Vec<T>, ApiError> {
    view.find(kind, query)?.iter().map(parsed).collect()
}

/// Returns the records whose value at `path` is equal to the given one.
pub(crate) fn find_by<T: DeserializeOwned>(
    view: &mut View<'_>,
    kind: &'static Kind,
    path: &str,
    value: impl Into<pinakes_store::Value>,
) -> Result<Vec<T>, ApiError> {
    find(view, kind, &Query::filter(Expr::Is(path.into(), value.into())))
}

fn body<T: Serialize>(value: &T) -> Result<Value, ApiError> {
    serde_json::to_value(value).map_err(|error| StoreError::Damaged(error.to_string()).into())
}

/// Inserts a record.
pub(crate) fn insert<T: Serialize>(
    txn: &mut Txn<'_>,
    kind: &'static Kind,
    id: &str,
    value: &T,
) -> Result<(), ApiError> {
    txn.insert(kind, id, &body(value)?)?;
    Ok(())
}

/// Inserts or replaces a record.
pub(crate) fn put<T: Serialize>(
    txn: &mut Txn<'_>,
    kind: &'static Kind,
    id: &str,
    value: &T,
) -> Result<(), ApiError> {
    txn.put(kind, id, &body(value)?)?;
    Ok(())
}
