//! What a snapshot keeps of what it has read, where each statement takes a round trip; see `by_id.rs`.

use std::collections::HashMap;

use crate::{Kind, Record};

/// Maximum size of the records that a snapshot keeps, in bytes (2 MiB), beside those read last.
const KEPT_BYTES: usize = 2 << 20;
/// Bytes counted for an answer beside its records, and for a record beside its body.
const BESIDE_BYTES: usize = 256;
/// Maximum number of records of an answer that is kept.
pub(crate) const ANSWER_RECORDS: usize = 32;

/// What a snapshot has read, by kind: it changes only by what its own transaction writes.
#[derive(Default)]
pub(crate) struct Reads {
    kinds: HashMap<&'static str, OfKind>,
    /// Kept, or forgotten since it was last empty.
    n_bytes: usize,
}

#[derive(Default)]
pub(crate) struct OfKind {
    /// By id; `None` where there is none.
    pub(crate) by_id: HashMap<String, Option<Record>>,
    /// By statement and values.
    pub(crate) answers: HashMap<String, Vec<Record>>,
}

impl Reads {
    /// Returns a record, or that there is none, if it was read.
    pub(crate) fn get(&self, kind: &Kind, id: &str) -> Option<&Option<Record>> {
        self.kinds.get(kind.name)?.by_id.get(id)
    }

    /// Returns what a statement with its values was answered.
    pub(crate) fn answer(&self, kind: &Kind, name: &str) -> Option<Vec<Record>> {
        self.kinds.get(kind.name)?.answers.get(name).cloned()
    }

    /// Forgets everything if it has grown too large.
    pub(crate) fn limit(&mut self) {
        if KEPT_BYTES < self.n_bytes {
            *self = Self::default();
        }
    }

    /// Returns where records of a kind are to be kept.
    pub(crate) fn room(&mut self, kind: &Kind, found: &[Record]) -> &mut OfKind {
        self.n_bytes += BESIDE_BYTES + found.iter().map(|it| BESIDE_BYTES + it.body.len()).sum::<usize>();
        self.kinds.entry(kind.name).or_default()
    }

    /// Forgets the records of a kind, which are about to change.
    pub(crate) fn forget(&mut self, kind: &Kind) {
        self.kinds.remove(kind.name);
    }
}
