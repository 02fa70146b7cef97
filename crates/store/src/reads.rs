//! What a snapshot keeps of what it has read, where each statement takes a round trip; see `by_id.rs`.

use std::collections::HashMap;

use bytes::Bytes;

use crate::{Kind, ListId, Record};

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
    /// The members of lists.
    chunks: HashMap<i64, Vec<Chunk>>,
}

/// A chunk of members.
pub(crate) struct Chunk {
    /// Position of its first member, counted from 0.
    pub(crate) first: u64,
    /// Number of members.
    pub(crate) n: u32,
    /// Their JSON, joined by commas.
    pub(crate) bytes: Bytes,
}

impl Reads {
    /// Returns a record, or that there is none, if it was read.
    pub(crate) fn get(&self, kind: &Kind, id: &str) -> Option<&Option<Record>> {
        self.kinds.get(kind.name)?.by_id.get(id)
    }

    /// Returns the members of a list, if they were read.
    pub(crate) fn chunks(&self, kind: &Kind, list: ListId) -> Option<&[Chunk]> {
        self.kinds.get(kind.name)?.chunks.get(&list.0).map(Vec::as_slice)
    }

    /// Keeps the members of a list.
    pub(crate) fn keep_chunks(&mut self, kind: &Kind, list: ListId, chunks: Vec<Chunk>) {
        self.n_bytes += BESIDE_BYTES + chunks.iter().map(|it| BESIDE_BYTES + it.bytes.len()).sum::<usize>();
        self.kinds.entry(kind.name).or_default().chunks.insert(list.0, chunks);
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
