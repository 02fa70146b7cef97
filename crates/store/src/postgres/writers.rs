//! The threads that run a tenant's write closures, each in a transaction of its own.

use std::collections::{HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::pool::Pool;
use super::session::PgSession;
use crate::counters::Counters;
use crate::session::Session;
use crate::tenant::{Job, Statistics, WriteTimes};
use crate::txn::Numbers;
use crate::view::{Shared, State};
use crate::{Result, StoreError, Txn, View};

/// How often a closure runs again at most when it loses against others.
const ATTEMPTS: u32 = 40;
/// From this attempt on, closures that lost run one at a time over all servers.
const SOLE_ATTEMPT: u32 = 3;
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);

/// The queue of a tenant and the threads that empty it.
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
        // The last owner may be a write that has just ended: its own thread cannot wait for itself.
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
        while let Some(job) = self.next() {
            self.statistics.queue_depth.fetch_sub(1, Ordering::Relaxed);
            self.run(job);
        }
        self.changed.notify_all();
    }

    /// The next job, or `None` when this thread shall end.
    fn next(&self) -> Option<Box<dyn Job>> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                self.changed.notify_all();
                return Some(job);
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

    fn run(&self, mut job: Box<dyn Job>) {
        let started = Instant::now();
        let mut times = WriteTimes { wait: started.duration_since(job.queued_at()), ..WriteTimes::default() };
        let outcome = self.run_until_kept(job.as_mut(), &mut times);
        times.run = started.elapsed().saturating_sub(times.commit);
        self.statistics.note_batch(1, times.commit);
        job.finish(outcome.err(), times);
    }

    fn run_until_kept(&self, job: &mut dyn Job, times: &mut WriteTimes) -> Result<()> {
        let mut attempt = 0;
        loop {
            let mut session = self.pool.take(&self.schema)?;
            let is_sole = SOLE_ATTEMPT <= attempt;
            let result = self.attempt(&mut session, job, is_sole, times);
            let (is_conflict, is_broken) = (session.is_conflict, session.is_broken);
            self.pool.give_back(session);
            attempt += 1;
            let may_again = match &result {
                Err(StoreError::Uncertain(_)) => false,
                Err(_) => is_conflict || is_broken,
                Ok(()) => false,
            };
            if !may_again || ATTEMPTS <= attempt {
                return result;
            }
        }
    }

    /// Runs the closure once, in a transaction. An error is not the closure's own unless the closure kept it.
    fn attempt(
        &self,
        session: &mut PgSession,
        job: &mut dyn Job,
        is_sole: bool,
        times: &mut WriteTimes,
    ) -> Result<()> {
        session.begin_none();
        if is_sole && let Err(error) = session.batch(SOLE) {
            // Whoever has waited too long for its turn waits again.
            session.is_conflict |=
                matches!(&error, StoreError::Postgres { code, .. } if code == LOCK_TIMEOUT);
            return Err(error);
        }
        session.begin("BEGIN ISOLATION LEVEL SERIALIZABLE", None);
        let none = HashSet::new();
        let mut txn = Txn {
            view: View {
                session: Session::Postgres(session),
                state: State::Open,
                shared: &self.shared,
                behind: None,
            },
            counters: Counters::default(),
            numbers: Numbers::default(),
            n_bytes: 0,
            classes: HashSet::new(),
            touched_schema: false,
            batch_classes: &none,
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| job.run(&mut txn)));
        let counters = std::mem::take(&mut txn.counters);
        let result = match outcome {
            Ok(flow) if session.is_conflict || session.is_broken => {
                session.end();
                Err(StoreError::Conflict(format!("lost against other writes ({flow:?})")))
            }
            Ok(std::ops::ControlFlow::Break(())) => {
                session.end();
                Ok(())
            }
            Ok(std::ops::ControlFlow::Continue(())) if session.is_failed => {
                session.end();
                Err(StoreError::Commit("a statement of the write failed before".to_owned()))
            }
            Ok(std::ops::ControlFlow::Continue(())) => {
                let begun = Instant::now();
                let committed = counters.commit(session);
                times.commit = begun.elapsed();
                committed
            }
            Err(_) => {
                session.end();
                Err(StoreError::Panicked)
            }
        };
        if is_sole && !session.is_broken {
            let (is_conflict, _) = (session.is_conflict, session.begin_none());
            session.batch("SELECT pg_advisory_unlock(hashtextextended(current_schema() || '/sole', 0))")?;
            session.is_conflict = is_conflict;
        }
        result
    }
}

/// The code of a statement that waited too long for a lock.
const LOCK_TIMEOUT: &str = "55P03";

/// Lets closures that lost several times run one at a time.
const SOLE: &str = "SELECT pg_advisory_lock(hashtextextended(current_schema() || '/sole', 0))";
