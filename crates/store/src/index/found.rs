//! An answer of the index: what it covers, and the records that were changed since, of one snapshot.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use serde_json::Value as Json;
use tantivy::columnar::{Column, DynamicColumn, StrColumn};

use super::Snapshot;
use super::condition::{Segment, failed};
use super::layout::{KEY, column_name, facet_name};
use super::set::Set;
use super::terms;
use super::words::Words;
use crate::classes::ClassSet;
use crate::document::{Taken, searched_text};
use crate::eval::{matches_with, value_at};
use crate::session::Cell;
use crate::statements::one_columns;
use crate::{Direction, Expr, FacetCount, Kind, Path, Result, StoreError, Text, View};

/// Changed records that are looked at one by one; with more, the index is behind and something else answers.
const TAIL_RECORDS: u64 = 50_000;
/// Bytes of their bodies, which are held together: with more, likewise.
const TAIL_BYTES: usize = 64 << 20;
/// Records whose bodies are read in one step.
const STEP_RECORDS: usize = 500;
/// Columns that an answer is sorted by at most.
pub(crate) const ORDERS: usize = 3;

/// What satisfies a condition.
pub(crate) struct Found<'s> {
    kind: &'static Kind,
    segments: Vec<(Segment<'s>, Set)>,
    /// Row, what is taken out of the body, the body.
    tail: Vec<(i64, Taken, Json)>,
    /// Records whose bodies were read to decide them.
    pub(crate) n_read: u64,
}

/// Decides conditions on records whose bodies are at hand.
pub(crate) struct Decider {
    kind: &'static Kind,
    texts: Vec<(*const Expr, Words)>,
}

impl Decider {
    /// For a condition that stays where it is as long as this is used.
    pub(crate) fn of(kind: &'static Kind, expr: &Expr) -> Self {
        let mut texts = Vec::new();
        collect(expr, &mut texts);
        Self { kind, texts }
    }

    /// Whether a record satisfies the condition.
    ///
    /// Errors: the body is not JSON.
    pub(crate) fn holds(&self, expr: &Expr, id: &str, bytes: &[u8], body: &Json) -> Result<bool> {
        self.holds_beside(expr, bytes, body, &|leaf| match leaf {
            Expr::Ids(ids) => ids.iter().any(|it| it == id),
            _ => false,
        })
    }

    /// The same, where `decided` tells of some conditions that are not about the body.
    ///
    /// Errors: the body is not JSON.
    pub(crate) fn holds_beside(
        &self,
        expr: &Expr,
        bytes: &[u8],
        body: &Json,
        decided: &dyn Fn(&Expr) -> bool,
    ) -> Result<bool> {
        let text = if self.texts.is_empty() || self.kind.text == Text::None {
            String::new()
        } else {
            searched_text(self.kind, bytes)
                .map_err(|error| StoreError::Damaged(format!("a body of {}: {error}", self.kind.name)))?
        };
        let has_words =
            |leaf: &Expr| self.texts.iter().any(|(at, words)| std::ptr::eq(*at, leaf) && words.are_in(&text));
        Ok(matches_with(expr, body, &|leaf| decided(leaf) || has_words(leaf)))
    }
}

fn collect(expr: &Expr, into: &mut Vec<(*const Expr, Words)>) {
    match expr {
        Expr::And(list) | Expr::Or(list) => list.iter().for_each(|it| collect(it, into)),
        Expr::Not(it) | Expr::Element(_, it) => collect(it, into),
        Expr::Text(query) => into.push((std::ptr::from_ref(expr), Words::of(query))),
        _ => {}
    }
}

impl Snapshot {
    /// What satisfies `filter` in one of `classes`. `None` when too much was changed since the index was made.
    pub(crate) fn find<'s>(
        &'s self,
        view: &mut View<'_>,
        kind: &'static Kind,
        filter: &Expr,
        classes: Option<&ClassSet>,
    ) -> Result<Option<Found<'s>>> {
        let decider = Decider::of(kind, filter);
        let Some(tail) = self.tail(view, kind)? else { return Ok(None) };
        let allowed: Option<HashSet<i64>> = classes.map(|it| it.numbers.iter().copied().collect());
        let mut found = Found { kind, segments: Vec::new(), tail: Vec::new(), n_read: 0 };
        for row in &tail.rows {
            let body: Json = parse(kind, &row.1, &row.2)?;
            let taken = Taken::from(kind, &body);
            let is_allowed = allowed.as_ref().is_none_or(|it| it.contains(&taken.class.0));
            if is_allowed && decider.holds(filter, &row.1, &row.2, &body)? {
                found.tail.push((row.0, taken, body));
            }
        }
        for reader in self.searcher.segment_readers() {
            let segment = Segment::new(&self.searcher, reader, &self.layout, kind)?;
            let mut within = segment.alive();
            for row in &tail.rows {
                within = without(within, &segment, &terms::key_term(row.0))?;
            }
            for id in &tail.deleted {
                within = without(within, &segment, &terms::id_term(id))?;
            }
            if let Some(set) = classes {
                within = within.and(&segment.of_classes(&set.numbers)?);
            }
            let bounds = segment.satisfying(filter, &within)?;
            let low = bounds.low.clone().and(&within);
            let open = bounds.high().clone().and(&within).without(&low);
            let decided = if open.is_empty() {
                low
            } else {
                found.n_read += open.len();
                decide(view, kind, &segment, filter, &decider, &open, low)?
            };
            found.segments.push((segment, decided));
        }
        Ok(Some(found))
    }

    /// What was changed since; `None` when that is too much.
    fn tail(&self, view: &mut View<'_>, kind: &'static Kind) -> Result<Option<Tail>> {
        let name = kind.name;
        let flavour = view.session.flavour();
        let counted =
            format!("SELECT count(*) FROM (SELECT 1 FROM \"k_{name}\" WHERE ?1 < sequence LIMIT ?2) x");
        let values = [self.covered.into(), (TAIL_RECORDS + 1).into()];
        let n = view.session.first(&counted, &values, |row| row.int(0))?.unwrap_or(0).cast_unsigned();
        if TAIL_RECORDS < n {
            return Ok(None);
        }
        let sql = format!(
            "SELECT r.key, r.id, {} FROM {} WHERE ?1 < r.sequence LIMIT ?2",
            flavour.body(),
            flavour.rows_with_bodies(name)
        );
        let values = [self.covered.into(), (TAIL_RECORDS + 1).into()];
        let (mut rows, mut n_bytes) = (Vec::new(), 0);
        view.session.rows(&sql, &values, |row| {
            let body = row.bytes(2)?;
            n_bytes += body.len();
            if TAIL_BYTES < n_bytes {
                return Ok(ControlFlow::Break(()));
            }
            rows.push((row.int(0)?, row.text(1)?, body));
            Ok(ControlFlow::Continue(()))
        })?;
        if TAIL_BYTES < n_bytes {
            return Ok(None);
        }
        let sql = "SELECT id FROM tombstone WHERE kind = ?1 AND ?2 < sequence LIMIT ?3";
        let values = [name.into(), self.covered.into(), (TAIL_RECORDS + 1).into()];
        let deleted = view.session.all(sql, &values, |row| row.text(0))?;
        let n = (rows.len() + deleted.len()) as u64;
        Ok((n <= TAIL_RECORDS).then_some(Tail { rows, deleted }))
    }
}

struct Tail {
    rows: Vec<(i64, String, bytes::Bytes)>,
    deleted: Vec<String>,
}

fn without(mut set: Set, segment: &Segment<'_>, term: &[u8]) -> Result<Set> {
    segment.each_with(term, |doc| set.remove(doc))?;
    Ok(set)
}

fn parse(kind: &Kind, id: &str, bytes: &[u8]) -> Result<Json> {
    serde_json::from_slice(bytes)
        .map_err(|error| StoreError::Damaged(format!("{} {id:?}: {error}", kind.name)))
}

/// Adds to `low` those of `open` whose bodies satisfy the condition.
fn decide(
    view: &mut View<'_>,
    kind: &'static Kind,
    segment: &Segment<'_>,
    filter: &Expr,
    decider: &Decider,
    open: &Set,
    mut low: Set,
) -> Result<Set> {
    let keys = segment.reader().fast_fields().i64(KEY)?;
    let docs: Vec<u32> = open.iter().collect();
    for docs in docs.chunks(STEP_RECORDS) {
        let by_key: HashMap<i64, u32> =
            docs.iter().filter_map(|doc| Some((keys.first(*doc)?, *doc))).collect();
        let mut list: Vec<i64> = by_key.keys().copied().collect();
        list.sort_unstable();
        for record in view.by_keys(kind, &list)? {
            let body = parse(kind, &record.id, &record.body)?;
            if decider.holds(filter, &record.id, &record.body, &body)?
                && let Some(doc) = by_key.get(&record.key)
            {
                low.insert(*doc);
            }
        }
        view.check_pace()?;
    }
    Ok(low)
}

/// What an answer is sorted by.
#[derive(Debug, Clone)]
pub(crate) enum SortBy {
    /// A column, by its place among those with one value.
    Column(usize),
    /// Numbers at a path.
    Path(Path),
}

/// A value to sort by; `None` for what is absent, which comes first.
type Rank = Option<u64>;

/// A row on its way into order.
#[derive(Debug, Clone, Copy)]
struct Entry<const N: usize> {
    ranks: [Rank; N],
    key: i64,
    /// Segment and document, for texts.
    segment: u32,
}

/// What a sort compares.
enum SortColumn {
    Whole(Column<i64>),
    Real(Column<f64>),
    Text(Option<StrColumn>),
    /// Numbers at a path without a column, in columns of any type.
    Numbers(Vec<DynamicColumn>),
}

impl SortColumn {
    fn rank(&self, doc: u32) -> Rank {
        match self {
            Self::Whole(column) => column.first(doc).map(whole_rank),
            Self::Real(column) => column.first(doc).map(real_rank),
            Self::Text(column) => column.as_ref().and_then(|it| it.ords().first(doc)),
            Self::Numbers(columns) => columns.iter().find_map(|column| match column {
                DynamicColumn::I64(column) => column.first(doc).map(|it| real_rank(it as f64)),
                DynamicColumn::U64(column) => column.first(doc).map(|it| real_rank(it as f64)),
                DynamicColumn::F64(column) => column.first(doc).map(real_rank),
                _ => None,
            }),
        }
    }
}

fn whole_rank(number: i64) -> u64 {
    tantivy::i64_to_u64(number)
}

fn real_rank(number: f64) -> u64 {
    tantivy::f64_to_u64(if number == 0.0 { 0.0 } else { number })
}

impl Found<'_> {
    /// How many records there are.
    pub(crate) fn count(&self) -> u64 {
        self.segments.iter().map(|it| it.1.len()).sum::<u64>() + self.tail.len() as u64
    }

    /// The rows in a window of an order: ties in insertion order, in the direction of the last column.
    /// `after` leaves the rows up to one out. `None` when it cannot be sorted so.
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
        let mut places = Vec::with_capacity(N);
        for (by, _) in order {
            if !self.is_sortable(by)? {
                return Ok(None);
            }
            places.push(by);
        }
        let directions: Vec<Direction> = order.iter().map(|it| it.1).collect();
        let want =
            limit.map_or(usize::MAX, |it| usize::try_from(skip.saturating_add(it)).unwrap_or(usize::MAX));
        let is_newest_first = directions.last() == Some(&Direction::Descending);
        let compare = |a: &Entry<N>, b: &Entry<N>| {
            for (n, direction) in directions.iter().enumerate() {
                let by_rank = a.ranks[n].cmp(&b.ranks[n]);
                let by_rank = if *direction == Direction::Descending { by_rank.reverse() } else { by_rank };
                if by_rank.is_ne() {
                    return by_rank;
                }
            }
            if is_newest_first { b.key.cmp(&a.key) } else { a.key.cmp(&b.key) }
        };
        let mut all = Vec::new();
        let mut columns = Vec::new();
        for (number, (segment, set)) in self.segments.iter().enumerate() {
            let own =
                places.iter().map(|by| self.sort_column(segment, by)).collect::<Result<Vec<SortColumn>>>()?;
            let keys = segment.reader().fast_fields().i64(KEY)?;
            let mut top = Top { want, list: Vec::new(), last: None };
            for doc in set.iter() {
                let Some(key) = keys.first(doc) else { continue };
                if after.is_some_and(|after| key <= after) {
                    continue;
                }
                let mut ranks = [None; N];
                for (rank, column) in ranks.iter_mut().zip(&own) {
                    *rank = column.rank(doc);
                }
                top.add(Entry { ranks, key, segment: number as u32 }, &compare);
            }
            all.append(&mut top.into_list(&compare));
            columns.push(own);
        }
        self.rank_texts(&mut all, &columns, &places, after)?;
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Ok(Some(window(&mut all, skip, want, compare).iter().map(|it| it.key).collect()))
    }

    /// Whether every value is a number that 64-bit floats tell from others, or absent, as far as a path says.
    fn is_sortable(&self, by: &SortBy) -> Result<bool> {
        let SortBy::Path(path) = by else { return Ok(true) };
        for (segment, _) in &self.segments {
            if !segment.has_numbers_only(path)? {
                return Ok(false);
            }
        }
        let is_number = |it: &(i64, Taken, Json)| match value_at(&it.2, path.as_steps()) {
            None | Some(Json::Null) => true,
            Some(Json::Number(number)) => number.as_f64().is_some_and(|it| it.abs() < terms::EXACT),
            Some(_) => false,
        };
        Ok(self.tail.iter().all(is_number))
    }

    fn sort_column(&self, segment: &Segment<'_>, by: &SortBy) -> Result<SortColumn> {
        let fields = segment.reader().fast_fields();
        let place = match by {
            SortBy::Column(place) => *place,
            SortBy::Path(path) => return segment.number_columns(path).map(SortColumn::Numbers),
        };
        let name = column_name(place);
        let column = one_columns(self.kind).nth(place);
        Ok(match column.map(|it| it.ty) {
            Some(crate::Type::Text | crate::Type::Folded) | None => SortColumn::Text(fields.str(&name)?),
            Some(crate::Type::Real) => SortColumn::Real(fields.f64(&name)?),
            Some(_) => SortColumn::Whole(fields.i64(&name)?),
        })
    }

    /// Makes the ranks of texts, which count within a segment, comparable over all, and adds the tail.
    fn rank_texts<const N: usize>(
        &self,
        all: &mut Vec<Entry<N>>,
        columns: &[Vec<SortColumn>],
        places: &[&SortBy],
        after: Option<i64>,
    ) -> Result<()> {
        let tail: Vec<_> = self.tail.iter().filter(|it| after.is_none_or(|after| after < it.0)).collect();
        let first = all.len();
        for (key, taken, body) in &tail {
            let mut ranks = [None; N];
            for (rank, by) in ranks.iter_mut().zip(places) {
                let place = match by {
                    SortBy::Column(place) => *place,
                    SortBy::Path(path) => {
                        let number = value_at(body, path.as_steps()).and_then(Json::as_f64);
                        *rank = number.map(real_rank);
                        continue;
                    }
                };
                *rank = match &taken.cells[place] {
                    Cell::Int(number) if self.is_real(place) => Some(real_rank(*number as f64)),
                    Cell::Int(number) => Some(whole_rank(*number)),
                    Cell::Real(number) => Some(real_rank(*number)),
                    _ => None,
                };
            }
            all.push(Entry { ranks, key: *key, segment: u32::MAX });
        }
        for n in 0..N {
            let SortBy::Column(place) = *places[n] else { continue };
            let is_text = columns.iter().any(|it| matches!(it[n], SortColumn::Text(_)))
                || tail.iter().any(|it| matches!(it.1.cells[place], Cell::Text(_)));
            if !is_text || (columns.len() == 1 && tail.is_empty()) {
                continue;
            }
            let mut texts = Texts::default();
            // The texts of each segment that are sorted by, as its column numbers them.
            let mut ords: Vec<Vec<u64>> = vec![Vec::new(); columns.len()];
            for entry in &all[..first] {
                ords[entry.segment as usize].extend(entry.ranks[n]);
            }
            for (own, ords) in columns.iter().zip(&mut ords) {
                let SortColumn::Text(Some(column)) = &own[n] else { continue };
                ords.sort_unstable();
                ords.dedup();
                let dictionary = column.dictionary();
                dictionary.sorted_ords_to_term_cb(ords, |bytes| texts.push(bytes)).map_err(failed)?;
            }
            let in_tail = texts.len();
            let text_of = |taken: &Taken| match &taken.cells[place] {
                Cell::Text(text) => Some(text.clone()),
                _ => None,
            };
            let tail_texts: Vec<Option<String>> = tail.iter().map(|it| text_of(&it.1)).collect();
            tail_texts.iter().flatten().for_each(|it| texts.push(it.as_bytes()));
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
                let at = entry.ranks[n].and_then(|ord| ords[segment].binary_search(&ord).ok());
                entry.ranks[n] = at.map(|at| ranks[begins[segment] + at]);
            }
            let mut next = ranks[in_tail..].iter();
            for (entry, text) in all[first..].iter_mut().zip(&tail_texts) {
                entry.ranks[n] = text.as_ref().and_then(|_| next.next().copied());
            }
        }
        Ok(())
    }

    fn is_real(&self, place: usize) -> bool {
        one_columns(self.kind).nth(place).is_some_and(|it| it.ty == crate::Type::Real)
    }

    /// The counts of each facet, by descending value; those that are not declared have none.
    ///
    /// Errors: a facet has more than `most` values.
    pub(crate) fn facets(&self, names: &[&str], most: u64) -> Result<Vec<Vec<FacetCount>>> {
        names.iter().map(|name| self.facet(name, most)).collect()
    }

    fn facet(&self, name: &str, most: u64) -> Result<Vec<FacetCount>> {
        let Some(place) = self.kind.facets.iter().position(|it| it.name == name) else {
            return Ok(Vec::new());
        };
        let mut list: Vec<FacetCount> = Vec::new();
        for (segment, set) in &self.segments {
            let Some(column) = segment.reader().fast_fields().str(&facet_name(place))? else { continue };
            add_counts(&column, set, &mut list)?;
            summed(&mut list);
            if most < list.len() as u64 {
                return Err(StoreError::Query(format!(
                    "{name:?} has more than {most} values here; narrow the search down"
                )));
            }
        }
        for (_, taken, _) in &self.tail {
            for (_, values) in taken.counted.iter().filter(|it| it.0 == place) {
                list.extend(values.values().map(|it| FacetCount { value: it.to_owned(), n_records: 1 }));
            }
        }
        summed(&mut list);
        list.reverse();
        Ok(list)
    }
}

/// Sorts counts by value and makes one of those of the same value.
fn summed(list: &mut Vec<FacetCount>) {
    // Those of each segment come in order: a sort that sees runs merges them.
    list.sort_by(|a, b| a.value.cmp(&b.value));
    list.dedup_by(|next, kept| {
        let is_same = next.value == kept.value;
        if is_same {
            kept.n_records += next.n_records;
        }
        is_same
    });
}

/// Adds how often each value of a segment's column comes in a set, by ascending value.
fn add_counts(column: &StrColumn, set: &Set, list: &mut Vec<FacetCount>) -> Result<()> {
    let mut by_ord = vec![0_u32; column.num_terms()];
    let ords = column.ords();
    for doc in set.iter() {
        for ord in ords.values_for_doc(doc) {
            by_ord[ord as usize] += 1;
        }
    }
    let used: Vec<u64> = (0..by_ord.len() as u64).filter(|ord| by_ord[*ord as usize] != 0).collect();
    let mut at = 0;
    column
        .dictionary()
        .sorted_ords_to_term_cb(&used, |bytes| {
            let n = u64::from(by_ord[used[at] as usize]);
            at += 1;
            list.push(FacetCount { value: String::from_utf8_lossy(bytes).into_owned(), n_records: n });
        })
        .map_err(failed)?;
    Ok(())
}

/// Texts, one behind the other.
#[derive(Debug, Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, at: usize) -> &[u8] {
        let begin = at.checked_sub(1).map_or(0, |it| self.ends[it]);
        &self.bytes[begin..self.ends[at]]
    }

    /// The place of each in their order; equal ones have the same.
    fn ranks(&self) -> Vec<u64> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        // The texts of a segment come in order: a sort that sees runs merges them.
        order.sort_by(|a, b| self.get(*a).cmp(self.get(*b)));
        let mut ranks = vec![0; order.len()];
        let mut rank = 0;
        for (at, it) in order.iter().enumerate() {
            if 0 < at && self.get(order[at - 1]) != self.get(*it) {
                rank += 1;
            }
            ranks[*it] = rank;
        }
        ranks
    }
}

/// What stands from `from` to `to` when `list` is in order; no more than that is sorted.
fn window<T>(list: &mut [T], from: usize, to: usize, compare: impl Fn(&T, &T) -> Ordering) -> &mut [T] {
    let to = to.min(list.len());
    if to <= from {
        return &mut [];
    }
    if to < list.len() {
        list.select_nth_unstable_by(to - 1, &compare);
    }
    let list = &mut list[..to];
    if 0 < from {
        list.select_nth_unstable_by(from, &compare);
    }
    let list = &mut list[from..];
    list.sort_unstable_by(compare);
    list
}

/// The first `want` of many.
struct Top<const N: usize> {
    want: usize,
    list: Vec<Entry<N>>,
    /// None behind this one is wanted.
    last: Option<Entry<N>>,
}

impl<const N: usize> Top<N> {
    fn add(&mut self, entry: Entry<N>, compare: &impl Fn(&Entry<N>, &Entry<N>) -> Ordering) {
        if self.want == 0 || self.last.as_ref().is_some_and(|last| compare(last, &entry).is_lt()) {
            return;
        }
        self.list.push(entry);
        if self.want.saturating_mul(2).max(1_000) <= self.list.len() && self.want < self.list.len() {
            self.cut(compare);
        }
    }

    fn cut(&mut self, compare: &impl Fn(&Entry<N>, &Entry<N>) -> Ordering) {
        if self.want < self.list.len() {
            self.list.select_nth_unstable_by(self.want - 1, compare);
            self.list.truncate(self.want);
            self.last = self.list.last().copied();
        }
    }

    fn into_list(mut self, compare: &impl Fn(&Entry<N>, &Entry<N>) -> Ordering) -> Vec<Entry<N>> {
        if self.want != 0 {
            self.cut(compare);
        }
        self.list
    }
}
