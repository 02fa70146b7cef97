//! The documents of a decoded column in the order of its values: the first of a few sorted rows are found at its end, and
//! a period is a part of it.

use std::ops::{Range, RangeInclusive};

use super::codes::Codes;
use super::recent::Measured;
use super::set::Set;
use crate::Direction;

/// All documents of a segment, by ascending value of a column; those without a value first, equal ones by number.
#[derive(Debug)]
pub(super) struct Ascending {
    docs: Vec<u32>,
    /// Whether the values are all points in time at the column's path.
    pub(super) is_of_path: bool,
}

/// Which documents of an order are wanted.
pub(super) struct Wanted<'w> {
    pub(super) among: &'w Set,
    pub(super) direction: Direction,
    /// Number of documents.
    pub(super) n_docs: usize,
    /// Rank of a value behind which none is wanted.
    pub(super) last: Option<Option<u64>>,
    /// Number of documents that may be looked at.
    pub(super) n_looks: usize,
}

impl Ascending {
    /// Sorts the documents of a column. `is_of_path`: see there.
    pub(super) fn of(codes: &Codes, n_docs: u32, is_of_path: bool) -> Self {
        let mut docs: Vec<u32> = (0..n_docs).collect();
        docs.sort_by_cached_key(|doc| codes.code(*doc));
        Self { docs, is_of_path }
    }

    /// Returns the memory that so many documents take.
    pub(super) fn n_bytes_of(n_docs: u32) -> usize {
        size_of::<u32>() * n_docs as usize
    }

    /// Returns the positions of all documents.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.docs.len()
    }

    /// Returns the positions of the documents with a value from `from` to `to`, both included.
    pub(super) fn between(&self, codes: &Codes, from: i64, to: i64) -> Range<usize> {
        let Some((low, high)) = codes.between(from, to) else { return 0..0 };
        let begin = self.docs.partition_point(|doc| codes.code(*doc) < low);
        begin..self.docs.partition_point(|doc| codes.code(*doc) <= high).max(begin)
    }

    /// Returns the first wanted documents at these positions, and all with the same value as the last of them. `None` when
    /// more would have to be looked at than may be.
    pub(super) fn first_of(
        &self,
        codes: &Codes,
        positions: Range<usize>,
        wanted: &Wanted<'_>,
    ) -> Option<Vec<u32>> {
        let mut left = self.docs.get(positions)?;
        if let Some(last) = wanted.last {
            left = with_codes(left, codes, &codes.up_to(last, wanted.direction));
        }
        let mut found = Vec::new();
        for _ in 0..wanted.n_looks {
            let next = match wanted.direction {
                Direction::Ascending => left.split_first(),
                Direction::Descending => left.split_last(),
            };
            let Some((doc, others)) = next else { return Some(found) };
            left = others;
            if wanted.among.has(*doc) {
                found.push(*doc);
                if found.len() == wanted.n_docs {
                    let code = codes.code(*doc);
                    left = with_codes(left, codes, &(code..=code));
                }
            }
        }
        left.is_empty().then_some(found)
    }
}

/// Returns the documents with one of these codes, of documents in their order.
fn with_codes<'d>(docs: &'d [u32], codes: &Codes, wanted: &RangeInclusive<u64>) -> &'d [u32] {
    let begin = docs.partition_point(|doc| codes.code(*doc) < *wanted.start());
    let docs = &docs[begin..];
    &docs[..docs.partition_point(|doc| codes.code(*doc) <= *wanted.end())]
}

impl Measured for Ascending {
    fn n_bytes(&self) -> usize {
        size_of::<u32>() * self.docs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::codes::tests::decoded;
    use crate::index::codes::whole_rank;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn the_first_are_found_among_any(
            values in prop::collection::vec(prop::option::of(0..30_i64), 2..100),
            among in prop::collection::vec(any::<bool>(), 100),
            period in prop::option::of((-3..33_i64, -3..33_i64)),
            last in prop::option::of(prop::option::of(-2..32_i64)),
            is_descending: bool,
            n_docs in 1..12_usize,
            n_looks in 0..120_usize,
        ) {
            let codes = decoded(&values).expect("decoded");
            let n = u32::try_from(values.len()).expect("small");
            let (order, direction) = (
                Ascending::of(&codes, n, true),
                if is_descending { Direction::Descending } else { Direction::Ascending },
            );
            let mut set = Set::empty(n);
            (0..n).filter(|doc| among[*doc as usize]).for_each(|doc| set.insert(doc));
            let positions = period.map_or(order.all(), |(from, to)| order.between(&codes, from, to));

            let value = |doc: &u32| values[*doc as usize];
            let is_in = |doc: &u32| match period {
                None => true,
                Some((from, to)) => value(doc).is_some_and(|it| from <= it && it <= to),
            };
            let mut in_order: Vec<u32> = (0..n).filter(is_in).collect();
            in_order.sort_by_key(|doc| (value(doc), *doc));
            if is_descending {
                in_order.reverse();
            }
            let is_wanted = |doc: &u32| match last {
                None => true,
                Some(last) if is_descending => last <= value(doc),
                Some(last) => value(doc) <= last,
            };
            let mut expected: Vec<u32> =
                in_order.iter().copied().filter(|doc| set.has(*doc) && is_wanted(doc)).collect();
            if let Some(end) = expected.get(n_docs - 1).map(value) {
                expected.retain(|doc| if is_descending { end <= value(doc) } else { value(doc) <= end });
            }

            let last = last.map(|it| it.map(whole_rank));
            let wanted = Wanted { among: &set, direction, n_docs, last, n_looks };
            match order.first_of(&codes, positions, &wanted) {
                Some(found) => prop_assert_eq!(found, expected),
                None => prop_assert!(n_looks < in_order.len(), "given up after {n_looks}"),
            }
        }
    }

    /// Documents that are not among the wanted ones are not looked at behind the last one needed.
    #[test]
    fn nothing_is_looked_at_behind_the_last_one() {
        let values: Vec<Option<i64>> = (0..100).map(Some).collect();
        let codes = decoded(&values).expect("decoded");
        let order = Ascending::of(&codes, 100, true);
        let mut set = Set::empty(100);
        [97, 98].into_iter().for_each(|doc| set.insert(doc));
        let wanted =
            |n_docs, last| Wanted { among: &set, direction: Direction::Descending, n_docs, last, n_looks: 3 };
        let found = |wanted: &Wanted<'_>| order.first_of(&codes, order.all(), wanted);
        assert_eq!(found(&wanted(2, None)), Some(vec![98, 97]));
        assert_eq!(found(&wanted(3, Some(Some(whole_rank(98))))), Some(vec![98]));
        assert_eq!(found(&wanted(3, None)), None);
    }
}
