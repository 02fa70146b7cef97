//! A row of a result, whichever engine gave it.

use bytes::Bytes;
use rusqlite::types::ValueRef;

use crate::cell::Cell;
use crate::postgres;
use crate::{Result, StoreError};

/// A row of a result; columns count from 0.
pub(crate) enum Row<'a, 'b> {
    /// The embedded engine.
    Sqlite(&'a rusqlite::Row<'b>),
    /// PostgreSQL.
    Postgres(&'a tokio_postgres::Row),
}

impl Row<'_, '_> {
    pub(crate) fn int(&self, column: usize) -> Result<i64> {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            Self::Postgres(row) => postgres::get(row, column),
        }
    }

    /// Returns a boolean.
    pub(crate) fn flag(&self, column: usize) -> Result<bool> {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            Self::Postgres(row) => postgres::get(row, column),
        }
    }

    pub(crate) fn optional_int(&self, column: usize) -> Result<Option<i64>> {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            Self::Postgres(row) => postgres::get(row, column),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<String> {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            Self::Postgres(row) => postgres::get(row, column),
        }
    }

    pub(crate) fn bytes(&self, column: usize) -> Result<Bytes> {
        match self {
            Self::Sqlite(row) => {
                Ok(Bytes::copy_from_slice(row.get_ref(column)?.as_bytes().map_err(from_sql_error)?))
            }
            Self::Postgres(row) => Ok(Bytes::copy_from_slice(postgres::get(row, column)?)),
        }
    }

    /// Returns the value, whatever its type.
    pub(crate) fn cell(&self, column: usize) -> Result<Cell> {
        match self {
            Self::Sqlite(row) => Ok(match row.get_ref(column)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(number) => Cell::Int(number),
                ValueRef::Real(number) => Cell::Real(number),
                ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Cell::Blob(Bytes::copy_from_slice(bytes)),
            }),
            Self::Postgres(row) => postgres::cell(row, column),
        }
    }
}

fn from_sql_error(error: rusqlite::types::FromSqlError) -> StoreError {
    StoreError::Damaged(error.to_string())
}
