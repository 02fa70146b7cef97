//! Where a kind's columns are: in its narrow rows, or in tables of their own; and the names of their indexes.

use crate::{Arity, Column, Index, Kind, Uniqueness};

/// Returns the columns of a kind's narrow row that hold values of the body.
pub(crate) fn one_columns(kind: &'static Kind) -> impl Iterator<Item = &'static Column> {
    kind.columns.iter().filter(|it| it.arity == Arity::One)
}

/// Returns the table of an [`Arity::Many`] column.
pub(crate) fn many_table(kind: &Kind, column: &Column) -> String {
    format!("\"x_{}_{}\"", kind.name, column.name)
}

/// Returns the name of an index.
pub(crate) fn index_name(kind: &Kind, index: &Index) -> String {
    let among = match index.uniqueness {
        Uniqueness::UniqueAmong(column, value) => format!("_{column}_{value}"),
        Uniqueness::Shared | Uniqueness::Unique => String::new(),
    };
    format!("i_{}_{}{among}", kind.name, index.columns.join("_"))
}
