//! Browsable lists from the index: a term for each entry of a record, in list order, so that a position is looked up
//! and the entries around it are read from there in both directions.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use serde_json::Value as Json;
use tantivy::postings::TermInfo;
use tantivy::termdict::TermStreamer;

use super::Snapshot;
use super::condition::{Segment, failed};
use super::entries::{group_bytes, parts_of, push_entry};
use super::found::parse;
use super::layout::KEY;
use super::set::Set;
use super::terms;
use crate::lists::{Wanted, entries_of};
use crate::session::State;
use crate::{Browsed, Kind, ListPlace, Listed, Result, View};

/// Maximum number of records without terms for their entries, which are decided on their bodies.
const UNLISTED_RECORDS: u64 = 5_000;
/// Number of entries between two checks of the time limit.
const STEP_ENTRIES: u64 = 10_000;
/// Number of entry counts cached per snapshot.
const REMEMBERED: usize = 100;

/// Returns the entries around a position; `None` where the index cannot answer.
pub(crate) fn browse(
    view: &mut View<'_>,
    kind: &'static Kind,
    list: usize,
    place: &ListPlace,
    wanted: &mut Wanted<'_>,
) -> Result<Option<Browsed>> {
    if view.state != State::Committed {
        return Ok(None);
    }
    let Some(snapshot) = view.indexes.as_ref().and_then(|it| it.get(kind.name).cloned()) else {
        return Ok(None);
    };
    let Some(lists) = Lists::of(&snapshot, view, kind, list)? else { return Ok(None) };
    let after = lists.side(view, place, place.n_after, Way::Forward, wanted)?;
    let before = lists.side(view, place, place.n_before, Way::Backward, wanted)?;
    let n_entries = lists.count(view, &snapshot, wanted)?;
    Ok(Some(Browsed { before, after, n_entries }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
}

/// A list over all segments, with the entries of records changed since the commit.
struct Lists<'s> {
    kind: &'static Kind,
    number: usize,
    prefix: Vec<u8>,
    segments: Vec<Part<'s>>,
    /// Entries that are not in the segments, with the id of their record, in order.
    others: Vec<(Vec<u8>, String)>,
    /// Whether nothing has changed since.
    is_current: bool,
}

/// A segment and its relevant documents.
struct Part<'s> {
    segment: Segment<'s>,
    within: Set,
    is_whole: bool,
}

/// An entry during iteration, before it is known whether any record still has it.
#[derive(Default)]
struct Passing {
    /// Key and distinguishing part.
    group: Vec<u8>,
    /// By segment: its postings, and the collected values.
    terms: Vec<(usize, TermInfo, Vec<u8>)>,
    /// Records that are not in the segments, with the collected values.
    records: Vec<(usize, Vec<u8>)>,
}

impl<'s> Lists<'s> {
    fn of(
        snapshot: &'s Snapshot,
        view: &mut View<'_>,
        kind: &'static Kind,
        number: usize,
    ) -> Result<Option<Self>> {
        let Some(tail) = snapshot.tail(view, kind)? else { return Ok(None) };
        let entries = kind.lists[number].entries;
        let mut others: Vec<(Vec<u8>, String)> = Vec::new();
        let mut add = |id: &str, bytes: &[u8]| -> Result<()> {
            let body: Json = parse(kind, id, bytes)?;
            for entry in entries_of(entries, &body) {
                let mut bytes = Vec::new();
                push_entry(&mut bytes, &entry);
                others.push((bytes, id.to_owned()));
            }
            Ok(())
        };
        for row in &tail.rows {
            add(&row.id, &row.body)?;
        }
        let mut segments = Vec::new();
        for reader in snapshot.searcher.segment_readers() {
            let segment =
                Segment::new(&snapshot.searcher, reader, &snapshot.layout, &snapshot.decoded, kind)?;
            let mut within = tail.unchanged_in(&segment)?;
            let unlisted = segment.with_term(&terms::unlisted_term())?;
            let unlisted = unlisted.or(&segment.with_term(&terms::beyond_term())?).and(&within);
            if UNLISTED_RECORDS < unlisted.len() {
                return Ok(None);
            }
            if !unlisted.is_empty() {
                let keys = segment.reader().fast_fields().i64(KEY)?;
                let list: Vec<i64> = unlisted.iter().filter_map(|doc| keys.first(doc)).collect();
                for record in view.by_keys(kind, &list)? {
                    add(&record.id, &record.body)?;
                }
                within = within.without(&unlisted);
            }
            let is_whole = within.len() == u64::from(segment.reader().max_doc());
            segments.push(Part { segment, within, is_whole });
        }
        others.sort_unstable();
        let is_current = tail.rows.is_empty() && tail.deleted.is_empty();
        let prefix = terms::list_prefix(number);
        Ok(Some(Self { kind, number, prefix, segments, others, is_current }))
    }

    /// Returns the entries nearest to a position on one side, one more than `n_most`, in order.
    fn side(
        &self,
        view: &mut View<'_>,
        place: &ListPlace,
        n_most: usize,
        way: Way,
        wanted: &mut Wanted<'_>,
    ) -> Result<Vec<Listed>> {
        let mut found: Vec<Listed> = Vec::new();
        let mut n_left = if way == Way::Forward { place.n_skipped } else { 0 };
        if n_most == 0 {
            return Ok(found);
        }
        let mut at = Vec::new();
        terms::push_escaped(&mut at, &place.key);
        // Entries of the key itself sort after its terminator; those of longer keys sort after all of these.
        at.extend_from_slice(if place.is_behind { &[0, 0] } else { &[0, 1] });
        self.walk(&at, way, |passing| {
            if !wanted.has(|| parts_of(&passing.group)) {
                return Ok(true);
            }
            if n_left != 0 {
                n_left -= u64::from(self.is_there(passing)?);
                return Ok(true);
            }
            found.extend(self.listed(view, passing)?);
            Ok(found.len() <= n_most)
        })?;
        if way == Way::Backward {
            found.reverse();
        }
        Ok(found)
    }

    /// Counts the wanted entries that some record has.
    fn count(&self, view: &View<'_>, snapshot: &Snapshot, wanted: &mut Wanted<'_>) -> Result<u64> {
        let key = (self.number, wanted.condition.to_owned());
        let counted = || snapshot.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_current
            && let Some(n) = counted().get(&key)
        {
            return Ok(*n);
        }
        let (mut n, mut n_passed) = (0, 0_u64);
        self.walk(&[], Way::Forward, |passing| {
            n_passed += 1;
            if n_passed.is_multiple_of(STEP_ENTRIES) {
                view.check_pace()?;
            }
            n += u64::from(wanted.has(|| parts_of(&passing.group)) && self.is_there(passing)?);
            Ok(true)
        })?;
        if self.is_current {
            let mut counted = counted();
            if REMEMBERED <= counted.len() {
                counted.clear();
            }
            counted.insert(key, n);
        }
        Ok(n)
    }

    /// Passes the entries from a position on to `visit` until it returns that it has enough.
    fn walk(&self, at: &[u8], way: Way, mut visit: impl FnMut(&Passing) -> Result<bool>) -> Result<()> {
        let mut place = self.prefix.clone();
        place.extend_from_slice(at);
        let mut streams: Vec<Option<TermStreamer<'_>>> = Vec::new();
        for part in &self.segments {
            let range = part.segment.all_terms().range();
            let range = match way {
                Way::Forward => range.ge(&place),
                Way::Backward => range.ge(&self.prefix).lt(&place).backward(),
            };
            streams.push(Some(range.into_stream().map_err(failed)?));
        }
        streams.iter_mut().for_each(|it| self.advance(it));
        let split = self.others.partition_point(|it| it.0.as_slice() < at);
        let mut others: Box<dyn Iterator<Item = usize>> = match way {
            Way::Forward => Box::new(split..self.others.len()),
            Way::Backward => Box::new((0..split).rev()),
        };
        let mut other = others.next();
        let mut passing = Passing::default();
        loop {
            passing.terms.clear();
            passing.records.clear();
            let current = streams.iter().flatten().map(|it| &it.key()[self.prefix.len()..]);
            let groups = current.chain(other.map(|it| self.others[it].0.as_slice()));
            let groups = groups.map(|it| &it[..group_bytes(it)]);
            let next = match way {
                Way::Forward => groups.min(),
                Way::Backward => groups.max(),
            };
            let Some(next) = next else { return Ok(()) };
            passing.group.clear();
            passing.group.extend_from_slice(next);
            for (number, stream) in streams.iter_mut().enumerate() {
                while let Some(it) = stream {
                    let entry = &it.key()[self.prefix.len()..];
                    let Some(gathered) = entry.strip_prefix(passing.group.as_slice()) else { break };
                    passing.terms.push((number, it.value().clone(), gathered.to_vec()));
                    self.advance(stream);
                }
            }
            while let Some(at) = other {
                let Some(gathered) = self.others[at].0.strip_prefix(passing.group.as_slice()) else { break };
                passing.records.push((at, gathered.to_vec()));
                other = others.next();
            }
            if !visit(&passing)? {
                return Ok(());
            }
        }
    }

    /// Advances a stream; one that has left the list ends.
    fn advance(&self, stream: &mut Option<TermStreamer<'_>>) {
        let has_more =
            stream.as_mut().is_some_and(|it| it.advance() && it.key().starts_with(self.prefix.as_slice()));
        if !has_more {
            *stream = None;
        }
    }

    fn is_there(&self, passing: &Passing) -> Result<bool> {
        if !passing.records.is_empty() {
            return Ok(true);
        }
        for (number, info, _) in &passing.terms {
            let part = &self.segments[*number];
            if part.is_whole || part.segment.has_any_of(info, &part.within)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the entry with its records; `None` when no record has it any more.
    fn listed(&self, view: &mut View<'_>, passing: &Passing) -> Result<Option<Listed>> {
        let mut gathered = BTreeSet::new();
        let mut gather = |bytes: &[u8]| gathered.extend(parts_of(bytes));
        let mut ids: BTreeSet<&str> = BTreeSet::new();
        for (at, bytes) in &passing.records {
            gather(bytes);
            ids.insert(&self.others[*at].1);
        }
        let mut n_records = ids.len() as u64;
        let mut key = None;
        for (number, part) in self.segments.iter().enumerate() {
            let mut docs = None;
            for (_, info, bytes) in passing.terms.iter().filter(|it| it.0 == number) {
                let own = part.segment.of_term(info)?.and(&part.within);
                if !own.is_empty() {
                    gather(bytes);
                    docs = Some(docs.map_or_else(|| own.clone(), |it: Set| it.or(&own)));
                }
            }
            let Some(docs) = docs else { continue };
            n_records += docs.len();
            if let Some(doc) = docs.iter().next() {
                key = part.segment.reader().fast_fields().i64(KEY)?.first(doc);
            }
        }
        let record = match (ids.first(), key) {
            (Some(id), _) => Some((*id).to_owned()),
            (None, Some(key)) => view.by_keys(self.kind, &[key])?.pop().map(|it| it.id),
            (None, None) => None,
        };
        let Some(record) = record else { return Ok(None) };
        let mut parts = parts_of(&passing.group).into_iter();
        let (key, apart) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        Ok(Some(Listed { key, apart, gathered, n_records, record }))
    }
}
