//! Pages of an order that the index does not know exactly: it finds the records among which a page lies, and their bodies
//! decide. It may hold only the beginnings of texts, and of some records not even that.

use super::condition::Segment;
use super::found::Found;
use super::layout::KEY;
use super::order::{Entry, FEW_RECORDS, ORDERS, SortBy, rank_together};
use super::rank::{PathColumn, SortColumn};
use super::set::Set;
use super::values::STEP_DOCS;
use crate::{Direction, Result};

/// The records among which a page lies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) keys: Vec<i64>,
    /// Number of records before all of them in the order.
    pub(crate) n_before: u64,
}

/// A sort key, and whether the index holds its values whole in all segments. Where one segment does not, beginnings are
/// compared in all of them: a text may follow the beginning of a text that it precedes.
struct Sort<'o> {
    by: &'o SortBy,
    direction: Direction,
    is_whole: bool,
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
        let mut sorts = Vec::new();
        for (by, direction) in order {
            let is_whole = self.has_whole_values(by)?;
            sorts.push(Sort { by, direction: *direction, is_whole });
            // What follows decides only between values that beginnings cannot tell apart.
            if !is_whole {
                break;
            }
        }
        match sorts.len() {
            1 => self.among::<1>(&sorts, skip, end),
            2 => self.among::<2>(&sorts, skip, end),
            3 => self.among::<ORDERS>(&sorts, skip, end),
            _ => Ok(None),
        }
    }

    fn has_whole_values(&self, by: &SortBy) -> Result<bool> {
        let SortBy::Path(path) = by else { return Ok(true) };
        for (segment, _) in &self.segments {
            if !segment.has_whole_values(path)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn among<const N: usize>(&self, sorts: &[Sort<'_>], skip: u64, end: u64) -> Result<Option<Candidates>> {
        let mut unranked = Vec::with_capacity(self.segments.len());
        for (segment, set) in &self.segments {
            unranked.push(unranked_of(segment, sorts)?.and(set));
        }
        // If the rank of every other record is unknown, all bodies may as well decide.
        if self.count() < 2 * unranked.iter().map(Set::len).sum::<u64>() {
            return Ok(None);
        }
        // Records that may be anywhere in the order.
        let mut anywhere: Vec<i64> = self.tail.iter().map(|it| it.key).collect();
        let (mut rows, mut columns): (Vec<Entry<N>>, Vec<Vec<SortColumn>>) = (Vec::new(), Vec::new());
        for (number, ((segment, set), unranked)) in self.segments.iter().zip(&unranked).enumerate() {
            let mut own = Vec::with_capacity(N);
            for sort in sorts {
                let Some(column) = self.column_of(segment, sort, set.len())? else { return Ok(None) };
                own.push(column);
            }
            let keys = segment.whole_numbers(KEY, set.len())?;
            let (mut row_keys, mut ranks) = (Vec::new(), vec![Vec::new(); N]);
            keys.first_values(&unranked.iter().collect::<Vec<_>>(), &mut row_keys);
            anywhere.extend(row_keys.iter().flatten());
            let ranked = set.clone().without(unranked);
            let (mut docs, mut left) = (Vec::with_capacity(STEP_DOCS), ranked.iter());
            loop {
                docs.clear();
                docs.extend(left.by_ref().take(STEP_DOCS));
                if docs.is_empty() {
                    break;
                }
                keys.first_values(&docs, &mut row_keys);
                for (column, ranks) in own.iter().zip(&mut ranks) {
                    column.ranks(&docs, ranks);
                }
                rows.extend(row_keys.iter().enumerate().filter_map(|(at, key)| {
                    let ranks = std::array::from_fn(|n| ranks[n][at]);
                    Some(Entry { ranks, key: (*key)?, segment: number as u32 })
                }));
            }
            columns.push(own);
        }
        rank_together(&mut rows, &columns, &[])?;

        let directions: Vec<Direction> = sorts.iter().map(|it| it.direction).collect();
        let is_exact = sorts.iter().all(|it| it.is_whole);
        let compare = |a: &Entry<N>, b: &Entry<N>| {
            if is_exact { a.compare(b, &directions) } else { a.compare_ranks(b, &directions) }
        };
        // A record that may be anywhere moves a row by one place at most.
        let bound = |it: u64| usize::try_from(it).unwrap_or(usize::MAX).min(rows.len());
        let (from, to) = (bound(skip.saturating_sub(anywhere.len() as u64)), bound(end));
        let (mut keys, mut n_before) = (anywhere, from as u64);
        if from < to {
            let last = *rows.select_nth_unstable_by(to - 1, compare).1;
            let first = *rows[..to].select_nth_unstable_by(from, compare).1;
            n_before = rows.iter().filter(|it| compare(it, &first).is_lt()).count() as u64;
            let is_among = |it: &&Entry<N>| compare(it, &first).is_ge() && compare(it, &last).is_le();
            keys.extend(rows.iter().filter(is_among).map(|it| it.key));
        }
        keys.sort_unstable();
        Ok(Some(Candidates { keys, n_before }))
    }

    fn column_of(&self, segment: &Segment<'_>, sort: &Sort<'_>, n_wanted: u64) -> Result<Option<SortColumn>> {
        let SortBy::Path(path) = sort.by else { return self.sort_column(segment, sort.by, n_wanted) };
        let column = PathColumn::read(segment, path, sort.is_whole)?;
        Ok(Some(SortColumn::Path(Box::new(column))))
    }
}

/// Returns the documents of which one of the values has no known rank.
fn unranked_of(segment: &Segment<'_>, sorts: &[Sort<'_>]) -> Result<Set> {
    let mut set = Set::empty(segment.n_documents());
    for sort in sorts {
        if let SortBy::Path(path) = sort.by {
            set.add(&segment.unranked(path)?);
        }
    }
    Ok(set)
}
