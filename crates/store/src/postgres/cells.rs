//! Conversion between the store's cells and PostgreSQL's types, for parameters and result columns.

use std::error::Error;

use bytes::{Bytes, BytesMut};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};

use crate::cell::Cell;
use crate::{Result, StoreError};

impl ToSql for Cell {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *ty == Type::FLOAT8 => (*number as f64).to_sql(ty, out),
            Self::Int(number) if *ty == Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
            Self::Int(number) => number.to_sql(ty, out),
            Self::Real(number) => number.to_sql(ty, out),
            Self::Text(text) => text.as_str().to_sql(ty, out),
            Self::Blob(bytes) => bytes.as_ref().to_sql(ty, out),
            Self::Ints(list) => list.to_sql(ty, out),
            Self::Set(list) => set_to_sql(list, ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn set_to_sql(
    list: &[Cell],
    ty: &Type,
    out: &mut BytesMut,
) -> std::result::Result<IsNull, Box<dyn Error + Sync + Send>> {
    let Kind::Array(of) = ty.kind() else { return Err(format!("a set cannot be bound as {ty}").into()) };
    if *of == Type::INT8 {
        let whole = |cell: &Cell| if let Cell::Int(number) = cell { Some(*number) } else { None };
        return list.iter().filter_map(whole).collect::<Vec<i64>>().to_sql(ty, out);
    }
    if *of == Type::FLOAT8 {
        let number = |cell: &Cell| match cell {
            Cell::Int(number) => Some(*number as f64),
            Cell::Real(number) => Some(*number),
            _ => None,
        };
        return list.iter().filter_map(number).collect::<Vec<f64>>().to_sql(ty, out);
    }
    let text = |cell: &Cell| if let Cell::Text(text) = cell { Some(text.clone()) } else { None };
    list.iter().filter_map(text).collect::<Vec<String>>().to_sql(ty, out)
}

/// Returns a column of a row as the requested type.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// Returns a column of a row, whatever its type.
pub(crate) fn cell(row: &Row, column: usize) -> Result<Cell> {
    let of = row.columns().get(column).map(|it| it.type_().clone());
    let of = of.ok_or_else(|| StoreError::Damaged(format!("no column {column}")))?;
    let cell = if of == Type::INT8 {
        get::<Option<i64>>(row, column)?.map(Cell::Int)
    } else if of == Type::INT4 {
        get::<Option<i32>>(row, column)?.map(|it| Cell::Int(i64::from(it)))
    } else if of == Type::FLOAT8 {
        get::<Option<f64>>(row, column)?.map(Cell::number)
    } else if of == Type::BYTEA {
        get::<Option<&[u8]>>(row, column)?.map(|it| Cell::Blob(Bytes::copy_from_slice(it)))
    } else if of == Type::INT8_ARRAY {
        get::<Option<Vec<i64>>>(row, column)?.map(|it| Cell::Set(it.into_iter().map(Cell::Int).collect()))
    } else if of == Type::FLOAT8_ARRAY {
        get::<Option<Vec<f64>>>(row, column)?.map(|it| Cell::Set(it.into_iter().map(Cell::number).collect()))
    } else if of == Type::TEXT_ARRAY {
        get::<Option<Vec<String>>>(row, column)?.map(|it| Cell::Set(it.into_iter().map(Cell::Text).collect()))
    } else {
        get::<Option<String>>(row, column)?.map(Cell::Text)
    };
    Ok(cell.unwrap_or(Cell::Null))
}
