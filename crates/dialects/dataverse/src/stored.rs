//! Records as structs: reading and writing bodies of one type.

use pinakes_store::{Expr, Kind, Query, Record, StoreError, Txn, View};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ApiError;

/// Returns the body of a record.
///
/// Errors: what is stored is not of that type.
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

/// Returns the records of a query.
pub(crate) fn find<T: DeserializeOwned>(
    view: &mut View<'_>,
    kind: &'static Kind,
    query: &Query,
) -> Result<Vec<T>, ApiError> {
    view.find(kind, query)?.iter().map(parsed).collect()
}

/// Returns the records for which the value at `path` equals.
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

/// Makes a record.
pub(crate) fn insert<T: Serialize>(
    txn: &mut Txn<'_>,
    kind: &'static Kind,
    id: &str,
    value: &T,
) -> Result<(), ApiError> {
    txn.insert(kind, id, &body(value)?)?;
    Ok(())
}

/// Makes a record, or replaces it.
pub(crate) fn put<T: Serialize>(
    txn: &mut Txn<'_>,
    kind: &'static Kind,
    id: &str,
    value: &T,
) -> Result<(), ApiError> {
    txn.put(kind, id, &body(value)?)?;
    Ok(())
}
