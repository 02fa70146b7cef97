//! What a tenant asks of its engine: reads and writes, and what they cost.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{StoreError, Txn, View};

/// How much work a read may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A few records by id: microseconds in the embedded engine, on the calling thread, unless recent ones had to wait
    /// for the disk; then it runs on a reading thread. In PostgreSQL a read that needs a single statement shares a
    /// round trip with others; its closure runs twice, first to find out which statement it needs.
    Point,
    /// Lists, counts, facets: runs on a reading thread; the number of concurrent scans is limited.
    Scan,
}

/// The duration of a write.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteTimes {
    /// Time in the queue.
    pub wait: Duration,
    /// Time of its closure.
    pub run: Duration,
    /// Time of the shared commit, until it was on disk.
    pub commit: Duration,
}

/// Counters of the writer.
#[derive(Default)]
pub(crate) struct Statistics {
    pub(crate) queue_depth: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) requested: AtomicU64,
    pub(crate) commit_us: AtomicU64,
    /// Size of the write-ahead log when its keeper last checked, and the part that is not checkpointed.
    pub(crate) log_bytes: AtomicU64,
    pub(crate) log_left_bytes: AtomicU64,
}

impl Statistics {
    pub(crate) fn note_batch(&self, n_writes: usize, commit: Duration) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(n_writes as u64, Ordering::Relaxed);
        self.commit_us.fetch_add(u64::try_from(commit.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// A queued write.
pub(crate) trait Job: Send {
    /// Runs the closure; breaks when it returned an error.
    fn run(&mut self, txn: &mut Txn<'_>) -> ControlFlow<()>;
    /// Answers the caller, after the commit.
    fn finish(self: Box<Self>, error: Option<StoreError>, times: WriteTimes);
    /// When it was queued.
    fn queued_at(&self) -> Instant;
    /// What it may share a transaction with.
    fn company(&self) -> Sharing;
}

/// What a write may share a transaction with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Any other waiting writes.
    Any,
    /// None: it is long enough by itself.
    Alone,
}

/// A closure that an engine runs on a snapshot: it keeps its own result and returns whether that is a success.
pub(crate) type Look<'a> = &'a mut dyn FnMut(&mut View<'_>) -> bool;
