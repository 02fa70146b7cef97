//! Rows that are sorted by values from bodies, as far as a page reaches: at most twice as many are kept as there are up to
//! its end, and of their values no more than an order compares.

use std::cmp::Ordering;

use serde_json::Value as Json;

use crate::eval::sort_order;
use crate::{Direction, Limits, Order, Result, StoreError};

/// Minimum number of rows collected before those behind the page are dropped.
const ROWS_MIN: usize = 1_000;

/// Bytes counted for a row, and for each of its values, beside the texts.
const BESIDE_BYTES: usize = 64;

/// Returns about how much memory the values take by which a row is sorted.
fn sort_bytes(values: &[Option<Json>]) -> usize {
    let of_value = |it: &Option<Json>| match it {
        Some(Json::String(text)) => text.len(),
        Some(Json::Array(list)) => list.iter().filter_map(Json::as_str).map(str::len).sum(),
        _ => 0,
    };
    values.iter().map(|it| BESIDE_BYTES + of_value(it)).sum::<usize>() + BESIDE_BYTES
}

/// Compares two values in the direction of an order.
pub(crate) fn directed(a: Option<&Json>, b: Option<&Json>, direction: Direction) -> Ordering {
    match direction {
        Direction::Ascending => sort_order(a, b),
        Direction::Descending => sort_order(b, a),
    }
}

/// Where rows with the same values come: in ascending order.
pub(crate) type Place = (i64, u64);

struct Row<T> {
    values: Vec<Option<Json>>,
    place: Place,
    what: T,
}

/// The rows up to the end of a page.
pub(crate) struct SortedRows<T> {
    directions: Vec<Direction>,
    skip: usize,
    /// Number of rows up to the end of the page.
    n_kept: usize,
    rows: Vec<Row<T>>,
    /// About how much memory the values take.
    n_bytes: usize,
    /// How much those up to the end of the page may take.
    most_bytes: u64,
}

impl<T> SortedRows<T> {
    pub(crate) fn of(order: &[Order], skip: u64, limit: Option<u64>, limits: &Limits) -> Self {
        let number = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
        Self {
            directions: order.iter().map(|it| it.direction).collect(),
            skip: number(skip),
            n_kept: limit.map_or(usize::MAX, |limit| number(skip.saturating_add(limit))),
            rows: Vec::new(),
            n_bytes: 0,
            most_bytes: limits.page_bytes,
        }
    }

    /// Adds a row with its values ([`crate::eval::sort_value`]).
    ///
    /// Errors: the values up to the end of the page take more than [`Limits::page_bytes`].
    pub(crate) fn add(&mut self, values: Vec<Option<Json>>, place: Place, what: T) -> Result<()> {
        self.n_bytes += sort_bytes(&values);
        self.rows.push(Row { values, place, what });
        if self.n_kept.max(ROWS_MIN).saturating_mul(2) <= self.rows.len() {
            self.cut();
        }
        // There are up to twice as many rows as those up to the end of the page.
        if self.n_bytes as u64 <= 2 * self.most_bytes {
            return Ok(());
        }
        Err(StoreError::Query(format!(
            "what is sorted up to the end of the page has more than {} bytes; ask for an earlier page, or narrow the search \
             down",
            self.most_bytes
        )))
    }

    /// Sorts the rows, and drops those behind the page.
    pub(crate) fn cut(&mut self) {
        let directions = &self.directions;
        // Those kept before are in order: a sort that detects runs merges the others.
        self.rows.sort_by(|a, b| {
            let values = a.values.iter().zip(&b.values).zip(directions);
            let by_values = values.fold(Ordering::Equal, |so_far, ((a, b), direction)| {
                so_far.then_with(|| directed(a.as_ref(), b.as_ref(), *direction))
            });
            by_values.then_with(|| a.place.cmp(&b.place))
        });
        self.rows.truncate(self.n_kept);
        self.n_bytes = self.rows.iter().map(|it| sort_bytes(&it.values)).sum();
    }

    /// Returns the number of rows up to the end of the page, as far as they were added.
    pub(crate) fn n_up_to_the_end(&self) -> usize {
        self.rows.len().min(self.n_kept)
    }

    /// Returns the values and the place of the last row of the page, if it is full; valid after [`SortedRows::cut`].
    pub(crate) fn last(&self) -> Option<(&[Option<Json>], Place)> {
        let last = self.rows.get(self.n_kept.checked_sub(1)?)?;
        Some((&last.values, last.place))
    }

    /// Returns the page.
    pub(crate) fn page(mut self) -> Vec<T> {
        self.cut();
        self.rows.into_iter().skip(self.skip).map(|it| it.what).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::eval::sort_value;

    fn order(direction: Direction) -> [Order; 1] {
        [Order { path: "free".into(), direction }]
    }

    #[test]
    fn no_more_than_the_page_and_what_is_before_it_is_kept() {
        for (skip, limit, direction) in [
            (0, 5, Direction::Ascending),
            (1_500, 20, Direction::Descending),
            (9_990, 50, Direction::Ascending),
        ] {
            let mut rows = SortedRows::of(&order(direction), skip, Some(limit), &Limits::default());
            let bound = 2 * ROWS_MIN.max((skip + limit) as usize);
            for n in 0..10_000_i64 {
                // Each value occurs twice, unordered; rows with equal values are distinguished by their places.
                rows.add(vec![Some(json!(n * 7_919 % 5_000))], (n, 0), n).expect("little");
                assert!(rows.rows.len() < bound, "{} rows for {skip} + {limit}", rows.rows.len());
            }
            let mut keys: Vec<i64> = (0..10_000).collect();
            let value = |key: i64| key * 7_919 % 5_000;
            match direction {
                Direction::Ascending => keys.sort_by_key(|key| (value(*key), *key)),
                Direction::Descending => keys.sort_by_key(|key| (std::cmp::Reverse(value(*key)), *key)),
            }
            let expected: Vec<i64> = keys.into_iter().skip(skip as usize).take(limit as usize).collect();
            assert_eq!(rows.page(), expected, "{skip} {limit}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let limits = Limits { page_bytes: 100_000, ..Limits::default() };
        let long = "x".repeat(1_000);
        let n_added = |value: Json, skip: u64| {
            let mut rows = SortedRows::of(&order(Direction::Ascending), skip, Some(5), &limits);
            let values = || vec![Some(sort_value(&value))];
            (0..5_000).take_while(|n| rows.add(values(), (*n, 0), ()).is_ok()).count()
        };
        assert!(n_added(json!(long), 0) < 200);
        assert!(n_added(json!([long, 1]), 0) < 200);
        assert!(n_added(json!(1), 4_000) < 2_000);
        // Nothing of an object is kept, nor of a list but its first element.
        assert_eq!(n_added(json!({"a": long}), 500), n_added(json!(1), 500));
        assert_eq!(n_added(json!([1, long]), 500), n_added(json!(1), 500));
    }
}
