//! Reads from a standby that is behind its primary by no more than a bound.
//!
//! How far behind a standby is cannot be learnt from it alone: one that hears nothing any more believes that it has
//! everything. So the primary is asked now and then for its place in the log, and when: a standby that has replayed up to
//! such a place holds at least what was committed by that moment. What is not known to be recent enough, because the
//! standby lags, is gone, or the primary was not heard of, is read from the primary.

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

/// Places in the primary's log that are remembered.
const POSITIONS_MAX: usize = 16;
/// Into how many parts the bound is divided: the primary is asked once in each of them at most.
const PARTS: u32 = 4;
/// How long a standby that did not answer is left alone.
const REST: Duration = Duration::from_secs(2);

/// The standbys of a database, and what is known of its primary.
pub(super) struct Standby {
    pool: Pool,
    bound: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the primary was at which place of its log, the newest last.
    heard: VecDeque<(Instant, i64)>,
    /// Until when no standby is asked.
    resting_until: Option<Instant>,
}

impl Standby {
    /// `None` when the bound is 0, or the URL names one host: there is none to read from.
    pub(super) fn of(config: &Config, tls: &Tls, limits: &Limits) -> Option<Self> {
        if limits.standby_lag_ms == 0 || config.get_hosts().len() < 2 {
            return None;
        }
        let mut config = config.clone();
        config.target_session_attrs(TargetSessionAttrs::ReadOnly);
        // One that is not there is not waited for: the primary is.
        let limits = Limits { database_wait_ms: 0, ..limits.clone() };
        let pool = Pool::new(config, tls.clone(), &limits);
        Some(Self { pool, bound: Duration::from_millis(limits.standby_lag_ms), state: Mutex::default() })
    }

    /// A session of a standby that is recent enough; `None` when there is none.
    pub(super) fn session(&self, primary: &Pool, schema: &str) -> Option<PgSession> {
        let now = Instant::now();
        {
            let mut state = self.lock();
            if state.resting_until.is_some_and(|until| now < until) {
                return None;
            }
            // Whoever comes while this one finds out goes to the primary.
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
                // It is no standby any more, or of no use.
                Ok(None) | Err(_) => session.is_broken = true,
            }
        }
        if !session.is_broken && session.recent_until.is_some_and(|until| now < until) {
            return Some(session);
        }
        self.pool.give_back(session);
        None
    }

    /// Takes back what [`Standby::session`] gave.
    pub(super) fn give_back(&self, session: PgSession) {
        self.pool.give_back(session);
    }

    /// Closes the sessions of a schema.
    pub(super) fn close(&self, schema: &str) {
        self.pool.close(schema);
    }

    /// Asks the primary where it is, unless that was done a moment ago.
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
        // The place is that of a moment after `begun`.
        state.heard.push_back((begun, place));
        if POSITIONS_MAX < state.heard.len() {
            state.heard.pop_front();
        }
        Ok(())
    }

    /// Until when what has been replayed up to a place is recent enough.
    fn recent_until(&self, place: i64) -> Option<Instant> {
        self.lock().heard.iter().rev().find(|it| it.1 <= place).map(|it| it.0 + self.bound)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Up to where a standby has replayed the log; `None` when it is none.
fn replayed(session: &mut PgSession) -> Result<Option<i64>> {
    session.begin_none();
    let sql = "SELECT CASE WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0')::bigint END";
    Ok(Session::Postgres(session).first(sql, &[], |row| row.optional_int(0))?.flatten())
}
