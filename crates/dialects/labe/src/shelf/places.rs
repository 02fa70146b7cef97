//! Where documents lie on a shelf, and whose they are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::shelf::texts::Texts;

/// Where a document lies, and whose it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) start: u64,
    pub(crate) len: u32,
    /// Its list of institutions.
    pub(crate) holders: u32,
    /// Of the record's id, to find it again when it changes.
    pub(crate) id_hash: u32,
}

/// Documents by the number of their work.
pub(crate) struct Base {
    /// The identity of its graph.
    pub(crate) graph: u64,
    pub(super) texts: Texts,
    /// Where the places of a DOI begin, one more than there are DOIs.
    pub(crate) starts: Vec<u32>,
    pub(crate) places: Vec<Place>,
    /// For each institution the lists that it is in.
    pub(crate) held: HashMap<String, Vec<bool>>,
    /// Works that were doubtful when it was made.
    pub(crate) n_doubtful: usize,
}

/// A shelf as it was at a moment of the catalogue.
pub(crate) struct Shelf {
    pub(crate) base: Arc<Base>,
    /// Works that are not to be taken from here.
    pub(crate) doubtful: HashSet<u32>,
    /// The sequence of each kind that it was made from.
    pub(crate) sequences: Vec<u64>,
}

impl Shelf {
    /// The documents of a work, in the order of the maps; `None` if the store must be asked.
    pub(crate) fn of_work(&self, number: u32) -> Option<&[Place]> {
        if !self.doubtful.is_empty() && self.doubtful.contains(&number) {
            return None;
        }
        let number = number as usize;
        let (start, end) = (*self.base.starts.get(number)?, *self.base.starts.get(number + 1)?);
        self.base.places.get(start as usize..end as usize)
    }

    /// A document as it is sent; empty for a record without one.
    pub(crate) fn text(&self, place: &Place) -> &[u8] {
        self.base.texts.at(place.start, place.len)
    }

    /// What an institution holds.
    pub(crate) fn held_by(&self, isil: &str) -> HeldLists<'_> {
        HeldLists(self.base.held.get(isil).map_or(&[], Vec::as_slice))
    }
}

/// What an institution holds, by lists of institutions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldLists<'s>(&'s [bool]);

impl HeldLists<'_> {
    /// Whether a document is held.
    pub(crate) fn has(self, place: &Place) -> bool {
        self.0.get(place.holders as usize).copied().unwrap_or(false)
    }
}
