//! The keeper, which checkpoints the log into the file concurrently with the writer.

use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connections::{LOCK_TIMEOUT, keep_log, wait_for_locks};
use super::presence::Presence;
use super::queue::Queue;
use crate::Result;
use crate::jobs::Statistics;

/// Minimum interval at which the keeper checks the log's size.
const KEEPER_PAUSE: Duration = Duration::from_millis(200);
/// Time without writes after which the whole log is checkpointed.
const QUIET: Duration = Duration::from_secs(1);
/// How long writers may be blocked so that the log can restart.
const RESTART_PAUSE: Duration = Duration::from_millis(5);
/// Maximum remainder of the log when it restarts: the writer waits while that is checkpointed.
const RESTART_BYTES: u64 = 2 << 20;
/// Multiple of its limit at which the log restarts regardless of the remainder.
const RESTART_TIMES: u64 = 4;
/// Multiple of the log's limit that the part not checkpointed may reach before writers wait briefly for reads that end
/// soon.
const LOG_TIMES: u64 = 16;
/// How long writers wait in that case. The keeper does not wait for longer reads: the log grows until they end.
const LONG_PAUSE: Duration = Duration::from_millis(100);
/// How long writers are not blocked again after such a wait was in vain.
const IN_VAIN: Duration = Duration::from_secs(10);

/// Wakes the keeper thread.
#[derive(Default)]
pub(super) struct Keeper {
    state: Mutex<KeeperState>,
    changed: Condvar,
}

#[derive(Default)]
struct KeeperState {
    has_commits: bool,
    is_closing: bool,
}

impl Keeper {
    pub(super) fn note_commit(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.has_commits {
            state.has_commits = true;
            self.changed.notify_one();
        }
    }

    pub(super) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closing = true;
        self.changed.notify_one();
    }

    pub(super) fn run(
        &self,
        connection: &mut Connection,
        queue: &Queue,
        presence: &Presence,
        log_bytes: u64,
        statistics: &Statistics,
    ) {
        // Whether the log may hold pages that the file does not: a process that was killed has left some.
        let mut is_behind = true;
        let mut in_vain_until = None;
        loop {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let has_nothing_to_do = |state: &mut KeeperState| !state.has_commits && !state.is_closing;
            let mut state = if is_behind {
                let wait = self.changed.wait_timeout_while(state, QUIET, has_nothing_to_do);
                wait.unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.changed.wait_while(state, has_nothing_to_do).unwrap_or_else(PoisonError::into_inner)
            };
            if state.is_closing || queue.failure().is_some() {
                break;
            }
            let is_quiet = !std::mem::take(&mut state.has_commits);
            drop(state);
            let written = if !presence.keep_reserve() {
                Ok(true)
            } else if is_quiet {
                write_all(connection)
            } else {
                write_back(connection, queue, log_bytes, statistics, &mut in_vain_until).map(|()| true)
            };
            is_behind = written.unwrap_or_else(|error| {
                tracing::warn!(%error, "the write-ahead log could not be checkpointed");
                false
            });
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let wait = self.changed.wait_timeout_while(state, KEEPER_PAUSE, |state| !state.is_closing);
            drop(wait.unwrap_or_else(PoisonError::into_inner));
        }
        if queue.failure().is_some() {
            keep_log(connection);
        }
    }
}

/// Checkpoints the whole log while nobody writes: pages that are only in the file are read without searching the log.
/// Returns whether something is left because of a long read.
fn write_all(connection: &Connection) -> Result<bool> {
    let left = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i64>(1)? != row.get::<_, i64>(2)?);
    Ok(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], left)?)
}

/// Checkpoints the log once it is large: first concurrently with the writer, then, for the little that was added
/// meanwhile, with the writer held, so that the log restarts.
fn write_back(
    connection: &mut Connection,
    queue: &Queue,
    log_bytes: u64,
    statistics: &Statistics,
    in_vain_until: &mut Option<Instant>,
) -> Result<()> {
    let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    // Returns the bytes of the log, and how many of them are not checkpointed.
    let look = |connection: &Connection, mode: &str| -> Result<(u64, u64)> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let (log, done): (i64, i64) = connection.query_row(&sql, [], |row| Ok((row.get(1)?, row.get(2)?)))?;
        let bytes = |pages: i64| (pages.max(0) * page_bytes).cast_unsigned();
        Ok((bytes(log), bytes(log - done)))
    };
    let (log, left) = look(connection, "NOOP")?;
    statistics.log_bytes.store(log, Ordering::Relaxed);
    statistics.log_left_bytes.store(left, Ordering::Relaxed);
    if left < log_bytes {
        return Ok(());
    }
    // Pages added meanwhile are also checkpointed concurrently, as long as each round leaves less than the one before.
    let (mut log, mut left) = look(connection, "PASSIVE")?;
    while RESTART_BYTES < left {
        let before = left;
        (log, left) = look(connection, "PASSIVE")?;
        if before <= left {
            break;
        }
    }
    // The writer waits while the rest is checkpointed, and a long read may delay that: the further the log is beyond
    // its limit, the longer writers may be blocked.
    if RESTART_BYTES < left && log < RESTART_TIMES * log_bytes {
        return Ok(());
    }
    let is_in_vain = in_vain_until.is_some_and(|until| Instant::now() < until);
    let patience = if left < LOG_TIMES * log_bytes || is_in_vain { RESTART_PAUSE } else { LONG_PAUSE };
    // The engine's own lock is not used: a writer that holds it nearly all the time hardly ever releases it long
    // enough.
    let held = queue.hold();
    wait_for_locks(connection, patience)?;
    let restarted = look(connection, "RESTART");
    drop(held);
    if patience == LONG_PAUSE {
        let is_left = restarted.as_ref().map_or(true, |(_, left)| 0 < *left);
        *in_vain_until = is_left.then(|| Instant::now() + IN_VAIN);
    }
    restarted?;
    wait_for_locks(connection, LOCK_TIMEOUT)
}
