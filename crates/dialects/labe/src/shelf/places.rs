//! Positions and holders of the documents on a shelf.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::shelf::texts::Texts;

/// The position of a document, and its holders.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) start: u64,
    pub(crate) len: u32,
    /// Number of its list of institutions.
    pub(crate) holders: u32,
    /// Hash of the record's id, to find it when the record changes.
    pub(crate) id_hash: u32,
}

/// Documents, by the number of their work.
pub(crate) struct Base {
    /// The identity of its graph.
    pub(crate) graph: u64,
    pub(super) texts: Texts,
    /// Start of each DOI's places; one entry more than there are DOIs.
    pub(crate) starts: Vec<u32>,
    pub(crate) places: Vec<Place>,
    /// For each institution, which lists contain it.
    pub(crate) held: HashMap<String, Vec<bool>>,
    /// Number of works that were doubtful when it was built.
    pub(crate) n_doubtful: usize,
}

/// A shelf at a certain state of the catalogue.
pub(crate) struct Shelf {
    pub(crate) base: Arc<Base>,
    /// Works that must not be taken from the shelf.
    pub(crate) doubtful: HashSet<u32>,
    /// The sequence of each kind at that state.
    pub(crate) sequences: Vec<u64>,
}

impl Shelf {
    /// Returns the documents of a work, in the order of the maps; `None` if they must be read from the store.
    pub(crate) fn of_work(&self, number: u32) -> Option<&[Place]> {
        if !self.doubtful.is_empty() && self.doubtful.contains(&number) {
            return None;
        }
        let number = number as usize;
        let (start, end) = (*self.base.starts.get(number)?, *self.base.starts.get(number + 1)?);
        self.base.places.get(start as usize..end as usize)
    }

    /// Returns a document as it is sent; empty for a record without one.
    pub(crate) fn text(&self, place: &Place) -> &[u8] {
        self.base.texts.at(place.start, place.len)
    }

    /// Returns the holdings of an institution.
    pub(crate) fn held_by(&self, isil: &str) -> HeldLists<'_> {
        HeldLists(self.base.held.get(isil).map_or(&[], Vec::as_slice))
    }
}

/// The holdings of an institution, as the lists that contain it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldLists<'s>(&'s [bool]);

impl HeldLists<'_> {
    /// Says whether a document is held.
    pub(crate) fn has(self, place: &Place) -> bool {
        self.0.get(place.holders as usize).copied().unwrap_or(false)
    }
}
