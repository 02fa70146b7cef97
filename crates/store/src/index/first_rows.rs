//! A page at the beginning of an order by time or by a whole number.

use std::cmp::Ordering;

use super::condition::instants_between;
use super::rank::Rank;
use crate::columns::one_columns;
use crate::{Direction, Expr, Kind, Path, Type};

/// Maximum number of rows from the first one to the end of a page.
const ROWS: u64 = 500;

/// A page near the beginning of an order.
#[derive(Debug)]
pub(crate) struct FirstRows {
    /// The column, by its index among those with one value.
    pub(super) place: usize,
    /// Its path if it is one of points in time.
    pub(super) path: Option<Path>,
    pub(super) direction: Direction,
    pub(super) skip: usize,
    /// Number of rows up to the end of the page.
    pub(super) n_rows: usize,
}

/// A row in question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) rank: Rank,
    pub(super) key: i64,
}

impl FirstRows {
    /// Returns a page of the order by a column, `None` unless it is one of whole numbers and the page ends near the
    /// beginning. `place`: see there.
    pub(crate) fn of(
        kind: &'static Kind,
        place: usize,
        direction: Direction,
        skip: u64,
        limit: Option<u64>,
    ) -> Option<Self> {
        let column = one_columns(kind).nth(place)?;
        let path = match column.ty {
            Type::Instant => Some(Path::dotted(column.path)),
            Type::Integer | Type::Boolean => None,
            Type::Text | Type::Folded | Type::Real => return None,
        };
        let n_rows = skip.checked_add(limit?).filter(|it| *it <= ROWS)?;
        let (skip, n_rows) = (usize::try_from(skip).ok()?, usize::try_from(n_rows).ok()?);
        Some(Self { place, path, direction, skip, n_rows })
    }

    /// Returns the first so many rows of the same order.
    pub(crate) fn up_to(&self, n_rows: usize) -> Self {
        Self { path: self.path.clone(), skip: 0, n_rows, ..*self }
    }

    /// Returns whether a condition is a period of the column by which the rows are sorted.
    pub(super) fn is_period(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Range(path, low, high)
            if self.path.as_ref() == Some(path) && instants_between(low, high).is_some())
    }

    fn compare(&self, a: &Row, b: &Row) -> Ordering {
        let ascending = a.rank.cmp(&b.rank).then(a.key.cmp(&b.key));
        match self.direction {
            Direction::Ascending => ascending,
            Direction::Descending => ascending.reverse(),
        }
    }

    /// Keeps the rows that are still needed, in order.
    pub(super) fn cut(&self, rows: &mut Vec<Row>) {
        rows.sort_unstable_by(|a, b| self.compare(a, b));
        rows.truncate(self.n_rows);
    }
}
