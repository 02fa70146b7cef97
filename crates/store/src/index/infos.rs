//! Where the documents of a term are: kept for terms that were looked up, as a look-up decodes a block of the dictionary.

use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};
use tantivy::index::SegmentId;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;

/// A segment of a tenant, which has a number.
pub(super) type Place = (u64, SegmentId);

/// Size of an entry besides the term, in bytes.
const ENTRY_BYTES: usize = 160;

/// Terms that were looked up, each in a segment, which never changes.
pub(super) struct Infos {
    kept: Cache<Key, Option<TermInfo>, ByBytes>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    place: Place,
    field: Field,
    term: Box<[u8]>,
}

/// A [`Key`] that owns nothing, with the same hash.
#[derive(Hash)]
struct KeyRef<'k> {
    place: Place,
    field: Field,
    term: &'k [u8],
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        (self.place, self.field, self.term) == (key.place, key.field, &*key.term)
    }
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Key, Option<TermInfo>> for ByBytes {
    fn weight(&self, key: &Key, _: &Option<TermInfo>) -> u64 {
        (ENTRY_BYTES + key.term.len()) as u64
    }
}

impl Infos {
    pub(super) fn within(n_bytes: usize) -> Self {
        Self { kept: Cache::with_weighter(n_bytes / (2 * ENTRY_BYTES), n_bytes as u64, ByBytes) }
    }

    /// Returns where the documents of a term are, `None` if no document has it; looks it up if that is not known.
    pub(super) fn get<E>(
        &self,
        place: Place,
        field: Field,
        term: &[u8],
        look_up: impl FnOnce() -> Result<Option<TermInfo>, E>,
    ) -> Result<Option<TermInfo>, E> {
        if let Some(info) = self.kept.get(&KeyRef { place, field, term }) {
            return Ok(info);
        }
        let info = look_up()?;
        self.kept.insert(Key { place, field, term: term.into() }, info.clone());
        Ok(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_looked_up_once_in_each_field_of_each_segment() {
        let infos = Infos::within(1 << 20);
        let (a, b) = ((0, SegmentId::generate_random()), (1, SegmentId::generate_random()));
        let (x, y) = (Field::from_field_id(0), Field::from_field_id(1));
        let info = |n: u32| TermInfo { doc_freq: n, ..TermInfo::default() };
        let asked: [(Place, Field, &[u8], Option<TermInfo>); 5] = [
            (a, x, b"s", Some(info(1))),
            (a, x, b"t", None),
            (a, y, b"s", Some(info(2))),
            (b, x, b"s", Some(info(3))),
            (b, x, b"", Some(info(4))),
        ];
        for (place, field, term, info) in &asked {
            let found = infos.get(*place, *field, term, || Ok::<_, ()>(info.clone()));
            assert_eq!(found.as_ref(), Ok(info));
        }
        for (place, field, term, info) in &asked {
            let found = infos.get(*place, *field, term, || Err("looked up twice"));
            assert_eq!(found.as_ref(), Ok(info));
        }
        assert_eq!(infos.get(b, y, b"s", || Err("damaged")), Err("damaged"));
        assert_eq!(infos.get(b, y, b"s", || Ok::<_, ()>(None)), Ok(None), "a failure is not kept");
    }
}
