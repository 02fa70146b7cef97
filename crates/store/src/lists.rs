//! Lists of what records say, in their own order: what stands around a place, and how many entries there are.
//!
//! A kind declares them ([`crate::Kind::lists`]). They are read out of the search index; without one, out of all bodies.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::Value as Json;

use crate::{Expr, Kind, Query, Result, StoreError, View, explain};

/// A list of what records say.
#[derive(Debug)]
pub struct Listing {
    /// Its name in the kind; another when `entries` gives something else for the same record.
    pub name: &'static str,
    /// Hands out what a record adds to it.
    pub entries: fn(&Json, &mut dyn FnMut(ListEntry)),
}

/// What a record adds to a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListEntry {
    /// What it is sorted by.
    pub key: String,
    /// What tells it from others with the same key, and sorts them.
    pub apart: String,
    /// What is gathered over the records that have it; empty for nothing.
    pub gathered: String,
}

/// A place in a list, and how much of it is wanted.
#[derive(Debug, Clone)]
pub struct ListPlace {
    /// Its key. Need not be in the list.
    pub key: String,
    /// Whether entries of this key belong to those behind the place.
    pub is_behind: bool,
    /// Entries before it.
    pub n_before: usize,
    /// Entries behind it.
    pub n_after: usize,
    /// Entries behind it that are passed over before those.
    pub n_skipped: u64,
}

/// An entry as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// See [`ListEntry::key`].
    pub key: String,
    /// See [`ListEntry::apart`].
    pub apart: String,
    /// See [`ListEntry::gathered`].
    pub gathered: BTreeSet<String>,
    /// Records that have it.
    pub n_records: u64,
    /// The id of one of them.
    pub record: String,
}

/// What stands around a place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Browsed {
    /// What stands before it, in order; one more than was asked for where there is more.
    pub before: Vec<Listed>,
    /// What stands behind it, likewise.
    pub after: Vec<Listed>,
    /// Entries in all.
    pub n_entries: u64,
}

/// Which entries are wanted.
pub struct Wanted<'w> {
    /// What `fits` says, in words: of equal words the meaning is equal. Empty when all are wanted.
    pub condition: &'w str,
    /// Whether an entry is, by its key and what tells it apart. Not asked when all are.
    pub fits: &'w mut dyn FnMut(&str, &str) -> bool,
}

impl Wanted<'_> {
    /// Whether an entry of these parts is wanted.
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
    /// What stands around a place of a list, of the entries that are wanted. Not for kinds whose records not everybody may see.
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

    /// The same out of all bodies.
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

/// The entries of a body, each once.
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

/// The nearest entries on both sides of a place, of any number that go by in any order.
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
                // One more than is wanted tells that there are more. What falls out has as many before it, and never
                // comes back.
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
    /// Whether a key lies behind the place.
    pub(crate) fn has_behind(&self, key: &str) -> bool {
        if self.is_behind { self.key.as_str() <= key } else { self.key.as_str() < key }
    }
}
