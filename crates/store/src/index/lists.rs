//! Browsable lists from the index: a term for each entry of a record, in list order below its traits, so that a position
//! is looked up and the entries around it are read from there in both directions.

mod backward;
mod counts;
mod groups;
pub(super) mod known;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use serde_json::Value as Json;

use self::walk::{Lists, Other, Part, Passing, Way};
use super::Snapshot;
use super::condition::{Segment, failed};
use super::entries::{BEHIND, END, group_of, parts_bytes, parts_of};
use super::found::{Decider, Extent, parse};
use super::layout::KEY;
use super::terms;
use crate::lists::{Grouping, Wanted, entries_of};
use crate::session::State;
use crate::{Browsed, Expr, Kind, ListPlace, Listed, Result, View};

/// Maximum number of records without terms for their entries, which are decided on their bodies.
const UNLISTED_RECORDS: u64 = 5_000;

/// Returns the entries around a position; `None` where the index cannot answer.
pub(crate) fn browse(
    view: &mut View<'_>,
    kind: &'static Kind,
    list: usize,
    of: &Expr,
    place: &ListPlace,
    wanted: &mut Wanted<'_>,
) -> Result<Option<Browsed>> {
    let Some(snapshot) = snapshot_of(view, kind) else { return Ok(None) };
    let Some(lists) = Lists::of(&snapshot, view, kind, list, of, None)? else { return Ok(None) };
    let selected: Vec<bool> = lists.traits.iter().map(|it| wanted.has_traits(it)).collect();
    let after = lists.side(view, place, Way::Forward, &selected, wanted)?;
    let before = lists.side(view, place, Way::Backward, &selected, wanted)?;
    let n_entries = lists.counts(view, &selected, wanted)?.iter().sum();
    Ok(Some(Browsed { before, after, n_entries }))
}

/// Returns the different traits of the wanted entries, each with their number; `None` where the index cannot answer.
pub(crate) fn list_traits(
    view: &mut View<'_>,
    kind: &'static Kind,
    list: usize,
    of: &Expr,
    wanted: &mut Wanted<'_>,
) -> Result<Option<BTreeMap<String, u64>>> {
    let Some(snapshot) = snapshot_of(view, kind) else { return Ok(None) };
    let Some(lists) = Lists::of(&snapshot, view, kind, list, of, None)? else { return Ok(None) };
    let selected: Vec<bool> = lists.traits.iter().map(|it| wanted.has_traits(it)).collect();
    let counts = lists.counts(view, &selected, wanted)?;
    let found = lists.traits.iter().zip(&*counts).filter(|it| *it.1 != 0);
    Ok(Some(found.map(|(traits, n_entries)| (traits.clone(), *n_entries)).collect()))
}

/// Counts the wanted entries by the texts at a path; `None` where the index cannot answer.
pub(crate) fn count_entries_by(
    view: &mut View<'_>,
    kind: &'static Kind,
    list: usize,
    of: &Expr,
    by: Grouping<'_>,
    wanted: &mut Wanted<'_>,
) -> Result<Option<BTreeMap<String, u64>>> {
    let Some(snapshot) = snapshot_of(view, kind).filter(|_| terms::is_indexed(kind, by.path)) else {
        return Ok(None);
    };
    let Some(lists) = Lists::of(&snapshot, view, kind, list, of, Some(by))? else { return Ok(None) };
    lists.count_by(view, by, wanted)
}

pub(super) fn snapshot_of(view: &View<'_>, kind: &Kind) -> Option<Arc<Snapshot>> {
    if view.state != State::Committed {
        return None;
    }
    view.indexes.as_ref().and_then(|it| it.get(kind.name).cloned())
}

impl<'s> Lists<'s> {
    fn of(
        snapshot: &'s Snapshot,
        view: &mut View<'_>,
        kind: &'static Kind,
        number: usize,
        of: &Expr,
        by: Option<Grouping<'_>>,
    ) -> Result<Option<Self>> {
        let Some(tail) = snapshot.tail(view, kind)? else { return Ok(None) };
        let is_filtered = !matches!(of, Expr::All);
        let mut satisfying = Vec::new();
        if is_filtered {
            let Some(found) = snapshot.find(view, kind, of, None, Extent::All)? else { return Ok(None) };
            satisfying.extend(found.segments.into_iter().map(|it| it.1));
        }
        let entries = kind.lists[number].entries;
        let mut others: Vec<Other> = Vec::new();
        let mut add = |id: &str, bytes: &[u8]| -> Result<()> {
            let body: Json = parse(kind, id, bytes)?;
            let texts = Arc::new(by.map(|it| it.texts_of(&body)).unwrap_or_default());
            others.extend(entries_of(entries, &body).into_iter().map(|it| Other {
                group: group_of(&it),
                traits: it.traits,
                gathered: it.gathered,
                id: id.to_owned(),
                texts: texts.clone(),
            }));
            Ok(())
        };
        let decider = Decider::of(kind, of);
        for row in &tail.rows {
            if decider.holds(of, &row.id, &row.body, &parse(kind, &row.id, &row.body)?)? {
                add(&row.id, &row.body)?;
            }
        }
        let mut parts = Vec::new();
        for (at, reader) in snapshot.searcher.segment_readers().iter().enumerate() {
            let segment =
                Segment::new(&snapshot.searcher, reader, &snapshot.layout, &snapshot.decoded, kind)?;
            let mut within = tail.unchanged_in(&segment)?;
            if let Some(set) = satisfying.get(at) {
                within = within.and(set);
            }
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
            let changed = segment.alive()?.without(&within);
            parts.push(Part { segment, within, changed, is_whole, traits: Vec::new() });
        }
        others.sort_unstable();
        let own = traits_by_segment(snapshot, number, &parts)?;
        let all = own.iter().flatten().map(String::as_str).chain(others.iter().map(|it| it.traits.as_str()));
        let all: BTreeSet<&str> = all.collect();
        let traits: Vec<String> = all.into_iter().map(str::to_owned).collect();
        for (part, own) in parts.iter_mut().zip(&*own) {
            part.traits = own.iter().filter_map(|it| traits.binary_search(it).ok()).collect();
        }
        let is_current = tail.rows.is_empty() && tail.deleted.is_empty();
        Ok(Some(Self { snapshot, kind, number, is_filtered, traits, parts, others, is_current }))
    }

    /// Returns the entries nearest to a position on one side, one more than wanted, in order.
    fn side(
        &self,
        view: &mut View<'_>,
        place: &ListPlace,
        way: Way,
        selected: &[bool],
        wanted: &mut Wanted<'_>,
    ) -> Result<Vec<Listed>> {
        let (n_most, mut n_left) = match way {
            Way::Forward => (place.n_after, place.n_skipped),
            Way::Backward => (place.n_before, 0),
        };
        let mut found: Vec<Listed> = Vec::new();
        if n_most == 0 {
            return Ok(found);
        }
        let mut at = Vec::new();
        terms::push_escaped(&mut at, &place.key);
        // Entries of the key itself sort after its terminator; those of longer keys sort after all of these.
        at.extend_from_slice(if place.is_behind { &END } else { &BEHIND });
        self.walk(&at, way, selected, |passing| {
            view.check_pace()?;
            if !wanted.has(|| apart_of(&passing.group), &self.traits[passing.traits]) {
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

    /// Returns whether some record has an entry.
    fn is_there(&self, passing: &Passing) -> Result<bool> {
        if !passing.others.is_empty() {
            return Ok(true);
        }
        for (number, info, _) in &passing.terms {
            let part = &self.parts[*number];
            if part.is_whole || part.segment.has_any_of(info, &part.within)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the entry with its records; `None` when no record has it any more.
    fn listed(&self, view: &mut View<'_>, passing: &Passing) -> Result<Option<Listed>> {
        let mut gathered = BTreeSet::new();
        let mut ids: BTreeSet<&str> = BTreeSet::new();
        for other in passing.others.iter().map(|it| &self.others[*it]) {
            gathered.extend(Some(other.gathered.clone()).filter(|it| !it.is_empty()));
            ids.insert(&other.id);
        }
        let mut n_records = ids.len() as u64;
        let mut key = None;
        for (number, part) in self.parts.iter().enumerate() {
            let mut docs: Vec<u32> = Vec::new();
            for (_, info, bytes) in passing.terms.iter().filter(|it| it.0 == number) {
                let n_before = docs.len();
                part.segment.each_of(info, |doc| docs.extend(Some(doc).filter(|it| part.within.has(*it))))?;
                if n_before < docs.len() {
                    gathered.extend(parts_of(bytes));
                }
            }
            docs.sort_unstable();
            docs.dedup();
            n_records += docs.len() as u64;
            if let Some(doc) = docs.first() {
                key = part.segment.reader().fast_fields().i64(KEY)?.first(*doc);
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
        let traits = self.traits[passing.traits].clone();
        Ok(Some(Listed { key, apart, traits, gathered, n_records, record }))
    }
}

/// Returns the distinguishing part of a group.
fn apart_of(group: &[u8]) -> String {
    parts_of(group).into_iter().nth(1).unwrap_or_default()
}

/// Returns the traits in each segment. Each is looked up behind the last one.
fn traits_by_segment(snapshot: &Snapshot, list: usize, parts: &[Part<'_>]) -> Result<Arc<Vec<Vec<String>>>> {
    let known = || snapshot.lists.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(traits) = known().traits.get(&list) {
        return Ok(traits.clone());
    }
    let prefix = terms::list_prefix(list);
    let mut all = Vec::new();
    for part in parts {
        let (mut own, mut at) = (Vec::new(), prefix.clone());
        loop {
            let mut stream = part.segment.all_terms().range().ge(&at).into_stream().map_err(failed)?;
            if !stream.advance() {
                break;
            }
            let Some(entry) = stream.key().strip_prefix(prefix.as_slice()) else { break };
            let traits = &entry[..parts_bytes(entry, 1)];
            at.truncate(prefix.len());
            at.extend_from_slice(traits.strip_suffix(&END).unwrap_or(traits));
            at.extend_from_slice(&BEHIND);
            own.push(parts_of(traits).pop().unwrap_or_default());
        }
        all.push(own);
    }
    let all = Arc::new(all);
    known().traits.insert(list, all.clone());
    Ok(all)
}
