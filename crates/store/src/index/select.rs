//! Finds where a deep page begins and ends in an order by text, by bisection, without reading what lies before it.

use tantivy::columnar::{StrColumn, TermOrdHit};

use super::condition::failed;
use super::set::Set;
use super::values::each_value;
use crate::Result;

/// Sorted texts, and how many rows have each.
pub(super) enum Source<'c> {
    /// Texts of a segment.
    Column { column: &'c StrColumn, rows_before: Vec<u32> },
    /// Texts of changed records, sorted.
    List(Vec<&'c str>),
}

/// The positions of a text: from its first to after its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl<'c> Source<'c> {
    /// Returns the texts of the documents of a set.
    pub(super) fn of_column(column: &'c StrColumn, set: &Set) -> Self {
        let mut rows_before = vec![0_u32; column.num_terms() + 1];
        each_value(column.ords(), set, |_, ord| rows_before[ord as usize + 1] += 1);
        let mut sum = 0;
        for n in &mut rows_before {
            sum += *n;
            *n = sum;
        }
        Self::Column { column, rows_before }
    }

    pub(super) fn of_list(mut list: Vec<&'c str>) -> Self {
        list.sort_unstable();
        Self::List(list)
    }

    fn n_places(&self) -> u64 {
        match self {
            Self::Column { rows_before, .. } => rows_before.len() as u64 - 1,
            Self::List(list) => list.len() as u64,
        }
    }

    /// Returns the number of rows whose text is before this position.
    pub(super) fn rows_before(&self, place: u64) -> u64 {
        match self {
            Self::Column { rows_before, .. } => u64::from(rows_before[place as usize]),
            Self::List(_) => place,
        }
    }

    pub(super) fn n_rows(&self) -> u64 {
        self.rows_before(self.n_places())
    }

    fn text(&self, place: u64, into: &mut Vec<u8>) -> Result<()> {
        into.clear();
        match self {
            Self::Column { column, .. } => {
                column.dictionary().ord_to_term(place, into).map_err(failed)?;
            }
            Self::List(list) => into.extend_from_slice(list[place as usize].as_bytes()),
        }
        Ok(())
    }

    /// Returns the positions of a text, or where it would be.
    pub(super) fn place(&self, text: &[u8]) -> Result<Place> {
        Ok(match self {
            Self::Column { column, .. } => {
                match column.dictionary().term_ord_or_next(text).map_err(failed)? {
                    TermOrdHit::Exact(ord) => Place { from: ord, to: ord + 1 },
                    TermOrdHit::Next(ord) => {
                        let ord = ord.min(self.n_places());
                        Place { from: ord, to: ord }
                    }
                }
            }
            Self::List(list) => Place {
                from: list.partition_point(|it| it.as_bytes() < text) as u64,
                to: list.partition_point(|it| it.as_bytes() <= text) as u64,
            },
        })
    }
}

/// Returns the text at a position (from 0) of all rows ordered by their texts; `None` behind the last.
pub(super) fn text_at(sources: &[Source<'_>], position: u64) -> Result<Option<Vec<u8>>> {
    let mut ranges: Vec<(u64, u64)> = sources.iter().map(|it| (0, it.n_places())).collect();
    let mut text = Vec::new();
    loop {
        let widest = (0..ranges.len()).max_by_key(|at| ranges[*at].1 - ranges[*at].0);
        let Some(widest) = widest.filter(|at| ranges[*at].0 < ranges[*at].1) else { return Ok(None) };
        let middle = ranges[widest].0 + (ranges[widest].1 - ranges[widest].0) / 2;
        sources[widest].text(middle, &mut text)?;
        let (mut n_below, mut n_upto) = (0, 0);
        let mut places = Vec::with_capacity(sources.len());
        for source in sources {
            let place = source.place(&text)?;
            n_below += source.rows_before(place.from);
            n_upto += source.rows_before(place.to);
            places.push(place);
        }
        if position < n_below {
            ranges
                .iter_mut()
                .zip(&places)
                .for_each(|(range, place)| range.1 = range.1.min(place.from).max(range.0));
        } else if position < n_upto {
            return Ok(Some(text));
        } else {
            ranges
                .iter_mut()
                .zip(&places)
                .for_each(|(range, place)| range.0 = range.0.max(place.to).min(range.1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, text_at};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_stand_where_sorting_puts_them(lists in proptest::collection::vec(proptest::collection::vec("[ab]{0,3}", 0..12), 1..4)) {
            let sources: Vec<Source<'_>> =
                lists.iter().map(|list| Source::of_list(list.iter().map(String::as_str).collect())).collect();
            let mut all: Vec<&String> = lists.iter().flatten().collect();
            all.sort();
            for (at, text) in all.iter().enumerate() {
                let found = text_at(&sources, at as u64).unwrap();
                prop_assert_eq!(found.as_deref(), Some(text.as_bytes()));
            }
            prop_assert_eq!(text_at(&sources, all.len() as u64).unwrap(), None);
        }
    }
}
