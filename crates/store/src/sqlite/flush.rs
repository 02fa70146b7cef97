//! Flushing of committed batches to disk.
//!
//! The engine commits into the log without waiting for the disk (`synchronous=NORMAL`), which keeps commits whole and
//! in order in any case; a separate thread flushes the log and then answers the writers. Meanwhile the writer runs the
//! next batch.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::queue::Queue;
use crate::jobs::{Job, Statistics, WriteTimes};
use crate::{Result, StoreError};

/// Error for writes that come too late.
pub(super) const FLUSHER_GONE: &str = "the thread that flushes it is gone";

/// A write that has run.
pub(super) struct Part {
    pub(super) job: Box<dyn Job>,
    pub(super) error: Option<StoreError>,
    pub(super) started: Instant,
    pub(super) run: Duration,
}

impl Part {
    /// Answers the caller that waits for it.
    pub(super) fn finish(self, failure: Option<StoreError>, commit: Duration) {
        let error = self.error.or(failure);
        let wait = self.started.saturating_duration_since(self.job.queued_at());
        self.job.finish(error, WriteTimes { wait, run: self.run, commit });
    }
}

/// A committed batch.
pub(super) struct Committed {
    /// The writes whose callers wait for the disk.
    pub(super) parts: Vec<Part>,
    /// Number of all its writes.
    pub(super) n_writes: usize,
    /// When its commit began.
    pub(super) began: Instant,
}

/// The thread that flushes batches in order; waiting batches share a flush.
pub(super) struct Flusher {
    /// Makes the content of the log durable before it returns.
    sync: Box<dyn FnMut() -> io::Result<()> + Send>,
    queue: Arc<Queue>,
    statistics: Arc<Statistics>,
}

impl Flusher {
    /// Returns a flusher for the file `path`, which a connection must keep open for as long as this lives.
    pub(super) fn open(path: &Path, queue: Arc<Queue>, statistics: Arc<Statistics>) -> Result<Self> {
        let log = format!("{}-wal", path.display());
        match File::options().read(true).write(true).open(&log) {
            Ok(file) => Ok(Self::with(move || file.sync_data(), queue, statistics)),
            Err(source) => Err(StoreError::Io { path: log, source }),
        }
    }

    /// Returns a flusher with another way to the disk.
    pub(super) fn with(
        sync: impl FnMut() -> io::Result<()> + Send + 'static,
        queue: Arc<Queue>,
        statistics: Arc<Statistics>,
    ) -> Self {
        Self { sync: Box::new(sync), queue, statistics }
    }

    /// Works until no further batch can arrive.
    pub(super) fn run(&mut self, batches: &Receiver<Committed>) {
        while let Ok(first) = batches.recv() {
            let mut batches: Vec<Committed> = std::iter::once(first).chain(batches.try_iter()).collect();
            // After a failed flush it is unknown how much of the log is on disk: a later successful flush proves
            // nothing.
            let failure = self.queue.failure().or_else(|| {
                let error = (self.sync)().err()?;
                tracing::error!(%error, "the log could not be flushed; the tenant accepts no more writes");
                Some(error.to_string())
            });
            self.queue.flushed(batches.len(), failure.as_deref());
            for batch in batches.drain(..) {
                let commit = batch.began.elapsed();
                self.statistics.note_batch(batch.n_writes, commit);
                for part in batch.parts {
                    part.finish(failure.clone().map(StoreError::NotFlushed), commit);
                }
            }
        }
    }
}

impl Drop for Flusher {
    /// Ensures that nobody waits for a flusher that is gone. One that was told to end has finished all its work.
    fn drop(&mut self) {
        self.queue.flushed(usize::MAX, std::thread::panicking().then_some(FLUSHER_GONE));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::ops::ControlFlow;
    use std::sync::mpsc;

    use super::*;
    use crate::Txn;
    use crate::jobs::Sharing;

    /// A write that does nothing, and the channel for its answer.
    pub(in crate::sqlite) struct Answered(mpsc::Sender<Option<String>>);

    impl Answered {
        pub(in crate::sqlite) fn to_nobody() -> Box<dyn Job> {
            Box::new(Self(mpsc::channel().0))
        }
    }

    impl Job for Answered {
        fn run(&mut self, _: &mut Txn<'_>) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn finish(self: Box<Self>, error: Option<StoreError>, _: WriteTimes) {
            self.0.send(error.map(|it| it.to_string())).unwrap();
        }

        fn queued_at(&self) -> Instant {
            Instant::now()
        }

        fn company(&self) -> Sharing {
            Sharing::Any
        }
    }

    /// Returns the answers to two writes in two batches when the log is `path`, and the reason why nothing is written
    /// after them.
    fn answers(path: &str) -> (Vec<Option<String>>, Option<String>) {
        let queue = Arc::new(Queue::new(1));
        let log = File::options().write(true).open(path).unwrap();
        let mut flusher = Flusher::with(move || log.sync_data(), queue.clone(), Arc::default());
        let (answer, given) = mpsc::channel();
        for _ in 0..2 {
            let (job, started) = (Box::new(Answered(answer.clone())), Instant::now());
            let part = Part { job, error: None, started, run: Duration::ZERO };
            let (committed, batches) = mpsc::channel();
            queue.flush_begins();
            committed.send(Committed { parts: vec![part], n_writes: 1, began: started }).unwrap();
            drop(committed);
            flusher.run(&batches);
        }
        (given.try_iter().collect(), queue.failure())
    }

    #[test]
    fn a_write_is_answered_when_its_batch_is_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        File::create(&path).unwrap();
        assert_eq!(answers(path.to_str().unwrap()), (vec![None, None], None));
    }

    /// A device file cannot be flushed, like a failing disk.
    #[test]
    fn after_a_flush_that_failed_nothing_is_acknowledged() {
        let (given, failure) = answers("/dev/null");
        let failure = failure.unwrap();
        assert_eq!(given.len(), 2);
        let says = |it: &String| it.contains(&failure) && it.contains("until the server is restarted");
        assert!(given.iter().all(|it| it.as_ref().is_some_and(says)), "{given:?}");
    }
}
