//! A sorted list of texts, front-coded: text by number in one block, number by text in a binary search.
//!
//! Blocks of [`BLOCK`] texts: the first as length and bytes, each other as the number of bytes it shares with the
//! previous one, the number of its own bytes, and these. Lengths are LEB128. The starts of blocks are an
//! Elias-Fano sequence. (Front coding of sorted dictionaries: Witten, Moffat, Bell, *Managing Gigabytes*.)

use std::cmp::Ordering;
use std::io::{self, Write};

use crate::elias_fano::EliasFano;
use crate::varint;

/// Texts in a block: more save bytes, fewer save time. At 16 the full text of the first costs about a byte per DOI.
pub(crate) const BLOCK: u64 = 16;

/// Longest text of a dictionary, in bytes.
pub(crate) const TEXT_LEN_MAX_BYTES: usize = 4096;

/// Writes the blocks; records where they start.
pub(crate) struct DictionaryWriter<W: Write> {
    sink: W,
    last: Vec<u8>,
    buffer: Vec<u8>,
    n_texts: u64,
    n_bytes: u64,
    starts: W,
    n_starts: u64,
}

impl<W: Write> DictionaryWriter<W> {
    /// Creates a writer: blocks go to `sink`, the start of each (8 bytes, little-endian) to `starts`.
    pub(crate) fn new(sink: W, starts: W) -> Self {
        let (last, buffer) = (Vec::new(), Vec::new());
        Self { sink, last, buffer, n_texts: 0, n_bytes: 0, starts, n_starts: 0 }
    }

    /// Adds the next text, greater than the last.
    pub(crate) fn push(&mut self, text: &[u8]) -> io::Result<()> {
        debug_assert!(self.n_texts == 0 || self.last.as_slice() < text, "texts must rise");
        self.buffer.clear();
        if self.n_texts.is_multiple_of(BLOCK) {
            self.starts.write_all(&self.n_bytes.to_le_bytes())?;
            self.n_starts += 1;
            self.last.clear();
            varint::push(&mut self.buffer, text.len() as u64);
            self.buffer.extend_from_slice(text);
        } else {
            let n_shared = shared_len(&self.last, text);
            varint::push(&mut self.buffer, n_shared as u64);
            varint::push(&mut self.buffer, (text.len() - n_shared) as u64);
            self.buffer.extend_from_slice(&text[n_shared..]);
        }
        self.last.clear();
        self.last.extend_from_slice(text);
        self.n_texts += 1;
        self.n_bytes += self.buffer.len() as u64;
        self.sink.write_all(&self.buffer)
    }

    /// Returns the sinks, the number of texts, of blocks and of bytes in the blocks.
    pub(crate) fn finish(self) -> (W, W, DictionarySize) {
        let size = DictionarySize { n_texts: self.n_texts, n_blocks: self.n_starts, n_bytes: self.n_bytes };
        (self.sink, self.starts, size)
    }
}

/// The size of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct DictionarySize {
    pub(crate) n_texts: u64,
    pub(crate) n_blocks: u64,
    pub(crate) n_bytes: u64,
}

/// A dictionary in a byte slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dictionary<'a> {
    blocks: &'a [u8],
    starts: EliasFano<'a>,
    n_texts: u64,
}

impl<'a> Dictionary<'a> {
    pub(crate) fn new(blocks: &'a [u8], starts: EliasFano<'a>, n_texts: u64) -> Self {
        Self { blocks, starts, n_texts }
    }

    /// Appends the text of `number`; `None` (and nothing appended) if there is none.
    pub(crate) fn text_into(&self, number: u64, text: &mut Vec<u8>) -> Option<()> {
        if self.n_texts <= number {
            return None;
        }
        let start = text.len();
        let mut block = self.block(number / BLOCK)?;
        for _ in 0..=number % BLOCK {
            if block.advance(text, start).is_none() {
                text.truncate(start);
                return None;
            }
        }
        Some(())
    }

    /// Returns the number of `text`; `None` if it is not in the dictionary.
    pub(crate) fn number_of(&self, text: &[u8]) -> Option<u64> {
        let (mut low, mut high) = (0, self.starts.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.head(middle)? <= text { low = middle + 1 } else { high = middle }
        }
        self.place_in_block(low.checked_sub(1)?, text)
    }

    fn place_in_block(&self, block_index: u64, text: &[u8]) -> Option<u64> {
        let mut block = self.block(block_index)?;
        let mut current = Vec::with_capacity(text.len() + 64);
        let first = block_index * BLOCK;
        for number in first..self.n_texts.min(first + BLOCK) {
            block.advance(&mut current, 0)?;
            match current.as_slice().cmp(text) {
                Ordering::Equal => return Some(number),
                Ordering::Greater => return None,
                Ordering::Less => {}
            }
        }
        None
    }

    /// Returns the full text that a block begins with.
    fn head(&self, block_index: u64) -> Option<&'a [u8]> {
        let mut rest = self.block(block_index)?.rest;
        let len = usize::try_from(varint::take(&mut rest)?).ok()?;
        rest.get(..len)
    }

    fn block(&self, block_index: u64) -> Option<Block<'a>> {
        let start = usize::try_from(self.starts.get(block_index)?).ok()?;
        Some(Block { rest: self.blocks.get(start..)?, is_at_head: true })
    }
}

/// Reads one block text by text.
struct Block<'a> {
    rest: &'a [u8],
    is_at_head: bool,
}

impl Block<'_> {
    /// Turns the text in `text[start..]` into the next one; `None` on damaged bytes.
    fn advance(&mut self, text: &mut Vec<u8>, start: usize) -> Option<()> {
        let n_shared =
            if self.is_at_head { 0 } else { usize::try_from(varint::take(&mut self.rest)?).ok()? };
        self.is_at_head = false;
        let n_own = usize::try_from(varint::take(&mut self.rest)?).ok()?;
        if text.len() - start < n_shared || TEXT_LEN_MAX_BYTES < n_own {
            return None;
        }
        let (own, rest) = self.rest.split_at_checked(n_own)?;
        text.truncate(start + n_shared);
        text.extend_from_slice(own);
        self.rest = rest;
        Some(())
    }
}

/// Returns how many bytes two texts share at their start.
pub(crate) fn shared_len(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}
