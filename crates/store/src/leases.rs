//! Jobs in queues, and leases on them: which server works on which job, and who takes over when it dies.
//!
//! A job is a row of the tenant: a queue, an id, and the instant from which it may be taken. A server that takes a job
//! moves that instant into the future (its lease) and extends it while it works; when the server dies, the instant
//! passes and another takes the job over. All instants are of the database's clock, so servers whose clocks differ
//! agree. Each taking has a number, its *turn*: a server whose job was taken over gets an error from the next call that
//! names its lease, and a transaction that calls [`Txn::renew_lease`] or [`Txn::finish_job`] beside its own writes is
//! then rolled back.
//!
//! Servers that ask at the same time get different jobs without waiting for each other: PostgreSQL skips rows that are
//! being taken (`FOR UPDATE SKIP LOCKED`); the embedded engine has one writer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::row::Row;
use crate::session::Flavour;
use crate::{Result, StoreError, Tenant, Txn, View};

/// A job that its owner may work on until `until_ms`, unless it renews.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The queue of the job.
    pub queue: String,
    /// The job.
    pub id: String,
    /// The name that the holder gave.
    pub owner: String,
    /// How often the job was taken, this time included: 1 for the first. A job that kills its workers can be recognised
    /// by it.
    pub turn: u64,
    /// When the lease ends, in milliseconds since 1970 by the database's clock.
    pub until_ms: i64,
}

/// A job of a queue, as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedJob {
    /// The job.
    pub id: String,
    /// The last one to take the job without giving it back.
    pub owner: Option<String>,
    /// How often it was taken.
    pub turn: u64,
    /// When it may be taken, in milliseconds since 1970 by the database's clock.
    pub until_ms: i64,
    /// Whether somebody holds it now.
    pub is_held: bool,
}

impl View<'_> {
    /// Returns at most `limit` jobs of a queue, ordered by the instant from which they may be taken.
    pub fn jobs(&mut self, queue: &str, limit: u32) -> Result<Vec<QueuedJob>> {
        let sql = format!(
            "SELECT id, coalesce(owner, ''), turn, until_ms, owner IS NOT NULL AND {now} < until_ms \
             FROM lease WHERE queue = ?1 ORDER BY until_ms, id LIMIT ?2",
            now = now_ms(self.session.flavour())
        );
        self.session.all(&sql, &[queue.into(), u64::from(limit).into()], |row| {
            Ok(QueuedJob {
                id: row.text(0)?,
                owner: Some(row.text(1)?).filter(|it| !it.is_empty()),
                turn: row.int(2)?.cast_unsigned(),
                until_ms: row.int(3)?,
                is_held: row.flag(4)?,
            })
        })
    }
}

impl Txn<'_> {
    /// Puts a job into a queue, available from now on. Returns false and changes nothing when it is in the queue
    /// already.
    pub fn queue_job(&mut self, queue: &str, id: &str) -> Result<bool> {
        let sql = format!(
            "INSERT INTO lease (queue, id, turn, until_ms) VALUES (?1, ?2, 0, {}) ON CONFLICT (queue, id) DO NOTHING",
            now_ms(self.view.session.flavour())
        );
        Ok(self.view.session.execute(&sql, &[queue.into(), id.into()])? != 0)
    }

    /// Takes the job that has waited longest, for `for_ms` milliseconds: one that nobody holds, or whose holder did not
    /// renew in time.
    pub fn take_lease(&mut self, queue: &str, owner: &str, for_ms: u32) -> Result<Option<Lease>> {
        let flavour = self.view.session.flavour();
        let (now, lock) = (now_ms(flavour), skip_locked(flavour));
        let sql = format!(
            "UPDATE lease SET owner = ?2, turn = turn + 1, until_ms = {now} + ?3 WHERE queue = ?1 AND id = \
             (SELECT id FROM lease WHERE queue = ?1 AND until_ms <= {now} ORDER BY until_ms, id LIMIT 1{lock}) \
             RETURNING id, turn, until_ms"
        );
        let values = [queue.into(), owner.into(), u64::from(for_ms).into()];
        self.view.session.first(&sql, &values, |row| lease(queue, owner, &row))
    }

    /// Takes a specific job of a queue if it exists and nobody holds it.
    pub fn take_lease_of(
        &mut self,
        queue: &str,
        id: &str,
        owner: &str,
        for_ms: u32,
    ) -> Result<Option<Lease>> {
        let now = now_ms(self.view.session.flavour());
        let sql = format!(
            "UPDATE lease SET owner = ?3, turn = turn + 1, until_ms = {now} + ?4 \
             WHERE queue = ?1 AND id = ?2 AND until_ms <= {now} RETURNING id, turn, until_ms"
        );
        let values = [queue.into(), id.into(), owner.into(), u64::from(for_ms).into()];
        self.view.session.first(&sql, &values, |row| lease(queue, owner, &row))
    }

    /// Extends a lease to `for_ms` milliseconds from now.
    ///
    /// Errors: [`StoreError::LeaseLost`] when another has taken the job, or it was removed from the queue. A lease that
    /// has expired but that nobody took is renewed.
    pub fn renew_lease(&mut self, held: &Lease, for_ms: u32) -> Result<Lease> {
        let now = now_ms(self.view.session.flavour());
        let sql = format!("UPDATE lease SET until_ms = {now} + ?4 {HELD} RETURNING id, turn, until_ms");
        let values =
            [held.queue.as_str().into(), held.id.as_str().into(), held.turn.into(), u64::from(for_ms).into()];
        let renewed = self.view.session.first(&sql, &values, |row| lease(&held.queue, &held.owner, &row))?;
        renewed.ok_or_else(|| lost(held))
    }

    /// Returns a job to its queue, available again in `after_ms` milliseconds.
    ///
    /// Errors: [`StoreError::LeaseLost`] when another has taken it.
    pub fn release_lease(&mut self, held: &Lease, after_ms: u32) -> Result<()> {
        let now = now_ms(self.view.session.flavour());
        let sql = format!("UPDATE lease SET owner = NULL, until_ms = {now} + ?4 {HELD}");
        let values = [
            held.queue.as_str().into(),
            held.id.as_str().into(),
            held.turn.into(),
            u64::from(after_ms).into(),
        ];
        if self.view.session.execute(&sql, &values)? == 0 { Err(lost(held)) } else { Ok(()) }
    }

    /// Removes a finished job from its queue.
    ///
    /// Errors: [`StoreError::LeaseLost`] when another has taken it.
    pub fn finish_job(&mut self, held: &Lease) -> Result<()> {
        let values = [held.queue.as_str().into(), held.id.as_str().into(), held.turn.into()];
        let n = self.view.session.execute(&format!("DELETE FROM lease {HELD}"), &values)?;
        if n == 0 { Err(lost(held)) } else { Ok(()) }
    }

    /// Removes a job from its queue whoever holds it; its holder finds its lease lost. Returns false when there is no
    /// such job.
    pub fn cancel_job(&mut self, queue: &str, id: &str) -> Result<bool> {
        let sql = "DELETE FROM lease WHERE queue = ?1 AND id = ?2";
        Ok(self.view.session.execute(sql, &[queue.into(), id.into()])? != 0)
    }
}

impl Tenant {
    /// Renews a lease on a thread of its own every third of `for_ms`, until the guard is dropped: for work that takes
    /// longer than a lease. Dropping the guard does not release the lease.
    pub fn keep_lease(&self, held: Lease, for_ms: u32) -> Result<Heartbeat> {
        let is_lost = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = mpsc::channel();
        let beat = Beat { tenant: self.clone(), held, for_ms, is_lost: is_lost.clone() };
        let thread = std::thread::Builder::new()
            .name("store-lease".to_owned())
            .spawn(move || beat.run(&stopped))
            .map_err(|source| StoreError::Io { path: "thread store-lease".to_owned(), source })?;
        Ok(Heartbeat { is_lost, stop: Some(stop), thread: Some(thread) })
    }
}

/// Renews a lease until it is dropped. See [`Tenant::keep_lease`].
pub struct Heartbeat {
    is_lost: Arc<AtomicBool>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Returns whether another may hold the job: work on it should stop. Writes in one transaction with
    /// [`Txn::renew_lease`] are safe whatever this returns.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }
}

impl Drop for Heartbeat {
    /// Waits for a renewal under way.
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that renews a lease stopped by an internal fault");
        }
    }
}

/// State of the thread of a [`Heartbeat`].
struct Beat {
    tenant: Tenant,
    held: Lease,
    for_ms: u32,
    is_lost: Arc<AtomicBool>,
}

impl Beat {
    fn run(mut self, stopped: &mpsc::Receiver<()>) {
        let whole = Duration::from_millis(u64::from(self.for_ms));
        let mut renewed = Instant::now();
        while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(whole / 3) {
            let (held, for_ms, asked) = (self.held.clone(), self.for_ms, Instant::now());
            match self.tenant.write_blocking(move |txn| txn.renew_lease(&held, for_ms)) {
                Ok(lease) => {
                    self.held = lease;
                    renewed = asked;
                    self.is_lost.store(false, Ordering::Release);
                }
                Err(StoreError::LeaseLost { .. }) => {
                    self.is_lost.store(true, Ordering::Release);
                    return;
                }
                Err(error) => {
                    tracing::warn!(queue = %self.held.queue, job = %self.held.id, %error, "a lease was not renewed");
                    self.is_lost.store(whole < renewed.elapsed(), Ordering::Release);
                }
            }
        }
    }
}

/// Returns every job of a tenant, for a copy: queue, id, turn.
pub(crate) fn all(view: &mut View<'_>) -> Result<Vec<(String, String, i64)>> {
    let sql = "SELECT queue, id, turn FROM lease ORDER BY until_ms, queue, id";
    view.session.all(sql, &[], |row| Ok((row.text(0)?, row.text(1)?, row.int(2)?)))
}

/// Queues the jobs of another tenant, available from now on.
pub(crate) fn queue_all(txn: &mut Txn<'_>, jobs: &[(String, String, i64)]) -> Result<()> {
    let sql = format!(
        "INSERT INTO lease (queue, id, turn, until_ms) VALUES (?1, ?2, ?3, {}) ON CONFLICT (queue, id) DO NOTHING",
        now_ms(txn.view.session.flavour())
    );
    for (queue, id, turn) in jobs {
        txn.view.session.execute(&sql, &[queue.as_str().into(), id.as_str().into(), (*turn).into()])?;
    }
    Ok(())
}

/// Selects the row of a lease by queue, id and turn, if it is still current.
const HELD: &str = "WHERE queue = ?1 AND id = ?2 AND turn = ?3 AND owner IS NOT NULL";

/// Returns the SQL for the database's clock, in milliseconds since 1970.
fn now_ms(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Sqlite => "CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER)",
        Flavour::Postgres => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
    }
}

fn skip_locked(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Sqlite => "",
        Flavour::Postgres => " FOR UPDATE SKIP LOCKED",
    }
}

fn lost(held: &Lease) -> StoreError {
    StoreError::LeaseLost { queue: held.queue.clone(), id: held.id.clone() }
}

/// Reads a lease from a row of id, turn and end.
fn lease(queue: &str, owner: &str, row: &Row<'_, '_>) -> Result<Lease> {
    Ok(Lease {
        queue: queue.to_owned(),
        id: row.text(0)?,
        owner: owner.to_owned(),
        turn: row.int(1)?.cast_unsigned(),
        until_ms: row.int(2)?,
    })
}
