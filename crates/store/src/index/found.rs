//! A result of the index: its own documents, and the records changed since its commit, in one snapshot.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;
use tantivy::columnar::StrColumn;

use super::Snapshot;
use super::changes::{DATABASE_IDENTITY, n_members_sql};
use super::condition::{Segment, failed};
use super::first_rows::FirstRows;
use super::layout::{KEY, MEMBERS, column_name, facet_name};
use super::pace::TAIL_RECORDS;
use super::parallel::{Threads, on_each};
use super::remembered::{Changed, Records, Tail, TailRow};
use super::set::Set;
use super::terms;
use super::values::each_value;
use super::words::Words;
use crate::cell::Cell;
use crate::classes::ClassSet;
use crate::document::{Taken, searched_text_of};
use crate::eval::matches_with;
use crate::field_values::ValueBound;
use crate::parts::Parts;
use crate::plan::flatten;
use crate::session::{Flavour, HORIZON, State};
use crate::strings::unique_strings;
use crate::{Expr, FacetCount, Kind, Record, Result, StoreError, Text, View};

/// Maximum size of the bodies of changed records held together: with more, the index is too far behind.
const TAIL_BYTES: usize = 64 << 20;
/// Approximate number of documents and texts that a condition examines from which segments are processed on several
/// threads.
const HEAVY: u64 = 3_000_000;
/// Number of documents, each counted once a facet, from which facets are counted on several threads.
const HEAVY_FACETS: u64 = 1_000_000;
/// Records whose bodies are read in one step.
const STEP_RECORDS: usize = 2_000;
/// Records of a step that one thread decides.
const SHARE_RECORDS: usize = 250;
/// Number of records up to which they are decided at once, rather than along the order of a page.
const OPEN_RECORDS: u64 = 1_000;

/// If more than one in so many documents is undecided, the long texts are read rather than the bodies.
const OPEN_PART: u64 = 16;

/// How much of an answer is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extent<'p> {
    All,
    /// A page near the beginning of an order, which perhaps can be walked along.
    Page(Option<&'p FirstRows>),
}

/// The records that satisfy a condition.
pub(crate) struct Found<'s> {
    pub(super) kind: &'static Kind,
    filter: &'s Expr,
    /// For each segment, the documents that satisfy it or, while some are undecided, may do.
    pub(super) segments: Vec<(Segment<'s>, Set)>,
    /// While some documents are undecided: for each segment, those that certainly satisfy the condition.
    certain: Option<Vec<Set>>,
    /// Periods to which the documents of the segments are not narrowed yet.
    pub(super) periods: Vec<&'s Expr>,
    pub(super) tail: Arc<Vec<Changed>>,
    /// Number of records whose bodies were read to decide them.
    pub(crate) n_read: u64,
    /// Whether finding them is worth remembering.
    was_costly: bool,
    /// Number of records changed since the index's commit.
    pub(crate) n_changed: u64,
}

/// Decides conditions on records whose bodies are available.
pub(crate) struct Decider {
    kind: &'static Kind,
    texts: Vec<(*const Expr, Words)>,
}

impl Decider {
    /// Returns a decider for a condition that must not move while this is used.
    pub(crate) fn of(kind: &'static Kind, expr: &Expr) -> Self {
        let mut texts = Vec::new();
        collect(expr, &mut texts);
        Self { kind, texts }
    }

    /// Returns the parts of a body that decide the condition.
    pub(crate) fn parts(&self, expr: &Expr) -> Parts {
        let reads_text = !self.texts.is_empty() && matches!(self.kind.text, Text::At(_));
        if reads_text { Parts::whole() } else { Parts::of(expr) }
    }

    /// Returns whether a record satisfies the condition.
    ///
    /// Errors: the body is not JSON.
    pub(crate) fn holds(&self, expr: &Expr, id: &str, bytes: &[u8], body: &Json) -> Result<bool> {
        self.holds_beside(expr, bytes, body, &|leaf| match leaf {
            Expr::Ids(ids) => ids.iter().any(|it| it == id),
            _ => false,
        })
    }

    /// As [`Decider::holds`], with `decided` answering some conditions that do not depend on the body.
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
            searched_text_of(self.kind, body, || unique_strings(bytes))
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
    /// Returns the records in one of `classes` that satisfy `filter`. `None` when too much has changed since the
    /// index's commit. If only a page is asked for, periods and what bodies decide may be left to be settled.
    pub(crate) fn find<'s>(
        &'s self,
        view: &mut View<'_>,
        kind: &'static Kind,
        filter: &'s Expr,
        classes: Option<&ClassSet>,
        extent: Extent<'_>,
    ) -> Result<Option<Found<'s>>> {
        let Some(tail) = self.tail(view, kind)? else { return Ok(None) };
        // Writers change what they look at.
        let is_kept = view.state == State::Committed;
        if is_kept && let Some(known) = view.remembered.records(kind, filter, classes) {
            return self.found_before(kind, filter, &tail, known).map(Some);
        }
        let found = self.found_now(view, kind, filter, &tail, classes, extent)?;
        if is_kept && found.was_costly && found.known_count().is_some() {
            let sets = found.segments.iter().map(|it| it.1.clone()).collect();
            view.remembered.keep_records(kind, filter, classes, (sets, found.tail.clone()));
        }
        Ok(Some(found))
    }

    /// As [`Snapshot::find`], with records found before.
    fn found_before<'s>(
        &'s self,
        kind: &'static Kind,
        filter: &'s Expr,
        changes: &Tail,
        (sets, tail): Records,
    ) -> Result<Found<'s>> {
        let segment = |reader| Segment::new(&self.searcher, reader, &self.layout, &self.decoded, kind);
        let segments = self.searcher.segment_readers().iter().zip(sets);
        let segments = segments.map(|(reader, set)| Ok((segment(reader)?, set))).collect::<Result<_>>()?;
        Ok(Found { segments, tail, ..Found::none(kind, filter, changes) })
    }

    fn found_now<'s>(
        &'s self,
        view: &mut View<'_>,
        kind: &'static Kind,
        filter: &'s Expr,
        tail: &Tail,
        classes: Option<&ClassSet>,
        extent: Extent<'_>,
    ) -> Result<Found<'s>> {
        let decider = Decider::of(kind, filter);
        let allowed: Option<HashSet<i64>> = classes.map(|it| it.numbers.iter().copied().collect());
        let mut found = Found::none(kind, filter, tail);
        let mut changed = Vec::new();
        for row in &tail.rows {
            let body: Json = parse(kind, &row.id, &row.body)?;
            let taken = Taken::from(kind, &body);
            let is_allowed = allowed.as_ref().is_none_or(|it| it.contains(&taken.class.0));
            if is_allowed && decider.holds(filter, &row.id, &row.body, &body)? {
                changed.push(Changed { key: row.key, n_members: row.n_members, taken, body });
            }
        }
        found.tail = Arc::new(changed);
        let mut asked = Vec::new();
        let mut cost = 0_u64;
        for reader in self.searcher.segment_readers() {
            let segment = Segment::new(&self.searcher, reader, &self.layout, &self.decoded, kind)?;
            let mut within = tail.unchanged_in(&segment)?;
            if let Some(set) = classes {
                within = within.and(&segment.of_classes(&set.numbers)?);
            }
            cost = cost.saturating_add(segment.cost(filter)?);
            asked.push((segment, within));
        }
        let mut conditions = Vec::new();
        flatten(filter, &mut conditions);
        if let Extent::Page(Some(page)) = extent {
            found.periods = conditions.extract_if(.., |it| page.is_period(it)).collect();
            if !can_wait(&found.periods, &conditions, asked.iter().map(|it| &it.0))? {
                conditions.append(&mut found.periods);
            }
        }
        let bounds = on_each(
            &asked,
            |it| it.0.n_documents(),
            Threads::for_documents(cost, HEAVY),
            |(segment, within)| segment.all(&conditions, within),
        )?;
        let mut certain = Vec::with_capacity(asked.len());
        let mut n_open = 0;
        for ((segment, within), bounds) in asked.into_iter().zip(bounds) {
            let low = bounds.low.clone().and(&within);
            let high = bounds.high().clone().and(&within);
            n_open += high.len() - low.len();
            certain.push(low);
            found.segments.push((segment, high));
        }
        if n_open != 0 {
            found.certain = Some(certain);
            if n_open <= OPEN_RECORDS || matches!(extent, Extent::All) {
                found.decide(view)?;
            }
        }
        found.was_costly = HEAVY < cost || n_open != 0;
        Ok(found)
    }

    /// Returns the changes since the index's commit; `None` when there are too many.
    pub(super) fn tail(&self, view: &mut View<'_>, kind: &'static Kind) -> Result<Option<Arc<Tail>>> {
        let is_kept = view.state == State::Committed;
        if is_kept && let Some(known) = view.remembered.tail(kind) {
            return Ok(known);
        }
        let tail = self.read_tail(view, kind)?.map(Arc::new);
        if is_kept {
            view.remembered.keep_tail(kind, tail.clone());
        }
        Ok(tail)
    }

    fn read_tail(&self, view: &mut View<'_>, kind: &'static Kind) -> Result<Option<Tail>> {
        let name = kind.name;
        let flavour = view.session.flavour();
        let counted =
            format!("SELECT count(*) FROM (SELECT 1 FROM \"k_{name}\" WHERE ?1 < sequence LIMIT ?2) x");
        let values = [self.covered.into(), (TAIL_RECORDS + 1).into()];
        let n = match flavour {
            Flavour::Sqlite => view.session.first(&counted, &values, |row| row.int(0))?,
            Flavour::Postgres => {
                let sql = format!("SELECT ({counted}), {DATABASE_IDENTITY}, ?1 < {HORIZON}");
                let found =
                    view.session.first(&sql, &values, |row| Ok((row.int(0)?, row.text(1)?, row.flag(2)?)))?;
                // Excludes another primary, and a snapshot that does not contain everything the index does.
                found.filter(|it| it.1 == self.store && it.2).map(|it| it.0)
            }
        };
        let n = n.map(i64::cast_unsigned);
        self.lag.note_search(n.unwrap_or(0));
        let Some(n) = n.filter(|it| *it <= TAIL_RECORDS) else { return Ok(None) };
        let sql = format!(
            "SELECT r.key, r.id, r.version, {}, {} FROM {} WHERE ?1 < r.sequence LIMIT ?2",
            n_members_sql(kind),
            flavour.body(),
            flavour.rows_with_bodies(name)
        );
        let values = [self.covered.into(), (TAIL_RECORDS + 1).into()];
        let (mut rows, mut n_bytes) = (Vec::new(), 0);
        view.session.rows(&sql, &values, |row| {
            let body = row.bytes(4)?;
            n_bytes += body.len();
            if TAIL_BYTES < n_bytes {
                return Ok(ControlFlow::Break(()));
            }
            let (key, is_first) = (row.int(0)?, row.int(2)? == 1);
            rows.push(TailRow { key, id: row.text(1)?, is_first, n_members: row.int(3)?, body });
            Ok(ControlFlow::Continue(()))
        })?;
        if TAIL_BYTES < n_bytes {
            return Ok(None);
        }
        let sql = "SELECT id FROM tombstone WHERE kind = ?1 AND ?2 < sequence LIMIT ?3";
        let values = [name.into(), self.covered.into(), (TAIL_RECORDS + 1).into()];
        let deleted = view.session.all(sql, &values, |row| row.text(0))?;
        let n_changed = n.max((rows.len() + deleted.len()) as u64);
        Ok((n_changed <= TAIL_RECORDS).then_some(Tail { rows, deleted }))
    }
}

/// Returns whether periods are evaluated last anyway, and segments are narrowed to them without reading bodies.
fn can_wait<'s>(
    periods: &[&Expr],
    others: &[&Expr],
    mut segments: impl Iterator<Item = &'s Segment<'s>>,
) -> Result<bool> {
    let Some(period) = periods.first() else { return Ok(true) };
    segments.try_fold(true, |can_wait, segment| {
        let cost = segment.cost(period)?;
        let mut is_last = can_wait && segment.has_all_terms();
        for it in others {
            is_last = is_last && segment.cost(it)? < cost;
        }
        Ok(is_last)
    })
}

impl Tail {
    /// Returns the documents of a segment that are still up to date. A new record may reuse the row key of a deleted
    /// one, which is then among the deleted.
    pub(super) fn unchanged_in(&self, segment: &Segment<'_>) -> Result<Set> {
        let mut set = segment.alive()?;
        for row in self.rows.iter().filter(|it| !it.is_first) {
            segment.each_with(&terms::key_term(row.key), |doc| set.remove(doc))?;
        }
        for id in &self.deleted {
            segment.each_with(&terms::id_term(id), |doc| set.remove(doc))?;
        }
        Ok(set)
    }
}

pub(crate) fn parse(kind: &Kind, id: &str, bytes: &[u8]) -> Result<Json> {
    serde_json::from_slice(bytes).map_err(|error| damaged(kind, id, &error))
}

fn damaged(kind: &Kind, id: &str, error: &serde_json::Error) -> StoreError {
    StoreError::Damaged(format!("{} {id:?}: {error}", kind.name))
}

impl<'s> Found<'s> {
    /// Returns no records.
    fn none(kind: &'static Kind, filter: &'s Expr, changes: &Tail) -> Self {
        Self {
            kind,
            filter,
            segments: Vec::new(),
            certain: None,
            periods: Vec::new(),
            tail: Arc::default(),
            n_read: 0,
            was_costly: false,
            n_changed: (changes.rows.len() + changes.deleted.len()) as u64,
        }
    }
}

impl Found<'_> {
    /// Returns whether bodies have to be read to tell which documents satisfy the condition.
    pub(crate) fn is_open(&self) -> bool {
        self.certain.is_some()
    }

    /// Decides what is undecided: many documents by the texts that the index stores, those left by bodies.
    pub(crate) fn decide(&mut self, view: &mut View<'_>) -> Result<()> {
        let Some(certain) = self.certain.take() else { return Ok(()) };
        let (mut parts, mut n_open, mut n_documents) = (Vec::new(), 0, 0);
        for ((segment, high), low) in std::mem::take(&mut self.segments).into_iter().zip(certain) {
            // The others may have been narrowed to periods since.
            let set = low.and(&high);
            let open = segment.narrowed(&self.periods, &high.without(&set))?;
            n_open += open.len();
            n_documents += u64::from(segment.n_documents());
            parts.push((segment, set, open));
        }
        if OPEN_RECORDS.max(n_documents / OPEN_PART) < n_open {
            let mut conditions = Vec::new();
            flatten(self.filter, &mut conditions);
            for (segment, set, open) in &mut parts {
                segment.reads_long_texts = true;
                let bounds = segment.all(&conditions, open)?;
                set.add(&bounds.low.clone().and(open));
                *open = bounds.high().clone().and(open).without(set);
                view.check_pace()?;
            }
        }
        for (segment, mut set, open) in parts {
            let keys = segment.reader().fast_fields().i64(KEY)?;
            let docs: Vec<u32> = open.iter().collect();
            for docs in docs.chunks(STEP_RECORDS) {
                let by_key: HashMap<i64, u32> =
                    docs.iter().filter_map(|doc| Some((keys.first(*doc)?, *doc))).collect();
                let held = self.held(view, by_key.keys().copied().collect())?;
                held.iter().filter_map(|key| by_key.get(key)).for_each(|doc| set.insert(*doc));
                view.check_pace()?;
            }
            self.segments.push((segment, set));
        }
        Ok(())
    }

    /// Returns those of some records whose bodies satisfy the condition.
    pub(crate) fn held(&mut self, view: &mut View<'_>, mut keys: Vec<i64>) -> Result<Vec<i64>> {
        let (kind, filter) = (self.kind, self.filter);
        self.n_read += keys.len() as u64;
        keys.sort_unstable();
        let records = view.by_keys(kind, &keys)?;
        let parts = Decider::of(kind, filter).parts(filter);
        let held = |records: &[Record]| -> Result<Vec<i64>> {
            let decider = Decider::of(kind, filter);
            let mut held = Vec::new();
            for it in records {
                let body = parts.parse(&it.body).map_err(|error| damaged(kind, &it.id, &error))?;
                if decider.holds(filter, &it.id, &it.body, &body)? {
                    held.push(it.key);
                }
            }
            Ok(held)
        };
        let shares: Vec<&[Record]> = records.chunks(SHARE_RECORDS).collect();
        Ok(on_each(&shares, |it| it.len() as u32, Threads::Several, |share| held(share))?.concat())
    }

    /// Narrows the documents to the periods that are left.
    pub(crate) fn settle_periods(&mut self) -> Result<()> {
        let periods = std::mem::take(&mut self.periods);
        if periods.is_empty() {
            return Ok(());
        }
        for (segment, set) in &mut self.segments {
            *set = segment.narrowed(&periods, set)?;
        }
        Ok(())
    }

    /// Returns the number of records, `None` while periods or undecided documents are left.
    pub(crate) fn known_count(&self) -> Option<u64> {
        (self.periods.is_empty() && !self.is_open()).then(|| self.count())
    }

    /// Returns the number of records, at most while periods or undecided documents are left.
    pub(crate) fn count(&self) -> u64 {
        self.segments.iter().map(|it| it.1.len()).sum::<u64>() + self.tail.len() as u64
    }

    /// Returns the number of members of all records together.
    pub(crate) fn n_members(&self) -> Result<u64> {
        let mut n: i64 = self.tail.iter().map(|it| it.n_members).sum();
        for (segment, set) in &self.segments {
            let column = segment.reader().fast_fields().i64(MEMBERS)?;
            each_value(&column, set, |_, of_record| n += of_record);
        }
        Ok(n.cast_unsigned())
    }

    /// Leaves out records none of whose members satisfies a condition, as far as the index tells; false where it excludes
    /// none.
    pub(crate) fn narrow_to_members(&mut self, condition: &Expr) -> Result<bool> {
        for (segment, set) in &mut self.segments {
            match segment.with_member(condition, set)? {
                Some(left) => *set = left,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Leaves out records of which every member satisfies a condition, as far as the index tells, and returns the number of
    /// their members.
    pub(crate) fn take_members(&mut self, condition: &Expr) -> Result<u64> {
        let mut n = 0;
        for (segment, set) in &mut self.segments {
            let such = segment.with_such_only(condition, set)?;
            let column = segment.reader().fast_fields().i64(MEMBERS)?;
            each_value(&column, &such, |_, of_record| n += of_record.cast_unsigned());
            *set = std::mem::replace(set, Set::empty(0)).without(&such);
        }
        Ok(n)
    }

    /// Returns the row keys of the records changed since the index's commit.
    pub(crate) fn changed_keys(&self) -> impl Iterator<Item = i64> + '_ {
        self.tail.iter().map(|it| it.key)
    }

    /// Returns the row keys and the numbers of members of all records, in insertion order.
    pub(crate) fn members_by_key(&self) -> Result<Vec<(i64, u64)>> {
        let mut rows: Vec<(i64, u64)> =
            self.tail.iter().map(|it| (it.key, it.n_members.cast_unsigned())).collect();
        for (segment, set) in &self.segments {
            let columns = segment.reader().fast_fields();
            let (keys, members) = (columns.i64(KEY)?, columns.i64(MEMBERS)?);
            let mut of_docs = Vec::with_capacity(set.len() as usize);
            each_value(&members, set, |_, n| of_docs.push(n.cast_unsigned()));
            let mut of_docs = of_docs.into_iter();
            each_value(&keys, set, |_, key| rows.extend(of_docs.next().map(|n| (key, n))));
        }
        rows.sort_unstable();
        Ok(rows)
    }

    /// Returns the sum of the values of a column of whole numbers, which holds one for each record.
    pub(crate) fn sum(&self, place: usize) -> Result<i128> {
        let of_tail = self.tail.iter().map(|it| match it.taken.cells[place] {
            Cell::Int(number) => i128::from(number),
            _ => 0,
        });
        let mut sum: i128 = of_tail.sum();
        for (segment, set) in &self.segments {
            let column = segment.reader().fast_fields().i64(&column_name(place))?;
            each_value(&column, set, |_, number| sum += i128::from(number));
        }
        Ok(sum)
    }

    /// Returns the counts of each facet, by descending value; facets that are not declared have none.
    ///
    /// Errors: a facet has more values than `bound` allows.
    pub(crate) fn facets(&self, names: &[&str], bound: ValueBound) -> Result<Vec<Vec<FacetCount>>> {
        let places: Vec<Option<usize>> =
            names.iter().map(|name| self.kind.facets.iter().position(|it| it.name == *name)).collect();
        let lists: Vec<Mutex<Vec<FacetCount>>> = names.iter().map(|_| Mutex::default()).collect();
        let mut columns = Vec::new();
        for (segment, set) in &self.segments {
            let n_documents = set.len() as u32;
            for (at, place) in places.iter().enumerate() {
                let Some(place) = place.filter(|_| n_documents != 0) else { continue };
                if let Some(column) = segment.reader().fast_fields().str(&facet_name(place))? {
                    columns.push((at, column, set, n_documents));
                }
            }
        }
        let n_looked_at: u64 = columns.iter().map(|it| u64::from(it.3)).sum();
        on_each(
            &columns,
            |it| it.3,
            Threads::for_documents(n_looked_at, HEAVY_FACETS),
            |(at, column, set, _)| {
                let counts = counts_of(column, set, names[*at], bound)?;
                // Added up at once, so that a thread holds the values of one column only.
                let mut list = lists[*at].lock().unwrap_or_else(PoisonError::into_inner);
                list.extend(counts);
                summed(&mut list);
                bound.check_counts(&list, &names[*at])
            },
        )?;
        let mut all = Vec::with_capacity(names.len());
        for (list, place) in lists.into_iter().zip(places) {
            let mut list = list.into_inner().unwrap_or_else(PoisonError::into_inner);
            for changed in self.tail.iter() {
                for (_, values) in changed.taken.counted.iter().filter(|it| Some(it.0) == place) {
                    list.extend(values.values().map(|it| FacetCount { value: it.to_owned(), n_records: 1 }));
                }
            }
            summed(&mut list);
            list.reverse();
            all.push(list);
        }
        Ok(all)
    }
}

/// Sorts counts by value and merges those of the same value.
fn summed(list: &mut Vec<FacetCount>) {
    // The counts of each segment are in order: a sort that detects runs merges them.
    list.sort_by(|a, b| a.value.cmp(&b.value));
    list.dedup_by(|next, kept| {
        let is_same = next.value == kept.value;
        if is_same {
            kept.n_records += next.n_records;
        }
        is_same
    });
}

/// Counts the values of a segment's column over a set, by ascending value.
///
/// Errors: there are more than `bound` allows.
fn counts_of(column: &StrColumn, set: &Set, name: &str, bound: ValueBound) -> Result<Vec<FacetCount>> {
    let mut by_ord = vec![0_u32; column.num_terms()];
    each_value(column.ords(), set, |_, ord| by_ord[ord as usize] += 1);
    let used: Vec<u64> = (0..by_ord.len() as u64).filter(|ord| by_ord[*ord as usize] != 0).collect();
    bound.check(used.len(), 0, &name)?;
    let (mut list, mut n_bytes) = (Vec::with_capacity(used.len()), 0);
    column
        .dictionary()
        .sorted_ords_to_term_cb(&used, |bytes| {
            let n = u64::from(by_ord[used[list.len()] as usize]);
            n_bytes += bytes.len();
            let value = if bound.check(0, n_bytes, &name).is_ok() { bytes } else { &[] };
            list.push(FacetCount { value: String::from_utf8_lossy(value).into_owned(), n_records: n });
        })
        .map_err(failed)?;
    bound.check(list.len(), n_bytes, &name)?;
    Ok(list)
}
