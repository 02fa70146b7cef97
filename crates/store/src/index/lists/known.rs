//! What is known of the lists of a snapshot, which never changes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::index::hashes::Hashes;

/// What is known of the lists of a snapshot, by their numbers.
#[derive(Debug, Default)]
pub(in crate::index) struct Known {
    /// The traits in each segment.
    pub(super) traits: HashMap<usize, Arc<Vec<Vec<String>>>>,
    /// The entries with each traits.
    pub(super) tallies: HashMap<(usize, String), Arc<Tally>>,
    /// The number of entries that satisfy a condition on each.
    pub(super) selected: HashMap<(usize, String), u64>,
}

/// The entries of a snapshot that have the same traits.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) n_entries: u64,
    /// Those of deleted documents, for each segment with such entries.
    pub(super) gone: Vec<Hashes>,
}
