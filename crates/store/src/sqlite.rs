//! The embedded engine: one SQLite file per tenant, one writer that shares commits, many readers.
//!
//! The writer takes closures from a bounded queue, runs those that wait in one transaction and answers them
//! together after the commit, so that many callers share one `fsync`. Hardly any is refused once it has written
//! something, so none pays for a savepoint: when one is, the batch is undone and runs again with savepoints. Readers
//! have connections of their own and see the last committed state. A keeper writes the log back beside the
//! writer, never in a caller's way unless the log has outgrown its bound.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::counters::{Counters, PutOff, Settlement};
use crate::pace::Pace;
use crate::session::Session;
use crate::tenant::{Job, Statistics, WriteTimes};
use crate::txn::Numbers;
use crate::view::{Shared, State};
use crate::{Class, Kind, Limits, Result, StoreError, Text, Txn, View, schema, text};

/// Bytes of a new database's pages: bodies of a few KB fit, and a page that one index entry changes is written whole.
const PAGE_BYTES: u32 = 8 << 10;
/// How long a connection waits for a lock that another one holds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it looks often whether the lock is free: those of this process are held for moments.
const LOCK_SOON: Duration = Duration::from_millis(50);
/// How often it looks then, and how often later.
const LOCK_LOOKS: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(5));
/// Prepared statements kept per connection.
const STATEMENTS: usize = 512;
/// How many times a reader's page cache the writer's is: what it changes in a batch must stay in it.
const WRITER_CACHES: i64 = 8;
/// Classes that the writer remembers at most.
const CLASSES: usize = 100_000;
/// How long the writer is idle before it uses the time for the text index.
const IDLE: Duration = Duration::from_millis(20);
/// How often the keeper looks at the log's size at most.
const KEEPER_PAUSE: Duration = Duration::from_millis(200);

/// One tenant's file, open.
pub(crate) struct Sqlite {
    path: PathBuf,
    shared: Arc<Shared>,
    readers: Mutex<Vec<Reader>>,
    queue: Option<SyncSender<Box<dyn Job>>>,
    statistics: Arc<Statistics>,
    threads: Vec<JoinHandle<()>>,
    keeper: Arc<Keeper>,
    /// Held while the file is open: says to other processes that lists in the making are somebody's.
    _presence: File,
}

/// A reading connection and how long what it reads may take.
struct Reader {
    connection: Connection,
    pace: Pace,
}

/// Wakes the thread that writes the log back.
#[derive(Default)]
struct Keeper {
    state: Mutex<KeeperState>,
    changed: Condvar,
}

#[derive(Default)]
struct KeeperState {
    has_commits: bool,
    is_closing: bool,
}

impl Sqlite {
    /// Opens the file, which must exist, brings its tables to the declared kinds and starts its threads.
    pub(crate) fn open(path: &Path, shared: Arc<Shared>) -> Result<Self> {
        let connection = connect(path, &shared.limits)?;
        let cache_kib = i64::from(shared.limits.page_cache_kib) * WRITER_CACHES;
        connection.pragma_update(None, "cache_size", -cache_kib)?;
        let (presence, company) = announce(path)?;
        prepare(&connection, &shared, path, company)?;
        let shown = path.display().to_string();
        presence.lock_shared().map_err(|source| StoreError::Io { path: shown, source })?;
        let statistics = Arc::new(Statistics::default());
        let keeper = Arc::new(Keeper::default());
        let (queue, jobs) = sync_channel(shared.limits.write_queue);
        let writer = Writer {
            connection,
            shared: shared.clone(),
            statistics: statistics.clone(),
            keeper: keeper.clone(),
            text_due: true,
            text_behind: Cell::new(None),
            n_texts_owed: Cell::new(0),
            classes: HashSet::new(),
            put_off: PutOff::default(),
        };
        let mut log_connection = connect(path, &shared.limits)?;
        let (log_keeper, log_bytes) = (keeper.clone(), shared.limits.log_bytes);
        let threads = vec![
            spawn("store-writer", move || writer.run(&jobs))?,
            spawn("store-log", move || log_keeper.run(&mut log_connection, log_bytes))?,
        ];
        Ok(Self {
            path: path.into(),
            shared,
            readers: Mutex::default(),
            queue: Some(queue),
            statistics,
            threads,
            keeper,
            _presence: presence,
        })
    }

    /// Runs a closure on a snapshot, for `timeout` at most.
    pub(crate) fn read<R, E: From<StoreError>>(
        &self,
        timeout: Duration,
        mut closure: impl FnMut(&mut View<'_>) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let reader = self.take_reader()?;
        reader.pace.allow(timeout);
        let mut view = View {
            session: Session::Sqlite(&reader.connection),
            state: State::Committed,
            shared: &self.shared,
            behind: None,
            pace: Some(&reader.pace),
        };
        view.session.execute("BEGIN", &[])?;
        let result = closure(&mut view);
        reader.pace.rest();
        view.session.execute("ROLLBACK", &[])?;
        self.give_back(reader);
        result
    }

    /// Puts a write into the queue, waiting for room.
    pub(crate) fn submit_waiting(&self, job: Box<dyn Job>) -> Result<()> {
        let Some(queue) = &self.queue else { return Err(StoreError::Closed) };
        self.statistics.queue_depth.fetch_add(1, Ordering::Relaxed);
        queue.send(job).map_err(|_| {
            self.statistics.queue_depth.fetch_sub(1, Ordering::Relaxed);
            StoreError::Closed
        })
    }

    /// Puts a write into the queue.
    pub(crate) fn submit(&self, job: Box<dyn Job>) -> std::result::Result<(), (Box<dyn Job>, StoreError)> {
        let Some(queue) = &self.queue else { return Err((job, StoreError::Closed)) };
        self.statistics.queue_depth.fetch_add(1, Ordering::Relaxed);
        queue.try_send(job).map_err(|refused| {
            self.statistics.queue_depth.fetch_sub(1, Ordering::Relaxed);
            match refused {
                TrySendError::Full(job) => {
                    (job, StoreError::Busy { depth: self.shared.limits.write_queue, retry_after_s: 1 })
                }
                TrySendError::Disconnected(job) => (job, StoreError::Closed),
            }
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(crate) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    pub(crate) fn n_idle_readers(&self) -> usize {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Copies the last committed state into a new file, while reads and writes go on.
    pub(crate) fn backup(&self, to: &Path) -> Result<()> {
        let failed = |source| StoreError::Io { path: to.display().to_string(), source };
        File::create_new(to).map_err(failed)?;
        let copied = self.copy_to(to).and_then(|()| sync_folder(to));
        if copied.is_err() {
            std::fs::remove_file(to).map_err(failed)?;
        }
        copied
    }

    fn copy_to(&self, to: &Path) -> Result<()> {
        let reader = self.take_reader()?;
        let mut target = Connection::open(to)?;
        let copy = rusqlite::backup::Backup::new(&reader.connection, &mut target)?;
        loop {
            match copy.step(-1)? {
                rusqlite::backup::StepResult::Done => break,
                _ => std::thread::sleep(BACKUP_PAUSE),
            }
        }
        drop(copy);
        self.give_back(reader);
        Ok(())
    }

    fn take_reader(&self) -> Result<Reader> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(reader) = idle {
            return Ok(reader);
        }
        let mut connection = connect(&self.path, &self.shared.limits)?;
        connection.pragma_update(None, "query_only", true)?;
        let pace = Pace::of(&mut connection)?;
        Ok(Reader { connection, pace })
    }

    fn give_back(&self, reader: Reader) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < self.shared.limits.readers {
            readers.push(reader);
        }
    }
}

/// How long writers may be kept from writing so that the log begins anew.
const RESTART_PAUSE: Duration = Duration::from_millis(5);
/// What of the log may be left when it begins anew: the writer waits while that is written.
const RESTART_BYTES: u64 = 2 << 20;
/// How many times its bound the log may hold before it begins anew whatever is left.
const RESTART_TIMES: u64 = 4;
/// How many times its bound the log may hold before writers are kept waiting for long reads.
const LOG_TIMES: u64 = 16;
/// Pause of a backup when another process holds a lock.
const BACKUP_PAUSE: Duration = Duration::from_millis(50);

impl Drop for Sqlite {
    /// Finishes what waits in the queue, then closes the file.
    fn drop(&mut self) {
        self.queue = None;
        self.keeper.close();
        let here = std::thread::current().id();
        // The last owner may be a write that has just ended: its own thread cannot wait for itself.
        for thread in self.threads.drain(..).filter(|it| it.thread().id() != here) {
            if thread.join().is_err() {
                tracing::error!(path = %self.path.display(), "a thread of the store stopped by an internal fault");
            }
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|source| StoreError::Io { path: format!("thread {name}"), source })
}

/// Makes an empty tenant's file.
pub(crate) fn create(path: &Path) -> Result<()> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    drop(connection);
    sync_folder(path)
}

/// Makes the name of a new file durable.
fn sync_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|it| it.sync_all())
        .map_err(|source| StoreError::Io { path: folder.display().to_string(), source })
}

fn connect(path: &Path, limits: &Limits) -> Result<Connection> {
    use rusqlite::OpenFlags;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    wait_for_locks(&mut connection, LOCK_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Without this guarantee the engine plans a statement anew whenever a value bound to it changes: more than a
    // third of a read by id. Which index leads is our choice anyway.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    rusqlite::vtab::array::load_module(&connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "cache_size", -i64::from(limits.page_cache_kib))?;
    connection.pragma_update(None, "mmap_size", i64::try_from(limits.map_bytes).unwrap_or(i64::MAX))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// How long a connection waits for locks. The engine's own way sleeps longer each time: a writer that met the keeper for
/// half a millisecond slept through twenty.
fn wait_for_locks(connection: &mut Connection, patience: Duration) -> Result<()> {
    let mut began = Instant::now();
    let wait = move |n_looks: i32| {
        if n_looks == 0 {
            began = Instant::now();
        }
        let waited = began.elapsed();
        std::thread::sleep(if waited < LOCK_SOON { LOCK_LOOKS.0 } else { LOCK_LOOKS.1 });
        waited < patience
    };
    Ok(connection.busy_handler(Some(wait))?)
}

/// Brings the tables up to date, sweeps lists that no record took over, makes indexes and counts that a bulk load left out.
fn prepare(connection: &Connection, shared: &Shared, path: &Path, company: Company) -> Result<()> {
    let mut session = Session::Sqlite(connection);
    session.batch("BEGIN IMMEDIATE")?;
    let prepared = schema::apply(&mut session, shared.kinds, &path.display().to_string()).and_then(|()| {
        for kind in shared.kinds {
            schema::create_indexes(&mut session, kind)?;
        }
        match company {
            Company::Alone => {
                sweep(&mut session)?;
                shared.kinds.iter().try_for_each(|kind| schema::recount(&mut session, kind))
            }
            Company::Others => Ok(()),
        }
    });
    session.batch(if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    prepared
}

/// Whether another process, or an instance that is closing, has the file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    Alone,
    Others,
}

/// Opens the file whose lock tells who has the tenant open; it is locked alone if nobody else has it.
fn announce(path: &Path) -> Result<(File, Company)> {
    let path = PathBuf::from(format!("{}{PRESENCE}", path.display()));
    let failed = |source| StoreError::Io { path: path.display().to_string(), source };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    let company = match file.try_lock() {
        Ok(()) => Company::Alone,
        Err(std::fs::TryLockError::WouldBlock) => Company::Others,
        Err(std::fs::TryLockError::Error(source)) => return Err(failed(source)),
    };
    Ok((file, company))
}

/// Ending of the file whose lock tells who has a tenant open.
pub(crate) const PRESENCE: &str = "-open";

fn sweep(session: &mut Session<'_>) -> Result<()> {
    let left = session.all("SELECT kind, list FROM staging", &[], |row| Ok((row.text(0)?, row.int(1)?)))?;
    for (kind, list) in left {
        session.execute(&format!("DELETE FROM \"m_{kind}\" WHERE list = ?1"), &[list.into()])?;
    }
    session.batch("DELETE FROM staging")
}

/// The only connection that writes.
struct Writer {
    connection: Connection,
    shared: Arc<Shared>,
    statistics: Arc<Statistics>,
    keeper: Arc<Keeper>,
    text_due: bool,
    /// The kind whose text index was too far behind when it was last looked at.
    text_behind: Cell<Option<&'static Kind>>,
    /// Records written since writes paid for the text index.
    n_texts_owed: Cell<usize>,
    /// Classes known to be stored, so that most inserts ask nothing.
    classes: HashSet<(&'static str, Class)>,
    put_off: PutOff,
}

/// A write of the batch under way.
struct Part {
    job: Box<dyn Job>,
    error: Option<StoreError>,
    started: Instant,
    run: Duration,
}

impl Writer {
    fn run(mut self, jobs: &Receiver<Box<dyn Job>>) {
        loop {
            match jobs.recv_timeout(IDLE) {
                Ok(first) => {
                    self.batch(first, jobs);
                    self.text_due = true;
                }
                Err(RecvTimeoutError::Timeout) if self.text_due => self.advance_text(),
                Err(RecvTimeoutError::Timeout) => match jobs.recv() {
                    Ok(first) => {
                        self.batch(first, jobs);
                        self.text_due = true;
                    }
                    Err(_) => break,
                },
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Err(error) = self.end_loads() {
            tracing::warn!(%error, "counts of a bulk load could not be written; they are made at the next start");
        }
    }

    /// Writes what bulk loads that nobody ended have counted.
    fn end_loads(&self) -> Result<()> {
        if self.put_off.is_empty() {
            return Ok(());
        }
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let mut counters = Counters::default();
        self.put_off.end(&mut counters);
        self.put_off.flush(&mut counters, &mut Session::Sqlite(&self.connection))?;
        self.connection.execute_batch("COMMIT")?;
        Ok(())
    }

    /// Runs `first` and what waits behind it in one transaction.
    fn batch(&mut self, first: Box<dyn Job>, jobs: &Receiver<Box<dyn Job>>) {
        let mut parts = Vec::new();
        let mut classes = std::mem::take(&mut self.classes);
        let result = self.run_parts(first, jobs, &mut parts, &mut classes);
        let commit_started = Instant::now();
        let result =
            result.and_then(|settlement| Ok(self.connection.execute_batch("COMMIT").map(|()| settlement)?));
        if result.is_err() && !self.connection.is_autocommit() {
            // The transaction is undone when the engine has not done so itself.
            if let Err(error) = self.connection.execute_batch("ROLLBACK") {
                tracing::error!(%error, "rollback failed");
            }
        }
        let commit = commit_started.elapsed();
        let (settlement, failure) = match result {
            Ok(settlement) => (Some(settlement), None),
            Err(error) => (None, Some(error)),
        };
        if let Some(settlement) = settlement {
            self.put_off.committed(settlement);
            if classes.len() < CLASSES {
                self.classes = classes;
            }
        }
        let failure = failure.map(|error| error.to_string());
        self.statistics.note_batch(parts.len(), commit);
        self.keeper.note_commit();
        for part in parts {
            let error = part.error.or_else(|| failure.clone().map(StoreError::Commit));
            let wait = part.started.saturating_duration_since(part.job.queued_at());
            part.job.finish(error, WriteTimes { wait, run: part.run, commit });
        }
    }

    fn run_parts(
        &self,
        first: Box<dyn Job>,
        jobs: &Receiver<Box<dyn Job>>,
        parts: &mut Vec<Part>,
        classes: &mut HashSet<(&'static str, Class)>,
    ) -> Result<Settlement> {
        let (mut sums, mut next) = (Sums::default(), Some(first));
        let mut undone = Vec::new();
        let mut begun = Some(self.begin(&mut sums));
        while let Some(job) = next {
            self.statistics.queue_depth.fetch_sub(1, Ordering::Relaxed);
            parts.push(Part { job, error: None, started: Instant::now(), run: Duration::ZERO });
            // The first write answers for a transaction that could not begin.
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
            next = if is_full { None } else { jobs.try_recv().ok() };
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
        let settlement = self.put_off.flush(&mut sums.counters, &mut session)?;
        let numbers = sums.numbers;
        session.execute("UPDATE meta SET value = ?1 WHERE name = 'sequence'", &[numbers.sequence.into()])?;
        session.execute("UPDATE meta SET value = ?1 WHERE name = 'list'", &[numbers.list.into()])?;
        self.bound_text_lag(&mut session, sums.n_texts)?;
        Ok(settlement)
    }

    fn begin(&self, sums: &mut Sums) -> Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        sums.numbers = self.numbers()?;
        Ok(())
    }

    /// Runs one closure. A refused or panicking one leaves nothing behind, or, when it wrote something without a
    /// savepoint, asks for the batch to be undone.
    fn run_part(
        &self,
        part: &mut Part,
        sums: &mut Sums,
        known: &HashSet<(&'static str, Class)>,
        guard: Guard,
    ) -> Result<Ran> {
        part.started = Instant::now();
        part.error = None;
        let n_before = self.connection.total_changes();
        let mut txn = Txn {
            view: View {
                session: Session::Sqlite(&self.connection),
                state: State::Open,
                shared: &self.shared,
                behind: None,
                pace: None,
            },
            counters: Counters::default(),
            numbers: sums.numbers,
            n_bytes: 0,
            n_texts: 0,
            classes: std::mem::take(&mut sums.classes),
            touched_schema: false,
            batch_classes: known,
        };
        if guard == Guard::Savepoint {
            txn.view.session.execute("SAVEPOINT part", &[])?;
        } else {
            // A refused part that counted something has written it too, and is undone with the batch.
            std::mem::swap(&mut txn.counters, &mut sums.counters);
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| part.job.run(&mut txn)));
        part.run = part.started.elapsed();
        // Numbers are never given twice in a batch, not even after a refused write.
        sums.numbers = txn.numbers;
        if self.connection.is_autocommit() {
            // The engine undid everything by itself, as it does when the disk is full: the parts before
            // are gone too, and nothing may run outside a transaction.
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
            // Which classes were stored before this part is forgotten: they are asked for again.
            Guard::Savepoint => undo_part(&mut txn.view.session)?,
        }
        sums.n_bytes += txn.n_bytes;
        sums.n_texts += txn.n_texts;
        Ok(Ran::Done)
    }

    fn numbers(&self) -> Result<Numbers> {
        let mut session = Session::Sqlite(&self.connection);
        let mut read = |name: &str| -> Result<u64> {
            let sql = "SELECT value FROM meta WHERE name = ?1";
            Ok(session.first(sql, &[name.into()], |row| row.int(0))?.unwrap_or(0).cast_unsigned())
        };
        Ok(Numbers { sequence: read("sequence")?, list: read("list")? })
    }

    /// Under a load without pauses, writes pay for the text index once it is too far behind: for as many records as
    /// they wrote, in steps, because the index takes each step as a segment of its own and merges them later.
    fn bound_text_lag(&self, session: &mut Session<'_>, n_written: usize) -> Result<()> {
        let most = self.shared.limits.text_lag_records;
        if self.statistics.batches.load(Ordering::Relaxed).is_multiple_of(TEXT_LOOK_BATCHES) {
            self.text_behind.set(None);
            for kind in self.shared.kinds.iter().filter(|it| it.text != Text::None) {
                if most < text::lag(session, kind, most + 1)? {
                    self.text_behind.set(Some(kind));
                }
            }
        }
        let n_owed = self.n_texts_owed.get() + n_written.max(1);
        self.n_texts_owed.set(n_owed);
        if let Some(kind) = self.text_behind.get()
            && text::STEP_BESIDE_RECORDS <= n_owed
        {
            self.n_texts_owed.set(0);
            if text::step(session, kind, n_owed.min(text::STEP_RECORDS))? == text::Progress::Current {
                tracing::debug!(kind = kind.name, "the text index caught up");
                self.text_behind.set(None);
            }
        }
        Ok(())
    }

    /// Uses idle time for one step of the text index.
    fn advance_text(&mut self) {
        let step = self.try_advance_text();
        match step {
            Ok(more) => self.text_due = more,
            Err(error) => {
                tracing::warn!(%error, "the text index could not be brought up to date");
                self.text_due = false;
            }
        }
    }

    fn try_advance_text(&self) -> Result<bool> {
        let mut session = Session::Sqlite(&self.connection);
        for kind in self.shared.kinds {
            if text::lag(&mut session, kind, 1)? == 0 {
                continue;
            }
            session.batch("BEGIN IMMEDIATE")?;
            let step = text::step(&mut session, kind, text::STEP_BESIDE_RECORDS);
            session.batch(if step.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
            self.keeper.note_commit();
            return step.map(|_| true);
        }
        Ok(false)
    }
}

/// What the parts of a batch leave for its commit.
#[derive(Default)]
struct Sums {
    numbers: Numbers,
    n_bytes: usize,
    /// Records that the text index has to follow.
    n_texts: usize,
    counters: Counters,
    /// Classes that the batch stored or found stored.
    classes: HashSet<(&'static str, Class)>,
}

/// What undoes a part of a batch alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// Nothing: the whole batch would have to be undone.
    None,
    Savepoint,
}

/// How a part ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    /// Done, or refused without a trace.
    Done,
    /// Refused after it had written something: the batch must be undone.
    Undo,
}

/// Batches between two looks at how far the text index is behind.
const TEXT_LOOK_BATCHES: u64 = 16;

fn undo_part(session: &mut Session<'_>) -> Result<()> {
    session.execute("ROLLBACK TO part", &[])?;
    session.execute("RELEASE part", &[])?;
    Ok(())
}

impl Keeper {
    fn note_commit(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.has_commits {
            state.has_commits = true;
            self.changed.notify_one();
        }
    }

    fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closing = true;
        self.changed.notify_one();
    }

    fn run(&self, connection: &mut Connection, log_bytes: u64) {
        loop {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            while !state.has_commits && !state.is_closing {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.is_closing {
                return;
            }
            state.has_commits = false;
            drop(state);
            if let Err(error) = write_back(connection, log_bytes) {
                tracing::warn!(%error, "the write-ahead log could not be written back");
            }
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let wait = self.changed.wait_timeout_while(state, KEEPER_PAUSE, |state| !state.is_closing);
            drop(wait.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Writes the log back once it is large: first beside the writer, then, for the little that came meanwhile,
/// holding it, so that the log begins anew.
fn write_back(connection: &mut Connection, log_bytes: u64) -> Result<()> {
    let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    // Bytes of the log, and of them what is not written back.
    let look = |connection: &Connection, mode: &str| -> Result<(u64, u64)> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let (log, done): (i64, i64) = connection.query_row(&sql, [], |row| Ok((row.get(1)?, row.get(2)?)))?;
        let bytes = |pages: i64| (pages.max(0) * page_bytes).cast_unsigned();
        Ok((bytes(log), bytes(log - done)))
    };
    if look(connection, "NOOP")?.1 < log_bytes {
        return Ok(());
    }
    // What comes meanwhile is written beside the writer too, as long as each round leaves less than the one before.
    let (mut log, mut left) = look(connection, "PASSIVE")?;
    while RESTART_BYTES < left {
        let before = left;
        (log, left) = look(connection, "PASSIVE")?;
        if before <= left {
            break;
        }
    }
    // The writer waits while the rest is written, and a long read may hold that up: the further the log is
    // beyond its bound, the longer writers may be kept.
    if RESTART_BYTES < left && log < RESTART_TIMES * log_bytes {
        return Ok(());
    }
    let patience = if left < LOG_TIMES * log_bytes { RESTART_PAUSE } else { LOCK_TIMEOUT };
    wait_for_locks(connection, patience)?;
    look(connection, "RESTART")?;
    wait_for_locks(connection, LOCK_TIMEOUT)
}
