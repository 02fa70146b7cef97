//! Browsable lists of values from records, in their own order: the entries around a position, and the number of
//! entries.
//!
//! A kind declares them ([`crate::Kind::lists`]). They are read from the search index or, without one, from all bodies.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::Value as Json;

use crate::{Expr, Kind, Query, Result, StoreError, View, explain};

/// A browsable list of values from records.
#[derive(Debug)]
pub struct Listing {
    /// Its name in the kind; must change when `entries` yields something else for the same record.
    pub name: &'static str,
    /// Passes on the entries that a record adds to the list.
    pub entries: fn(&Json, &mut dyn FnMut(ListEntry)),
}

/// An entry that a record adds to a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListEntry {
    /// The sort key.
    pub key: String,
    /// Distinguishes and sorts entries with the same key.
    pub apart: String,
    /// Collected over the records that have the entry; empty for nothing.
    pub gathered: String,
}

/// A position in a list, and how many entries around it are wanted.
#[derive(Debug, Clone)]
pub struct ListPlace {
    /// The key of the position. Need not be in the list.
    pub key: String,
    /// Whether entries with this key count as behind the position.
    pub is_behind: bool,
    /// Number of entries wanted before it.
    pub n_before: usize,
    /// Number of entries wanted behind it.
    pub n_after: usize,
    /// Number of entries behind it to skip first.
    pub n_skipped: u64,
}

/// An entry as found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// See [`ListEntry::key`].
    pub key: String,
    /// See [`ListEntry::apart`].
    pub apart: String,
    /// See [`ListEntry::gathered`].
    pub gathered: BTreeSet<String>,
    /// Number of records that have it.
    pub n_records: u64,
    /// The id of one of them.
    pub record: String,
}

/// The entries around a position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Browsed {
    /// The entries before it, in order; one more than was asked for if there are more.
    pub before: Vec<Listed>,
    /// The entries behind it, likewise.
    pub after: Vec<Listed>,
    /// Total number of entries.
    pub n_entries: u64,
}

/// A filter on entries.
pub struct Wanted<'w> {
    /// A text that identifies `fits`: equal texts mean equal filters. Empty when all entries are wanted.
    pub condition: &'w str,
    /// Returns whether an entry is wanted, by its key and its distinguishing part. Not called when all are.
    pub fits: &'w mut dyn FnMut(&str, &str) -> bool,
}

impl Wanted<'_> {
    /// Returns whether an entry with these parts is wanted.
    pub(crate) fn has(&mut self, parts: impl FnOnce() -> Vec<String>) -> bool {
        if self.condition.is_empty() {
            return true;
        }
        let parts = parts();
        let part = |at: usize| parts.get(at).map_or("", |it| it.as_str());
        (self.fits)(part(0), part(1))
    }
}

impl View<'_> {
    /// Returns the wanted entries around a position of a list. Not for kinds whose records only some users may see.
    ///
    /// Errors: the kind declares no such list.
    pub fn browse(
        &mut self,
        kind: &'static Kind,
        list: &str,
        place: &ListPlace,
        mut wanted: Wanted<'_>,
    ) -> Result<Browsed> {
        let Some(number) = kind.lists.iter().position(|it| it.name == list) else {
            return Err(StoreError::Query(format!("{} has no list {list:?}", kind.name)));
        };
        if let Some(browsed) = crate::index::browse(self, kind, number, place, &mut wanted)? {
            explain::note(|| format!("{} list {list}: terms of the search index", kind.name));
            return Ok(browsed);
        }
        let browsed = self.browse_bodies(kind, number, place, &mut wanted);
        explain::note(|| format!("{} list {list}: all bodies read", kind.name));
        browsed
    }

    /// Reads the entries from all bodies instead.
    fn browse_bodies(
        &mut self,
        kind: &'static Kind,
        number: usize,
        place: &ListPlace,
        wanted: &mut Wanted<'_>,
    ) -> Result<Browsed> {
        let mut window = Window::of(place);
        let mut known = BTreeSet::new();
        let entries = kind.lists[number].entries;
        self.for_each_body(kind, &Query::filter(Expr::All), |id, body| {
            for entry in entries_of(entries, &body) {
                if wanted.has(|| vec![entry.key.clone(), entry.apart.clone()]) {
                    known.insert(hash(&entry));
                    window.add(entry, id);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(window.finish(known.len() as u64))
    }
}

/// Returns the entries of a body, each once.
pub(crate) fn entries_of(entries: fn(&Json, &mut dyn FnMut(ListEntry)), body: &Json) -> BTreeSet<ListEntry> {
    let mut set = BTreeSet::new();
    entries(body, &mut |entry| {
        set.insert(entry);
    });
    set
}

fn hash(entry: &ListEntry) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    (&entry.key, &entry.apart).hash(&mut hasher);
    hasher.finish()
}

type Key = (String, String);

/// The nearest entries on both sides of a position, out of any number seen in any order.
struct Window<'p> {
    place: &'p ListPlace,
    before: BTreeMap<Key, Listed>,
    after: BTreeMap<Key, Listed>,
}

impl<'p> Window<'p> {
    fn of(place: &'p ListPlace) -> Self {
        Self { place, before: BTreeMap::new(), after: BTreeMap::new() }
    }

    fn add(&mut self, entry: ListEntry, record: &str) {
        let is_after = self.place.has_behind(&entry.key);
        let n_skipped = usize::try_from(self.place.n_skipped).unwrap_or(usize::MAX);
        let (side, n_most) = match is_after {
            true if self.place.n_after == 0 => return,
            true => (&mut self.after, self.place.n_after.saturating_add(n_skipped)),
            false => (&mut self.before, self.place.n_before),
        };
        if n_most == 0 {
            return;
        }
        match side.entry((entry.key.clone(), entry.apart.clone())) {
            Slot::Occupied(mut slot) => {
                let listed = slot.get_mut();
                listed.n_records += u64::from(listed.record != record);
                listed.gathered.extend(Some(entry.gathered).filter(|it| !it.is_empty()));
                record.clone_into(&mut listed.record);
            }
            Slot::Vacant(slot) => {
                let gathered = Some(entry.gathered).filter(|it| !it.is_empty()).into_iter().collect();
                let (key, apart) = (entry.key, entry.apart);
                slot.insert(Listed { key, apart, gathered, n_records: 1, record: record.to_owned() });
                // One entry more than wanted shows that there are more. An entry that is dropped has that many before
                // it and is never needed again.
                if n_most.saturating_add(1) < side.len() {
                    _ = if is_after { side.pop_last() } else { side.pop_first() };
                }
            }
        }
    }

    fn finish(self, n_entries: u64) -> Browsed {
        let n_skipped = usize::try_from(self.place.n_skipped).unwrap_or(usize::MAX);
        Browsed {
            before: self.before.into_values().collect(),
            after: self.after.into_values().skip(n_skipped).collect(),
            n_entries,
        }
    }
}

impl ListPlace {
    /// Returns whether a key lies behind the position.
    pub(crate) fn has_behind(&self, key: &str) -> bool {
        if self.is_behind { self.key.as_str() <= key } else { self.key.as_str() < key }
    }
}
