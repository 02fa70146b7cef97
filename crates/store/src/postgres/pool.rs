//! Sessions of a database, shared by all tenants: a bounded number, each of one tenant's schema.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres::Config;

use super::errors::is_lasting;
use super::session::PgSession;
use super::stems::Stems;
use super::tls::Tls;
use crate::{Limits, Result, StoreError};

/// How long a caller waits for a session before it is told to come back later.
const WAIT: Duration = Duration::from_secs(10);
/// Minimum statement timeout: creating the first tables takes longer than the shortest allowed read.
const STATEMENT_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// Maximum statement timeout of the engine: its settings are 32-bit numbers of milliseconds.
const STATEMENT_TIMEOUT_MAX: Duration = Duration::from_millis(i32::MAX as u64);
/// Pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(200);
/// Number of slots for rows of counts that sessions share out among themselves, over all servers.
const SLOTS: i64 = 4_096;
/// First half of the key of the advisory locks that hold the slots.
const SLOT_LOCK: i32 = 0x7069_6e61;

/// A database and its open sessions.
pub(crate) struct Pool {
    config: Config,
    tls: Tls,
    statement_timeout: Duration,
    /// How long to retry a database that does not respond, so that a failover goes unnoticed.
    outage: Duration,
    n_most: usize,
    /// Number of sessions lost so far.
    n_lost: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
    n_waiting: AtomicUsize,
    stems: Arc<Stems>,
}

#[derive(Default)]
struct State {
    idle: Vec<PgSession>,
    n_open: usize,
    /// When the database stopped responding: later callers wait only for the rest of the time.
    down_since: Option<Instant>,
}

impl Pool {
    pub(super) fn new(config: Config, tls: Tls, limits: &Limits) -> Self {
        Self {
            config,
            tls,
            statement_timeout: Duration::from_millis(limits.read_timeout_ms)
                .clamp(STATEMENT_TIMEOUT_MIN, STATEMENT_TIMEOUT_MAX),
            outage: Duration::from_millis(limits.database_wait_ms),
            n_most: limits.database_sessions.max(2),
            n_lost: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
            n_waiting: AtomicUsize::new(0),
            stems: Arc::default(),
        }
    }

    /// Opens a separate session for one schema, outside the limit. A database that does not respond is retried for a
    /// while, counted from when it stopped responding.
    pub(super) fn connect(&self, schema: &str) -> Result<PgSession> {
        loop {
            match self.connect_once(schema) {
                Ok(session) => {
                    self.lock().down_since = None;
                    return Ok(session);
                }
                Err(StoreError::Unavailable(reason)) if !is_lasting(&reason) => {
                    let since = *self.lock().down_since.get_or_insert_with(Instant::now);
                    if self.outage <= since.elapsed() {
                        return Err(StoreError::Unavailable(reason));
                    }
                    tracing::warn!(reason, "no connection to the database; retrying");
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Connects with a single attempt.
    pub(super) fn connect_once(&self, schema: &str) -> Result<PgSession> {
        let mut config = self.config.clone();
        let options = format!(
            "{} -c search_path=\"{}\" -c synchronous_commit=on -c statement_timeout={} -c lock_timeout={} \
             -c idle_in_transaction_session_timeout=60000",
            config.get_options().unwrap_or_default(),
            schema,
            self.statement_timeout.as_millis(),
            WAIT.as_millis()
        );
        config.options(&options);
        let mut session =
            PgSession::connect(&config, &self.tls, schema, self.statement_timeout, self.stems.clone())?;
        session.slot = take_slot(&mut session)?;
        Ok(session)
    }

    /// Returns the statement timeout set on the server.
    pub(super) fn statement_timeout(&self) -> Duration {
        self.statement_timeout
    }

    /// Returns the number of lost sessions: when it has grown, others may be dead without knowing it.
    pub(super) fn n_lost(&self) -> u64 {
        self.n_lost.load(Ordering::Acquire)
    }

    /// Takes a session of one schema. Errors: none became free in time; the database does not respond.
    pub(super) fn take(&self, schema: &str) -> Result<PgSession> {
        let until = Instant::now() + WAIT;
        let mut state = self.lock();
        loop {
            if let Some(place) = state.idle.iter().rposition(|it| it.schema == schema) {
                return Ok(state.idle.swap_remove(place));
            }
            if self.n_most <= state.n_open && !state.idle.is_empty() {
                // The session that has been idle longest makes room.
                drop(state.idle.remove(0));
                state.n_open -= 1;
            }
            if state.n_open < self.n_most {
                state.n_open += 1;
                drop(state);
                return self.connect(schema).inspect_err(|_| self.forget());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StoreError::Busy {
                    depth: self.n_waiting.load(Ordering::Relaxed),
                    retry_after_s: 1,
                });
            }
            self.n_waiting.fetch_add(1, Ordering::Relaxed);
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            self.n_waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Takes a session back; a broken one is closed.
    pub(super) fn give_back(&self, session: PgSession) {
        if session.is_broken {
            drop(session);
            // After a restart or a failover the others are as dead as this one.
            self.n_lost.fetch_add(1, Ordering::AcqRel);
            let idle = std::mem::take(&mut self.lock().idle);
            let n_closed = idle.len();
            drop(idle);
            self.lock().n_open -= n_closed + 1;
            self.changed.notify_all();
            return;
        }
        self.lock().idle.push(session);
        self.changed.notify_one();
    }

    /// Closes the idle sessions of a schema.
    pub(super) fn close(&self, schema: &str) {
        let mut state = self.lock();
        let n_before = state.idle.len();
        state.idle.retain(|it| it.schema != schema);
        state.n_open -= n_before - state.idle.len();
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn n_idle(&self, schema: &str) -> usize {
        self.lock().idle.iter().filter(|it| it.schema == schema).count()
    }

    fn forget(&self) {
        self.lock().n_open -= 1;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the first slot that no other session holds; it is held until this session ends.
fn take_slot(session: &mut PgSession) -> Result<i64> {
    let sql = format!(
        "SELECT n::bigint FROM generate_series(0, {SLOTS} - 1) n WHERE pg_try_advisory_lock({SLOT_LOCK}, n) LIMIT 1"
    );
    let mut slot = None;
    session.rows(&sql, &[], |row| {
        slot = Some(row.int(0)?);
        Ok(std::ops::ControlFlow::Break(()))
    })?;
    slot.ok_or_else(|| StoreError::Unavailable(format!("more than {SLOTS} sessions use this database")))
}
