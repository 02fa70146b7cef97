//! The threads that run a tenant's write closures: waiting writes are run in one transaction and share its commit.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::batch::{self, Beside, Outcome, Write};
use super::fate::{self, Fate};
use super::pool::Pool;
use super::schema::LOCK_TIMEOUT;
use super::session::PgSession;
use super::side::Side;
use crate::jobs::{Job, Sharing, Statistics};
use crate::view::Shared;
use crate::{Result, StoreError};

/// Maximum number of attempts of a closure that conflicts with others.
const ATTEMPTS: u32 = 40;
/// From this attempt on, conflicting closures run one at a time over all servers, beside those that are new.
const SOLE_ATTEMPT: u32 = 3;
/// From this attempt on, a closure runs while no other write does: new ones that end sooner could make it lose forever.
const APART_ATTEMPT: u32 = 8;
/// Number of attempts to run writes together before each is run alone.
const TOGETHER: u32 = 3;
/// How long an idle thread stays.
const IDLE: Duration = Duration::from_secs(10);

/// The queue of a tenant and the threads that process it.
pub(super) struct Writers(Arc<Inner>);

struct Inner {
    pool: Arc<Pool>,
    schema: String,
    shared: Arc<Shared>,
    statistics: Arc<Statistics>,
    state: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    n_threads: usize,
    n_idle: usize,
    is_closing: bool,
}

impl Writers {
    pub(super) fn new(
        pool: Arc<Pool>,
        schema: String,
        shared: Arc<Shared>,
        statistics: Arc<Statistics>,
    ) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Inner { pool, schema, shared, statistics, state, changed: Condvar::new() }))
    }

    pub(super) fn submit(&self, job: Box<dyn Job>) -> Result<()> {
        let most = self.0.shared.limits.write_queue;
        let mut state = self.0.lock();
        if state.is_closing {
            return Err(StoreError::Closed);
        }
        if most <= state.jobs.len() {
            return Err(StoreError::Busy { depth: most, retry_after_s: 1 });
        }
        self.put(&mut state, job)
    }

    pub(super) fn submit_waiting(&self, job: Box<dyn Job>) -> Result<()> {
        let most = self.0.shared.limits.write_queue;
        let mut state = self.0.lock();
        while most <= state.jobs.len() && !state.is_closing {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closing {
            return Err(StoreError::Closed);
        }
        self.put(&mut state, job)
    }

    fn put(&self, state: &mut Queue, job: Box<dyn Job>) -> Result<()> {
        self.0.statistics.queue_depth.fetch_add(1, Ordering::Relaxed);
        state.jobs.push_back(job);
        if state.n_idle < state.jobs.len() && state.n_threads < self.0.shared.limits.tenant_writers {
            let inner = self.0.clone();
            let spawned =
                std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || inner.work());
            match spawned {
                Ok(_) => state.n_threads += 1,
                Err(source) if state.n_threads == 0 => {
                    state.jobs.pop_back();
                    return Err(StoreError::Io { path: "thread store-writer".to_owned(), source });
                }
                Err(_) => {}
            }
        }
        self.0.changed.notify_one();
        Ok(())
    }

    /// Waits until the queue is empty and its threads have ended.
    pub(super) fn close(&self) {
        let mut state = self.0.lock();
        state.is_closing = true;
        self.0.changed.notify_all();
        // The last owner may be a write that has just ended: its thread cannot wait for itself.
        let own = usize::from(std::thread::current().name() == Some("store-writer"));
        while own < state.n_threads {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(jobs) = self.next() {
            self.statistics.queue_depth.fetch_sub(jobs.len() as u64, Ordering::Relaxed);
            self.keep_together(jobs.into_iter().map(Write::new).collect());
        }
        self.changed.notify_all();
    }

    /// Returns the waiting jobs, or `None` when this thread should end.
    fn next(&self) -> Option<Vec<Box<dyn Job>>> {
        let mut state = self.lock();
        loop {
            if !state.jobs.is_empty() {
                let most = self.shared.limits.batch_writes.max(1);
                let n = state.jobs.iter().take(most).take_while(|it| it.company() == Sharing::Any).count();
                let jobs = state.jobs.drain(..n.max(1)).collect();
                self.changed.notify_all();
                return Some(jobs);
            }
            if state.is_closing {
                state.n_threads -= 1;
                return None;
            }
            state.n_idle += 1;
            let (back, waited) =
                self.changed.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = back;
            state.n_idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                state.n_threads -= 1;
                return None;
            }
        }
    }

    /// Commits writes together; those that cannot be kept with others are run alone.
    fn keep_together(&self, mut writes: Vec<Write>) {
        let mut n_lost = 0;
        while 1 < writes.len() && n_lost < TOGETHER {
            let mut session = match self.pool.take(&self.schema) {
                Ok(session) => session,
                Err(error) => {
                    return writes.into_iter().for_each(|it| it.finish(Some(again(&error))));
                }
            };
            let outcome = self.stay_and(|| batch::run(&mut session, &self.shared, &mut writes, Beside::All));
            let mark = session.mark.clone();
            self.pool.give_back(session);
            match outcome {
                Outcome::Kept(n) => self.finish(writes.drain(..n).collect()),
                Outcome::Spoilt(place, _) => {
                    self.keep_alone(writes.remove(place));
                    n_lost += 1;
                }
                Outcome::Lost(_) => n_lost += 1,
                Outcome::Unanswered(n, error) => match fate::learn(&self.pool, &self.schema, &mark) {
                    Fate::Kept => self.finish(writes.drain(..n).collect()),
                    Fate::Undone => n_lost += 1,
                    Fate::Unknown => writes.drain(..n).for_each(|it| it.finish(Some(again(&error)))),
                },
            }
        }
        writes.into_iter().for_each(|it| self.keep_alone(it));
    }

    fn finish(&self, writes: Vec<Write>) {
        let commit = writes.first().map_or(Duration::ZERO, |it| it.times.commit);
        self.statistics.note_batch(writes.len(), commit);
        self.ring();
        writes.into_iter().for_each(|it| it.finish(None));
    }

    /// Notifies the search indexes of a commit.
    fn ring(&self) {
        if let Some(indexes) = self.shared.indexes.get() {
            indexes.ring();
        }
    }

    /// Runs a write in transactions of its own until it is kept or refused.
    fn keep_alone(&self, write: Write) {
        let mut writes = vec![write];
        let outcome = self.run_until_kept(&mut writes);
        let error = outcome.err();
        self.ring();
        for write in writes {
            self.statistics.note_batch(1, write.times.commit);
            write.finish(error.as_ref().map(again));
        }
    }

    fn run_until_kept(&self, writes: &mut [Write]) -> Result<()> {
        let mut attempt = 0;
        loop {
            let mut session = self.pool.take(&self.schema)?;
            let outcome = self.stay_and(|| attempt_alone(&mut session, &self.shared, writes, attempt));
            let mark = session.mark.clone();
            self.pool.give_back(session);
            attempt += 1;
            let error = match outcome {
                Outcome::Kept(_) => return Ok(()),
                // The closure's own refusal takes precedence over this error.
                Outcome::Spoilt(_, error) => return Err(error),
                Outcome::Lost(error) => error,
                Outcome::Unanswered(_, error) => match fate::learn(&self.pool, &self.schema, &mark) {
                    Fate::Kept => return Ok(()),
                    Fate::Unknown => return Err(error),
                    Fate::Undone => error,
                },
            };
            if ATTEMPTS <= attempt {
                return Err(error);
            }
        }
    }

    /// Runs writes while the mark is held that the tenant is open here.
    fn stay_and(&self, run: impl FnOnce() -> Outcome) -> Outcome {
        match self.shared.side.as_ref().map_or(Ok(()), Side::stay) {
            Ok(()) => run(),
            Err(error) => Outcome::Lost(error),
        }
    }
}

/// Runs one write; after several attempts, in its turn among those that have conflicted as often.
fn attempt_alone(session: &mut PgSession, shared: &Shared, writes: &mut [Write], attempt: u32) -> Outcome {
    if attempt < SOLE_ATTEMPT {
        return batch::run(session, shared, writes, Beside::All);
    }
    session.begin_none();
    if let Err(error) = session.batch(SOLE) {
        // A write that has waited too long for its turn waits again.
        return match &error {
            StoreError::Postgres { code, .. } if code == LOCK_TIMEOUT => Outcome::Lost(error),
            _ if session.is_broken => Outcome::Lost(error),
            _ => Outcome::Spoilt(0, error),
        };
    }
    let beside = if attempt < APART_ATTEMPT { Beside::All } else { Beside::None };
    let outcome = batch::run(session, shared, writes, beside);
    if !session.is_broken {
        let mark = session.mark.clone();
        session.begin_none();
        if session.batch(NOT_SOLE).is_err() {
            // Closing the session releases its lock.
            session.is_broken = true;
        }
        session.mark = mark;
    }
    outcome
}

/// Returns a copy of an error for another of several callers.
fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy { depth, retry_after_s } => {
            StoreError::Busy { depth: *depth, retry_after_s: *retry_after_s }
        }
        StoreError::Remaking { kind, retry_after_s } => {
            StoreError::Remaking { kind, retry_after_s: *retry_after_s }
        }
        StoreError::Closed => StoreError::Closed,
        StoreError::Panicked => StoreError::Panicked,
        StoreError::Conflict(reason) => StoreError::Conflict(reason.clone()),
        StoreError::Uncertain(reason) => StoreError::Uncertain(reason.clone()),
        StoreError::Unavailable(reason) => StoreError::Unavailable(reason.clone()),
        StoreError::Full(place) => StoreError::Full(place.clone()),
        StoreError::Commit(reason) => StoreError::Commit(reason.clone()),
        StoreError::Postgres { code, message } => {
            StoreError::Postgres { code: code.clone(), message: message.clone() }
        }
        other => StoreError::Commit(other.to_string()),
    }
}

/// Makes closures that conflicted several times run one at a time.
const SOLE: &str = "SELECT pg_advisory_lock(hashtextextended(current_schema() || '/sole', 0))";
const NOT_SOLE: &str = "SELECT pg_advisory_unlock(hashtextextended(current_schema() || '/sole', 0))";
