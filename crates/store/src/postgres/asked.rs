//! What a closure asks when it is run to find out which statement it needs.

use std::ops::ControlFlow;
use std::sync::Arc;

use tokio_postgres::Row as PgRow;

use crate::cell::Cell;
use crate::row::Row;
use crate::{Result, StoreError};

/// The first statement of a closure, and its result once available.
#[derive(Default)]
pub(crate) struct Asked {
    pub(super) first: Option<(String, Vec<Cell>)>,
    pub(super) answer: Option<Vec<Arc<PgRow>>>,
    has_more: bool,
    /// See [`Asked::require_declared`].
    pub(super) declared: Option<i64>,
}

impl Asked {
    /// Passes the rows of the result to `visit`, or records the statement.
    pub(crate) fn rows(
        &mut self,
        sql: &str,
        values: &[Cell],
        mut visit: impl FnMut(Row<'_, '_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        match (&self.first, &self.answer) {
            (Some((first, of)), Some(rows)) if first == sql && of == values => {
                for row in rows {
                    if visit(Row::Postgres(row))?.is_break() {
                        break;
                    }
                }
                return Ok(());
            }
            (None, _) => self.first = Some((sql.to_owned(), values.to_vec())),
            _ => self.has_more = true,
        }
        Err(StoreError::Conflict("the read waits for its answer".to_owned()))
    }

    /// Requires that declarations have changed exactly this often for the result to be valid.
    pub(crate) fn require_declared(&mut self, declared: i64) {
        self.declared = Some(declared);
    }

    /// Refuses anything that is not a read.
    pub(crate) fn refuse<T>(&mut self) -> Result<T> {
        self.has_more = true;
        Err(StoreError::Conflict("a read does not change anything".to_owned()))
    }

    /// Returns whether one statement cannot answer the closure.
    pub(super) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns whether it has requested a statement.
    pub(super) fn is_waiting(&self) -> bool {
        self.first.is_some()
    }
}
