//! A session with an engine: statements with bound values, rows passed to a closure.
//!
//! The rest of the store writes SQL that both engines understand, with parameters `?1`, `?2`…; where they differ, it
//! asks the [`Flavour`].

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::rc::Rc;

use bytes::Bytes;
use rusqlite::types::{ToSqlOutput, Value as SqliteValue, ValueRef};

use crate::postgres::{self, Asked, PgSession};
use crate::{Result, StoreError};

/// A bound value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    /// Absent.
    Null,
    /// Whole numbers, booleans (0, 1) and instants (milliseconds).
    Int(i64),
    /// Other numbers.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Bytes),
    /// A set of whole numbers, for [`Flavour::in_set`].
    Ints(Vec<i64>),
    /// A set of other values of one type, for [`Flavour::in_set`].
    Set(Vec<Cell>),
}

impl Cell {
    /// Returns the cell of a number: an integer if it is whole and fits 64 bits.
    pub(crate) fn number(number: f64) -> Self {
        const WHOLE: f64 = 9_007_199_254_740_992.0;
        if number.fract() == 0.0 && number.abs() <= WHOLE {
            Self::Int(number as i64)
        } else {
            Self::Real(number)
        }
    }

    /// Compares cells in a total order, to find duplicates.
    pub(crate) fn total_order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Real(a), Self::Real(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Blob(a), Self::Blob(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Int(_) => 1,
            Self::Real(_) => 2,
            Self::Text(_) => 3,
            Self::Blob(_) => 4,
            Self::Ints(_) => 5,
            Self::Set(_) => 6,
        }
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Int(number.cast_signed())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl rusqlite::ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Self::Int(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Self::Real(number) => ToSqlOutput::Borrowed(ValueRef::Real(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Blob(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Self::Ints(list) => array(list.iter().copied().map(SqliteValue::Integer).collect()),
            Self::Set(list) => array(list.iter().map(Self::to_sqlite).collect()),
        })
    }
}

/// Returns a set in the form that the engine's array module takes.
fn array(values: Vec<SqliteValue>) -> ToSqlOutput<'static> {
    ToSqlOutput::from_rc(Rc::new(values), c"rarray")
}

impl Cell {
    fn to_sqlite(&self) -> SqliteValue {
        match self {
            Self::Int(number) => SqliteValue::Integer(*number),
            Self::Real(number) => SqliteValue::Real(*number),
            Self::Text(text) => SqliteValue::Text(text.clone()),
            Self::Blob(bytes) => SqliteValue::Blob(bytes.to_vec()),
            Self::Null | Self::Ints(_) | Self::Set(_) => SqliteValue::Null,
        }
    }
}

/// The SQL dialect of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// The embedded engine.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

impl Flavour {
    /// Returns the condition that `column` is in the set bound to parameter `n`.
    pub(crate) fn in_set(self, column: &str, n: usize) -> String {
        match self {
            Self::Sqlite => format!("{column} IN rarray(?{n})"),
            Self::Postgres => format!("{column} = ANY(?{n})"),
        }
    }

    /// Returns the FROM clause that yields a kind's rows as `r` with their bodies.
    pub(crate) fn rows_with_bodies(self, kind: &str) -> String {
        match self {
            Self::Sqlite => format!("\"k_{kind}\" r JOIN \"b_{kind}\" b ON b.key = r.key"),
            Self::Postgres => format!("\"k_{kind}\" r"),
        }
    }

    /// Returns the name of the body there.
    pub(crate) fn body(self) -> &'static str {
        match self {
            Self::Sqlite => "b.body",
            Self::Postgres => "r.body",
        }
    }

    /// Returns the SQL that makes absent values the smallest in a sort.
    pub(crate) fn absent_is_smallest(self, direction: crate::Direction) -> &'static str {
        match (self, direction) {
            (Self::Sqlite, _) => "",
            (Self::Postgres, crate::Direction::Ascending) => " NULLS FIRST",
            (Self::Postgres, crate::Direction::Descending) => " NULLS LAST",
        }
    }
}

/// A session with an engine.
pub(crate) enum Session<'a> {
    /// The embedded engine.
    Sqlite(&'a rusqlite::Connection),
    /// PostgreSQL.
    Postgres(&'a mut PgSession),
    /// A single statement of PostgreSQL, executed separately: reads only.
    Asked(&'a mut Asked),
}

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

impl Session<'_> {
    /// Stops reading from a standby, so that the primary is used; false where no standby is read.
    pub(crate) fn leave_standby(&mut self) -> bool {
        match self {
            Self::Postgres(session) => session.leave_standby(),
            _ => false,
        }
    }

    pub(crate) fn flavour(&self) -> Flavour {
        match self {
            Self::Sqlite(_) => Flavour::Sqlite,
            Self::Postgres(_) | Self::Asked(_) => Flavour::Postgres,
        }
    }

    /// Runs a statement and returns the number of rows it changed.
    pub(crate) fn execute(&mut self, sql: &str, values: &[Cell]) -> Result<usize> {
        match self {
            Self::Sqlite(connection) => {
                Ok(connection.prepare_cached(sql)?.execute(rusqlite::params_from_iter(values))?)
            }
            Self::Postgres(session) => session.execute(sql, values),
            Self::Asked(asked) => asked.refuse(),
        }
    }

    /// Returns the embedded engine's connection. Errors: the engine is another.
    pub(crate) fn embedded(&self) -> Result<&rusqlite::Connection> {
        match self {
            Self::Sqlite(connection) => Ok(connection),
            Self::Postgres(_) | Self::Asked(_) => {
                Err(StoreError::Damaged("a statement of the embedded engine was asked of another".into()))
            }
        }
    }

    /// Runs a query and passes each row to `visit` until it breaks.
    pub(crate) fn rows(
        &mut self,
        sql: &str,
        values: &[Cell],
        mut visit: impl FnMut(Row<'_, '_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        match self {
            Self::Postgres(session) => session.rows(sql, values, visit),
            Self::Asked(asked) => asked.rows(sql, values, visit),
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(rusqlite::params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    if visit(Row::Sqlite(row))?.is_break() {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns all rows, each converted to a `T`.
    pub(crate) fn all<T>(
        &mut self,
        sql: &str,
        values: &[Cell],
        mut make: impl FnMut(Row<'_, '_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut list = Vec::new();
        self.rows(sql, values, |row| {
            list.push(make(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(list)
    }

    /// Returns the first row, if any, converted to a `T`.
    pub(crate) fn first<T>(
        &mut self,
        sql: &str,
        values: &[Cell],
        mut make: impl FnMut(Row<'_, '_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut found = None;
        self.rows(sql, values, |row| {
            found = Some(make(row)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Runs statements without values, separated by `;`.
    pub(crate) fn batch(&mut self, sql: &str) -> Result<()> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Self::Postgres(session) => session.batch(sql),
            Self::Asked(asked) => asked.refuse(),
        }
    }
}
