//! What is known of the lists of a snapshot, which never changes.

use std::collections::HashMap;
use std::sync::Arc;

/// What is known of the lists of a snapshot, by their numbers.
#[derive(Debug, Default)]
pub(in crate::index) struct Known {
    /// The traits in each segment.
    pub(super) traits: HashMap<usize, Arc<Vec<Vec<String>>>>,
    /// The number of entries with each of all traits, in their order.
    pub(super) counts: HashMap<usize, Arc<Vec<u64>>>,
    /// The number of entries that satisfy a condition on each.
    pub(super) selected: HashMap<(usize, String), u64>,
}
