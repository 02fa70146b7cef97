//! Descriptions of metadata blocks that were read before. They are long (the languages alone are 8,000 values) and
//! seldom change, so each is read and parsed again only when Dataverse gives it another tag.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::description::Block;

/// Maximum number of descriptions that are kept: one for each block, and one for each collection with a form.
const KEPT_MAX: usize = 256;

/// A tenant, and Dataverse's path of a description.
type Place = (String, String);

/// A description with its tag.
#[derive(Clone)]
pub(crate) struct Kept {
    /// The tag that Dataverse gave it.
    pub(crate) tag: String,
    /// The blocks.
    pub(crate) blocks: Arc<[Block]>,
}

/// The descriptions that are kept.
#[derive(Clone, Default)]
pub(crate) struct Descriptions(Arc<Mutex<HashMap<Place, Kept>>>);

impl Descriptions {
    /// Returns a description that was kept.
    pub(crate) fn get(&self, place: &Place) -> Option<Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
    }

    /// Keeps a description, if it has a tag by which it can be compared.
    pub(crate) fn keep(&self, place: Place, description: Kept) {
        if description.tag.is_empty() {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if KEPT_MAX <= kept.len() && !kept.contains_key(&place) {
            kept.clear();
        }
        kept.insert(place, description);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let descriptions = Descriptions::default();
        let place = |number: usize| ("default".to_owned(), format!("/{number}"));
        let tagged = |tag: &str| Kept { tag: tag.to_owned(), blocks: Arc::default() };
        descriptions.keep(place(0), tagged(""));
        assert!(descriptions.get(&place(0)).is_none());
        (0..KEPT_MAX).for_each(|it| descriptions.keep(place(it), tagged("a")));
        descriptions.keep(place(0), tagged("b"));
        assert_eq!(descriptions.get(&place(0)).map(|it| it.tag), Some("b".to_owned()));
        assert!(descriptions.get(&place(KEPT_MAX - 1)).is_some());
        descriptions.keep(place(KEPT_MAX), tagged("a"));
        assert!(descriptions.get(&place(0)).is_none() && descriptions.get(&place(KEPT_MAX)).is_some());
    }
}
