//! A separate session that creates the tables, holds the mark that the tenant is open, and stores classes.
//!
//! A class is stored at once, in a transaction of its own: it never changes and reveals nothing about any record, so
//! writers need not wait for each other's commits to use it. One server adds at a time, so that the rows of classes are
//! committed in order and a reader who has read up to one has read all before it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::pool::Pool;
use super::schema::{self, Sweep};
use super::session::PgSession;
use crate::classes::{Classes, number_taken};
use crate::document::Taken;
use crate::remake::{self, Remake};
use crate::session::Session;
use crate::{Kind, Result, StoreError};

/// Adds a class: kind, class, fields. Its row number follows those committed before; the caller holds the lock.
const ADD_CLASS: &str = "INSERT INTO class (kind, class, row, fields) \
     SELECT ?1, ?2, (SELECT coalesce(max(row), 0) + 1 FROM class), ?3 ON CONFLICT (kind, class) DO NOTHING";

/// See the module.
pub(crate) struct Side {
    pool: Arc<Pool>,
    schema: String,
    session: Mutex<Option<PgSession>>,
    /// Number of sessions that the pool had lost when this one was last seen alive.
    n_lost: AtomicU64,
}

impl Side {
    pub(super) fn new(pool: Arc<Pool>, schema: &str) -> Self {
        Self { pool, schema: schema.to_owned(), session: Mutex::new(None), n_lost: AtomicU64::new(0) }
    }

    /// Brings the tables into line with the declared kinds and marks the tenant as open.
    ///
    /// Returns the kinds that are being rebuilt, and how often declarations have changed.
    pub(super) fn open(&self, kinds: &[&'static Kind]) -> Result<(Vec<(&'static Kind, Remake)>, i64)> {
        let mut session = self.pool.connect(&self.schema)?;
        match open_in(&mut session, kinds) {
            Ok(found) => {
                *self.lock() = Some(session);
                Ok(found)
            }
            Err(error) => {
                end_apart(session);
                Err(error)
            }
        }
    }

    /// Removes the mark that the tenant is open; when this returns, the database has removed it. A database that does
    /// not respond removes it itself when it notices the lost connection.
    pub(super) fn close(&self) {
        if let Some(session) = self.lock().take() {
            end_apart(session);
        }
    }

    /// Restores the mark if it may have been lost with the server that held it. Costs nothing unless sessions were lost
    /// since the last check.
    pub(super) fn stay(&self) -> Result<()> {
        let n_lost = self.pool.n_lost();
        if self.n_lost.load(Ordering::Acquire) == n_lost {
            return Ok(());
        }
        let mut place = self.lock();
        if let Some(session) = place.as_mut().filter(|it| !it.is_broken) {
            session.begin_none();
            // Only whether it responds matters: a session that does not is now marked as broken.
            session.batch("SELECT 1").ok();
        }
        self.alive(&mut place)?;
        self.n_lost.store(n_lost, Ordering::Release);
        Ok(())
    }

    /// Returns the session, reconnecting if it was lost.
    fn alive<'s>(&self, place: &'s mut Option<PgSession>) -> Result<&'s mut PgSession> {
        if place.as_ref().is_none_or(|it| it.is_broken) {
            let mut session = self.pool.connect(&self.schema)?;
            be_present(&mut session)?;
            *place = Some(session);
        }
        place.as_mut().ok_or(StoreError::Closed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<PgSession>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the class of a record if it is new.
    ///
    /// Errors: its number stands for other class fields.
    pub(crate) fn ensure_class(&self, classes: &Classes, kind: &'static Kind, taken: &Taken) -> Result<()> {
        let mut place = self.lock();
        let session = self.alive(&mut place)?;
        if !classes.is_committed(kind, taken) {
            classes.read(&mut Session::Postgres(session), kind)?;
        }
        if !classes.is_committed(kind, taken) {
            session.begin("BEGIN", None);
            session
                .batch("SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '/classes', 0))")?;
            let values = [kind.name.into(), taken.class.0.into(), (&*taken.class_text).into()];
            session.commit(Some((ADD_CLASS, &values)))?;
            classes.read(&mut Session::Postgres(session), kind)?;
        }
        if classes.is_committed(kind, taken) { Ok(()) } else { Err(number_taken(kind, taken)) }
    }
}

/// Waits briefly until no server has the tenant of a schema open, and keeps others from opening it.
///
/// Errors: a server has it open.
pub(super) fn alone_with(session: &mut Session<'_>, schema: &str, tenant: &str) -> Result<()> {
    let sql = "SELECT pg_try_advisory_lock(hashtextextended(?1 || '/open', 0))";
    let until = Instant::now() + LEAVING;
    while session.first(sql, &[schema.into()], |row| row.flag(0))? != Some(true) {
        if until <= Instant::now() {
            return Err(StoreError::Query(format!(
                "tenant {tenant:?} is in use by another server; stop that one, or try again when it has closed the tenant"
            )));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Releases the lock of [`alone_with`].
pub(super) fn leave(session: &mut Session<'_>, schema: &str) -> Result<()> {
    let sql = "SELECT pg_advisory_unlock(hashtextextended(?1 || '/open', 0))";
    session.first(sql, &[schema.into()], |_| Ok(())).map(|_| ())
}

impl Drop for Side {
    fn drop(&mut self) {
        self.close();
    }
}

fn open_in(session: &mut PgSession, kinds: &[&'static Kind]) -> Result<(Vec<(&'static Kind, Remake)>, i64)> {
    let is_alone = is_true(session, ALONE)?;
    let sweep = if is_alone { Sweep::All } else { Sweep::Keep };
    let (under_way, declared) = schema::apply(session, kinds, sweep)?;
    be_present(session)?;
    if is_alone {
        session.batch(NOT_ALONE)?;
    }
    // Others may open the tenant meanwhile. Kinds that are being rebuilt get their indexes when they have their
    // columns.
    let made = kinds.iter().copied().filter(|kind| !under_way.iter().any(|it| it.0.name == kind.name));
    if let Err(error) = schema::bring_indexes(session, &made.collect::<Vec<_>>()) {
        if remake::declared(&mut Session::Postgres(session))? == declared {
            return Err(error);
        }
        // Columns may be missing now. The other server has brought its own indexes.
        tracing::info!(schema = session.schema, %error, "another server has changed the declarations");
    }
    Ok((under_way, declared))
}

/// Waits until the session can mark its tenant as open. It polls rather than waiting in one statement: a waiting
/// statement holds a snapshot, which a server that builds an index waits for in turn.
fn be_present(session: &mut PgSession) -> Result<()> {
    let until = Instant::now() + OPENING;
    while !is_true(session, PRESENT)? {
        if until <= Instant::now() {
            return Err(StoreError::Unavailable(format!(
                "another server has been opening {} for {} s",
                session.schema,
                OPENING.as_secs()
            )));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Ends a session that holds advisory locks, on a separate thread: a runtime's thread must not wait for another's.
fn end_apart(mut session: PgSession) {
    let end = move || session.release();
    let waited = std::thread::Builder::new().name("store-close".to_owned()).spawn(end).map(JoinHandle::join);
    if !matches!(waited, Ok(Ok(()))) {
        tracing::warn!("waiting for the end of a database session failed");
    }
}

fn is_true(session: &mut PgSession, sql: &str) -> Result<bool> {
    let sql = format!("SELECT CASE WHEN {sql} THEN 1::bigint ELSE 0 END");
    Ok(Session::Postgres(session).first(&sql, &[], |row| row.int(0))? == Some(1))
}

/// How long another server may hold the tenant exclusively while it opens it.
const OPENING: Duration = Duration::from_secs(600);
/// How long to wait for other servers to close a tenant that is to be removed.
const LEAVING: Duration = Duration::from_secs(2);
/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(20);
/// Marks the tenant as open in this server, as long as the session lives.
const PRESENT: &str = "pg_try_advisory_lock_shared(hashtextextended(current_schema() || '/open', 0))";
/// Tests that no server has the tenant open.
const ALONE: &str = "pg_try_advisory_lock(hashtextextended(current_schema() || '/open', 0))";
const NOT_ALONE: &str = "SELECT pg_advisory_unlock(hashtextextended(current_schema() || '/open', 0))";
