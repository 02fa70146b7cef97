//! Deep paging: first finds the values between which a page lies, so that no other rows need to be sorted.

use super::found::Found;
use super::rank::{Rank, SortColumn, TEXT, TailValue};
use super::select::{Source, text_at};
use super::values::STEP_DOCS;
use crate::{Direction, Result};

/// Number of rows before a page from which its start is searched for.
const DEEP_ROWS: u64 = 500;

/// A window of a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub(super) skip: u64,
    pub(super) limit: Option<u64>,
}

impl Page {
    pub(super) fn is_deep(&self) -> bool {
        DEEP_ROWS < self.skip
    }

    /// Returns where it begins and ends in the ascending order of so many rows; `None` for a page without rows.
    fn ascending(self, direction: Direction, limit: u64, n_rows: u64) -> Option<(u64, u64)> {
        let end = self.skip.saturating_add(limit).min(n_rows);
        let (from, to) = match direction {
            Direction::Ascending => (self.skip, end),
            Direction::Descending => (n_rows - end, n_rows.saturating_sub(self.skip)),
        };
        (from < to).then_some((from, to))
    }

    /// Returns the same page counted within a part of the ascending order, after the rows before and behind that part
    /// are removed.
    fn within(self, direction: Direction, n_before: u64, n_behind: u64) -> Self {
        let n_skipped = match direction {
            Direction::Ascending => n_before,
            Direction::Descending => n_behind,
        };
        Self { skip: self.skip - n_skipped, limit: self.limit }
    }
}

/// A range of ranks, and whether it includes rows without a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranks {
    has_absent: bool,
    first: (u8, u64),
    /// `None` if it includes no rank.
    last: Option<(u8, u64)>,
}

impl Ranks {
    const NONE: Self = Self { has_absent: false, first: (0, 0), last: None };

    pub(super) fn has(&self, rank: Rank) -> bool {
        rank.map_or(self.has_absent, |rank| self.first <= rank && self.last.is_some_and(|last| rank <= last))
    }
}

/// A part of an order.
pub(super) struct Within {
    /// By segment, as ranks of texts are relative to one.
    pub(super) segments: Vec<Ranks>,
    changed: OfChanged,
}

/// The range for changed records.
enum OfChanged {
    Ranks(Ranks),
    /// The first and the last text; `None` stands for an absent value.
    Texts(Option<Vec<u8>>, Option<Vec<u8>>),
}

impl Within {
    fn all_in(ranks: Ranks, n_segments: usize) -> Self {
        Self { segments: vec![ranks; n_segments], changed: OfChanged::Ranks(ranks) }
    }

    pub(super) fn has(&self, value: &TailValue) -> bool {
        match (&self.changed, value) {
            (OfChanged::Ranks(ranks), TailValue::Ranked(rank)) => ranks.has(*rank),
            (OfChanged::Ranks(_), TailValue::Text(..) | TailValue::Other) => false,
            (OfChanged::Texts(low, high), value) => {
                let text = match value {
                    TailValue::Text(_, text) => Some(text.as_bytes()),
                    TailValue::Ranked(_) | TailValue::Other => None,
                };
                low.as_deref() <= text && text <= high.as_deref()
            }
        }
    }
}

impl Found<'_> {
    /// Returns the part of an order in which a page lies, by its first column, and the page counted from there. `None`
    /// where the values of segments cannot be compared without reading them all.
    pub(super) fn narrowed(
        &self,
        columns: &[Vec<SortColumn>],
        tail: &[TailValue],
        direction: Direction,
        page: Page,
    ) -> Result<(Page, Option<Within>)> {
        let Some(limit) = page.limit else { return Ok((page, None)) };
        let first = || columns.iter().filter_map(|own| own.first());
        if first().all(|column| matches!(column, SortColumn::Text(_))) {
            return self.narrowed_by_texts(columns, tail, direction, page, limit);
        }
        let is_alone = columns.len() == 1 && tail.is_empty();
        let is_ranked = tail.iter().all(|it| matches!(it, TailValue::Ranked(_)));
        if is_alone || is_ranked && first().all(SortColumn::is_comparable) {
            let (page, within) = self.narrowed_by_ranks(columns, tail, direction, page, limit);
            return Ok((page, Some(within)));
        }
        Ok((page, None))
    }

    fn narrowed_by_ranks(
        &self,
        columns: &[Vec<SortColumn>],
        tail: &[TailValue],
        direction: Direction,
        page: Page,
        limit: u64,
    ) -> (Page, Within) {
        let mut ranks = Vec::new();
        let mut n_rows = tail.len() as u64;
        for (own, (_, set)) in columns.iter().zip(&self.segments) {
            n_rows += set.len();
            let (mut docs, mut values, mut left) = (Vec::with_capacity(STEP_DOCS), Vec::new(), set.iter());
            loop {
                docs.clear();
                docs.extend(left.by_ref().take(STEP_DOCS));
                let Some(column) = own.first().filter(|_| !docs.is_empty()) else { break };
                column.ranks(&docs, &mut values);
                ranks.extend(values.iter().flatten());
            }
        }
        ranks.extend(tail.iter().filter_map(|it| match it {
            TailValue::Ranked(rank) => *rank,
            TailValue::Text(..) | TailValue::Other => None,
        }));
        let n_absent = n_rows - ranks.len() as u64;
        let Some((from, to)) = page.ascending(direction, limit, n_rows) else {
            return (Page { skip: 0, limit: Some(0) }, Within::all_in(Ranks::NONE, columns.len()));
        };
        let place = |position: u64| position.checked_sub(n_absent).map(|it| it as usize);
        let (mut n_before, mut n_upto) = (0, n_absent);
        let mut last = None;
        if let Some(at) = place(to - 1) {
            let (_, value, above) = ranks.select_nth_unstable(at);
            let equal = above.iter().filter(|it| *it == value).count();
            n_upto += (at + 1 + equal) as u64;
            last = Some(*value);
            ranks.truncate(at + 1);
        }
        let first = place(from).map(|at| {
            let (below, value, _) = ranks.select_nth_unstable(at);
            let equal = below.iter().filter(|it| *it == value).count();
            n_before = n_absent + (at - equal) as u64;
            *value
        });
        let ranks = Ranks { has_absent: first.is_none(), first: first.unwrap_or_default(), last };
        (page.within(direction, n_before, n_rows - n_upto), Within::all_in(ranks, columns.len()))
    }

    fn narrowed_by_texts(
        &self,
        columns: &[Vec<SortColumn>],
        tail: &[TailValue],
        direction: Direction,
        page: Page,
        limit: u64,
    ) -> Result<(Page, Option<Within>)> {
        let (mut sources, mut source_of) = (Vec::new(), Vec::new());
        let mut n_rows = tail.len() as u64;
        for (own, (_, set)) in columns.iter().zip(&self.segments) {
            n_rows += set.len();
            let Some(SortColumn::Text(column)) = own.first() else { return Ok((page, None)) };
            source_of.push(column.as_ref().map(|column| {
                sources.push(Source::of_column(column, set));
                sources.len() - 1
            }));
        }
        let texts = tail.iter().filter_map(|it| match it {
            TailValue::Text(_, text) => Some(text.as_str()),
            TailValue::Ranked(_) | TailValue::Other => None,
        });
        sources.push(Source::of_list(texts.collect()));
        let n_absent = n_rows - sources.iter().map(Source::n_rows).sum::<u64>();
        let Some((from, to)) = page.ascending(direction, limit, n_rows) else {
            let nothing = Within::all_in(Ranks::NONE, columns.len());
            return Ok((Page { skip: 0, limit: Some(0) }, Some(nothing)));
        };
        let at = |position: u64| match position.checked_sub(n_absent) {
            None => Ok(None),
            Some(position) => text_at(&sources, position),
        };
        let (low, high) = (at(from)?, at(to - 1)?);
        let (mut n_before, mut n_upto) = (if low.is_some() { n_absent } else { 0 }, n_absent);
        let nothing = Ranks { has_absent: low.is_none(), ..Ranks::NONE };
        let mut ranges = Vec::new();
        for source in &sources {
            let from = low.as_ref().map_or(Ok(0), |it| source.place(it).map(|it| it.from))?;
            let to = high.as_ref().map_or(Ok(0), |it| source.place(it).map(|it| it.to))?;
            n_before += source.rows_before(from);
            n_upto += source.rows_before(to);
            let last = to.checked_sub(1).map(|ord| (TEXT, ord));
            ranges.push(Ranks { first: (TEXT, from), last, ..nothing });
        }
        let segments = source_of.iter().map(|at| at.map_or(nothing, |at| ranges[at])).collect();
        let within = Within { segments, changed: OfChanged::Texts(low, high) };
        Ok((page.within(direction, n_before, n_rows - n_upto), Some(within)))
    }
}
