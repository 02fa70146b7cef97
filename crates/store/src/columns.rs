//! Where a kind's columns are: in its narrow rows, or in tables of their own.

use crate::{Arity, Column, Kind};

/// Returns the columns of a kind's narrow row that hold values of the body.
pub(crate) fn one_columns(kind: &'static Kind) -> impl Iterator<Item = &'static Column> {
    kind.columns.iter().filter(|it| it.arity == Arity::One)
}

/// Returns the table of an [`Arity::Many`] column.
pub(crate) fn many_table(kind: &Kind, column: &Column) -> String {
    format!("\"x_{}_{}\"", kind.name, column.name)
}
