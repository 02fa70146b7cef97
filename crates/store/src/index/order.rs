//! Sorting a result: by columns of the index, or by the values at any path.

use std::cmp::Ordering;

use serde_json::Value as Json;

use super::codes::whole_rank;
use super::condition::Segment;
use super::found::Found;
use super::layout::{KEY, column_name};
use super::page::Page;
use super::rank::{
    BEHIND, BOOLEAN, LIST, LIST_BOOLEAN, MembersColumn, NUMBER, OBJECT, PathColumn, Rank, SortColumn, TEXT,
    TailValue, is_text, real_rank,
};
use super::remembered::Changed;
use super::texts::{Texts, Top, window};
use super::values::STEP_DOCS;
use crate::cell::Cell;
use crate::columns::one_columns;
use crate::eval::value_at;
use crate::field_values::EXACT;
use crate::{Direction, Path, Result, Type};

/// Maximum number of sort columns.
pub(crate) const ORDERS: usize = 3;
/// Documents that are read before it is known which are behind the last one needed.
const FIRST_DOCS: usize = 512;
/// Number of records below which they are sorted by their bodies rather than by all texts of a path.
pub(super) const FEW_RECORDS: u64 = 1_000;

/// A sort key.
#[derive(Debug, Clone)]
pub(crate) enum SortBy {
    /// A column, by its index among those with one value.
    Column(usize),
    /// The values at a path.
    Path(Path),
    /// The first value that members have in an order of all members by a path of
    /// [`Kind::member_values`](crate::Kind::member_values), as far as it is known: no member comes earlier.
    Members(Path, Direction),
    /// The row key: insertion order.
    Key,
}

/// A row to be sorted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<const N: usize> {
    pub(super) ranks: [Rank; N],
    pub(super) key: i64,
    /// The segment, for texts.
    pub(super) segment: u32,
}

impl<const N: usize> Entry<N> {
    /// Compares the ranks of two rows in the directions of an order.
    pub(super) fn compare_ranks(&self, other: &Self, directions: &[Direction]) -> Ordering {
        let ranks = self.ranks.iter().zip(&other.ranks).zip(directions);
        ranks.fold(Ordering::Equal, |so_far, ((own, other), direction)| {
            so_far.then_with(|| match direction {
                Direction::Ascending => own.cmp(other),
                Direction::Descending => other.cmp(own),
            })
        })
    }

    /// Compares two rows of an order: ties in insertion order, in the direction of the last column.
    pub(super) fn compare(&self, other: &Self, directions: &[Direction]) -> Ordering {
        self.compare_ranks(other, directions).then_with(|| match directions.last() {
            Some(Direction::Descending) => other.key.cmp(&self.key),
            _ => self.key.cmp(&other.key),
        })
    }
}

impl Found<'_> {
    /// Returns the rows in a window of an order: ties in insertion order, in the direction of the last column. `after`
    /// excludes the rows up to it. `None` when this sort is not possible.
    pub(crate) fn keys(
        &self,
        order: &[(SortBy, Direction)],
        after: Option<i64>,
        skip: u64,
        limit: Option<u64>,
    ) -> Result<Option<Vec<i64>>> {
        match order.len() {
            0 => self.sorted::<0>(order, after, skip, limit),
            1 => self.sorted::<1>(order, after, skip, limit),
            2 => self.sorted::<2>(order, after, skip, limit),
            3 => self.sorted::<ORDERS>(order, after, skip, limit),
            _ => Ok(None),
        }
    }

    fn sorted<const N: usize>(
        &self,
        order: &[(SortBy, Direction)],
        after: Option<i64>,
        skip: u64,
        limit: Option<u64>,
    ) -> Result<Option<Vec<i64>>> {
        let mut columns = Vec::new();
        for (segment, set) in &self.segments {
            let mut own = Vec::with_capacity(N);
            for (by, _) in order {
                let Some(column) = self.sort_column(segment, by, set.len())? else { return Ok(None) };
                own.push(column);
            }
            columns.push(own);
        }
        let tail: Vec<&Changed> =
            self.tail.iter().filter(|it| after.is_none_or(|after| after < it.key)).collect();
        let mut tail_values: Vec<Vec<TailValue>> = Vec::with_capacity(N);
        for (by, _) in order {
            let values: Vec<TailValue> = tail.iter().map(|it| self.tail_value(it, by)).collect();
            if values.iter().any(|it| matches!(it, TailValue::Other)) {
                return Ok(None);
            }
            tail_values.push(values);
        }
        let directions: Vec<Direction> = order.iter().map(|it| it.1).collect();
        let page = Page { skip, limit };
        let (page, within) = match directions.first() {
            Some(direction) if after.is_none() && page.is_deep() => {
                self.narrowed(&columns, tail_values.first().map_or(&[], |it| it), *direction, page)?
            }
            _ => (page, None),
        };
        let Page { skip, limit } = page;
        let want =
            limit.map_or(usize::MAX, |it| usize::try_from(skip.saturating_add(it)).unwrap_or(usize::MAX));
        let compare = |a: &Entry<N>, b: &Entry<N>| a.compare(b, &directions);
        let is_comparable = columns.iter().flatten().all(SortColumn::is_comparable);
        let (mut all, mut top) = (Vec::new(), Top::<Entry<N>>::of(want));
        for (number, (segment, set)) in self.segments.iter().enumerate() {
            if !is_comparable {
                all.append(&mut std::mem::replace(&mut top, Top::of(want)).into_list(&compare));
            }
            let own = &columns[number];
            let range = within.as_ref().map(|it| it.segments[number]);
            let keys = segment.whole_numbers(KEY, set.len())?;
            let (mut docs, mut left) = (Vec::with_capacity(STEP_DOCS), set.iter());
            let (mut row_keys, mut ranks) = (Vec::new(), vec![Vec::new(); N]);
            loop {
                docs.clear();
                let last = top.last().and_then(|it| it.ranks.first());
                let decoded = own.first().and_then(SortColumn::decoded);
                // Most documents are behind the last one that is still needed.
                match (decoded, last) {
                    (Some(codes), Some(last)) => {
                        let wanted = codes.up_to(last.map(|it| it.1), directions[0]);
                        let is_wanted = |doc: &u32| codes.is_among(*doc, &wanted);
                        docs.extend(left.by_ref().filter(is_wanted).take(FIRST_DOCS));
                    }
                    (_, None) => docs.extend(left.by_ref().take(FIRST_DOCS)),
                    (None, Some(_)) => docs.extend(left.by_ref().take(STEP_DOCS)),
                }
                if docs.is_empty() {
                    break;
                }
                if let Some(first) = own.first()
                    && (range.is_some() || last.is_some() && decoded.is_none())
                {
                    let is_needed = |rank: Rank| match (last, directions[0]) {
                        (None, _) => true,
                        (Some(last), Direction::Ascending) => rank <= *last,
                        (Some(last), Direction::Descending) => *last <= rank,
                    };
                    let is_in_range = |rank: Rank| range.is_none_or(|range| range.has(rank));
                    first.retain(&mut docs, &mut ranks[0], |rank| is_needed(rank) && is_in_range(rank));
                }
                for (column, ranks) in own.iter().zip(&mut ranks) {
                    column.ranks(&docs, ranks);
                }
                keys.first_values(&docs, &mut row_keys);
                for (at, key) in row_keys.iter().enumerate() {
                    let Some(key) = key.filter(|key| after.is_none_or(|after| after < *key)) else {
                        continue;
                    };
                    let mut entry = Entry { ranks: [None; N], key, segment: number as u32 };
                    entry.ranks.iter_mut().zip(&ranks).for_each(|(rank, list)| *rank = list[at]);
                    top.add(entry, &compare);
                }
            }
        }
        all.append(&mut top.into_list(&compare));
        let tail: Vec<(i64, [&TailValue; N])> = (0..tail.len())
            .filter(|at| within.as_ref().is_none_or(|it| it.has(&tail_values[0][*at])))
            .map(|at| (tail[at].key, std::array::from_fn(|n| &tail_values[n][at])))
            .collect();
        rank_together(&mut all, &columns, &tail)?;
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Ok(Some(window(&mut all, skip, want, compare).iter().map(|it| it.key).collect()))
    }

    pub(super) fn tail_value(&self, record: &Changed, by: &SortBy) -> TailValue {
        let place = match by {
            SortBy::Column(place) => *place,
            SortBy::Key => return TailValue::Ranked(Some((NUMBER, whole_rank(record.key)))),
            // What its members are is not known.
            SortBy::Members(_, Direction::Ascending) => return TailValue::Ranked(None),
            SortBy::Members(_, Direction::Descending) => return TailValue::Ranked(Some((BEHIND, 0))),
            SortBy::Path(path) => {
                return match value_at(&record.body, path.as_steps()) {
                    None | Some(Json::Null) => TailValue::Ranked(None),
                    Some(Json::Bool(it)) => TailValue::Ranked(Some((BOOLEAN, u64::from(*it)))),
                    Some(Json::Array(list)) => match list.first() {
                        None | Some(Json::Null) => TailValue::Ranked(Some((LIST, 0))),
                        Some(Json::Bool(it)) => TailValue::Ranked(Some((LIST_BOOLEAN, u64::from(*it)))),
                        Some(first) => tail_value_of(first, LIST),
                    },
                    Some(value) => tail_value_of(value, 0),
                };
            }
        };
        TailValue::Ranked(match &record.taken.cells[place] {
            Cell::Int(number) if self.is_real(place) => Some((NUMBER, real_rank(*number as f64))),
            Cell::Int(number) => Some((NUMBER, whole_rank(*number))),
            Cell::Real(number) => Some((NUMBER, real_rank(*number))),
            Cell::Text(text) => return TailValue::Text(TEXT, text.clone()),
            _ => None,
        })
    }

    /// Returns the source of a sort's values. `None` where ranks do not suffice: lists on the way to the path, texts of
    /// which the index holds only the beginning, numbers beyond 64-bit floats; and where few records are sorted by a path
    /// with texts, all of which would have to be read.
    pub(super) fn sort_column(
        &self,
        segment: &Segment<'_>,
        by: &SortBy,
        n_wanted: u64,
    ) -> Result<Option<SortColumn>> {
        let fields = segment.reader().fast_fields();
        let place = match by {
            SortBy::Column(place) => *place,
            SortBy::Key => return Ok(Some(SortColumn::Whole(segment.whole_numbers(KEY, n_wanted)?))),
            SortBy::Members(path, direction) => {
                let column = MembersColumn::of(segment, path, *direction)?;
                return Ok(Some(SortColumn::Members(Box::new(column))));
            }
            SortBy::Path(path) => {
                if segment.has_texts(path)? && self.count() < FEW_RECORDS {
                    return Ok(None);
                }
                return Ok(PathColumn::of(segment, path)?.map(|it| SortColumn::Path(Box::new(it))));
            }
        };
        let name = column_name(place);
        let column = one_columns(self.kind).nth(place);
        Ok(Some(match column.map(|it| it.ty) {
            Some(Type::Text | Type::Folded) | None => SortColumn::Text(fields.str(&name)?),
            Some(Type::Real) => SortColumn::Real(fields.f64(&name)?),
            Some(_) => SortColumn::Whole(segment.whole_numbers(&name, n_wanted)?),
        }))
    }

    fn is_real(&self, place: usize) -> bool {
        one_columns(self.kind).nth(place).is_some_and(|it| it.ty == Type::Real)
    }
}

/// Returns what a changed record is sorted by: a number, a text or an object, in a list if `base` is [`LIST`].
fn tail_value_of(value: &Json, base: u8) -> TailValue {
    match value {
        Json::Number(number) => match number.as_f64().filter(|it| it.abs() < EXACT) {
            Some(number) => TailValue::Ranked(Some((base + NUMBER, real_rank(number)))),
            None => TailValue::Other,
        },
        Json::String(text) => TailValue::Text(base + TEXT, text.clone()),
        Json::Object(_) => TailValue::Ranked(Some((base + OBJECT, 0))),
        Json::Null | Json::Bool(_) | Json::Array(_) => TailValue::Other,
    }
}

/// Makes the ranks of texts, which are relative to a segment, comparable across segments, and adds the changed records.
pub(super) fn rank_together<const N: usize>(
    all: &mut Vec<Entry<N>>,
    columns: &[Vec<SortColumn>],
    tail: &[(i64, [&TailValue; N])],
) -> Result<()> {
    let first = all.len();
    for (key, values) in tail {
        let rank = |value: &&TailValue| match value {
            TailValue::Ranked(rank) => *rank,
            TailValue::Text(ty, _) => Some((*ty, 0)),
            TailValue::Other => None,
        };
        let ranks = std::array::from_fn(|n| rank(&values[n]));
        all.push(Entry { ranks, key: *key, segment: u32::MAX });
    }
    if columns.len() == 1 && tail.is_empty() {
        return Ok(());
    }
    for n in 0..N {
        let mut texts = Texts::default();
        // The text ordinals needed in each segment.
        let mut ords: Vec<Vec<u64>> = vec![Vec::new(); columns.len()];
        for entry in &all[..first] {
            if let Some((_, ord)) = entry.ranks[n].filter(|it| is_text(it.0)) {
                ords[entry.segment as usize].push(ord);
            }
        }
        for (own, ords) in columns.iter().zip(&mut ords) {
            ords.sort_unstable();
            ords.dedup();
            own[n].push_texts(ords, &mut texts)?;
        }
        let in_tail = texts.len();
        for (_, values) in tail {
            if let TailValue::Text(_, text) = values[n] {
                texts.push(text.as_bytes());
            }
        }
        let ranks = texts.ranks();
        let mut begin = 0;
        let begins: Vec<usize> = ords
            .iter()
            .map(|it| {
                begin += it.len();
                begin - it.len()
            })
            .collect();
        for entry in &mut all[..first] {
            let segment = entry.segment as usize;
            if let Some((ty, ord)) = entry.ranks[n].filter(|it| is_text(it.0)) {
                let at = ords[segment].binary_search(&ord).ok();
                entry.ranks[n] = at.map(|at| (ty, ranks[begins[segment] + at]));
            }
        }
        let mut next = ranks[in_tail..].iter();
        for (entry, (_, values)) in all[first..].iter_mut().zip(tail) {
            if let TailValue::Text(ty, _) = values[n] {
                entry.ranks[n] = next.next().map(|rank| (*ty, *rank));
            }
        }
    }
    Ok(())
}
