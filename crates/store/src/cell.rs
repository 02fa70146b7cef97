//! Values that statements bind and rows hold, the same for both engines.

use std::cmp::Ordering;
use std::rc::Rc;

use bytes::Bytes;
use rusqlite::types::{ToSqlOutput, Value as SqliteValue, ValueRef};

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
    /// A set of whole numbers, for [`crate::session::Flavour::in_set`].
    Ints(Vec<i64>),
    /// A set of other values of one type, for [`crate::session::Flavour::in_set`].
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
