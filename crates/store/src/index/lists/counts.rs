//! The number of entries of a list: from columns with a hash of each entry of a record, a column for the entries with the
//! same traits.
//!
//! The entries of a whole snapshot are counted once, where possible from those of an earlier one. Records changed since are
//! then told from it by looking up the hashes of their entries, so that a change does not cost another count.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::known::{Counted, Known, Tally};
use super::walk::{Lists, Part, Way};
use crate::index::entries::{hash_column, hash_of};
use crate::index::hashes::{Hashes, n_in_any};
use crate::index::set::Set;
use crate::index::values::each_value;
use crate::lists::Wanted;
use crate::{Result, View};

/// Number of counts by condition that are kept for a snapshot.
const REMEMBERED: usize = 100;

impl Lists<'_> {
    /// Counts the wanted entries that some record has, by the position of their traits.
    pub(super) fn counts(
        &self,
        view: &View<'_>,
        selected: &[bool],
        wanted: &mut Wanted<'_>,
    ) -> Result<Arc<Vec<u64>>> {
        let Wanted::Entries { condition, .. } = wanted else {
            let count = |(traits, is_selected): (usize, &bool)| match is_selected {
                true => self.count(view, traits),
                false => Ok(0),
            };
            return selected.iter().enumerate().map(count).collect::<Result<_>>().map(Arc::new);
        };
        let key = (self.number, (*condition).to_owned());
        let is_kept = self.is_current && !self.is_filtered;
        if is_kept && let Some(n) = self.known().selected.get(&key) {
            return Ok(n.clone());
        }
        let mut n = vec![0; self.traits.len()];
        self.walk(&[], Way::Forward, selected, |passing| {
            view.check_pace()?;
            let is_wanted = wanted.has(|| super::apart_of(&passing.group), &self.traits[passing.traits]);
            n[passing.traits] += u64::from(is_wanted && self.is_there(passing)?);
            Ok(true)
        })?;
        let n = Arc::new(n);
        if is_kept {
            let mut known = self.known();
            if REMEMBERED <= known.selected.len() {
                known.selected.clear();
            }
            known.selected.insert(key, n.clone());
        }
        Ok(n)
    }

    /// Counts the entries with traits, by their position.
    fn count(&self, view: &View<'_>, traits: usize) -> Result<u64> {
        let column = hash_column(self.number, &self.traits[traits]);
        let parts: Vec<&Part<'_>> = self.parts.iter().filter(|it| it.traits.contains(&traits)).collect();
        if self.is_filtered {
            let others = self.others.iter().filter(|it| it.traits == self.traits[traits]);
            let mut all = vec![Hashes::of(others.map(|it| hash_of(&it.group)).collect())];
            for part in &parts {
                all.push(part.hashes_of(&column, &part.within)?);
            }
            return Ok(n_in_any(all.iter().map(|it| Cow::Borrowed(it.distinct())).collect()));
        }
        let tally = self.tally(view, &parts, traits, &column)?;
        let taken = parts.iter().map(|it| it.hashes_of(&column, &it.changed)).collect::<Result<Vec<_>>>()?;
        let others = self.others.iter().filter(|it| it.traits == self.traits[traits]);
        let added: BTreeSet<i64> = others.map(|it| hash_of(&it.group)).collect();
        let mut changed: Vec<i64> = taken.iter().flat_map(Hashes::distinct).chain(&added).copied().collect();
        if changed.is_empty() {
            return Ok(tally.n_entries);
        }
        changed.sort_unstable();
        changed.dedup();
        let own = parts.iter().map(|it| it.hashes(&column)).collect::<Result<Vec<_>>>()?;
        let mut n = tally.n_entries;
        for hash in changed {
            let n_ever: u64 = own.iter().map(|it| u64::from(it.n_times(hash))).sum();
            let n_gone: u64 = tally.gone.iter().map(|it| u64::from(it.1.n_times(hash))).sum();
            let n_taken: u64 = taken.iter().map(|it| u64::from(it.n_times(hash))).sum();
            let n_before = n_ever - n_gone;
            let is_there = n_taken < n_before || added.contains(&hash);
            n = n + u64::from(is_there) - u64::from(n_before != 0);
        }
        Ok(n)
    }

    /// Counts the entries of the snapshot.
    fn tally(&self, view: &View<'_>, parts: &[&Part<'_>], traits: usize, column: &str) -> Result<Arc<Tally>> {
        let key = (self.number, self.traits[traits].clone());
        if let Some(tally) = self.known().tallies.get(&key) {
            return Ok(tally.clone());
        }
        let mut counted = Vec::new();
        for part in parts {
            view.check_pace()?;
            counted.push(Counted {
                segment: part.segment.reader().segment_id(),
                own: part.hashes(column)?,
                gone: part.hashes_of(column, &part.segment.alive()?.complement())?,
            });
        }
        view.check_pace()?;
        let earlier = self.known().earlier.get(&key).cloned();
        let n_entries = earlier
            .and_then(|it| it.n_entries_in(&counted))
            .unwrap_or_else(|| n_in_any(counted.iter().map(|it| it.own.without(&it.gone)).collect()));
        let gone = counted.into_iter().map(|it| (it.segment, it.gone)).collect();
        let tally = Arc::new(Tally { n_entries, gone });
        self.known().tallies.insert(key, tally.clone());
        Ok(tally)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.snapshot.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part<'_> {
    /// Returns the hashes of all documents, deleted ones included.
    fn hashes(&self, column: &str) -> Result<Arc<Hashes>> {
        self.segment.hashes(column, || {
            let column = self.segment.reader().fast_fields().column_opt::<i64>(column)?;
            Ok(Hashes::of(column.map(|it| it.values.iter().collect()).unwrap_or_default()))
        })
    }

    /// Returns the hashes of some documents.
    fn hashes_of(&self, column: &str, documents: &Set) -> Result<Hashes> {
        let mut values = Vec::new();
        if !documents.is_empty()
            && let Some(column) = self.segment.reader().fast_fields().column_opt::<i64>(column)?
        {
            each_value(&column, documents, |_, it| values.push(it));
        }
        Ok(Hashes::of(values))
    }
}
