//! Pages of an order that the index does not know exactly: it finds the records among which a page lies, and their bodies
//! decide. It may hold only the beginnings of texts, and of some records not even that.

use super::found::Found;
use super::layout::KEY;
use super::order::{Entry, FEW_RECORDS, ORDERS, SortBy, rank_together};
use super::rank::{PathColumn, SortColumn};
use super::set::Set;
use super::values::STEP_DOCS;
use crate::index::condition::Segment;
use crate::{Direction, Result};

/// The records among which a page lies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) keys: Vec<i64>,
    /// Number of records before all of them in the order.
    pub(crate) n_before: u64,
}

/// A sort's values in a segment.
struct Rough {
    column: SortColumn,
    /// Documents whose ranks are not known.
    unranked: Option<Set>,
}

impl Found<'_> {
    /// Returns the records among which those from `skip` on lie, at most `limit`. `None` where there are few records
    /// anyway, or hardly any whose rank is known.
    pub(crate) fn candidates(
        &self,
        order: &[(SortBy, Direction)],
        skip: u64,
        limit: Option<u64>,
    ) -> Result<Option<Candidates>> {
        let Some(end) = limit.and_then(|it| skip.checked_add(it)) else { return Ok(None) };
        if self.count() < FEW_RECORDS {
            return Ok(None);
        }
        match order.len() {
            1 => self.among::<1>(order, skip, end),
            2 => self.among::<2>(order, skip, end),
            3 => self.among::<ORDERS>(order, skip, end),
            _ => Ok(None),
        }
    }

    fn among<const N: usize>(
        &self,
        order: &[(SortBy, Direction)],
        skip: u64,
        end: u64,
    ) -> Result<Option<Candidates>> {
        if self.are_mostly_unranked(order)? {
            return Ok(None);
        }
        let wholes: Vec<bool> = order.iter().map(|it| self.has_whole_values(&it.0)).collect::<Result<_>>()?;
        let mut columns: Vec<Vec<Rough>> = Vec::with_capacity(self.segments.len());
        for (segment, set) in &self.segments {
            let by = order.iter().zip(&wholes);
            let own: Result<Option<Vec<Rough>>> =
                by.map(|((by, _), is_whole)| self.rough(segment, by, set.len(), *is_whole)).collect();
            let Some(own) = own? else { return Ok(None) };
            columns.push(own);
        }
        // What follows a rough column decides only between values that it cannot tell apart.
        let n_used = wholes.iter().position(|is_whole| !is_whole).map_or(N, |n| n + 1);
        let is_exact = wholes.iter().all(|is_whole| *is_whole);

        let mut unranked: Vec<i64> = self.tail.iter().map(|it| it.key).collect();
        let mut rows: Vec<Entry<N>> = Vec::new();
        for (number, (segment, set)) in self.segments.iter().enumerate() {
            let own = &columns[number][..n_used];
            let keys = segment.whole_numbers(KEY, set.len())?;
            let (mut docs, mut left) = (Vec::with_capacity(STEP_DOCS), set.iter());
            let (mut row_keys, mut ranks) = (Vec::new(), Vec::new());
            loop {
                docs.clear();
                docs.extend(left.by_ref().take(STEP_DOCS));
                if docs.is_empty() {
                    break;
                }
                keys.first_values(&docs, &mut row_keys);
                let first = rows.len();
                let segment = number as u32;
                rows.extend(row_keys.iter().map(|key| Entry {
                    ranks: [None; N],
                    key: key.unwrap_or_default(),
                    segment,
                }));
                for (n, it) in own.iter().enumerate() {
                    it.column.ranks(&docs, &mut ranks);
                    rows[first..].iter_mut().zip(&ranks).for_each(|(row, rank)| row.ranks[n] = *rank);
                }
                let has_rank =
                    |doc: u32| own.iter().all(|it| it.unranked.as_ref().is_none_or(|set| !set.has(doc)));
                let mut at = first;
                for doc in &docs {
                    if has_rank(*doc) {
                        at += 1;
                    } else {
                        unranked.push(rows.remove(at).key);
                    }
                }
            }
        }
        let columns: Vec<Vec<SortColumn>> =
            columns.into_iter().map(|own| own.into_iter().map(|it| it.column).collect()).collect();
        rank_together(&mut rows, &columns, &[])?;

        let directions: Vec<Direction> = order.iter().map(|it| it.1).collect();
        let compare = |a: &Entry<N>, b: &Entry<N>| {
            if is_exact { a.compare(b, &directions) } else { a.compare_ranks(b, &directions) }
        };
        // A record without a rank may be anywhere: each moves a row by one place at most.
        let n_rows = rows.len();
        let bound = |it: u64| usize::try_from(it).unwrap_or(usize::MAX).min(n_rows);
        let (from, to) = (bound(skip.saturating_sub(unranked.len() as u64)), bound(end));
        let mut n_before = 0;
        let mut keys = unranked;
        if from < to {
            let last = *rows.select_nth_unstable_by(to - 1, compare).1;
            let first = *rows[..to].select_nth_unstable_by(from, compare).1;
            for row in &rows {
                if compare(row, &first).is_lt() {
                    n_before += 1;
                } else if compare(row, &last).is_le() {
                    keys.push(row.key);
                }
            }
        } else {
            n_before = from as u64;
        }
        keys.sort_unstable();
        Ok(Some(Candidates { keys, n_before }))
    }

    /// Returns whether the rank of every other record is unknown: then their bodies may as well decide everything.
    fn are_mostly_unranked(&self, order: &[(SortBy, Direction)]) -> Result<bool> {
        let mut n_unranked = 0;
        for (segment, set) in &self.segments {
            let mut unranked = Set::empty(segment.n_documents());
            for (by, _) in order {
                if let SortBy::Path(path) = by {
                    unranked.add(&segment.unranked(path)?);
                }
            }
            n_unranked += unranked.and(set).len();
        }
        Ok(self.count() < 2 * n_unranked)
    }

    /// Returns whether the index holds all values of a sort whole. Where one segment does not, beginnings are compared in
    /// all of them: a text may follow the beginning of a text that it precedes.
    fn has_whole_values(&self, by: &SortBy) -> Result<bool> {
        let SortBy::Path(path) = by else { return Ok(true) };
        for (segment, _) in &self.segments {
            if !segment.has_whole_values(path)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn rough(
        &self,
        segment: &Segment<'_>,
        by: &SortBy,
        n_wanted: u64,
        is_whole: bool,
    ) -> Result<Option<Rough>> {
        let SortBy::Path(path) = by else {
            let column = self.sort_column(segment, by, n_wanted)?;
            return Ok(column.map(|column| Rough { column, unranked: None }));
        };
        let unranked = segment.unranked(path)?;
        let column = SortColumn::Path(Box::new(PathColumn::read(segment, path, is_whole)?));
        let unranked = (!unranked.is_empty()).then_some(unranked);
        Ok(Some(Rough { column, unranked }))
    }
}
