//! The only thread that writes to a file: waiting writes are run in one transaction.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connections::keep_log;
use super::flush::{Committed, FLUSHER_GONE, Part};
use super::keeper::Keeper;
use super::queue::{Begun, Queue};
use crate::classes::StoredClasses;
use crate::counters::{Counters, PutOff, Settlement};
use crate::error::outdated;
use crate::index::Remembered;
use crate::jobs::{Job, Sharing, Statistics, WriteTimes};
use crate::pending_links;
use crate::reads::Reads;
use crate::remake;
use crate::session::{Session, State};
use crate::txn::Numbers;
use crate::view::Shared;
use crate::whole_lists::{Changed, WholeLists};
use crate::{Result, StoreError, Txn, View};

/// Maximum number of classes that the writer caches.
const CLASSES: usize = 100_000;

/// The only connection that writes.
pub(super) struct Writer {
    connection: Connection,
    shared: Arc<Shared>,
    statistics: Arc<Statistics>,
    queue: Arc<Queue>,
    keeper: Arc<Keeper>,
    flusher: Sender<Committed>,
    /// Classes known to be stored, so that most inserts need no lookup.
    classes: StoredClasses,
    put_off: PutOff,
    whole_lists: WholeLists,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        shared: Arc<Shared>,
        statistics: Arc<Statistics>,
        queue: Arc<Queue>,
        keeper: Arc<Keeper>,
        flusher: Sender<Committed>,
    ) -> Self {
        Self {
            connection,
            shared,
            statistics,
            queue,
            keeper,
            flusher,
            classes: StoredClasses::default(),
            put_off: PutOff::default(),
            whole_lists: WholeLists::default(),
        }
    }

    pub(super) fn run(mut self) {
        loop {
            if let Some(indexes) = self.shared.indexes.get() {
                indexes.hold_back();
            }
            match self.queue.begin() {
                Begun::Batch(first) => {
                    self.batch(first);
                }
                Begun::Closed => break,
            }
            self.queue.end();
        }
        if self.queue.failure().is_some() {
            return keep_log(&self.connection);
        }
        if let Err(error) = self.end_loads() {
            tracing::warn!(%error, "the counts of a bulk load could not be written; the next start recounts");
        }
    }

    /// Writes the counts of bulk loads that nobody ended.
    fn end_loads(&self) -> Result<()> {
        if self.put_off.is_empty() {
            return Ok(());
        }
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        // A process that has changed the declarations meanwhile recounts everything.
        if let Err(error) = self.numbers() {
            self.connection.execute_batch("ROLLBACK")?;
            return Err(error);
        }
        let mut counters = Counters::default();
        self.put_off.end(&mut counters);
        let mut session = Session::Sqlite(&self.connection);
        self.put_off.flush(&mut counters, &mut session)?;
        pending_links::settle(&mut session)?;
        self.connection.execute_batch("COMMIT")?;
        self.hand_over(Committed { parts: Vec::new(), n_writes: 0, began: Instant::now() });
        if let Some(indexes) = self.shared.indexes.get() {
            indexes.ring();
        }
        Ok(())
    }

    /// Runs `first` and the writes queued behind it in one transaction.
    fn batch(&mut self, first: Box<dyn Job>) {
        if let Some(failure) = self.queue.failure() {
            self.statistics.queue_depth.fetch_sub(1, Ordering::Relaxed);
            return first.finish(Some(StoreError::Halted(failure)), WriteTimes::default());
        }
        let mut parts = Vec::new();
        let mut classes = std::mem::take(&mut self.classes);
        let result = self.run_parts(first, &mut parts, &mut classes);
        let began = Instant::now();
        let result = result.and_then(|ran| Ok(self.connection.execute_batch("COMMIT").map(|()| ran)?));
        match result {
            Ok(ran) => {
                self.put_off.committed(ran.settlement);
                self.whole_lists.committed(ran.lists);
                if classes.len() < CLASSES {
                    self.classes = classes;
                }
                let n_writes = parts.len();
                // A part of a bulk load is not waited for: it is on disk when the load ends.
                let is_waited_for = |part: &mut Part| part.job.company() == Sharing::Any;
                let waited_for = parts.extract_if(.., is_waited_for).collect();
                self.hand_over(Committed { parts: waited_for, n_writes, began });
                if let Some(indexes) = self.shared.indexes.get() {
                    indexes.written(ran.numbers.sequence);
                }
                parts.into_iter().for_each(|it| it.finish(None, began.elapsed()));
            }
            Err(error) => {
                if !self.connection.is_autocommit() {
                    // The transaction is rolled back unless the engine has done so itself.
                    if let Err(error) = self.connection.execute_batch("ROLLBACK") {
                        tracing::error!(%error, "rollback failed");
                    }
                }
                self.statistics.note_batch(parts.len(), began.elapsed());
                tracing::error!(%error, n_writes = parts.len(), "a batch of writes could not be committed");
                for part in parts {
                    let error = match &error {
                        StoreError::Full(what) => StoreError::Full(what.clone()),
                        StoreError::Unavailable(reason) => StoreError::Unavailable(reason.clone()),
                        other => StoreError::Commit(other.to_string()),
                    };
                    part.finish(Some(error), began.elapsed());
                }
            }
        }
    }

    /// Passes a committed batch to the flusher.
    fn hand_over(&self, committed: Committed) {
        self.queue.flush_begins();
        if let Err(unsent) = self.flusher.send(committed) {
            for part in unsent.0.parts {
                part.finish(Some(StoreError::NotFlushed(FLUSHER_GONE.to_owned())), Duration::ZERO);
            }
        }
        self.keeper.note_commit();
    }

    fn run_parts(
        &self,
        first: Box<dyn Job>,
        parts: &mut Vec<Part>,
        classes: &mut StoredClasses,
    ) -> Result<RanBatch> {
        let is_load = first.company() == Sharing::Alone;
        let (mut sums, mut next) = (Sums::default(), Some(first));
        let mut undone = Vec::new();
        let mut begun = Some(self.begin(&mut sums));
        while let Some(job) = next {
            self.statistics.queue_depth.fetch_sub(1, Ordering::Relaxed);
            parts.push(Part { job, error: None, started: Instant::now(), run: Duration::ZERO });
            // The first write reports the error of a transaction that could not begin.
            if let Some(begun) = begun.take() {
                begun?;
            }
            let Some(part) = parts.last_mut() else { break };
            if self.run_part(part, &mut sums, classes, Guard::None)? == Ran::Undo {
                undone.append(parts);
                break;
            }
            let is_full = self.shared.limits.batch_writes <= parts.len()
                || self.shared.limits.batch_bytes <= sums.n_bytes;
            next = if is_full { None } else { self.queue.next(is_load) };
        }
        if !undone.is_empty() {
            self.connection.execute_batch("ROLLBACK")?;
            parts.append(&mut undone);
            sums = Sums::default();
            self.begin(&mut sums)?;
            for part in parts {
                self.run_part(part, &mut sums, classes, Guard::Savepoint)?;
            }
        }
        classes.extend(sums.classes);
        let mut session = Session::Sqlite(&self.connection);
        // A load counts its lists in memory.
        let lists = if self.put_off.is_empty() && sums.counters.loads_nothing() {
            self.whole_lists.flush(&mut sums.counters, &mut session)?
        } else {
            Changed::default()
        };
        let settlement = self.put_off.flush(&mut sums.counters, &mut session)?;
        let numbers = sums.numbers;
        session.execute("UPDATE meta SET value = ?1 WHERE name = 'sequence'", &[numbers.sequence.into()])?;
        session.execute("UPDATE meta SET value = ?1 WHERE name = 'list'", &[numbers.list.into()])?;
        Ok(RanBatch { settlement, lists, numbers })
    }

    fn begin(&self, sums: &mut Sums) -> Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        sums.numbers = self.numbers()?;
        Ok(())
    }

    /// Runs one closure. A refused or panicking one leaves nothing behind or, if it wrote something without a
    /// savepoint, requires the batch to be rolled back.
    fn run_part(&self, part: &mut Part, sums: &mut Sums, known: &StoredClasses, guard: Guard) -> Result<Ran> {
        part.started = Instant::now();
        part.error = None;
        let n_before = self.connection.total_changes();
        let mut txn = Txn {
            view: View {
                session: Session::Sqlite(&self.connection),
                state: State::Open,
                shared: &self.shared,
                // Nobody else writes now: rebuilds that this process knows to be complete are complete in the
                // transaction as well.
                remakes: self.shared.remakes.current(),
                indexes: self.shared.published(),
                pace: None,
                reads: Reads::default(),
                remembered: Remembered::default(),
            },
            counters: Counters::default(),
            numbers: sums.numbers,
            n_bytes: 0,
            classes: std::mem::take(&mut sums.classes),
            touched_schema: false,
            batch_classes: known,
        };
        if guard == Guard::Savepoint {
            txn.view.session.execute("SAVEPOINT part", &[])?;
        } else {
            // A refused part that counted something has also written it, and is rolled back with the batch.
            std::mem::swap(&mut txn.counters, &mut sums.counters);
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| part.job.run(&mut txn)));
        part.run = part.started.elapsed();
        // Numbers are never reused in a batch, not even after a refused write.
        sums.numbers = txn.numbers;
        if self.connection.is_autocommit() {
            // The engine rolled everything back by itself, as it does when the disk is full: the parts before are gone
            // too, and nothing may run outside a transaction.
            return Err(StoreError::Commit("the engine undid the transaction".to_owned()));
        }
        let is_done = matches!(outcome, Ok(ControlFlow::Continue(())));
        part.error = outcome.is_err().then_some(StoreError::Panicked);
        match guard {
            Guard::None => {
                let has_written = n_before != self.connection.total_changes() || txn.touched_schema;
                if !is_done && has_written {
                    return Ok(Ran::Undo);
                }
                sums.counters = txn.counters;
                sums.classes = txn.classes;
            }
            Guard::Savepoint if is_done => {
                txn.view.session.execute("RELEASE part", &[])?;
                sums.counters.absorb(txn.counters);
                sums.classes = txn.classes;
            }
            // It is then no longer known which classes were stored before this part: they are looked up again.
            Guard::Savepoint => undo_part(&mut txn.view.session)?,
        }
        sums.n_bytes += txn.n_bytes;
        Ok(Ran::Done)
    }

    /// Reads the numbers assigned last. Errors: a program with other declarations has opened the file meanwhile.
    fn numbers(&self) -> Result<Numbers> {
        let mut session = Session::Sqlite(&self.connection);
        if remake::declared(&mut session)? != self.shared.declared.load(Ordering::Acquire) {
            return Err(outdated());
        }
        let mut read = |name: &str| -> Result<u64> {
            let sql = "SELECT value FROM meta WHERE name = ?1";
            Ok(session.first(sql, &[name.into()], |row| row.int(0))?.unwrap_or(0).cast_unsigned())
        };
        Ok(Numbers { sequence: read("sequence")?, list: read("list")? })
    }
}

impl Drop for Writer {
    /// Ensures that nobody waits for a writer that is gone.
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

/// What the parts of a batch defer to its commit.
#[derive(Default)]
struct Sums {
    numbers: Numbers,
    n_bytes: usize,
    counters: Counters,
    /// Classes that the batch stored or found stored.
    classes: StoredClasses,
}

/// What a batch leaves to be kept once it is committed.
struct RanBatch {
    settlement: Settlement,
    lists: Changed,
    numbers: Numbers,
}

/// How a part of a batch can be rolled back on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// It cannot: the whole batch would have to be rolled back.
    None,
    Savepoint,
}

/// The outcome of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    /// Done, or refused without having written anything.
    Done,
    /// Refused after it had written something: the batch must be rolled back.
    Undo,
}

fn undo_part(session: &mut Session<'_>) -> Result<()> {
    session.execute("ROLLBACK TO part", &[])?;
    session.execute("RELEASE part", &[])?;
    Ok(())
}
