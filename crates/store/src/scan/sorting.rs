//! Sorting by values from bodies, for orders that no index has.

use serde_json::Value as Json;

use crate::cell::Cell;
use crate::columns::one_columns;
use crate::document::Taken;
use crate::eval::{sort_value, value_at};
use crate::sorted_rows::SortedRows;
use crate::{Direction, Kind, Limits, Order, Query, Result, Type, fold};

/// Rows sorted by values from their bodies.
pub(super) struct Sorting {
    kind: &'static Kind,
    order: Vec<Order>,
    /// For each path of the order, its index among the columns with one value: what a column does not hold counts as
    /// absent.
    columns: Vec<Option<usize>>,
    rows: SortedRows<i64>,
}

impl Sorting {
    pub(super) fn of(kind: &'static Kind, query: &Query, limits: &Limits) -> Self {
        let place = |it: &Order| one_columns(kind).position(|column| it.path.is_dotted(column.path));
        let columns = query.order.iter().map(place).collect();
        let rows = SortedRows::of(&query.order, query.skip, query.limit, limits);
        Self { kind, order: query.order.clone(), columns, rows }
    }

    /// Adds a row.
    ///
    /// Errors: as [`SortedRows::add`].
    pub(super) fn add(&mut self, key: i64, body: &Json) -> Result<()> {
        let has_columns = self.columns.iter().any(Option::is_some);
        let taken = has_columns.then(|| Taken::from(self.kind, body));
        let value = |(it, column): (&Order, &Option<usize>)| match (column, &taken) {
            (Some(place), Some(taken)) => match &taken.cells[*place] {
                Cell::Int(number) => Some(Json::from(*number)),
                Cell::Real(number) => Some(Json::from(*number)),
                Cell::Text(text) => Some(Json::from(text.as_str())),
                _ => None,
            },
            _ => match value_at(body, it.path.as_steps()) {
                Some(Json::String(text)) if self.is_folded(it) => Some(Json::String(fold(text))),
                value => value.map(sort_value),
            },
        };
        let values = self.order.iter().zip(&self.columns).map(value).collect();
        // Ties come in insertion order, in the direction of the last path.
        let is_newest_first = self.order.last().is_some_and(|it| it.direction == Direction::Descending);
        self.rows.add(values, (if is_newest_first { !key } else { key }, 0), key)
    }

    /// Returns whether a list of values is compared without case and accents.
    fn is_folded(&self, order: &Order) -> bool {
        self.kind.column_of(&order.path).is_some_and(|column| column.ty == Type::Folded)
    }

    pub(super) fn window(self) -> Vec<i64> {
        self.rows.page()
    }
}
