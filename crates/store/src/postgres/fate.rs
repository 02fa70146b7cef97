//! The outcome of a transaction whose commit was not acknowledged.
//!
//! The transaction number alone does not tell: a server that recovers, or a standby that takes over, may reassign
//! numbers that it never saw written. "Aborted" is always true of ours. "Committed" is taken as ours only when a record
//! that the transaction wrote carries its number.

use std::time::{Duration, Instant};

use super::pool::Pool;
use super::session::{Mark, PgSession};
use crate::session::Session;
use crate::{Result, StoreError};

/// How long to wait for a transaction that is still running.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(100);

/// The outcome of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is committed.
    Kept,
    /// It is not committed and never will be.
    Undone,
    /// The outcome cannot be determined, or not yet.
    Unknown,
}

/// Queries the outcome on a new connection, for which it waits as long as for any lost connection.
pub(super) fn learn(pool: &Pool, schema: &str, mark: &Mark) -> Fate {
    let Some(xid) = mark.xid else {
        // The connection was lost before the server confirmed the start of the transaction: the commit was never sent.
        return Fate::Undone;
    };
    let asked = pool.connect(schema).and_then(|mut session| ask(&mut session, xid, mark));
    match asked {
        Ok(fate) => {
            tracing::info!(xid, ?fate, "found out the outcome of a commit that got no answer");
            fate
        }
        Err(error) => {
            tracing::warn!(xid, %error, "the outcome of a commit that got no answer could not be found out");
            Fate::Unknown
        }
    }
}

fn ask(session: &mut PgSession, xid: i64, mark: &Mark) -> Result<Fate> {
    let until = Instant::now() + PATIENCE;
    loop {
        match status(session, xid)?.as_deref() {
            // The server never saw its number.
            None => return Ok(Fate::Undone),
            Some("aborted") => return Ok(Fate::Undone),
            Some("committed") => return is_ours(session, xid, mark),
            Some("in progress") if Instant::now() < until => std::thread::sleep(PAUSE),
            Some(_) => return Ok(Fate::Unknown),
        }
    }
}

/// Returns the transaction's status; `None` for a number that is not assigned yet; empty for one too old to be known.
fn status(session: &mut PgSession, xid: i64) -> Result<Option<String>> {
    let sql = "SELECT coalesce(pg_xact_status(?1::text::xid8), '')";
    let asked = Session::Postgres(session).first(sql, &[xid.to_string().as_str().into()], |row| row.text(0));
    match asked {
        Err(StoreError::Postgres { code, .. }) if code == IN_THE_FUTURE => Ok(None),
        other => other,
    }
}

fn is_ours(session: &mut PgSession, xid: i64, mark: &Mark) -> Result<Fate> {
    let Some((kind, id)) = &mark.written else { return Ok(Fate::Unknown) };
    let sql = format!(
        "SELECT 1 FROM \"k_{kind}\" WHERE id = ?1 AND sequence = ?2 \
         UNION ALL SELECT 1 FROM tombstone WHERE sequence = ?2 AND kind = '{kind}' AND id = ?1"
    );
    let found = Session::Postgres(session).first(&sql, &[id.as_str().into(), xid.into()], |_| Ok(()))?;
    Ok(if found.is_some() { Fate::Kept } else { Fate::Unknown })
}

/// The error code for the number of a future transaction.
const IN_THE_FUTURE: &str = "22023";
