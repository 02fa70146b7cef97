//! The number of entries of a list: from columns with a hash of each entry of a record, a column for the entries with the
//! same traits.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::known::Known;
use super::walk::{Lists, Part, Way};
use crate::index::entries::{hash_column, hash_of};
use crate::index::values::each_value;
use crate::lists::Wanted;
use crate::{Result, View};

/// Number of counts by condition that are kept for a snapshot.
const REMEMBERED: usize = 100;

impl Lists<'_> {
    /// Counts the wanted entries that some record has.
    pub(super) fn n_entries(
        &self,
        view: &View<'_>,
        selected: &[bool],
        wanted: &mut Wanted<'_>,
    ) -> Result<u64> {
        let Wanted::Entries { condition, .. } = wanted else {
            let counts = self.counts(view)?;
            return Ok(counts.iter().zip(selected).filter(|it| *it.1).map(|it| *it.0).sum());
        };
        let key = (self.number, (*condition).to_owned());
        if self.is_current
            && let Some(n) = self.known().selected.get(&key)
        {
            return Ok(*n);
        }
        let mut n = 0;
        self.walk(&[], Way::Forward, selected, |passing| {
            view.check_pace()?;
            let is_wanted = wanted.has(|| super::apart_of(&passing.group), &self.traits[passing.traits]);
            n += u64::from(is_wanted && self.is_there(passing)?);
            Ok(true)
        })?;
        if self.is_current {
            let mut known = self.known();
            if REMEMBERED <= known.selected.len() {
                known.selected.clear();
            }
            known.selected.insert(key, n);
        }
        Ok(n)
    }

    /// Counts the entries with each of all traits.
    pub(super) fn counts(&self, view: &View<'_>) -> Result<Arc<Vec<u64>>> {
        if self.is_current
            && let Some(counts) = self.known().counts.get(&self.number)
        {
            return Ok(counts.clone());
        }
        let mut hashes: Vec<Vec<i64>> = vec![Vec::new(); self.traits.len()];
        for other in &self.others {
            if let Ok(at) = self.traits.binary_search(&other.traits) {
                hashes[at].push(hash_of(&other.group));
            }
        }
        for part in &self.parts {
            for traits in &part.traits {
                view.check_pace()?;
                part.add_hashes(&hash_column(self.number, &self.traits[*traits]), &mut hashes[*traits])?;
            }
        }
        let mut counts = Vec::with_capacity(hashes.len());
        for mut hashes in hashes {
            view.check_pace()?;
            hashes.sort_unstable();
            hashes.dedup();
            counts.push(hashes.len() as u64);
        }
        let counts = Arc::new(counts);
        if self.is_current {
            self.known().counts.insert(self.number, counts.clone());
        }
        Ok(counts)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.snapshot.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part<'_> {
    fn add_hashes(&self, column: &str, hashes: &mut Vec<i64>) -> Result<()> {
        let Some(column) = self.segment.reader().fast_fields().column_opt::<i64>(column)? else {
            return Ok(());
        };
        if self.is_whole {
            hashes.extend(column.values.iter());
        } else {
            each_value(&column, &self.within, |_, it| hashes.push(it));
        }
        Ok(())
    }
}
