//! Splits a byte stream into chunks of whole lines, so that several threads can parse one file and an
//! unclosed quote spoils one line instead of the rest of the file.

use std::io::{self, Read};

/// Longest line accepted as a row, in bytes. DOIs end at 1 KB; a longer line is not a citation.
pub const LINE_LEN_MAX_BYTES: usize = 64 << 10;

/// Bytes of a chunk, about ten thousand rows.
const CHUNK_BYTES: usize = 1 << 20;

/// Whole lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The lines with their line feeds; the last line of a file may lack its own.
    pub(crate) bytes: Vec<u8>,
    /// Number of the first line, from 1.
    pub(crate) first_line: u64,
    /// Number of lines.
    pub(crate) n_lines: u64,
    /// Lines within that were too long for the buffer, left out of `bytes`.
    pub(crate) overlong: Vec<u64>,
}

impl Chunk {
    /// Returns the lines with their numbers, without line ends. `bytes` holds no overlong line, so numbers jump there.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = self.bytes.as_slice();
        let mut next_line = self.first_line;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            next_line += 1;
            Some((next_line - 1, line.strip_suffix(b"\r").unwrap_or(line)))
        })
    }
}

/// Reads a stream chunk by chunk.
pub(crate) struct Chunks<R> {
    source: R,
    /// Bytes read after the last line feed.
    carry: Vec<u8>,
    next_line: u64,
    is_at_end: bool,
}

impl<R: Read> Chunks<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, carry: Vec::new(), next_line: 1, is_at_end: false }
    }

    /// Returns the next chunk; `None` at the end of the stream.
    pub(crate) fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        let mut bytes = std::mem::take(&mut self.carry);
        bytes.reserve(CHUNK_BYTES.saturating_sub(bytes.len()));
        self.fill(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if !self.is_at_end {
            match memchr::memrchr(b'\n', &bytes) {
                Some(end) => self.carry.extend_from_slice(&bytes[end + 1..]),
                None => return self.skip_line().map(Some),
            }
            bytes.truncate(bytes.len() - self.carry.len());
        }
        let n_lines = count_lines(&bytes);
        let chunk = Chunk { bytes, first_line: self.next_line, n_lines, overlong: Vec::new() };
        self.next_line += n_lines;
        Ok(Some(chunk))
    }

    fn fill(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let missing = CHUNK_BYTES.saturating_sub(bytes.len());
        let n_read = self.source.by_ref().take(missing as u64).read_to_end(bytes)?;
        self.is_at_end = n_read < missing;
        Ok(())
    }

    /// Drops the rest of a line that fills a whole chunk.
    fn skip_line(&mut self) -> io::Result<Chunk> {
        let line = self.next_line;
        self.next_line += 1;
        let mut bytes = Vec::with_capacity(CHUNK_BYTES);
        while !self.is_at_end {
            bytes.clear();
            self.fill(&mut bytes)?;
            if let Some(end) = memchr::memchr(b'\n', &bytes) {
                self.carry.extend_from_slice(&bytes[end + 1..]);
                // More may follow even if this read returned less than a chunk.
                self.is_at_end = false;
                break;
            }
        }
        Ok(Chunk { bytes: Vec::new(), first_line: line, n_lines: 1, overlong: vec![line] })
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    let n_feeds = memchr::memchr_iter(b'\n', bytes).count() as u64;
    n_feeds + u64::from(bytes.last().is_some_and(|&byte| byte != b'\n'))
}
