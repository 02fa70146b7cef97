//! Reading of a browsable list: the entries around a position, and the number of entries, from the search index or,
//! without one, from all bodies.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::Value as Json;

use crate::lists::{Browsed, Grouping, ListEntry, ListPlace, Listed, Wanted, entries_of};
use crate::{Expr, Kind, Path, Query, Result, StoreError, View, explain};

impl View<'_> {
    /// Returns the wanted entries around a position of a list, those of records that satisfy `of`. Not for kinds whose
    /// records only some users may see.
    ///
    /// Errors: the kind declares no such list.
    pub fn browse(
        &mut self,
        kind: &'static Kind,
        list: &str,
        of: &Expr,
        place: &ListPlace,
        mut wanted: Wanted<'_>,
    ) -> Result<Browsed> {
        let number = list_number(kind, list)?;
        if let Some(browsed) = crate::index::browse(self, kind, number, of, place, &mut wanted)? {
            explain::note(|| format!("{} list {list}: terms of the search index", kind.name));
            return Ok(browsed);
        }
        let browsed = self.browse_bodies(kind, number, of, place, &mut wanted);
        explain::note(|| format!("{} list {list}: all bodies read", kind.name));
        browsed
    }

    /// Reads the entries from all bodies instead.
    fn browse_bodies(
        &mut self,
        kind: &'static Kind,
        number: usize,
        of: &Expr,
        place: &ListPlace,
        wanted: &mut Wanted<'_>,
    ) -> Result<Browsed> {
        let mut window = Window::of(place);
        let mut known = BTreeSet::new();
        self.each_entry(kind, number, of, |entry, id, _| {
            if wanted.has_traits(&entry.traits) && wanted.has(|| entry.apart.clone(), &entry.traits) {
                known.insert(hash(&entry));
                window.add(entry, id);
            }
        })?;
        Ok(window.finish(known.len() as u64))
    }

    /// Returns the different traits of a list's wanted entries, each with the number of entries that have it, of records
    /// that satisfy `of`.
    ///
    /// Errors: the kind declares no such list.
    pub fn list_traits(
        &mut self,
        kind: &'static Kind,
        list: &str,
        of: &Expr,
        mut wanted: Wanted<'_>,
    ) -> Result<BTreeMap<String, u64>> {
        let number = list_number(kind, list)?;
        if let Some(counts) = crate::index::list_traits(self, kind, number, of, &mut wanted)? {
            explain::note(|| format!("{} list {list}: the search index", kind.name));
            return Ok(counts);
        }
        let mut counts: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        self.each_entry(kind, number, of, |entry, _, _| {
            if wanted.has_traits(&entry.traits) && wanted.has(|| entry.apart.clone(), &entry.traits) {
                let hash = hash(&entry);
                counts.entry(entry.traits).or_default().insert(hash);
            }
        })?;
        explain::note(|| format!("{} list {list}: all bodies read", kind.name));
        Ok(counts.into_iter().map(|(traits, known)| (traits, known.len() as u64)).collect())
    }

    /// Counts the wanted entries of a list by the texts at a path of the records that have them, of those that satisfy
    /// `of`: an entry counts once for each text. Not for kinds whose records only some users may see.
    ///
    /// Errors: the kind declares no such list; there are more different texts than a list answer may have rows.
    pub fn count_entries_by(
        &mut self,
        kind: &'static Kind,
        list: &str,
        of: &Expr,
        path: &Path,
        mut wanted: Wanted<'_>,
    ) -> Result<BTreeMap<String, u64>> {
        let number = list_number(kind, list)?;
        let by = Grouping { path, n_most: self.shared.limits.page_rows };
        if let Some(counts) = crate::index::count_entries_by(self, kind, number, of, by, &mut wanted)? {
            explain::note(|| format!("{} list {list}: the search index", kind.name));
            return Ok(counts);
        }
        let mut counts: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        self.each_entry(kind, number, of, |entry, _, body| {
            if wanted.has_traits(&entry.traits) && wanted.has(|| entry.apart.clone(), &entry.traits) {
                let hash = hash(&entry);
                for text in by.texts_of(body) {
                    counts.entry(text).or_default().insert(hash);
                }
            }
        })?;
        by.check(counts.len())?;
        explain::note(|| format!("{} list {list}: all bodies read", kind.name));
        Ok(counts.into_iter().map(|(text, known)| (text, known.len() as u64)).collect())
    }

    /// Passes the entries of the bodies that satisfy `of` to `visit`, with the id and the body of their record.
    fn each_entry(
        &mut self,
        kind: &'static Kind,
        list: usize,
        of: &Expr,
        mut visit: impl FnMut(ListEntry, &str, &Json),
    ) -> Result<()> {
        let entries = kind.lists[list].entries;
        self.for_each_body(kind, &Query::filter(of.clone()), |id, body| {
            entries_of(entries, &body).into_iter().for_each(|it| visit(it, id, &body));
            ControlFlow::Continue(())
        })
    }
}

fn list_number(kind: &Kind, list: &str) -> Result<usize> {
    let number = kind.lists.iter().position(|it| it.name == list);
    number.ok_or_else(|| StoreError::Query(format!("{} has no list {list:?}", kind.name)))
}

fn hash(entry: &ListEntry) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    (&entry.key, &entry.apart, &entry.traits).hash(&mut hasher);
    hasher.finish()
}

type Key = (String, String, String);

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
        match side.entry((entry.key.clone(), entry.apart.clone(), entry.traits.clone())) {
            Slot::Occupied(mut slot) => {
                let listed = slot.get_mut();
                listed.n_records += u64::from(listed.record != record);
                listed.gathered.extend(Some(entry.gathered).filter(|it| !it.is_empty()));
                record.clone_into(&mut listed.record);
            }
            Slot::Vacant(slot) => {
                let gathered = Some(entry.gathered).filter(|it| !it.is_empty()).into_iter().collect();
                let ListEntry { key, apart, traits, .. } = entry;
                slot.insert(Listed { key, apart, traits, gathered, n_records: 1, record: record.to_owned() });
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
