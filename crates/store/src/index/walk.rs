//! Finds the first rows of an order by walking along it, without passing over all documents that satisfy the condition.

use super::ascending::Wanted;
use super::codes::WholeNumbers;
use super::condition::{Segment, instants_between};
use super::first_rows::{FirstRows, Row};
use super::found::Found;
use super::layout::{KEY, column_name};
use super::order::SortBy;
use super::rank::{Rank, SortColumn, TailValue};
use super::set::Set;
use crate::{Direction, Expr, Result};

/// Number of documents up to which they are listed rather than looked for along the order.
const LISTED: usize = 500;
/// A period with at most one in so many documents of a segment is walked to its end, as evaluating the condition on all
/// would take longer.
const PERIOD_SHARE: usize = 4;
/// Otherwise at most one in so many documents is looked at in vain.
const LOOKS_SHARE: usize = 8;

impl Found<'_> {
    /// Returns the rows of a page; `None` when too many documents would have to be looked at.
    pub(crate) fn first_rows(&self, page: &FirstRows) -> Result<Option<Vec<i64>>> {
        let by = SortBy::Column(page.place);
        let mut rows = Vec::new();
        for changed in self.tail.iter() {
            let TailValue::Ranked(rank) = self.tail_value(changed, &by) else { return Ok(None) };
            rows.push(Row { rank, key: changed.key });
        }
        page.cut(&mut rows);
        let name = column_name(page.place);
        let mut sources = Vec::with_capacity(self.segments.len());
        for (segment, set) in &self.segments {
            sources.push((segment.whole_numbers(&name, set.len())?, segment, set));
        }
        // Of the newest records, all may be in the segment with the newest one.
        sources.sort_by_key(|(numbers, ..)| numbers.greatest_rank());
        if page.direction == Direction::Descending {
            sources.reverse();
        }
        for (numbers, segment, set) in sources {
            let last = (rows.len() == page.n_rows).then(|| rows.last().map(|it| it.rank)).flatten();
            let Some(docs) = self.first_docs(page, segment, set, &numbers, last)? else { return Ok(None) };
            let (mut keys, mut ranks) = (Vec::new(), Vec::new());
            segment.whole_numbers(KEY, docs.len() as u64)?.first_values(&docs, &mut keys);
            SortColumn::Whole(numbers).ranks(&docs, &mut ranks);
            rows.extend(
                keys.iter().zip(&ranks).filter_map(|(key, rank)| Some(Row { rank: *rank, key: (*key)? })),
            );
            page.cut(&mut rows);
        }
        Ok(Some(rows.iter().skip(page.skip).map(|it| it.key).collect()))
    }

    /// Returns documents of a segment among which those of a page are.
    fn first_docs(
        &self,
        page: &FirstRows,
        segment: &Segment<'_>,
        set: &Set,
        numbers: &WholeNumbers,
        last: Option<Rank>,
    ) -> Result<Option<Vec<u32>>> {
        let (n_docs, n_set) = (segment.n_documents() as usize, set.len() as usize);
        // As many documents lie between two of the set as there are for each of the set.
        if n_set <= LISTED || n_set * n_set < page.n_rows * n_docs {
            return Ok(Some(segment.narrowed(&self.periods, set)?.iter().collect()));
        }
        let WholeNumbers::Decoded(codes) = numbers else { return Ok(None) };
        let Some(order) = segment.ascending(&column_name(page.place), page.path.as_ref(), codes)? else {
            return Ok(None);
        };
        let mut positions = order.all();
        for period in &self.periods {
            let Expr::Range(_, low, high) = period else { return Ok(None) };
            let Some((from, to)) = instants_between(low, high).filter(|_| order.is_of_path) else {
                return Ok(None);
            };
            let part = order.between(codes, from, to);
            positions = positions.start.max(part.start)..positions.end.min(part.end);
        }
        if positions.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let is_short = positions.len() <= n_docs / PERIOD_SHARE;
        let wanted = Wanted {
            among: set,
            direction: page.direction,
            n_docs: page.n_rows,
            last: last.map(|it| it.map(|it| it.1)),
            n_looks: if is_short { positions.len() } else { n_docs / LOOKS_SHARE },
        };
        Ok(order.first_of(codes, positions, &wanted))
    }
}
