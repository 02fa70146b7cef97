//! One transaction for the writes of several callers.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::session::PgSession;
use crate::classes::StoredClasses;
use crate::counters::Counters;
use crate::error::outdated;
use crate::index::Remembered;
use crate::jobs::{Job, WriteTimes};
use crate::reads::Reads;
use crate::remake::UnderWay;
use crate::session::{Session, State};
use crate::txn::Numbers;
use crate::view::Shared;
use crate::{StoreError, Txn, View};

/// Begins a transaction and returns its number, by which its outcome can be queried later, and how often declarations
/// have changed. A server that changes declarations waits for the lock (`schema.rs`), which is taken before the
/// snapshot.
const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE kind IN ROW SHARE MODE; \
                     SELECT pg_current_xact_id(), (SELECT value FROM meta WHERE name = 'declared')";
/// Begins a transaction once no other write of the tenant runs, on any server; new ones wait until it has ended.
const BEGIN_APART: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE kind IN EXCLUSIVE MODE; \
                           SELECT pg_current_xact_id(), (SELECT value FROM meta WHERE name = 'declared')";

/// Which other writes of the tenant may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    All,
    /// None: nothing can conflict.
    None,
}

/// A write under way.
pub(super) struct Write {
    pub(super) job: Box<dyn Job>,
    pub(super) times: WriteTimes,
}

impl Write {
    pub(super) fn new(job: Box<dyn Job>) -> Self {
        let times = WriteTimes { wait: job.queued_at().elapsed(), ..WriteTimes::default() };
        Self { job, times }
    }

    pub(super) fn finish(self, error: Option<StoreError>) {
        self.job.finish(error, self.times);
    }
}

/// The outcome of writes that were run together.
pub(super) enum Outcome {
    /// The first so many are committed; those among them that refused changed nothing.
    Kept(usize),
    /// Nothing is kept, and all may be retried: they conflicted with others, or the connection was lost.
    Lost(StoreError),
    /// Nothing is kept, because the one at this index failed after making changes; the others may be retried.
    Spoilt(usize, StoreError),
    /// The commit of the first so many was not acknowledged.
    Unanswered(usize, StoreError),
}

/// Runs writes in the given order, each seeing the effects of those before it, and commits once.
pub(super) fn run(session: &mut PgSession, shared: &Shared, writes: &mut [Write], beside: Beside) -> Outcome {
    // Must be read before the snapshot begins.
    let remakes = shared.remakes.current();
    match beside {
        Beside::All => session.begin(BEGIN, None),
        Beside::None => {
            session.begin(BEGIN_APART, None);
            // The others may take longer than a lock is waited for: not an error of the first write.
            if let Err(error) = session.begin_now() {
                session.end();
                return Outcome::Lost(error);
            }
        }
    }
    let declared = shared.declared.load(Ordering::Acquire);
    if let Err(error) = session.require_declared(declared) {
        return Outcome::Lost(error);
    }
    let mut gathered = Gathered::default();
    let (mut n_run, mut n_refused) = (0, 0);
    for (place, write) in writes.iter_mut().enumerate() {
        let n_before = session.n_changes;
        let begun = Instant::now();
        let flow = catch_unwind(AssertUnwindSafe(|| {
            run_one(session, shared, remakes.as_ref(), write, &mut gathered)
        }));
        write.times.run += begun.elapsed();
        n_run += 1;
        if session.is_conflict || session.is_broken {
            session.end();
            return Outcome::Lost(StoreError::Conflict(format!(
                "lost against other writes ({:?})",
                flow.ok()
            )));
        }
        let has_changes = session.is_failed || session.n_changes != n_before;
        match flow {
            Err(_) => {
                session.end();
                return Outcome::Spoilt(place, StoreError::Panicked);
            }
            Ok(ControlFlow::Continue(())) if session.is_failed => {
                session.end();
                let reason = "a statement of the write failed before".to_owned();
                return Outcome::Spoilt(place, StoreError::Commit(reason));
            }
            Ok(ControlFlow::Break(())) if has_changes => {
                session.end();
                return Outcome::Spoilt(place, StoreError::Closed);
            }
            Ok(ControlFlow::Break(())) => n_refused += 1,
            Ok(ControlFlow::Continue(())) => {}
        }
        if shared.limits.batch_bytes <= gathered.n_bytes {
            break;
        }
    }
    if n_refused == n_run {
        session.end();
        return Outcome::Kept(n_run);
    }
    if session.mark.xid.is_some() && session.mark.declared != declared {
        session.end();
        return Outcome::Spoilt(0, outdated());
    }
    let begun = Instant::now();
    let committed = gathered.counters.commit(session);
    let took = begun.elapsed();
    writes.iter_mut().take(n_run).for_each(|it| it.times.commit = took);
    match committed {
        Ok(()) => Outcome::Kept(n_run),
        Err(error @ StoreError::Uncertain(_)) => Outcome::Unanswered(n_run, error),
        Err(error) if session.is_conflict || session.is_broken => Outcome::Lost(error),
        Err(error) => Outcome::Spoilt(0, error),
    }
}

/// What the writes of a transaction defer to its end.
#[derive(Default)]
struct Gathered {
    counters: Counters,
    classes: StoredClasses,
    n_bytes: usize,
}

/// Runs one closure; what it defers is collected if it succeeds.
fn run_one(
    session: &mut PgSession,
    shared: &Shared,
    remakes: Option<&Arc<UnderWay>>,
    write: &mut Write,
    gathered: &mut Gathered,
) -> ControlFlow<()> {
    let mut txn = Txn {
        view: View {
            session: Session::Postgres(session),
            state: State::Open,
            shared,
            remakes: remakes.cloned(),
            indexes: None,
            pace: None,
            reads: Reads::default(),
            remembered: Remembered::default(),
        },
        counters: Counters::default(),
        numbers: Numbers::default(),
        n_bytes: 0,
        classes: StoredClasses::default(),
        touched_schema: false,
        batch_classes: &gathered.classes,
    };
    let flow = write.job.run(&mut txn);
    let Txn { counters, n_bytes, classes, .. } = txn;
    if flow.is_continue() {
        gathered.counters.absorb(counters);
        gathered.n_bytes += n_bytes;
    }
    // Classes are stored at once, whatever the outcome of the write.
    gathered.classes.extend(classes);
    flow
}
