//! What is kept decoded of segments, which never change: the documents of frequent terms, and where those of others are,
//! as the same types, groups, places and words are asked for again and again; the documents that are not deleted; columns
//! of whole numbers, by which almost every list is narrowed or sorted, and the documents in their order; and the sorted
//! hashes by which entries of browse lists are counted, or records are joined.
//!
//! There is room for all tenants of a process together, a share of its memory: a tenant that is asked most has most of it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use tantivy::columnar::Column;
use tantivy::index::SegmentId;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;

use super::ascending::Ascending;
use super::codes::Codes;
use super::hashes::Hashes;
use super::infos::{Infos, Place};
use super::join_column::JoinColumn;
use super::recent::{Recent, Room};
use super::set::Set;
use crate::Result;
use crate::memory::limit_bytes;

/// A term is frequent if at least one in so many documents has it: then its set takes no more than two bytes for each.
const SHARE: u32 = 64;
/// Documents below which decoding them is as quick as copying a set.
const FREQUENT_DOCUMENTS_MIN: u32 = 4_096;
/// Documents below which looking a column's values up is as quick as decoding it.
const COLUMN_DOCUMENTS_MIN: u32 = 256;
/// The sets, the columns, the orders, the hashes, the joins and the terms each take at most one part in so many of the
/// process's memory.
const SHARE_OF_MEMORY: u64 = 96;
/// What each may take in any case: the share of a small machine would hold no column of a million values.
const BYTES_MIN: u64 = 32 << 20;
/// Number of sets that are kept, and likewise of columns, of orders, of hashes and of joins.
const VALUES: usize = 4_096;
/// Number of look-ups after which a column or an order that they did not ask for makes room for another.
const COLUMN_LOOKS: u64 = 1_000;

/// Sets, columns, orders, hashes, joins and terms, decoded.
pub(super) struct Decoded {
    /// Number of the tenant. Files may be copies of each other's: then their segments have the same ids, but not the same
    /// deleted documents.
    tenant: u64,
    kept: Arc<Kept>,
}

struct Kept {
    sets: Recent<(Place, What), Set>,
    columns: Recent<(Place, String), Codes>,
    orders: Recent<(Place, String), Ascending>,
    hashes: Recent<(Place, String), Hashes>,
    joins: Recent<(Place, String), JoinColumn>,
    infos: Infos,
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

static KEPT: LazyLock<Arc<Kept>> =
    LazyLock::new(|| Arc::new(Kept::within(n_bytes_of(limit_bytes().unwrap_or(0)))));
/// Number of tenants so far.
static TENANTS: AtomicU64 = AtomicU64::new(0);

/// Returns how much is kept of each where the process may use so much memory.
fn n_bytes_of(memory_bytes: u64) -> usize {
    usize::try_from(BYTES_MIN.max(memory_bytes / SHARE_OF_MEMORY)).unwrap_or(usize::MAX)
}

impl Kept {
    fn within(n_bytes: usize) -> Self {
        let room = Room { n_bytes, n_values: VALUES, n_looks: 0 };
        Self {
            sets: Recent::new(room),
            columns: Recent::new(Room { n_looks: COLUMN_LOOKS, ..room }),
            orders: Recent::new(Room { n_looks: COLUMN_LOOKS, ..room }),
            hashes: Recent::new(room),
            joins: Recent::new(room),
            infos: Infos::within(n_bytes),
        }
    }
}

impl Decoded {
    /// Returns what is kept of another tenant: nothing yet.
    pub(super) fn of_tenant() -> Self {
        Self::in_kept(KEPT.clone())
    }

    fn in_kept(kept: Arc<Kept>) -> Self {
        Self { tenant: TENANTS.fetch_add(1, Ordering::Relaxed), kept }
    }

    /// Lets go of what is kept of segments that are no longer in use.
    pub(super) fn forget(&self, segments: &HashSet<SegmentId>) {
        let is_meant = |place: &Place| place.0 == self.tenant && segments.contains(&place.1);
        self.kept.sets.forget(|(place, _)| is_meant(place));
        self.kept.columns.forget(|(place, _)| is_meant(place));
        self.kept.orders.forget(|(place, _)| is_meant(place));
        self.kept.hashes.forget(|(place, _)| is_meant(place));
        self.kept.joins.forget(|(place, _)| is_meant(place));
    }

    /// Returns whether a set of so many documents is worth keeping.
    pub(super) fn is_frequent(n_documents: u32, max_doc: u32) -> bool {
        FREQUENT_DOCUMENTS_MIN.max(max_doc / SHARE) <= n_documents
    }

    /// Returns where the documents of a term of a segment's field are, `None` if no document has it; looks it up if that is
    /// not kept.
    pub(super) fn info(
        &self,
        segment: SegmentId,
        field: Field,
        term: &[u8],
        look_up: impl FnOnce() -> Result<Option<TermInfo>>,
    ) -> Result<Option<TermInfo>> {
        self.kept.infos.get((self.tenant, segment), field, term, look_up)
    }

    /// Returns a set of a segment's documents, decoding them if they are not kept.
    pub(super) fn set(
        &self,
        segment: SegmentId,
        what: What,
        decode: impl FnOnce() -> Result<Set>,
    ) -> Result<Arc<Set>> {
        self.kept.sets.get_or_make(((self.tenant, segment), what), decode)
    }

    /// Returns the sorted hashes of a column of list entries, reading and sorting them if they are not kept.
    pub(super) fn hashes(
        &self,
        segment: SegmentId,
        column: &str,
        read: impl FnOnce() -> Result<Hashes>,
    ) -> Result<Arc<Hashes>> {
        self.kept.hashes.get_or_make(((self.tenant, segment), column.to_owned()), read)
    }

    /// Returns a column by which records are joined, reading and sorting it if it is not kept.
    pub(super) fn join(
        &self,
        segment: SegmentId,
        column: &str,
        read: impl FnOnce() -> Result<JoinColumn>,
    ) -> Result<Arc<JoinColumn>> {
        self.kept.joins.get_or_make(((self.tenant, segment), column.to_owned()), read)
    }

    /// Returns a column of a segment if it is kept.
    pub(super) fn kept_column(&self, segment: SegmentId, name: &str) -> Option<Arc<Codes>> {
        self.kept.columns.get(&((self.tenant, segment), name.to_owned()))
    }

    /// Returns a segment's documents, so many, in the order of a column, sorting them if that is not kept; `None` if there
    /// is no room for it.
    pub(super) fn ascending(
        &self,
        segment: SegmentId,
        name: &str,
        n_docs: u32,
        sort: impl FnOnce() -> Result<Ascending>,
    ) -> Result<Option<Arc<Ascending>>> {
        let key = ((self.tenant, segment), name.to_owned());
        if let Some(kept) = self.kept.orders.get(&key) {
            return Ok(Some(kept));
        }
        if !self.kept.orders.has_room(Ascending::n_bytes_of(n_docs)) {
            return Ok(None);
        }
        let sorted = Arc::new(sort()?);
        self.kept.orders.keep(key, sorted.clone());
        Ok(Some(sorted))
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
            || !self.kept.columns.has_room(Codes::n_bytes_at_most(column))
        {
            return None;
        }
        let codes = Arc::new(Codes::of(column)?);
        self.kept.columns.keep(((self.tenant, segment), name.to_owned()), codes.clone());
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
        let kept = Arc::new(Kept::within(1 << 20));
        let decoded = Decoded::in_kept(kept.clone());
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
        let copy = Decoded::in_kept(kept);
        let other = copy.set(a, term(FIELD, "x"), of(9)).expect("a set");
        assert!(other.has(9) && !other.has(0), "a tenant whose file is a copy has sets of its own");
        copy.forget(&HashSet::from([b]));
        decoded.forget(&HashSet::from([a]));
        for (doc, (segment, what)) in sets.iter().enumerate() {
            let (mut is_decoded, doc) = (false, u32::try_from(doc).expect("fits"));
            let decode = || {
                is_decoded = true;
                of(doc)()
            };
            decoded.set(*segment, what.clone(), decode).expect("a set");
            assert_eq!(is_decoded, *segment == a, "{what:?}");
        }
    }

    #[test]
    fn bounds_are_those_of_the_memory_and_of_the_segment() {
        assert_eq!([0, 1 << 30, 20 << 30].map(n_bytes_of), [32 << 20, 32 << 20, (20 << 30) / 96]);
        assert!(!Decoded::is_frequent(4_095, 5_000) && Decoded::is_frequent(4_096, 5_000));
        assert!(!Decoded::is_frequent(15_000, 1_000_000) && Decoded::is_frequent(16_000, 1_000_000));
    }
}
