//! What is kept decoded of segments, which never change: the documents of frequent terms, as the same types, groups,
//! places and words are asked for again and again; the documents that are not deleted; and columns of whole numbers, by
//! which almost every list is narrowed or sorted.

use std::sync::Arc;

use tantivy::columnar::Column;
use tantivy::index::SegmentId;
use tantivy::schema::Field;

use super::codes::Codes;
use super::recent::{Recent, Room};
use super::set::Set;
use crate::Result;

/// A term is frequent if at least one in so many documents has it: then its set takes no more than two bytes for each.
const SHARE: u32 = 64;
/// Documents below which decoding them is as quick as copying a set.
const FREQUENT_DOCUMENTS_MIN: u32 = 4_096;
/// Documents below which looking a column's values up is as quick as decoding it.
const COLUMN_DOCUMENTS_MIN: u32 = 256;
/// The sets kept for a tenant.
const ROOM_FOR_SETS: Room = Room { n_bytes: 32 << 20, n_values: 1_024, n_looks: 0 };
/// The columns kept for a tenant.
const ROOM_FOR_COLUMNS: Room = Room { n_bytes: 32 << 20, n_values: 1_024, n_looks: 1_000 };

/// Sets and columns, decoded.
#[derive(Debug)]
pub(super) struct Decoded {
    sets: Recent<(SegmentId, What), Set>,
    columns: Recent<(SegmentId, String), Codes>,
}

/// What the documents of a set have in common.
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

impl Default for Decoded {
    fn default() -> Self {
        Self { sets: Recent::new(ROOM_FOR_SETS), columns: Recent::new(ROOM_FOR_COLUMNS) }
    }
}

impl Decoded {
    /// Returns whether a set of so many documents is worth keeping.
    pub(super) fn is_frequent(n_documents: u32, max_doc: u32) -> bool {
        FREQUENT_DOCUMENTS_MIN.max(max_doc / SHARE) <= n_documents
    }

    /// Returns a set of a segment's documents, decoding them if they are not kept.
    pub(super) fn set(
        &self,
        segment: SegmentId,
        what: What,
        decode: impl FnOnce() -> Result<Set>,
    ) -> Result<Arc<Set>> {
        let key = (segment, what);
        if let Some(set) = self.sets.get(&key) {
            return Ok(set);
        }
        let set = Arc::new(decode()?);
        self.sets.keep(key, set.clone());
        Ok(set)
    }

    /// Returns a column of a segment if it is kept.
    pub(super) fn kept_column(&self, segment: SegmentId, name: &str) -> Option<Arc<Codes>> {
        self.columns.get(&(segment, name.to_owned()))
    }

    /// Decodes a column of a segment, of which the values of `n_wanted` documents are needed, and keeps it. `None` if it is
    /// not worth it or too large, or if a document has several values.
    pub(super) fn column(
        &self,
        segment: SegmentId,
        name: &str,
        column: &Column<i64>,
        n_wanted: u64,
    ) -> Option<Arc<Codes>> {
        if n_wanted < u64::from(COLUMN_DOCUMENTS_MIN.max(column.num_docs() / SHARE))
            || !self.columns.has_room(Codes::n_bytes_at_most(column))
        {
            return None;
        }
        let codes = Arc::new(Codes::of(column)?);
        self.columns.keep((segment, name.to_owned()), codes.clone());
        Some(codes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: Field = Field::from_field_id(0);

    fn term(field: Field, term: &str) -> What {
        What::Term(field, term.into())
    }

    #[test]
    fn sets_are_decoded_once_and_kept_apart() {
        let decoded = Decoded::default();
        let (a, b) = (SegmentId::generate_random(), SegmentId::generate_random());
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
        for (doc, (segment, what)) in sets.iter().enumerate() {
            let doc = u32::try_from(doc).expect("fits");
            let set = decoded.set(*segment, what.clone(), of(doc)).expect("a set");
            assert!(set.has(doc) && set.len() == 1);
            let again = decoded.set(*segment, what.clone(), || panic!("decoded twice")).expect("a set");
            assert_eq!(again, set);
        }
        assert!(!Decoded::is_frequent(4_095, 5_000) && Decoded::is_frequent(4_096, 5_000));
        assert!(!Decoded::is_frequent(15_000, 1_000_000) && Decoded::is_frequent(16_000, 1_000_000));
    }
}
