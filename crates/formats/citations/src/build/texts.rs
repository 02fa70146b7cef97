//! Texts with two numbers each, sorted externally and deduplicated: DOIs with their other identifiers, local
//! ids with their row.

use std::io::{self, Write};
use std::path::Path;

use super::spool::{Batch, Merge, Run, RunReader, Runs, SortedSource, Spool};
use crate::dictionary::{TEXT_LEN_MAX_BYTES, shared_len};
use crate::varint;

/// Size of texts sorted at once, in bytes; two batches exist at a time.
const BATCH_BYTES: usize = 48 << 20;
const RECORD_LEN_MAX_BYTES: usize = TEXT_LEN_MAX_BYTES + 40;

/// A text and its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) first: u64,
    pub(crate) second: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    len: u32,
    first: u64,
    second: u64,
}

/// Texts in memory.
#[derive(Default)]
pub(crate) struct TextBatch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Batch for TextBatch {
    fn len_bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    fn drain_sorted(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        let bytes = &self.bytes;
        let text = |entry: &Entry| &bytes[entry.start as usize..(entry.start + entry.len) as usize];
        self.entries.sort_unstable_by(|a, b| {
            text(a).cmp(text(b)).then_with(|| (a.first, a.second).cmp(&(b.first, b.second)))
        });
        let mut encoder = Encoder::default();
        for entry in self.entries.drain(..) {
            let text = Text { bytes: text(&entry), first: entry.first, second: entry.second };
            encoder.write(&text, sink)?;
        }
        self.bytes.clear();
        Ok(())
    }
}

/// Writes sorted texts front-coded, equal ones once.
#[derive(Default)]
struct Encoder {
    last: Vec<u8>,
    last_numbers: Option<(u64, u64)>,
    record: Vec<u8>,
}

impl Encoder {
    fn write(&mut self, text: &Text<'_>, sink: &mut dyn Write) -> io::Result<()> {
        let numbers = Some((text.first, text.second));
        if self.last_numbers == numbers && self.last == text.bytes {
            return Ok(());
        }
        let n_shared = shared_len(&self.last, text.bytes);
        self.record.clear();
        varint::push(&mut self.record, n_shared as u64);
        varint::push(&mut self.record, (text.bytes.len() - n_shared) as u64);
        self.record.extend_from_slice(&text.bytes[n_shared..]);
        varint::push(&mut self.record, text.first);
        varint::push(&mut self.record, text.second);
        self.last.truncate(n_shared);
        self.last.extend_from_slice(&text.bytes[n_shared..]);
        self.last_numbers = numbers;
        sink.write_all(&self.record)
    }
}

/// Sorts texts.
pub(crate) struct TextSorter(Spool<TextBatch>);

impl TextSorter {
    /// Continues after `runs` of the file at `path`.
    pub(crate) fn open(path: &Path, runs: Vec<Run>) -> io::Result<Self> {
        Spool::open(path, runs, BATCH_BYTES).map(Self)
    }

    /// Adds a text of at most [`TEXT_LEN_MAX_BYTES`].
    pub(crate) fn push(&mut self, text: Text<'_>) -> io::Result<()> {
        debug_assert!(text.bytes.len() <= TEXT_LEN_MAX_BYTES);
        let batch = self.0.batch();
        // A batch is limited to far below 4 GB.
        let (start, len) = (batch.bytes.len() as u32, text.bytes.len() as u32);
        batch.bytes.extend_from_slice(text.bytes);
        batch.entries.push(Entry { start, len, first: text.first, second: text.second });
        self.0.settle()
    }

    pub(crate) fn checkpoint(&mut self) -> io::Result<&[Run]> {
        self.0.checkpoint()
    }
}

/// Sorted texts on disk.
pub(crate) struct TextRuns(Runs);

impl TextRuns {
    pub(crate) fn open(path: &Path, runs: Vec<Run>) -> io::Result<Self> {
        Runs::open(path, runs).map(Self)
    }

    /// Returns all texts in order; equal ones of different runs more than once.
    pub(crate) fn merge(&self) -> SortedTexts {
        let source = |reader| TextSource { reader, text: Vec::new(), first: 0, second: 0 };
        SortedTexts(Merge::new(self.0.readers().into_iter().map(source).collect()))
    }
}

struct TextSource {
    reader: RunReader,
    text: Vec<u8>,
    first: u64,
    second: u64,
}

impl TextSource {
    fn read(&mut self) -> io::Result<Option<usize>> {
        let bytes = self.reader.fill(RECORD_LEN_MAX_BYTES)?;
        let mut rest = bytes;
        let mut number = || varint::take(&mut rest);
        let (Some(n_shared), Some(n_own)) = (number(), number()) else { return Ok(None) };
        let (n_shared, n_own) = (n_shared as usize, n_own as usize);
        let Some((own, behind)) = rest.split_at_checked(n_own) else { return Ok(None) };
        if self.text.len() < n_shared {
            return Ok(None);
        }
        self.text.truncate(n_shared);
        self.text.extend_from_slice(own);
        rest = behind;
        let mut number = || varint::take(&mut rest);
        let (Some(first), Some(second)) = (number(), number()) else { return Ok(None) };
        (self.first, self.second) = (first, second);
        Ok(Some(bytes.len() - rest.len()))
    }
}

impl SortedSource for TextSource {
    type Key = (Vec<u8>, u64, u64);

    fn advance(&mut self) -> io::Result<Option<Self::Key>> {
        if self.reader.fill(1)?.is_empty() {
            return Ok(None);
        }
        let n_used = self.read()?.ok_or_else(crate::build::error::torn_run)?;
        self.reader.consume(n_used);
        Ok(Some((self.text.clone(), self.first, self.second)))
    }
}

/// Texts in order.
pub(crate) struct SortedTexts(Merge<TextSource>);

impl SortedTexts {
    pub(crate) fn next(&mut self) -> io::Result<Option<Text<'_>>> {
        let source = self.0.next_source()?;
        Ok(source.map(|it| Text { bytes: &it.text, first: it.first, second: it.second }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Runs of any size, continued after a checkpoint, hold every text once per run, in order.
        #[test]
        fn merges_runs_in_order(
            texts in proptest::collection::vec(("[a-c]{0,6}", 0_u64..3), 0..800),
            batch_bytes in 30_usize..3000,
        ) {
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join("texts");
            let mut runs = Vec::new();
            let (first_half, second_half) = texts.split_at(texts.len() / 2);
            for half in [first_half, second_half] {
                let mut sorter = TextSorter(Spool::open(&path, runs, batch_bytes).unwrap());
                for (text, first) in half {
                    sorter.push(Text { bytes: text.as_bytes(), first: *first, second: 7 }).unwrap();
                }
                runs = sorter.checkpoint().unwrap().to_vec();
            }
            let mut merged = TextRuns::open(&path, runs).unwrap().merge();
            let mut found = Vec::new();
            while let Some(text) = merged.next().unwrap() {
                prop_assert_eq!(text.second, 7);
                found.push((String::from_utf8(text.bytes.to_vec()).unwrap(), text.first));
            }
            prop_assert!(found.is_sorted());
            let model: BTreeSet<(String, u64)> = texts.into_iter().collect();
            prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), model);
        }
    }
}
