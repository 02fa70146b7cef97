//! Orders that no index knows: by what the bodies hold.

use serde_json::Value as Json;

use crate::document::Taken;
use crate::eval::{sort_order, value_at};
use crate::session::Cell;
use crate::statements::one_columns;
use crate::{Direction, Kind, Order, Query, Type, fold};

/// Rows that are sorted by what their bodies hold.
pub(super) struct Sorting {
    kind: &'static Kind,
    query: Query,
    /// Of each of the order's paths, its place among the columns with one value: what a column does not hold is absent.
    columns: Vec<Option<usize>>,
    rows: Vec<(Vec<Option<Json>>, i64)>,
}

impl Sorting {
    pub(super) fn of(kind: &'static Kind, query: &Query) -> Self {
        let place = |it: &Order| one_columns(kind).position(|column| it.path.is_dotted(column.path));
        let columns = query.order.iter().map(place).collect();
        Self { kind, query: query.clone(), columns, rows: Vec::new() }
    }

    pub(super) fn add(&mut self, key: i64, body: &Json) {
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
                value => value.cloned(),
            },
        };
        let values = self.query.order.iter().zip(&self.columns).map(value).collect();
        self.rows.push((values, key));
    }

    /// Whether a list of values is compared without case and accents.
    fn is_folded(&self, order: &Order) -> bool {
        self.kind.column_of(&order.path).is_some_and(|column| column.ty == Type::Folded)
    }

    pub(super) fn window(mut self) -> Vec<i64> {
        let Query { order, skip, limit, .. } = self.query;
        let is_newest_first = order.last().is_some_and(|it| it.direction == Direction::Descending);
        self.rows.sort_by(|(a, a_key), (b, b_key)| {
            for (index, it) in order.iter().enumerate() {
                let by_value = sort_order(a[index].as_ref(), b[index].as_ref());
                let by_value =
                    if it.direction == Direction::Descending { by_value.reverse() } else { by_value };
                if by_value.is_ne() {
                    return by_value;
                }
            }
            if is_newest_first { b_key.cmp(a_key) } else { a_key.cmp(b_key) }
        });
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let limit = limit.and_then(|it| usize::try_from(it).ok()).unwrap_or(usize::MAX);
        self.rows.into_iter().skip(skip).take(limit).map(|(_, key)| key).collect()
    }
}
