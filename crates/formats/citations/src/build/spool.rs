//! External sorting: batches are sorted in memory and appended to one file as runs; runs are merged in one pass.
//!
//! While one batch is sorted and written by a separate thread, the next one is filled. Any number of runs shares
//! one file and one limit of read buffers, so neither memory nor open files grow with the input.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::disk;

/// Size of the read buffers of all runs of a merge together, in bytes.
const MERGE_BYTES: usize = 96 << 20;
const RUN_BUFFER_MIN_BYTES: usize = 4 << 10;
const RUN_BUFFER_MAX_BYTES: usize = 1 << 20;
const WRITE_BUFFER_BYTES: usize = 1 << 18;

/// Records that are collected, sorted and written together.
pub(crate) trait Batch: Default + Send + 'static {
    /// Returns the memory it takes, in bytes, to be compared with the limit.
    fn len_bytes(&self) -> usize;
    /// Sorts, writes and clears its records. Equal ones stay in their original order.
    fn drain_sorted(&mut self, sink: &mut dyn Write) -> io::Result<()>;
}

/// A sorted stretch of a spool's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Run {
    start: u64,
    end: u64,
}

/// Collects records and writes sorted runs.
pub(crate) struct Spool<B> {
    file: Arc<File>,
    runs: Vec<Run>,
    batch: B,
    batch_bytes: usize,
    worker: Option<JoinHandle<io::Result<(B, u64)>>>,
}

impl<B: Batch> Spool<B> {
    /// Continues after `runs` of the file at `path`, which is created if missing and truncated after the last
    /// run.
    pub(crate) fn open(path: &Path, runs: Vec<Run>, batch_bytes: usize) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len(end_of(&runs))?;
        Ok(Self { file: Arc::new(file), runs, batch: B::default(), batch_bytes, worker: None })
    }

    /// Returns the batch to add to; call [`Spool::settle`] afterwards.
    pub(crate) fn batch(&mut self) -> &mut B {
        &mut self.batch
    }

    /// Hands over the batch if it is full.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        if self.batch.len_bytes() < self.batch_bytes {
            return Ok(());
        }
        self.hand_over()
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let spare = self.join_worker()?;
        let mut full = std::mem::replace(&mut self.batch, spare);
        let start = end_of(&self.runs);
        let file = Arc::clone(&self.file);
        self.worker = Some(std::thread::spawn(move || {
            let mut sink = BufWriter::with_capacity(WRITE_BUFFER_BYTES, file.as_ref());
            sink.seek(SeekFrom::Start(start))?;
            full.drain_sorted(&mut sink)?;
            let end = sink.stream_position()?;
            sink.into_inner().map_err(io::IntoInnerError::into_error)?;
            Ok((full, end))
        }));
        Ok(())
    }

    /// Waits for the run being written; returns its emptied batch for reuse.
    fn join_worker(&mut self) -> io::Result<B> {
        let Some(worker) = self.worker.take() else { return Ok(B::default()) };
        let (spare, end) = worker.join().map_err(|_| io::Error::other("a sorting thread failed"))??;
        self.runs.push(Run { start: end_of(&self.runs), end });
        Ok(spare)
    }

    /// Writes everything and syncs it to disk; returns the runs so far.
    pub(crate) fn checkpoint(&mut self) -> io::Result<&[Run]> {
        if 0 < self.batch.len_bytes() {
            self.hand_over()?;
        }
        let spare = self.join_worker()?;
        if self.batch.len_bytes() == 0 {
            self.batch = spare;
        }
        disk::sync(&self.file)?;
        Ok(&self.runs)
    }

    /// Writes the rest; the file can now be merged.
    pub(crate) fn finish(mut self) -> io::Result<Runs> {
        let mut runs = self.checkpoint()?.to_vec();
        runs.retain(|run| run.start < run.end);
        Ok(Runs { file: self.file, runs })
    }
}

fn end_of(runs: &[Run]) -> u64 {
    runs.last().map_or(0, |run| run.end)
}

/// Finished runs of one file.
pub(crate) struct Runs {
    file: Arc<File>,
    runs: Vec<Run>,
}

impl Runs {
    pub(crate) fn open(path: &Path, mut runs: Vec<Run>) -> io::Result<Self> {
        runs.retain(|run| run.start < run.end);
        Ok(Self { file: Arc::new(File::open(path)?), runs })
    }

    /// Returns the list that [`Runs::open`] takes.
    pub(crate) fn list(&self) -> &[Run] {
        &self.runs
    }

    /// Returns readers of all runs, whose buffers together are within the limit.
    pub(crate) fn readers(&self) -> Vec<RunReader> {
        let share = MERGE_BYTES / self.runs.len().max(1);
        let buffer_bytes = share.clamp(RUN_BUFFER_MIN_BYTES, RUN_BUFFER_MAX_BYTES);
        let reader = |run: &Run| RunReader {
            file: Arc::clone(&self.file),
            next_at: run.start,
            end: run.end,
            buffer: Vec::new(),
            consumed: 0,
            buffer_bytes,
        };
        self.runs.iter().map(reader).collect()
    }
}

/// Reads the bytes of one run.
pub(crate) struct RunReader {
    file: Arc<File>,
    next_at: u64,
    end: u64,
    buffer: Vec<u8>,
    consumed: usize,
    buffer_bytes: usize,
}

impl RunReader {
    /// Returns the current bytes: at least `n_wanted`, or all that are left.
    pub(crate) fn fill(&mut self, n_wanted: usize) -> io::Result<&[u8]> {
        if self.buffer.len() - self.consumed < n_wanted && self.next_at < self.end {
            self.refill(n_wanted)?;
        }
        Ok(&self.buffer[self.consumed..])
    }

    fn refill(&mut self, n_wanted: usize) -> io::Result<()> {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        let n_kept = self.buffer.len();
        let n_left = usize::try_from(self.end - self.next_at).unwrap_or(usize::MAX);
        let n_read = self.buffer_bytes.max(n_wanted).saturating_sub(n_kept).min(n_left);
        self.buffer.resize(n_kept + n_read, 0);
        self.file.read_exact_at(&mut self.buffer[n_kept..], self.next_at)?;
        self.next_at += n_read as u64;
        Ok(())
    }

    pub(crate) fn consume(&mut self, n_bytes: usize) {
        self.consumed += n_bytes;
    }
}

/// Merges sorted sources; equal keys come in the order of the sources.
pub(crate) struct Merge<S: SortedSource> {
    sources: Vec<S>,
    heap: BinaryHeap<Reverse<(S::Key, usize)>>,
    /// Whether the source whose record was returned last must advance before the next.
    is_started: bool,
}

/// A sorted run being read: one current record at a time.
pub(crate) trait SortedSource {
    /// The sort key.
    type Key: Ord + Clone;
    /// Moves to the next record and returns its key; `None` at the end.
    fn advance(&mut self) -> io::Result<Option<Self::Key>>;
}

impl<S: SortedSource> Merge<S> {
    pub(crate) fn new(sources: Vec<S>) -> Self {
        Self { heap: BinaryHeap::with_capacity(sources.len()), sources, is_started: false }
    }

    /// Returns the source positioned at the next record; `None` after the last.
    pub(crate) fn next_source(&mut self) -> io::Result<Option<&S>> {
        if self.is_started {
            self.move_on()?;
        } else {
            self.start()?;
        }
        Ok(self.heap.peek().map(|Reverse((_, index))| &self.sources[*index]))
    }

    fn start(&mut self) -> io::Result<()> {
        self.is_started = true;
        for (index, source) in self.sources.iter_mut().enumerate() {
            if let Some(key) = source.advance()? {
                self.heap.push(Reverse((key, index)));
            }
        }
        Ok(())
    }

    fn move_on(&mut self) -> io::Result<()> {
        let Some(mut top) = self.heap.peek_mut() else { return Ok(()) };
        let index = top.0.1;
        match self.sources[index].advance()? {
            Some(key) => *top = Reverse((key, index)),
            None => {
                PeekMut::pop(top);
            }
        }
        Ok(())
    }
}

/// Reads a plain file of fixed-size records in order.
pub(crate) struct Records<const N: usize> {
    file: io::BufReader<File>,
}

impl<const N: usize> Records<N> {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: io::BufReader::with_capacity(WRITE_BUFFER_BYTES, File::open(path)?) })
    }

    /// Returns the next record; `None` at the end of the file.
    pub(crate) fn next(&mut self) -> io::Result<Option<[u8; N]>> {
        let mut record = [0; N];
        match self.file.read_exact(&mut record) {
            Ok(()) => Ok(Some(record)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}
