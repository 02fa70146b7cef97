//! A tenant: the entry point to its records.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

use crate::jobs::{Job, Look, Sharing, Statistics, Weight, WriteTimes};
use crate::kind::IndexShare;
use crate::places::ScanPlace;
use crate::postgres::{Postgres, aside};
use crate::sqlite::Sqlite;
use crate::view::Shared;

use crate::{Kind, Result, StoreError, Txn, View, check};

/// A write under way. If dropped, the write goes on and its outcome is lost.
pub struct Loading<R, E> {
    receiver: mpsc::Receiver<Done>,
    result: PhantomData<Result<R, E>>,
}

impl<R: 'static, E: From<StoreError> + 'static> Loading<R, E> {
    /// Waits for the write to end and returns the result of its closure.
    pub fn wait(self) -> Result<R, E> {
        let done = self.receiver.recv().map_err(|_| StoreError::Closed)?;
        done.result().map(|(result, _)| result)
    }
}

/// An open tenant. Clones share it.
#[derive(Clone)]
pub struct Tenant(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) engine: Engine,
    pub(crate) scans: Arc<Semaphore>,
    /// Limits point reads that are sent to a database, or wait for a disk, at once.
    pub(crate) points: Arc<Semaphore>,
    /// Limits answers that wait for slow clients without holding a scan slot.
    pub(crate) parking: Arc<Semaphore>,
    pub(crate) read_timeout_ms: u64,
    /// Lives as long as the tenant; dropping it ends the thread that rebuilds kinds.
    pub(crate) remaker: OnceLock<mpsc::Sender<()>>,
}

/// The engine: a closed set of two.
pub(crate) enum Engine {
    /// A file of its own.
    Sqlite(Sqlite),
    /// A schema of a database.
    Postgres(Postgres),
}

/// For reads that inspect everything because an operator asked for it.
pub(crate) const UNBOUNDED: Duration = Duration::from_secs(u32::MAX as u64);

impl Tenant {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns whether its records are in a file on this machine, where sequence numbers are in the order in which
    /// changes become visible; in a database they need not be.
    pub fn is_embedded(&self) -> bool {
        matches!(self.0.engine, Engine::Sqlite(_))
    }

    pub(crate) fn shared(&self) -> &Shared {
        match &self.0.engine {
            Engine::Sqlite(engine) => engine.shared(),
            Engine::Postgres(engine) => engine.shared(),
        }
    }

    /// Returns the limits it was opened with.
    pub fn limits(&self) -> &crate::Limits {
        match &self.0.engine {
            Engine::Sqlite(engine) => engine.limits(),
            Engine::Postgres(engine) => engine.limits(),
        }
    }

    /// Finishes the queued writes and accepts no more.
    pub(crate) fn close(&self) {
        match &self.0.engine {
            Engine::Sqlite(engine) => engine.close(),
            Engine::Postgres(engine) => engine.close(),
        }
    }

    /// Runs a closure on a snapshot. It may run again when the snapshot turns out to be unusable.
    pub async fn read<R, E>(
        &self,
        weight: Weight,
        closure: impl FnMut(&mut View<'_>) -> Result<R, E> + Send + 'static,
    ) -> Result<R, E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.run(weight, ReadJob::of(closure)).await?.result()
    }

    /// Runs a read on a snapshot, as [`Tenant::read`] does, and returns it with its result.
    pub async fn run(&self, weight: Weight, mut reading: ReadJob) -> Result<ReadJob> {
        let timeout = Duration::from_millis(self.0.read_timeout_ms);
        if let (Weight::Point, Engine::Sqlite(engine)) = (weight, &self.0.engine)
            && !engine.caution.advises()
        {
            self.run_point(timeout, &mut reading)?;
            return Ok(reading);
        }
        if let (Weight::Point, Engine::Postgres(engine)) = (weight, &self.0.engine)
            && engine.read_beside(&mut |view| reading.0.look(view)).await?
        {
            return Ok(reading);
        }
        let permits = match weight {
            Weight::Point => &self.0.points,
            Weight::Scan => &self.0.scans,
        };
        let _permit = permits.acquire().await.map_err(|_| StoreError::Closed)?;
        let tenant = self.clone();
        let run = move || {
            match weight {
                Weight::Point => tenant.run_point(timeout, &mut reading),
                Weight::Scan => tenant.run_for(weight, timeout, &mut |view| reading.0.look(view)),
            }?;
            Ok(reading)
        };
        tokio::task::spawn_blocking(run).await.unwrap_or(Err(StoreError::Panicked))
    }

    /// Reads a few records by id on this thread, and records how long that took.
    fn run_point(&self, timeout: Duration, reading: &mut ReadJob) -> Result<()> {
        let began = Instant::now();
        let outcome = self.run_for(Weight::Point, timeout, &mut |view| reading.0.look(view));
        if let Engine::Sqlite(engine) = &self.0.engine {
            engine.caution.note(began.elapsed());
        }
        outcome
    }

    /// Waits for a slot for a scan, for [`Tenant::read_placed`].
    pub async fn scan_place(&self) -> Result<ScanPlace> {
        ScanPlace::take(self.0.scans.clone(), self.0.parking.clone()).await
    }

    /// Runs a closure on a snapshot, on a reading thread and without a time limit: the caller holds a scan slot, which
    /// it releases while it waits for a client.
    pub async fn read_placed<R, E>(
        &self,
        closure: impl FnMut(&mut View<'_>) -> Result<R, E> + Send + 'static,
    ) -> Result<R, E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.run_placed(ReadJob::of(closure)).await?.result()
    }

    async fn run_placed(&self, mut reading: ReadJob) -> Result<ReadJob> {
        let timeout = Duration::from_millis(self.0.read_timeout_ms);
        let tenant = self.clone();
        let run = move || {
            tenant.run_for(Weight::Scan, timeout, &mut |view| reading.0.look(view))?;
            Ok(reading)
        };
        tokio::task::spawn_blocking(run).await.unwrap_or(Err(StoreError::Panicked))
    }

    /// Runs a scan that may see the state of up to `limits.standby_lag_ms` ago: on a standby of the database if one is
    /// recent enough. Not for callers that expect to find what they have just written.
    pub async fn run_lagging(&self, mut reading: ReadJob) -> Result<ReadJob> {
        if self.is_embedded() || self.limits().standby_lag_ms == 0 {
            return self.run(Weight::Scan, reading).await;
        }
        let timeout = Duration::from_millis(self.0.read_timeout_ms);
        let _permit = self.0.scans.acquire().await.map_err(|_| StoreError::Closed)?;
        let tenant = self.clone();
        let run = move || {
            let look: Look<'_> = &mut |view| reading.0.look(view);
            match &tenant.0.engine {
                Engine::Postgres(engine) => engine.read_lagging(timeout, look),
                Engine::Sqlite(_) => tenant.run_for(Weight::Scan, timeout, look),
            }?;
            Ok(reading)
        };
        tokio::task::spawn_blocking(run).await.unwrap_or(Err(StoreError::Panicked))
    }

    /// Runs a closure on a snapshot, on this thread.
    pub fn read_blocking<R, E: From<StoreError>>(
        &self,
        closure: impl FnMut(&mut View<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.read_for(Weight::Scan, Duration::from_millis(self.0.read_timeout_ms), closure)
    }

    pub(crate) fn read_for<R, E: From<StoreError>>(
        &self,
        weight: Weight,
        timeout: Duration,
        mut closure: impl FnMut(&mut View<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut result = None;
        self.run_for(weight, timeout, &mut |view| result.insert(closure(view)).is_ok())?;
        result.unwrap_or_else(|| Err(StoreError::Closed.into()))
    }

    fn run_for(&self, weight: Weight, timeout: Duration, look: Look<'_>) -> Result<()> {
        let engine = match &self.0.engine {
            Engine::Sqlite(engine) => engine,
            Engine::Postgres(engine) => return aside(|| engine.read(weight, timeout, look)),
        };
        engine.read(timeout, look)
    }

    /// Runs a closure in a transaction; its changes are on disk when this returns. A closure that returns an error, or
    /// panics, leaves nothing behind. It may run again.
    ///
    /// Errors: the closure's own; [`StoreError::Busy`] when the queue is full.
    pub async fn write<R, E>(
        &self,
        closure: impl FnMut(&mut Txn<'_>) -> Result<R, E> + Send + 'static,
    ) -> Result<(R, WriteTimes), E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.commit(Box::new(Kept { closure, result: None })).await?.result()
    }

    async fn commit(&self, work: Box<dyn Work>) -> Result<Done> {
        let (answer, receiver) = oneshot::channel();
        let job = Write::job(work, Answer::Awaited(answer), Sharing::Any);
        self.engine_statistics().requested.fetch_add(1, Ordering::Relaxed);
        match &self.0.engine {
            Engine::Sqlite(engine) => engine.submit(job)?,
            Engine::Postgres(engine) => engine.submit(job)?,
        }
        receiver.await.map_err(|_| StoreError::Closed)
    }

    /// Runs a write for callers that are not asynchronous. Waits when the queue is full.
    pub fn write_blocking<R, E>(
        &self,
        closure: impl FnMut(&mut Txn<'_>) -> Result<R, E> + Send + 'static,
    ) -> Result<R, E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.write_waiting(closure, Sharing::Any)
    }

    fn write_waiting<R, E>(
        &self,
        closure: impl FnMut(&mut Txn<'_>) -> Result<R, E> + Send + 'static,
        company: Sharing,
    ) -> Result<R, E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.write_later(closure, company)?.wait()
    }

    pub(crate) fn write_later<R, E>(
        &self,
        closure: impl FnMut(&mut Txn<'_>) -> Result<R, E> + Send + 'static,
        company: Sharing,
    ) -> Result<Loading<R, E>, E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let receiver = self.commit_later(Box::new(Kept { closure, result: None }), company)?;
        Ok(Loading { receiver, result: PhantomData })
    }

    fn commit_later(&self, work: Box<dyn Work>, company: Sharing) -> Result<mpsc::Receiver<Done>> {
        let (answer, receiver) = mpsc::sync_channel(1);
        let job = Write::job(work, Answer::Blocking(answer), company);
        match &self.0.engine {
            Engine::Sqlite(engine) => engine.submit_waiting(job)?,
            Engine::Postgres(engine) => engine.submit_waiting(job)?,
        }
        Ok(receiver)
    }

    /// Runs a write of many records. In a database each has a transaction and a session to itself, as far as
    /// `limits.tenant_writers` allows. In the embedded engine they run one after the other, and this returns before
    /// everything is on disk: the changes are visible to everybody, and durable once a later [`Tenant::write_blocking`]
    /// returns.
    pub fn load_blocking<R, E>(
        &self,
        closure: impl FnMut(&mut Txn<'_>) -> Result<R, E> + Send + 'static,
    ) -> Result<R, E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.load_later(closure)?.wait()
    }

    /// Runs such a write without waiting for its end, so that the caller can prepare the next one meanwhile. Waits when
    /// the queue is full.
    pub fn load_later<R, E>(
        &self,
        closure: impl FnMut(&mut Txn<'_>) -> Result<R, E> + Send + 'static,
    ) -> Result<Loading<R, E>, E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.write_later(closure, Sharing::Alone)
    }

    /// Ends a bulk load of a kind: builds its missing declared indexes. In a file, its counts are written first: with
    /// them, its search index begins to be built. In a database, the index of words is built beside the others.
    pub fn make_indexes(&self, kind: &'static Kind) -> Result<()> {
        if self.is_embedded() {
            self.write_blocking(move |txn| txn.end_load(kind))?;
            return self.write_blocking(move |txn| txn.make_indexes(kind));
        }
        let make = |share| self.load_blocking(move |txn| txn.make_some_indexes(kind, share));
        std::thread::scope(|scope| {
            let words = scope.spawn(|| make(IndexShare::Words));
            let others = make(IndexShare::Others);
            words.join().unwrap_or(Err(StoreError::Panicked)).and(others)
        })
    }

    /// Copies the last committed state into the file `to`, which must not exist, while reads and writes go on.
    pub fn backup(&self, to: &Path) -> Result<()> {
        match &self.0.engine {
            Engine::Sqlite(engine) => engine.backup(to),
            Engine::Postgres(_) => Err(StoreError::Query(
                "a tenant in PostgreSQL is backed up with the database's own tools (pg_dump, pg_basebackup)"
                    .to_owned(),
            )),
        }
    }

    /// Compares every index, count and reference with the bodies; returns the inconsistencies. Kinds that are being
    /// rebuilt are completed first.
    pub fn check(&self) -> Result<Vec<String>> {
        self.finish_remakes()?;
        // Search indexes are opened in the background. One that is being built is not compared.
        self.wait_for_indexes(OPENING)?;
        self.read_for(Weight::Scan, UNBOUNDED, check::findings)
    }

    fn engine_statistics(&self) -> &Statistics {
        match &self.0.engine {
            Engine::Sqlite(engine) => engine.statistics(),
            Engine::Postgres(engine) => engine.statistics(),
        }
    }

    /// Returns the number of writes waiting in the queue.
    pub fn n_waiting(&self) -> u64 {
        self.engine_statistics().queue_depth.load(Ordering::Relaxed)
    }

    /// Returns why the tenant accepts no more writes, if so: a flush of the log failed. Permanent until the process
    /// ends.
    pub fn failure(&self) -> Option<String> {
        match &self.0.engine {
            Engine::Sqlite(engine) => engine.failure(),
            Engine::Postgres(_) => None,
        }
    }

    /// Returns statistics for monitoring.
    pub fn statistics(&self) -> TenantStats {
        let it = self.engine_statistics();
        let n_idle_readers = match &self.0.engine {
            Engine::Sqlite(engine) => engine.n_idle_readers(),
            Engine::Postgres(engine) => engine.n_idle_readers(),
        };
        TenantStats {
            name: self.0.name.clone(),
            queue_depth: it.queue_depth.load(Ordering::Relaxed),
            n_batches: it.batches.load(Ordering::Relaxed),
            n_writes: it.writes.load(Ordering::Relaxed),
            n_requested: it.requested.load(Ordering::Relaxed),
            commit_us: it.commit_us.load(Ordering::Relaxed),
            n_idle_readers,
            log_bytes: it.log_bytes.load(Ordering::Relaxed),
            log_left_bytes: it.log_left_bytes.load(Ordering::Relaxed),
            oldest_read_ms: match &self.0.engine {
                Engine::Sqlite(engine) => u64::try_from(engine.oldest_read().as_millis()).unwrap_or(u64::MAX),
                Engine::Postgres(_) => 0,
            },
        }
    }
}

/// How long a check waits for search indexes.
const OPENING: Duration = Duration::from_secs(5);

/// Statistics of an open tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantStats {
    /// The tenant.
    pub name: String,
    /// Writes that wait now.
    pub queue_depth: u64,
    /// Commits since the tenant was opened.
    pub n_batches: u64,
    /// Writes in those commits.
    pub n_writes: u64,
    /// Writes requested by [`Tenant::write`], as for requests: background work waits on its own thread
    /// ([`Tenant::write_blocking`]) and is not counted.
    pub n_requested: u64,
    /// Time spent in those commits, in microseconds.
    pub commit_us: u64,
    /// Idle reading connections.
    pub n_idle_readers: usize,
    /// Size of the write-ahead log when it was last checked, in bytes; 0 in a database.
    pub log_bytes: u64,
    /// The part of it that could not be checkpointed because an older read needs it.
    pub log_left_bytes: u64,
    /// How long the oldest read under way has been running, in milliseconds; 0 in a database.
    pub oldest_read_ms: u64,
}

/// A read that keeps its result. The type is erased, so that the code that moves it to a thread and an engine is
/// compiled once.
pub struct ReadJob(Box<dyn Looking>);

trait Looking: Send {
    fn look(&mut self, view: &mut View<'_>) -> bool;
    fn kept(&mut self) -> &mut dyn Any;
}

/// A closure and the result of its last run.
struct Kept<F, R, E> {
    closure: F,
    result: Option<Result<R, E>>,
}

/// A read wrapped in something else.
struct Within<A> {
    around: A,
    inner: Box<dyn Looking>,
}

impl ReadJob {
    /// Returns the read of a closure, which may run more than once.
    pub fn of<R, E>(closure: impl FnMut(&mut View<'_>) -> Result<R, E> + Send + 'static) -> Self
    where
        R: Send + 'static,
        E: Send + 'static,
    {
        Self(Box::new(Kept { closure, result: None }))
    }

    /// Wraps the read in `around`, which is given what to run.
    #[must_use]
    pub fn within(self, around: impl FnMut(&mut dyn FnMut()) + Send + 'static) -> Self {
        Self(Box::new(Within { around, inner: self.0 }))
    }

    /// Returns the result of the closure.
    pub fn result<R: 'static, E: From<StoreError> + 'static>(mut self) -> Result<R, E> {
        taken(self.0.kept()).unwrap_or_else(|| Err(StoreError::Closed.into()))
    }
}

impl<F, R, E> Looking for Kept<F, R, E>
where
    F: FnMut(&mut View<'_>) -> Result<R, E> + Send,
    R: Send + 'static,
    E: Send + 'static,
{
    fn look(&mut self, view: &mut View<'_>) -> bool {
        self.result.insert((self.closure)(view)).is_ok()
    }

    fn kept(&mut self) -> &mut dyn Any {
        &mut self.result
    }
}

impl<A: FnMut(&mut dyn FnMut()) + Send> Looking for Within<A> {
    fn look(&mut self, view: &mut View<'_>) -> bool {
        let mut is_result = false;
        (self.around)(&mut || is_result = self.inner.look(view));
        is_result
    }

    fn kept(&mut self) -> &mut dyn Any {
        self.inner.kept()
    }
}

/// Takes the result out of `kept`, which is an `Option` of it.
fn taken<R: 'static, E: 'static>(kept: &mut dyn Any) -> Option<Result<R, E>> {
    let kept = kept.downcast_mut::<Option<Result<R, E>>>();
    debug_assert!(kept.is_some(), "a result is taken as another type than it was kept as");
    kept?.take()
}

/// A finished write. It holds the closure with everything that it captured, which the caller's thread allocated and
/// frees faster than the writer's.
pub(crate) struct Done {
    write: Box<dyn Work>,
    error: Option<StoreError>,
    times: WriteTimes,
}

impl Done {
    fn result<R: 'static, E: From<StoreError> + 'static>(mut self) -> Result<(R, WriteTimes), E> {
        match (self.error, taken(self.write.kept())) {
            (_, Some(Err(refused))) => Err(refused),
            (Some(error), _) => Err(error.into()),
            (None, Some(Ok(result))) => Ok((result, self.times)),
            (None, None) => Err(StoreError::Closed.into()),
        }
    }
}

/// How the caller of a write gets its answer.
enum Answer {
    /// The caller awaits it.
    Awaited(oneshot::Sender<Done>),
    /// The caller's thread blocks.
    Blocking(mpsc::SyncSender<Done>),
}

impl Answer {
    fn send(self, done: Done) {
        let is_taken = match self {
            Self::Awaited(answer) => answer.send(done).is_ok(),
            Self::Blocking(answer) => answer.send(done).is_ok(),
        };
        if !is_taken {
            tracing::debug!("the caller of a write went away before its answer");
        }
    }
}

trait Work: Send {
    /// Runs the closure; returns whether it succeeded.
    fn work(&mut self, txn: &mut Txn<'_>) -> bool;
    fn kept(&mut self) -> &mut dyn Any;
}

impl<F, R, E> Work for Kept<F, R, E>
where
    F: FnMut(&mut Txn<'_>) -> Result<R, E> + Send,
    R: Send + 'static,
    E: Send + 'static,
{
    fn work(&mut self, txn: &mut Txn<'_>) -> bool {
        self.result.insert((self.closure)(txn)).is_ok()
    }

    fn kept(&mut self) -> &mut dyn Any {
        &mut self.result
    }
}

/// A write and the way to answer its caller.
struct Write {
    work: Box<dyn Work>,
    answer: Answer,
    queued_at: Instant,
    company: Sharing,
}

impl Write {
    fn job(work: Box<dyn Work>, answer: Answer, company: Sharing) -> Box<dyn Job> {
        Box::new(Self { work, answer, queued_at: Instant::now(), company })
    }
}

impl Job for Write {
    fn run(&mut self, txn: &mut Txn<'_>) -> ControlFlow<()> {
        if self.work.work(txn) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn finish(self: Box<Self>, error: Option<StoreError>, times: WriteTimes) {
        self.answer.send(Done { write: self.work, error, times });
    }

    fn queued_at(&self) -> Instant {
        self.queued_at
    }

    fn company(&self) -> Sharing {
        self.company
    }
}
