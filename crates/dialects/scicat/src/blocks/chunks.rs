//! Packs the files of a block into chunks, each a row of the store: files are never all in memory as values.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Map, Value};

/// Files packed into one row.
const CHUNK_FILES: u32 = 256;
/// Size at which a chunk is full, in bytes.
const CHUNK_BYTES: usize = 48 << 10;

/// A chunk of a block's files: their JSON joined by commas.
#[derive(Debug, Clone)]
pub(crate) struct FileChunk {
    /// Position of the first, from 0.
    pub(crate) first: u64,
    /// Number of files.
    pub(crate) n: u32,
    /// Their JSON.
    pub(crate) bytes: Bytes,
}

/// Packs the files of one block, in order.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    chunk: BytesMut,
    n_in_chunk: u32,
    n_files: u64,
}

impl Chunks {
    /// Adds a file; returns the chunk that is full with it.
    ///
    /// Errors: the file cannot be written as JSON.
    pub(crate) fn add(&mut self, file: &Map<String, Value>) -> serde_json::Result<Option<FileChunk>> {
        if 0 < self.n_in_chunk {
            self.chunk.put_u8(b',');
        }
        serde_json::to_writer((&mut self.chunk).writer(), file)?;
        self.n_in_chunk += 1;
        self.n_files += 1;
        let is_full = CHUNK_FILES <= self.n_in_chunk || CHUNK_BYTES <= self.chunk.len();
        Ok(if is_full { self.rest() } else { None })
    }

    /// Returns the files that are in no chunk yet.
    pub(crate) fn rest(&mut self) -> Option<FileChunk> {
        let n = std::mem::take(&mut self.n_in_chunk);
        (0 < n).then(|| FileChunk {
            first: self.n_files - u64::from(n),
            n,
            bytes: self.chunk.split().freeze(),
        })
    }

    /// Returns the number of files added so far.
    pub(crate) fn n_files(&self) -> u64 {
        self.n_files
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the first position and number of each chunk of so many files of some length.
    fn packed(n_files: u64, n_bytes: usize) -> Vec<(u64, u32)> {
        let file = json!({"path": "x".repeat(n_bytes)});
        let (mut chunks, mut out) = (Chunks::default(), Vec::new());
        for _ in 0..n_files {
            out.extend(chunks.add(file.as_object().expect("an object")).expect("JSON"));
        }
        out.extend(chunks.rest());
        assert_eq!(chunks.n_files(), n_files);
        for chunk in &out {
            let list = [b"[", chunk.bytes.as_ref(), b"]"].concat();
            let list: Vec<Value> = serde_json::from_slice(&list).expect("a list");
            assert_eq!(list, vec![file.clone(); chunk.n as usize]);
        }
        out.iter().map(|it| (it.first, it.n)).collect()
    }

    #[test]
    fn a_chunk_is_full_by_number_or_by_size() {
        assert_eq!(packed(0, 1), []);
        assert_eq!(packed(2, 1), [(0, 2)]);
        assert_eq!(packed(256, 1), [(0, 256)]);
        assert_eq!(packed(600, 1), [(0, 256), (256, 256), (512, 88)]);
        assert_eq!(packed(5, 24 << 10), [(0, 2), (2, 2), (4, 1)]);
        assert_eq!(packed(2, 48 << 10), [(0, 1), (1, 1)]);
    }
}
