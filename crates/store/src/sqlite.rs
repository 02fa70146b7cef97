//! The embedded engine: one SQLite file per tenant, one writer with group commit, many readers.
//!
//! The writer takes closures from a bounded queue and runs all that are waiting in one transaction; a flusher syncs it
//! to disk and answers them together, so that many callers share one `fsync`. Closures are hardly ever refused after
//! they have written something, so none has a savepoint: when one is refused, the batch is rolled back and runs again
//! with savepoints. Readers have connections of their own and see the last committed state. A keeper checkpoints the
//! log concurrently with the writer, and never makes a caller wait unless the log has outgrown its limit.

mod connections;
#[cfg(test)]
mod ended_load;
#[cfg(test)]
mod failed_flush;
mod flush;
mod keeper;
mod mapping;
#[cfg(test)]
mod opened;
mod presence;
mod queue;
pub(crate) mod schema;
#[cfg(test)]
mod simulation;
mod writer;

use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use self::connections::{LOCK_SOON, LOCK_TIMEOUT, has_temporary_folder, keep_log, wait_for_locks};
use self::flush::Flusher;
use self::keeper::Keeper;
use self::presence::{PRESENCE, PRIVATE, Presence};
use self::queue::{Queue, Refused};
use self::writer::Writer;
use crate::caution::Caution;
use crate::folders::{self, folder_of};
use crate::index::{self, Builder, Indexes, Remembered};
use crate::jobs::{Job, Look, Statistics};
use crate::memory;
use crate::pace::Pace;
use crate::reads::Reads;
use crate::remake;
use crate::session::{Session, State};
use crate::users::Users;
use crate::view::Shared;
use crate::{Limits, Result, StoreError, View, pending_links, whole_lists};

/// Page size of a new database in bytes: bodies of a few KB fit, and a page is written whole even if only one index
/// entry in it changes.
const PAGE_BYTES: u32 = 8 << 10;
/// Prepared statements kept per connection.
const STATEMENTS: usize = 512;
/// Size of the writer's page cache, as a multiple of a reader's: the pages that a batch changes must fit in it.
const WRITER_CACHES: i64 = 8;

/// Files up to this share of memory are mapped: one over so much.
const MAPPED_SHARE: u64 = 2;
/// Reads of a connection after which it looks at the size of the file again.
const READS_BETWEEN_LOOKS: u32 = 10_000;

/// One tenant's file, open.
pub(crate) struct Sqlite {
    path: PathBuf,
    shared: Arc<Shared>,
    readers: Mutex<Vec<Reader>>,
    /// The start of each read under way.
    paces: Mutex<Vec<Pace>>,
    /// Decides where reads by id run.
    pub(crate) caution: Caution,
    queue: Arc<Queue>,
    statistics: Arc<Statistics>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    keeper: Arc<Keeper>,
    /// Tells other processes that staged lists belong to a running process.
    presence: Arc<Presence>,
}

/// A reading connection and its time limit.
struct Reader {
    connection: Connection,
    pace: Pace,
    /// Reads since the last look at the size of the file.
    n_reads: u32,
}

impl Sqlite {
    /// Opens the file, which must exist, brings its tables into line with the declared kinds and starts its threads.
    pub(crate) fn open(path: &Path, shared: Arc<Shared>) -> Result<Self> {
        Self::open_with(path, shared, Flusher::open)
    }

    /// Opens the file with a given flusher.
    fn open_with(
        path: &Path,
        shared: Arc<Shared>,
        flusher: impl FnOnce(&Path, Arc<Queue>, Arc<Statistics>) -> Result<Flusher>,
    ) -> Result<Self> {
        keep_private(path);
        let (connection, presence) = match open_prepared(path, &shared) {
            Err(StoreError::Full(_)) if presence::give_back(path) => {
                tracing::warn!(file = %path.display(), "the disk is full: the tenant was opened with the space reserved for this; free some space");
                open_prepared(path, &shared)?
            }
            opened => opened?,
        };
        let presence = Arc::new(presence);
        if !presence.keep_reserve() {
            tracing::warn!(file = %path.display(), "the disk is nearly full: no space could be reserved for opening this file again");
        }
        // Durability comes from the flusher.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let statistics = Arc::new(Statistics::default());
        let (queue, keeper) = (Arc::new(Queue::new(shared.limits.write_queue)), Arc::new(Keeper::default()));
        let mut flusher = flusher(path, queue.clone(), statistics.clone())?;
        // The log may be a new file. The flusher syncs its content, which would be lost without its directory entry.
        sync_folder(path)?;
        let mut log_connection = connect(path, &shared.limits)?;
        let log_bytes = shared.limits.log_bytes;
        let (committed, batches) = mpsc::channel();
        let writer = Writer::new(
            connection,
            shared.clone(),
            statistics.clone(),
            queue.clone(),
            keeper.clone(),
            committed,
        );
        let (log_keeper, log_queue, log_statistics) = (keeper.clone(), queue.clone(), statistics.clone());
        let log_presence = presence.clone();
        let builder = follow(path, &shared)?;
        let threads = vec![
            spawn("store-index", move || builder.run())?,
            spawn("store-writer", move || writer.run())?,
            spawn("store-flush", move || flusher.run(&batches))?,
            spawn("store-log", move || {
                log_keeper.run(&mut log_connection, &log_queue, &log_presence, log_bytes, &log_statistics);
            })?,
        ];
        Ok(Self {
            path: path.into(),
            shared,
            readers: Mutex::default(),
            paces: Mutex::default(),
            caution: Caution::default(),
            queue,
            statistics,
            threads: Mutex::new(threads),
            keeper,
            presence,
        })
    }

    /// Runs a closure on a snapshot, for at most `timeout`.
    pub(crate) fn read(&self, timeout: Duration, look: Look<'_>) -> Result<()> {
        let reader = self.take_reader()?;
        reader.pace.allow(timeout);
        let mut view = View {
            session: Session::Sqlite(&reader.connection),
            state: State::Committed,
            shared: &self.shared,
            remakes: self.shared.remakes.current(),
            indexes: self.shared.published(),
            pace: Some(&reader.pace),
            reads: Reads::default(),
            remembered: Remembered::default(),
        };
        view.session.execute("BEGIN", &[])?;
        look(&mut view);
        reader.pace.rest();
        view.session.execute("ROLLBACK", &[])?;
        self.give_back(reader);
        Ok(())
    }

    /// Queues a write, waiting for room in the queue.
    pub(crate) fn submit_waiting(&self, job: Box<dyn Job>) -> Result<()> {
        self.submit_by(job, Queue::push_waiting)
    }

    /// Queues a write.
    pub(crate) fn submit(&self, job: Box<dyn Job>) -> Result<()> {
        self.submit_by(job, Queue::push)
    }

    fn submit_by(
        &self,
        job: Box<dyn Job>,
        push: impl FnOnce(&Queue, Box<dyn Job>) -> std::result::Result<(), Refused>,
    ) -> Result<()> {
        self.statistics.queue_depth.fetch_add(1, Ordering::Relaxed);
        push(&self.queue, job).map_err(|refused| {
            self.statistics.queue_depth.fetch_sub(1, Ordering::Relaxed);
            match refused {
                Refused::Full(_) => {
                    StoreError::Busy { depth: self.shared.limits.write_queue, retry_after_s: 1 }
                }
                Refused::Closed => StoreError::Closed,
            }
        })
    }

    /// Returns why the tenant no longer accepts writes, if so.
    pub(crate) fn failure(&self) -> Option<String> {
        self.queue.failure()
    }

    /// Returns how long the oldest read under way has been running.
    pub(crate) fn oldest_read(&self) -> Duration {
        let paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        paces.iter().filter_map(Pace::elapsed).max().unwrap_or_default()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
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
        File::options().write(true).create_new(true).mode(PRIVATE).open(to).map_err(failed)?;
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
        if let Some(mut reader) = idle {
            reader.n_reads += 1;
            if reader.n_reads == READS_BETWEEN_LOOKS {
                reader.n_reads = 0;
                map(&reader.connection, &self.path, &self.shared.limits)?;
            }
            return Ok(reader);
        }
        let mut connection = connect(&self.path, &self.shared.limits)?;
        connection.pragma_update(None, "query_only", true)?;
        let pace = Pace::of(&mut connection)?;
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        paces.retain(Pace::is_used);
        paces.push(pace.clone());
        Ok(Reader { connection, pace, n_reads: 0 })
    }

    fn give_back(&self, reader: Reader) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < self.shared.limits.readers {
            readers.push(reader);
        }
    }
}

impl Sqlite {
    /// Opens a connection that is to be the last to close. It writes the log back and removes it. Two connections that
    /// close at the same time may each take the other for one that goes on, and leave the log.
    fn connect_to_close(&self) -> Option<Connection> {
        let connection = connect(&self.path, &self.shared.limits).ok()?;
        // Only a connection that has read counts as a user of the log.
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).ok()?;
        Some(connection)
    }
}

/// Pause of a backup when another process holds a lock.
const BACKUP_PAUSE: Duration = Duration::from_millis(50);

impl Sqlite {
    /// Finishes the queued writes, accepts no more, and ends the threads: from then on nothing changes the file or the
    /// indexes beside it.
    pub(crate) fn close(&self) {
        self.queue.close();
        self.keeper.close();
        if self.threads.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return;
        }
        // Declared first, so closed last.
        let last = self.connect_to_close();
        let has_room = self.presence.keep_reserve();
        if let Some(indexes) = self.shared.indexes.get() {
            indexes.close();
        }
        let here = std::thread::current().id();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        // The last owner may be a write that has just ended: its thread cannot wait for itself.
        for thread in threads.into_iter().filter(|it| it.thread().id() != here) {
            if thread.join().is_err() {
                tracing::error!(path = %self.path.display(), "a thread of the store stopped by an internal fault");
            }
        }
        let readers = std::mem::take(&mut *self.readers.lock().unwrap_or_else(PoisonError::into_inner));
        if self.queue.failure().is_some() {
            readers.iter().for_each(|it| keep_log(&it.connection));
        }
        if !has_room || self.queue.failure().is_some() {
            last.iter().for_each(keep_log);
        }
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns the builder of a file's search indexes, with a connection of its own.
fn follow(path: &Path, shared: &Arc<Shared>) -> Result<Builder> {
    let connection = connect(path, &shared.limits)?;
    let mut session = Session::Sqlite(&connection);
    let store = index::store_identity(&mut session)?;
    let indexes = Arc::new(Indexes::open(index::folder_of(path), shared.kinds, &mut session)?);
    // The tenant is opened only once, so this cannot have been set before.
    shared.indexes.set(indexes.clone()).ok();
    let (limits, shared) = (shared.limits.clone(), shared.clone());
    let read = move |closure: &mut dyn FnMut(&mut View<'_>) -> Result<()>| {
        let mut view = View {
            session: Session::Sqlite(&connection),
            state: State::Committed,
            shared: &shared,
            remakes: shared.remakes.current(),
            indexes: None,
            pace: None,
            reads: Reads::default(),
            remembered: Remembered::default(),
        };
        view.session.execute("BEGIN", &[])?;
        let result = closure(&mut view);
        view.session.execute("ROLLBACK", &[])?;
        result
    };
    Ok(Builder::new(indexes, &store, &limits, index::LOOK, Box::new(read)))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|source| StoreError::Io { path: format!("thread {name}"), source })
}

/// Creates an empty tenant's file unless it exists. The file gets its final name when it is complete, so that an
/// interrupted creation leaves no tenant; and a log left by a deleted tenant of this name is not taken for its own.
pub(crate) fn create(path: &Path) -> Result<()> {
    let failed = |path: &Path, source| StoreError::Io { path: path.display().to_string(), source };
    let folder = folder_of(path);
    // Of several processes that create a tenant at once, one succeeds.
    let making = File::open(folder).map_err(|source| failed(folder, source))?;
    making.lock().map_err(|source| failed(folder, source))?;
    if path.exists() {
        return Ok(());
    }
    let aside = PathBuf::from(format!("{}{MAKING}", path.display()));
    for (file, end) in
        [aside.as_path(), path].into_iter().flat_map(|file| ["", "-wal", "-shm"].map(|end| (file, end)))
    {
        remove(&PathBuf::from(format!("{}{end}", file.display())))?;
    }
    File::options()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(&aside)
        .map_err(|source| failed(&aside, source))?;
    let connection = Connection::open(&aside)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    drop(connection);
    std::fs::rename(&aside, path).map_err(|source| failed(path, source))?;
    sync_folder(path)
}

/// File extension of a tenant that is being created.
const MAKING: &str = ".making";

/// Removes what an emptied tenant leaves: its file, its log and the files beside it; durably when this returns.
pub(crate) fn delete(path: &Path) -> Result<()> {
    for end in ["", "-wal", "-shm", PRESENCE] {
        remove(&PathBuf::from(format!("{}{end}", path.display())))?;
    }
    sync_folder(path)
}

/// Removes a file if it exists.
fn remove(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Io { path: file.display().to_string(), source })
        }
        _ => Ok(()),
    }
}

/// Returns a text from a tenant's file without opening the tenant; empty when there is none of that name. `None` when
/// it cannot be read that way.
pub(crate) fn meta_text(path: &Path, name: &str) -> Option<String> {
    meta_text_at_rest(path, name).or_else(|| meta_text_beside(path, name))
}

/// Reads the text from a file that nobody has open, without creating, locking or flushing anything. `None` where its
/// log is not empty, or something was written meanwhile.
fn meta_text_at_rest(path: &Path, name: &str) -> Option<String> {
    // A process that has the file open has a log beside it, and the file itself is only written from a log.
    let rests = || {
        let log = std::fs::metadata(format!("{}-wal", path.display()));
        let is_empty = match &log {
            Ok(log) => log.len() == 0,
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        let file = std::fs::metadata(path).ok()?;
        is_empty.then(|| (file.len(), file.ctime(), file.ctime_nsec(), file.ino()))
    };
    let before = rests()?;
    let mut uri = String::from("file:");
    for byte in path.to_str()?.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    use rusqlite::OpenFlags;
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let found = text_in_meta(&Connection::open_with_flags(uri, flags).ok()?, name)?;
    (rests()? == before).then_some(found)
}

fn text_in_meta(connection: &Connection, name: &str) -> Option<String> {
    use rusqlite::OptionalExtension as _;
    let sql = "SELECT text FROM meta WHERE name = ?1";
    let found = connection.query_row(sql, [name], |row| row.get::<_, Option<String>>(0)).optional();
    found.ok().map(|it| it.flatten().unwrap_or_default())
}

/// Reads the text from a file that somebody may have open.
fn meta_text_beside(path: &Path, name: &str) -> Option<String> {
    // Writable: the first to read a log creates the shared-memory file beside it.
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).ok()?;
    wait_for_locks(&mut connection, LOCK_SOON).ok()?;
    let found = text_in_meta(&connection, name);
    // A connection that only reads must not checkpoint the log.
    keep_log(&connection);
    found
}

/// Removes access for other users, where a program of a former version left it. A file that belongs to another user is
/// left as it is.
fn keep_private(path: &Path) {
    for end in ["", "-wal", "-shm", PRESENCE] {
        let file = PathBuf::from(format!("{}{end}", path.display()));
        let is_open = std::fs::metadata(&file).is_ok_and(|it| it.permissions().mode() & 0o077 != 0);
        if is_open && let Err(error) = std::fs::set_permissions(&file, Permissions::from_mode(PRIVATE)) {
            tracing::warn!(%error, file = %file.display(), "others may read this file");
        }
    }
}

/// Makes the directory entry of a new file durable, or its removal.
fn sync_folder(path: &Path) -> Result<()> {
    folders::flush_name(path)
        .map_err(|source| StoreError::Io { path: folder_of(path).display().to_string(), source })
}

fn connect(path: &Path, limits: &Limits) -> Result<Connection> {
    use rusqlite::OpenFlags;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    wait_for_locks(&mut connection, LOCK_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Without this guarantee the engine replans a statement whenever a bound value changes: more than a third of the
    // cost of a read by id. Which index leads is our choice anyway.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    rusqlite::vtab::array::load_module(&connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "cache_size", -i64::from(limits.page_cache_kib))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    map(&connection, path, limits)?;
    Ok(connection)
}

/// Maps the file into memory if it fits in there beside everything else. Of a larger file the system would read some
/// hundred KiB, or megabytes, around each page that is looked at, and forget others for it; a page that is asked for by
/// a call is read alone.
fn map(connection: &Connection, path: &Path, limits: &Limits) -> Result<()> {
    let file_bytes = std::fs::metadata(path).map_or(0, |it| it.len());
    let fits = memory::limit_bytes().is_none_or(|it| file_bytes <= it / MAPPED_SHARE);
    let most = if fits { i64::try_from(limits.map_bytes).unwrap_or(i64::MAX) } else { 0 };
    connection.pragma_update(None, "mmap_size", most)?;
    mapping::keep_mapping(connection);
    Ok(())
}

/// Returns the writer's connection to the file with its tables up to date, and the mark that tells others that it is
/// open.
fn open_prepared(path: &Path, shared: &Shared) -> Result<(Connection, Presence)> {
    let (presence, users) = Presence::announce(path)?;
    if users == Users::Others {
        // Another process may be opening the file exclusively right now, for a migration: wait for it.
        presence.share()?;
    }
    let connection = connect(path, &shared.limits)?;
    let cache_kib = i64::from(shared.limits.page_cache_kib) * WRITER_CACHES;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    if has_temporary_folder() {
        connection.pragma_update(None, "temp_store", "FILE")?;
    }
    prepare(&connection, shared, path, users)?;
    presence.share()?;
    Ok((connection, presence))
}

/// Brings the tables up to date, deletes staged lists that no record took over, and rebuilds indexes and counts that a
/// bulk load left out.
fn prepare(connection: &Connection, shared: &Shared, path: &Path, company: Users) -> Result<()> {
    let mut session = Session::Sqlite(connection);
    let place = path.display().to_string();
    let under_way = within(&mut session, |session| {
        let under_way = schema::apply(session, shared.kinds, &place, company)?;
        shared.declared.store(remake::declared(session)?, Ordering::Release);
        Ok(under_way)
    })?;
    within(&mut session, |session| {
        for kind in shared.kinds.iter().filter(|kind| !under_way.iter().any(|it| it.0.name == kind.name)) {
            schema::create_indexes(session, kind)?;
        }
        match company {
            Users::None => {
                sweep(session)?;
                pending_links::settle(session)?;
                shared.kinds.iter().try_for_each(|kind| whole_lists::fold(session, kind))?;
                shared.kinds.iter().try_for_each(|kind| schema::recount(session, kind))
            }
            Users::Others => Ok(()),
        }
    })?;
    shared.remakes.set(under_way);
    Ok(())
}

/// Runs a closure in a transaction.
fn within<T>(session: &mut Session<'_>, work: impl FnOnce(&mut Session<'_>) -> Result<T>) -> Result<T> {
    session.batch("BEGIN IMMEDIATE")?;
    let done = work(session);
    session.batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    done
}

fn sweep(session: &mut Session<'_>) -> Result<()> {
    let left = session.all("SELECT kind, list FROM staging", &[], |row| Ok((row.text(0)?, row.int(1)?)))?;
    if left.is_empty() {
        return Ok(()); // even an empty deletion costs a page of the log
    }
    for (kind, list) in left {
        session.execute(&format!("DELETE FROM \"m_{kind}\" WHERE list = ?1"), &[list.into()])?;
    }
    session.batch("DELETE FROM staging")
}
