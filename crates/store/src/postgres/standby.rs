//! Reads from a standby whose lag is within a limit.
//!
//! A standby alone cannot tell its lag: one that receives nothing any more believes that it has everything. So the
//! primary is asked now and then for its position in the log, with the time: a standby that has replayed up to such a
//! position has at least everything committed by that time. If the state is not known to be recent enough, because the
//! standby lags, is gone, or the primary was not reached, the primary is read.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

use super::pool::Pool;
use super::session::PgSession;
use super::tls::Tls;
use crate::session::Session;
use crate::{Limits, Result, StoreError};

/// Maximum number of remembered positions in the primary's log.
const POSITIONS_MAX: usize = 16;
/// Number of parts into which the limit is divided: the primary is asked at most once in each.
const PARTS: u32 = 4;
/// How long a standby that did not respond is left alone.
const REST: Duration = Duration::from_secs(2);

/// The standbys of a database, and what is known about its primary.
pub(super) struct Standby {
    pool: Pool,
    bound: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Known positions of the primary in its log, with their times, the newest last.
    heard: VecDeque<(Instant, i64)>,
    /// Until when no standby is used.
    resting_until: Option<Instant>,
}

impl Standby {
    /// Returns the standbys; `None` when the limit is 0, or the URL names only one host.
    pub(super) fn of(config: &Config, tls: &Tls, limits: &Limits) -> Option<Self> {
        if limits.standby_lag_ms == 0 || config.get_hosts().len() < 2 {
            return None;
        }
        let mut config = config.clone();
        config.target_session_attrs(TargetSessionAttrs::ReadOnly);
        // An absent standby is not waited for: the primary is read instead.
        let limits = Limits { database_wait_ms: 0, ..limits.clone() };
        let pool = Pool::new(config, tls.clone(), &limits);
        Some(Self { pool, bound: Duration::from_millis(limits.standby_lag_ms), state: Mutex::default() })
    }

    /// Returns a session of a standby that is recent enough; `None` when there is none.
    pub(super) fn session(&self, primary: &Pool, schema: &str) -> Option<PgSession> {
        let now = Instant::now();
        {
            let mut state = self.lock();
            if state.resting_until.is_some_and(|until| now < until) {
                return None;
            }
            // Other callers go to the primary while this one finds out.
            state.resting_until = (self.pool.n_idle(schema) == 0).then(|| now + REST);
        }
        let taken = self.hear(primary, schema).and_then(|()| self.pool.take(schema));
        let mut session = match taken {
            Ok(session) => session,
            Err(error) => {
                tracing::debug!(%error, "no standby is asked");
                self.lock().resting_until = Some(Instant::now() + REST);
                return None;
            }
        };
        self.lock().resting_until = None;
        if session.recent_until.is_none_or(|until| until <= now) {
            match replayed(&mut session) {
                Ok(Some(place)) => session.recent_until = self.recent_until(place),
                // It is no longer a standby, or unusable.
                Ok(None) | Err(_) => session.is_broken = true,
            }
        }
        if !session.is_broken && session.recent_until.is_some_and(|until| now < until) {
            return Some(session);
        }
        self.pool.give_back(session);
        None
    }

    /// Takes back a session from [`Standby::session`].
    pub(super) fn give_back(&self, session: PgSession) {
        self.pool.give_back(session);
    }

    /// Closes the sessions of a schema.
    pub(super) fn close(&self, schema: &str) {
        self.pool.close(schema);
    }

    /// Asks the primary for its position unless that was done a moment ago.
    fn hear(&self, primary: &Pool, schema: &str) -> Result<()> {
        let begun = Instant::now();
        let is_due = |state: &State| state.heard.back().is_none_or(|it| self.bound / PARTS <= begun - it.0);
        if !is_due(&self.lock()) {
            return Ok(());
        }
        let mut session = primary.take(schema)?;
        session.begin_none();
        let sql = "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint";
        let place = Session::Postgres(&mut session).first(sql, &[], |row| row.int(0));
        primary.give_back(session);
        let place =
            place?.ok_or_else(|| StoreError::Damaged("the primary told no place in its log".into()))?;
        let mut state = self.lock();
        // The position is that of a moment after `begun`.
        state.heard.push_back((begun, place));
        if POSITIONS_MAX < state.heard.len() {
            state.heard.pop_front();
        }
        Ok(())
    }

    /// Returns until when a state replayed up to a position is recent enough.
    fn recent_until(&self, place: i64) -> Option<Instant> {
        self.lock().heard.iter().rev().find(|it| it.1 <= place).map(|it| it.0 + self.bound)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns up to which position a standby has replayed the log; `None` when it is not a standby.
fn replayed(session: &mut PgSession) -> Result<Option<i64>> {
    session.begin_none();
    let sql = "SELECT CASE WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0')::bigint END";
    Ok(Session::Postgres(session).first(sql, &[], |row| row.optional_int(0))?.flatten())
}
