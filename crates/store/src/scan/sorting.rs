//! Sorting by values from bodies, for orders that no index has.

use serde_json::Value as Json;

use crate::cell::Cell;
use crate::columns::one_columns;
use crate::document::Taken;
use crate::eval::{sort_bytes, sort_order, sort_value, too_far, value_at};
use crate::{Direction, Kind, Limits, Order, Query, Result, Type, fold};

/// Minimum number of rows collected before those behind the page are dropped.
const ROWS_MIN: usize = 1_000;

/// Rows sorted by values from their bodies: at most twice as many are kept as there are up to the end of the page.
pub(super) struct Sorting {
    kind: &'static Kind,
    query: Query,
    /// For each path of the order, its index among the columns with one value: what a column does not hold counts as
    /// absent.
    columns: Vec<Option<usize>>,
    rows: Vec<(Vec<Option<Json>>, i64)>,
    /// About how much memory the rows take.
    n_bytes: usize,
    /// How much those up to the end of the page may take.
    most_bytes: u64,
}

impl Sorting {
    pub(super) fn of(kind: &'static Kind, query: &Query, limits: &Limits) -> Self {
        let place = |it: &Order| one_columns(kind).position(|column| it.path.is_dotted(column.path));
        let columns = query.order.iter().map(place).collect();
        let (rows, n_bytes, most_bytes) = (Vec::new(), 0, limits.page_bytes);
        Self { kind, query: query.clone(), columns, rows, n_bytes, most_bytes }
    }

    /// Adds a row.
    ///
    /// Errors: the values up to the end of the page have more than [`crate::Limits::page_bytes`].
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
        let values: Vec<Option<Json>> = self.query.order.iter().zip(&self.columns).map(value).collect();
        self.n_bytes += sort_bytes(&values);
        self.rows.push((values, key));
        let n_kept = self.n_up_to_the_end();
        if n_kept.max(ROWS_MIN).saturating_mul(2) <= self.rows.len() {
            self.sort();
            self.rows.truncate(n_kept);
            self.n_bytes = self.rows.iter().map(|it| sort_bytes(&it.0)).sum();
        }
        // There are up to twice as many rows as those up to the end of the page.
        if self.n_bytes as u64 <= 2 * self.most_bytes { Ok(()) } else { Err(too_far(self.most_bytes)) }
    }

    /// Returns the number of rows up to the end of the page.
    fn n_up_to_the_end(&self) -> usize {
        let end = self.query.limit.map_or(u64::MAX, |limit| self.query.skip.saturating_add(limit));
        usize::try_from(end).unwrap_or(usize::MAX)
    }

    /// Returns whether a list of values is compared without case and accents.
    fn is_folded(&self, order: &Order) -> bool {
        self.kind.column_of(&order.path).is_some_and(|column| column.ty == Type::Folded)
    }

    pub(super) fn window(mut self) -> Vec<i64> {
        self.sort();
        let skip = usize::try_from(self.query.skip).unwrap_or(usize::MAX);
        let limit = self.n_up_to_the_end().saturating_sub(skip);
        self.rows.into_iter().skip(skip).take(limit).map(|(_, key)| key).collect()
    }

    fn sort(&mut self) {
        let order = &self.query.order;
        let is_newest_first = order.last().is_some_and(|it| it.direction == Direction::Descending);
        self.rows.sort_unstable_by(|(a, a_key), (b, b_key)| {
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
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Expr;

    static THING: Kind = Kind::named("thing");

    #[test]
    fn no_more_than_the_page_and_what_is_before_it_is_kept() {
        for (skip, limit, direction) in [
            (0, 5, Direction::Ascending),
            (1_500, 20, Direction::Descending),
            (9_990, 50, Direction::Ascending),
        ] {
            let query = Query::filter(Expr::All).sorted("free", direction).window(skip, limit);
            let mut sorting = Sorting::of(&THING, &query, &Limits::default());
            let bound = 2 * ROWS_MIN.max((skip + limit) as usize);
            for n in 0..10_000_i64 {
                // Each value occurs twice, unordered; rows with equal values are distinguished by their keys.
                sorting.add(n, &json!({"free": n * 7_919 % 5_000})).expect("little");
                assert!(sorting.rows.len() < bound, "{} rows for {skip} + {limit}", sorting.rows.len());
            }
            let mut keys: Vec<i64> = (0..10_000).collect();
            let value = |key: i64| key * 7_919 % 5_000;
            match direction {
                Direction::Ascending => keys.sort_by_key(|key| (value(*key), *key)),
                Direction::Descending => keys.sort_by_key(|key| std::cmp::Reverse((value(*key), *key))),
            }
            let expected: Vec<i64> = keys.into_iter().skip(skip as usize).take(limit as usize).collect();
            assert_eq!(sorting.window(), expected, "{skip} {limit}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let limits = Limits { page_bytes: 100_000, ..Limits::default() };
        let long = "x".repeat(1_000);
        let n_added = |value: Json, skip: u64| {
            let query = Query::filter(Expr::All).sorted("free", Direction::Ascending).window(skip, 5);
            let mut sorting = Sorting::of(&THING, &query, &limits);
            (0..5_000).take_while(|n| sorting.add(*n, &json!({"free": value})).is_ok()).count()
        };
        assert!(n_added(json!(long), 0) < 200);
        assert!(n_added(json!([long, 1]), 0) < 200);
        assert!(n_added(json!(1), 4_000) < 2_000);
        // Nothing of an object is kept, nor of a list but its first element.
        assert_eq!(n_added(json!({"a": long}), 500), n_added(json!(1), 500));
        assert_eq!(n_added(json!([1, long]), 500), n_added(json!(1), 500));
    }
}
