//! The documents of frequent terms, decoded once: a segment's terms never change, and the same types, groups, places and
//! words are asked for again and again. Likewise the documents that are not deleted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::index::SegmentId;
use tantivy::schema::Field;

use super::set::Set;
use crate::Result;

/// A term is frequent if at least one in so many documents has it: then its set takes no more than two bytes for each.
const SHARE: u32 = 64;
/// Documents below which decoding them is as quick as copying a set.
const FEWEST: u32 = 4_096;
/// Size of the sets kept for a tenant, and their number.
const BYTES: usize = 32 << 20;
const SETS: usize = 1_024;

/// Sets of documents, the most recently used ones.
#[derive(Debug, Default)]
pub(super) struct Frequent(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    sets: HashMap<Key, Used>,
    n_bytes: usize,
    /// Number of look-ups so far.
    n_looks: u64,
}

/// A set of a segment's documents.
type Key = (SegmentId, What);

/// What its documents have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// A term of a field.
    Term(Field, Vec<u8>),
    /// They are not deleted. Deleted documents stay deleted, so their number tells which they are.
    Alive {
        /// Number of deleted documents.
        n_deleted: u32,
    },
}

#[derive(Debug)]
struct Used {
    set: Arc<Set>,
    /// The look-up that last used it.
    at: u64,
}

impl Frequent {
    /// Returns whether the set of a term is worth keeping.
    pub(super) fn is_frequent(n_documents: u32, max_doc: u32) -> bool {
        FEWEST.max(max_doc / SHARE) <= n_documents
    }

    /// Returns a set of a segment's documents, decoding them if they are not kept.
    pub(super) fn set(
        &self,
        segment: SegmentId,
        what: What,
        decode: impl FnOnce() -> Result<Set>,
    ) -> Result<Arc<Set>> {
        let key = (segment, what);
        {
            let mut kept = self.lock();
            kept.n_looks += 1;
            let now = kept.n_looks;
            if let Some(used) = kept.sets.get_mut(&key) {
                used.at = now;
                return Ok(used.set.clone());
            }
        }
        let set = Arc::new(decode()?);
        self.lock().keep(key, set.clone());
        Ok(set)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn keep(&mut self, key: Key, set: Arc<Set>) {
        let n_bytes = set.n_bytes();
        if BYTES < n_bytes {
            return;
        }
        while BYTES < self.n_bytes + n_bytes || SETS <= self.sets.len() {
            let oldest = self.sets.iter().min_by_key(|it| it.1.at).map(|it| it.0.clone());
            let Some(used) = oldest.and_then(|key| self.sets.remove(&key)) else { break };
            self.n_bytes -= used.set.n_bytes();
        }
        self.n_bytes += n_bytes;
        if let Some(before) = self.sets.insert(key, Used { set, at: self.n_looks }) {
            self.n_bytes -= before.set.n_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: Field = Field::from_field_id(0);

    fn term(field: Field, term: &str) -> What {
        What::Term(field, term.into())
    }

    fn segment() -> SegmentId {
        SegmentId::generate_random()
    }

    #[test]
    fn a_set_is_decoded_once_and_the_least_used_make_room() {
        let frequent = Frequent::default();
        let mut n_decoded = 0;
        // Each of these takes an eighth of what is kept.
        let max_doc = u32::try_from(BYTES).expect("fits");
        let segments: Vec<SegmentId> = (0..9).map(|_| segment()).collect();
        let mut look = |segment: usize| {
            let decode = || {
                n_decoded += 1;
                let mut set = Set::empty(max_doc);
                set.insert(u32::try_from(segment).expect("fits"));
                Ok(set)
            };
            let set = frequent.set(segments[segment], term(FIELD, "t"), decode).expect("a set");
            assert_eq!(set.iter().collect::<Vec<_>>(), [u32::try_from(segment).expect("fits")]);
            n_decoded
        };
        assert_eq!((0..8).map(&mut look).last(), Some(8));
        assert_eq!((0..8).map(&mut look).last(), Some(8), "all are kept");
        assert_eq!(look(8), 9);
        assert_eq!((1..9).map(&mut look).last(), Some(9), "only the oldest is gone");
        assert_eq!(look(0), 10);
        for _ in 0..2 * SETS {
            frequent.set(segment(), term(FIELD, "t"), || Ok(Set::empty(64))).expect("a set");
        }
        let kept = frequent.lock();
        assert_eq!(kept.sets.len(), SETS);
        assert!(kept.n_bytes <= BYTES, "{}", kept.n_bytes);
        assert_eq!(kept.n_bytes, kept.sets.values().map(|it| it.set.n_bytes()).sum::<usize>());
    }

    #[test]
    fn sets_are_kept_apart() {
        let frequent = Frequent::default();
        let (a, b) = (segment(), segment());
        let of = |doc: u32| {
            move || {
                let mut set = Set::empty(10);
                set.insert(doc);
                Ok(set)
            }
        };
        let other = Field::from_field_id(1);
        let sets = [
            (a, term(FIELD, "x")),
            (a, term(FIELD, "y")),
            (b, term(FIELD, "x")),
            (a, term(other, "x")),
            (a, What::Alive { n_deleted: 1 }),
            (a, What::Alive { n_deleted: 2 }),
        ];
        for (doc, (segment, what)) in sets.into_iter().enumerate() {
            let doc = u32::try_from(doc).expect("fits");
            for _ in 0..2 {
                let set = frequent.set(segment, what.clone(), of(doc)).expect("a set");
                assert!(set.has(doc) && set.len() == 1);
            }
        }
        assert!(!Frequent::is_frequent(4_095, 5_000) && Frequent::is_frequent(4_096, 5_000));
        assert!(!Frequent::is_frequent(15_000, 1_000_000) && Frequent::is_frequent(16_000, 1_000_000));
    }
}
