//! Pairs of numbers, sorted externally by the first: used to order citations by either end.

use std::io::{self, Write};
use std::path::Path;

use super::spool::{Batch, Merge, Run, RunReader, Runs, SortedSource, Spool};
use crate::varint;

/// Size of pairs sorted at once, in bytes. Two batches per spool exist at a time, and sorting takes half of
/// one more.
const BATCH_BYTES: usize = 32 << 20;
const PAIR_LEN_MAX_BYTES: usize = 20;

/// A sort key, and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) key: u64,
    pub(crate) value: u64,
}

impl Pair {
    /// Creates a pair whose key sorts by `major`, then `minor`.
    pub(crate) fn new(major: u32, minor: u32, value: u64) -> Self {
        Self { key: u64::from(major) << 32 | u64::from(minor), value }
    }

    pub(crate) fn major(self) -> u32 {
        (self.key >> 32) as u32
    }

    pub(crate) fn minor(self) -> u32 {
        self.key as u32
    }
}

/// Pairs in memory.
#[derive(Default)]
pub(crate) struct PairBatch(Vec<Pair>);

impl Batch for PairBatch {
    fn len_bytes(&self) -> usize {
        self.0.len() * size_of::<Pair>()
    }

    fn drain_sorted(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        self.0.sort_by_key(|pair| pair.key);
        let mut bytes = Vec::with_capacity(PAIR_LEN_MAX_BYTES);
        let mut last = Pair { key: 0, value: 0 };
        for pair in self.0.drain(..) {
            bytes.clear();
            varint::push(&mut bytes, pair.key - last.key);
            varint::push(&mut bytes, pair.value ^ last.value);
            sink.write_all(&bytes)?;
            last = pair;
        }
        Ok(())
    }
}

/// Sorts pairs by key; pairs with equal keys stay in their original order.
pub(crate) struct PairSorter(Spool<PairBatch>);

impl PairSorter {
    /// Creates a sorter whose runs go to the file at `path`, from its start.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Spool::open(path, Vec::new(), BATCH_BYTES).map(Self)
    }

    pub(crate) fn push(&mut self, pair: Pair) -> io::Result<()> {
        self.0.batch().0.push(pair);
        self.0.settle()
    }

    pub(crate) fn finish(self) -> io::Result<PairRuns> {
        self.0.finish().map(PairRuns)
    }
}

/// Sorted pairs on disk.
pub(crate) struct PairRuns(Runs);

impl PairRuns {
    pub(crate) fn open(path: &Path, runs: Vec<Run>) -> io::Result<Self> {
        Runs::open(path, runs).map(Self)
    }

    pub(crate) fn list(&self) -> &[Run] {
        self.0.list()
    }

    /// Returns all pairs in order.
    pub(crate) fn merge(&self) -> SortedPairs {
        let source = |reader| PairSource { reader, current: Pair { key: 0, value: 0 } };
        SortedPairs(Merge::new(self.0.readers().into_iter().map(source).collect()))
    }
}

struct PairSource {
    reader: RunReader,
    current: Pair,
}

impl SortedSource for PairSource {
    type Key = u64;

    fn advance(&mut self) -> io::Result<Option<u64>> {
        let bytes = self.reader.fill(PAIR_LEN_MAX_BYTES)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut rest = bytes;
        let gap = varint::take(&mut rest);
        let change = varint::take(&mut rest);
        let n_used = bytes.len() - rest.len();
        let (Some(gap), Some(change)) = (gap, change) else { return Err(crate::build::error::torn_run()) };
        self.reader.consume(n_used);
        self.current = Pair { key: self.current.key.wrapping_add(gap), value: self.current.value ^ change };
        Ok(Some(self.current.key))
    }
}

/// Pairs in order of their keys.
pub(crate) struct SortedPairs(Merge<PairSource>);

impl SortedPairs {
    pub(crate) fn next(&mut self) -> io::Result<Option<Pair>> {
        Ok(self.0.next_source()?.map(|source| source.current))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Many small runs come out as one stable sort would return them.
        #[test]
        fn merges_runs_in_order(keys in proptest::collection::vec(0_u64..500, 0..2000), batch_bytes in 16_usize..4000) {
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join("pairs");
            let mut sorter = PairSorter(Spool::open(&path, Vec::new(), batch_bytes).unwrap());
            let mut model: Vec<(u64, u64)> = (0..).zip(&keys).map(|(value, &key)| (key << 30, value << 40)).collect();
            for &(key, value) in &model {
                sorter.push(Pair { key, value }).unwrap();
            }
            model.sort_by_key(|pair| pair.0);
            let runs = sorter.finish().unwrap();
            let mut merged = PairRuns::open(&path, runs.list().to_vec()).unwrap().merge();
            for (key, value) in model {
                prop_assert_eq!(merged.next().unwrap(), Some(Pair { key, value }));
            }
            prop_assert_eq!(merged.next().unwrap(), None);
        }
    }
}
