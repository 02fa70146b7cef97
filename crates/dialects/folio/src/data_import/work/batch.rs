//! A batch: records that are stored in one transaction, or in several if others wait for the writer meanwhile.

use std::sync::Arc;

use crate::data_import::engine::Prepared;

/// Records ready for a transaction.
#[derive(Clone)]
pub(super) struct Batch {
    pub(super) records: Arc<Vec<Prepared>>,
    /// Position of the first record that is not stored yet.
    pub(super) first: usize,
    /// Number of records of the job before the batch.
    pub(super) from_order: u64,
    /// Byte offset in the file at which the next batch begins.
    pub(super) next_at: u64,
    pub(super) is_last: bool,
    /// The chunk of the records, how many of its records are done after the batch, and whether that is all.
    pub(super) chunk: Option<(String, u64, bool)>,
}

impl Batch {
    /// Returns the records that are not stored yet.
    pub(super) fn records(&self) -> &[Prepared] {
        self.records.get(self.first..).unwrap_or_default()
    }

    /// Returns the batch limited to its first `n` records, which were stored.
    pub(super) fn up_to(&self, n: usize) -> Self {
        let Some(next) = self.records().get(n) else { return self.clone() };
        let n_left = (self.records().len() - n) as u64;
        let chunk = self.chunk.clone().map(|(id, n_done, _)| (id, n_done - n_left, false));
        Self { next_at: next.incoming.offset, is_last: false, chunk, ..self.clone() }
    }

    /// Returns what is left of the batch once its first `n` records are stored.
    pub(super) fn after(&self, n: usize) -> Option<Self> {
        let is_left = n < self.records().len();
        is_left.then(|| Self {
            first: self.first + n,
            from_order: self.from_order + n as u64,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::data_import::incoming::{Coding, Incoming};

    fn prepared(order: u64) -> Prepared {
        let incoming =
            Incoming { offset: order * 100, ..Incoming::sent(Coding::Other("none"), Bytes::new(), order) };
        let (title, record_id, external_id) = (String::new(), order.to_string(), String::new());
        Prepared { incoming, title, record_id, external_id, authority: None }
    }

    fn batch(chunk: Option<(String, u64, bool)>) -> Batch {
        let records = Arc::new((10..20).map(prepared).collect());
        let is_last = chunk.is_none();
        Batch { records, first: 0, from_order: 10, next_at: 2_000, is_last, chunk }
    }

    #[test]
    fn a_batch_that_ends_early_leaves_the_rest() {
        let whole = batch(None);
        let part = whole.up_to(4);
        assert_eq!((part.next_at, part.is_last), (1_400, false));
        let rest = whole.after(4).unwrap();
        assert_eq!((rest.from_order, rest.records().len(), rest.records()[0].incoming.order), (14, 6, 14));
        let part = rest.up_to(1);
        assert_eq!((part.next_at, part.is_last), (1_500, false));
        let end = rest.up_to(6);
        assert_eq!((end.next_at, end.is_last), (2_000, true));
        assert!(rest.after(6).is_none() && whole.after(10).is_none());
    }

    #[test]
    fn a_chunk_is_done_with_its_last_record() {
        let whole = batch(Some(("c".to_owned(), 30, true)));
        assert_eq!(whole.up_to(4).chunk, Some(("c".to_owned(), 24, false)));
        let rest = whole.after(4).unwrap();
        assert_eq!(rest.up_to(5).chunk, Some(("c".to_owned(), 29, false)));
        assert_eq!(rest.up_to(6).chunk, Some(("c".to_owned(), 30, true)));
    }
}
