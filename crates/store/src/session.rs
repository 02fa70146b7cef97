//! A session with an engine: statements with bound values, rows passed to a closure.
//!
//! The rest of the store writes SQL that both engines understand, with parameters `?1`, `?2`…; where they differ, it
//! asks the [`Flavour`].

use std::ops::ControlFlow;

use crate::cell::Cell;
use crate::postgres::{Asked, PgSession};
use crate::row::Row;
use crate::{Kind, Result, StoreError};

/// Changes below this number are all visible: no transaction that may still commit has a smaller one.
pub(crate) const HORIZON: &str = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint";

/// Whether a session sees committed state or its own transaction's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// A snapshot of committed state.
    Committed,
    /// An open transaction: its count differences are not written yet.
    Open,
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
        self.led_rows_with_bodies(kind, "")
    }

    /// Returns the SQL of the number of a kind's last change, 0 if there is none.
    pub(crate) fn last_change(self, kind: &str) -> String {
        let greatest = match self {
            Self::Sqlite => "max",
            Self::Postgres => "greatest",
        };
        format!(
            "{greatest}(coalesce((SELECT max(sequence) FROM \"k_{kind}\"), 0), \
             coalesce((SELECT max(sequence) FROM tombstone WHERE kind = '{kind}'), 0))"
        )
    }

    /// As [`Flavour::rows_with_bodies`], with a hint which index of the rows leads.
    pub(crate) fn led_rows_with_bodies(self, kind: &str, hint: &str) -> String {
        match self {
            Self::Sqlite => format!("\"k_{kind}\" r{hint} JOIN \"b_{kind}\" b ON b.key = r.key"),
            Self::Postgres => format!("\"k_{kind}\" r{hint}"),
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

    /// Returns whether the classes of a kind were read in this snapshot.
    pub(crate) fn has_read_classes(&self, kind: &Kind) -> bool {
        matches!(self, Self::Postgres(session) if session.has_read_classes(kind))
    }

    /// Notes that the classes of a kind were read in this snapshot.
    pub(crate) fn note_classes_read(&mut self, kind: &'static Kind) {
        if let Self::Postgres(session) = self {
            session.note_classes_read(kind);
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
