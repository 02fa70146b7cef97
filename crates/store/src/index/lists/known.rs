//! What is known of the lists of a snapshot, which never changes.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::index::SegmentId;

use crate::index::hashes::Hashes;

/// An earlier count is brought up to date when at most one in so many hashes may have changed since.
const CHANGED_SHARE: usize = 16;

/// What is known of the lists of a snapshot, by their numbers.
#[derive(Debug, Default)]
pub(in crate::index) struct Known {
    /// The traits in each segment.
    pub(super) traits: HashMap<usize, Arc<Vec<Vec<String>>>>,
    /// The entries with each traits.
    pub(in crate::index) tallies: HashMap<(usize, String), Arc<Tally>>,
    /// Those of earlier snapshots.
    pub(super) earlier: HashMap<(usize, String), Arc<Tally>>,
    /// The number of entries that satisfy a condition on each, by the position of their traits.
    pub(super) selected: HashMap<(usize, String), Arc<Vec<u64>>>,
}

impl Known {
    /// Returns what is known of the next snapshot of the index.
    pub(in crate::index) fn of_next(&self) -> Self {
        let mut earlier = self.earlier.clone();
        earlier.extend(self.tallies.iter().map(|(key, tally)| (key.clone(), tally.clone())));
        Self { earlier, ..Self::default() }
    }
}

/// The entries of a snapshot that have the same traits.
#[derive(Debug)]
pub(in crate::index) struct Tally {
    pub(super) n_entries: u64,
    /// Those of deleted documents, for each segment with such entries.
    pub(super) gone: Vec<(SegmentId, Hashes)>,
}

/// The entries of a segment that have the same traits.
pub(super) struct Counted {
    pub(super) segment: SegmentId,
    /// Those of all documents.
    pub(super) own: Arc<Hashes>,
    /// Those of deleted documents.
    pub(super) gone: Hashes,
}

impl Tally {
    /// Returns the number of entries in a later snapshot, counted from this one; `None` where counting them anew is quicker,
    /// or segments have been merged.
    pub(super) fn n_entries_in(&self, later: &[Counted]) -> Option<u64> {
        if !self.gone.iter().all(|(segment, _)| later.iter().any(|it| it.segment == *segment)) {
            return None;
        }
        let before = |it: &Counted| self.gone.iter().find(|gone| gone.0 == it.segment).map(|gone| &gone.1);
        let mut changed: Vec<i64> = Vec::new();
        for it in later {
            match before(it) {
                None => changed.extend(it.own.distinct()),
                Some(gone) => changed.extend(
                    it.gone.distinct().iter().filter(|hash| gone.n_times(**hash) != it.gone.n_times(**hash)),
                ),
            }
        }
        let n_hashes: usize = later.iter().map(|it| it.own.distinct().len()).sum();
        if n_hashes / CHANGED_SHARE < changed.len() {
            return None;
        }
        changed.sort_unstable();
        changed.dedup();
        let mut n = self.n_entries;
        for hash in changed {
            let (mut was_there, mut is_there) = (false, false);
            for it in later {
                let n_times = it.own.n_times(hash);
                is_there |= it.gone.n_times(hash) < n_times;
                was_there |= before(it).is_some_and(|gone| gone.n_times(hash) < n_times);
            }
            n = n + u64::from(is_there) - u64::from(was_there);
        }
        Some(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::hashes::n_in_any;
    use proptest::prelude::*;

    fn n_entries(of: &[Counted]) -> u64 {
        n_in_any(of.iter().map(|it| it.own.without(&it.gone)).collect())
    }

    /// Counts entries, of which so many of the first are of deleted documents.
    fn counted(segment: SegmentId, entries: &[i64], n_gone: usize) -> Counted {
        let gone = Hashes::of(entries[..n_gone.min(entries.len())].to_vec());
        Counted { segment, own: Arc::new(Hashes::of(entries.to_vec())), gone }
    }

    proptest! {
        #[test]
        fn a_count_is_brought_up_to_date(
            segments in prop::collection::vec(
                (prop::collection::vec(0..400_i64, 0..300), 0..20_usize, 0..4_usize), 1..4,
            ),
            added in prop::collection::vec(prop::collection::vec(0..400_i64, 0..8), 0..3),
        ) {
            let ids: Vec<SegmentId> = segments.iter().map(|_| SegmentId::generate_random()).collect();
            let old: Vec<Counted> =
                segments.iter().zip(&ids).map(|(it, id)| counted(*id, &it.0, it.1)).collect();
            let gone = old.iter().map(|it| (it.segment, it.gone.clone())).collect();
            let tally = Tally { n_entries: n_entries(&old), gone };
            let mut later: Vec<Counted> =
                segments.iter().zip(&ids).map(|(it, id)| counted(*id, &it.0, it.1 + it.2)).collect();
            later.extend(added.iter().map(|it| counted(SegmentId::generate_random(), it, 1)));
            later.reverse();
            if let Some(n) = tally.n_entries_in(&later) {
                prop_assert_eq!(n, n_entries(&later));
            }
        }
    }

    #[test]
    fn a_count_is_made_anew_after_merges_and_many_changes() {
        let (a, b) = (SegmentId::generate_random(), SegmentId::generate_random());
        let old = counted(a, &(0..100).collect::<Vec<_>>(), 3);
        let tally =
            Tally { n_entries: n_entries(std::slice::from_ref(&old)), gone: vec![(a, old.gone.clone())] };
        let few = [old, counted(b, &[1, 200], 0)];
        assert_eq!(tally.n_entries, 97);
        assert_eq!(tally.n_entries_in(&few), Some(99));
        assert_eq!(tally.n_entries_in(&few[1..]), None);
        let [old, _] = few;
        assert_eq!(tally.n_entries_in(&[old, counted(b, &(0..9).collect::<Vec<_>>(), 0)]), None);
    }
}
