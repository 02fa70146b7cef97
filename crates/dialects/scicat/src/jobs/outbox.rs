//! The outbox of job actions that call other servers. An entry is written in the transaction that stores or changes the
//! job, and deleted when the last action is done, so that a crash in between loses none.
//!
//! The request itself makes the first attempt, holding the entry as a job of the store's queue. If another server fails
//! to accept an action, a thread of this server, or of any other server on the same records, retries it after intervals
//! that double, as many times as the settings allow. Each action is executed at least once: one that finished but was
//! not recorded before a crash is executed again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use http::StatusCode;
use pinakes_http::Context;
use pinakes_store::{Lease, StoreError, Tenant, Txn, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::actions::Action;
use super::run::{self, Failure, Scene};
use crate::error::ScicatError;
use crate::kinds::JOB_ACTION;
use crate::settings::Settings;

/// The queue of all entries of a tenant.
const QUEUE: &str = "scicat-job-action";
/// Maximum wait between two attempts.
const LONGEST_WAIT_MS: u64 = 3_600_000;
/// Time that an attempt may take beyond the timeouts of its actions, in milliseconds.
const SLACK_MS: u64 = 10_000;
/// How often a tenant with waiting entries is checked.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum rate at which a tenant without waiting entries is checked: another server may have left some.
const IDLE: Duration = Duration::from_secs(60);
/// Maximum number of concurrent retries, not counting the attempts of requests.
const CONCURRENT: usize = 8;

/// Selects one of the action lists of the job's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Operation {
    Create,
    Update,
}

/// What an attempt needs to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "_id")]
    id: String,
    job_type: String,
    operation: Operation,
    request: Map<String, Value>,
    pids: Vec<String>,
    job: Map<String, Value>,
    /// How many of the actions are done, counted after switches are resolved.
    n_done: usize,
}

/// An entry that is to be written.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    entry: Entry,
    owner: String,
    lease_ms: u32,
}

impl Pending {
    /// Writes the entry and holds it for the attempt of the request.
    ///
    /// Errors: those of the store.
    pub(super) fn put(&self, txn: &mut Txn<'_>) -> Result<Held, StoreError> {
        let id = self.entry.id.as_str();
        txn.insert(&JOB_ACTION, id, &json!(self.entry))?;
        txn.queue_job(QUEUE, id)?;
        let lease = txn.take_lease_of(QUEUE, id, &self.owner, self.lease_ms)?;
        let lease = lease.ok_or_else(|| StoreError::Damaged(format!("{QUEUE}: {id} is held by another")))?;
        Ok(Held { lease, n_done: 0, lease_ms: self.lease_ms })
    }
}

/// An entry that is held for an attempt.
#[derive(Debug)]
pub(super) struct Held {
    lease: Lease,
    n_done: usize,
    lease_ms: u32,
}

impl Held {
    /// Records that actions are done, so that another attempt continues after them.
    async fn note_done(&mut self, tenant: &Tenant, n_done: usize) -> Result<(), StoreError> {
        let (lease, lease_ms) = (self.lease.clone(), self.lease_ms);
        let noted = tenant.write(move |txn| {
            let renewed = txn.renew_lease(&lease, lease_ms)?;
            if let Some(record) = txn.get(&JOB_ACTION, &lease.id)? {
                let mut entry = record.json()?;
                entry["nDone"] = n_done.into();
                txn.update(&JOB_ACTION, &lease.id, &entry)?;
            }
            Ok::<_, StoreError>(renewed)
        });
        (self.lease, self.n_done) = (noted.await?.0, n_done);
        Ok(())
    }

    /// Deletes the entry: all actions are done, or abandoned.
    async fn finish(self, tenant: &Tenant) {
        let lease = self.lease;
        let id = lease.id.clone();
        let finished = tenant.write(move |txn| {
            txn.finish_job(&lease)?;
            txn.delete(&JOB_ACTION, &lease.id)?;
            Ok::<_, StoreError>(())
        });
        match finished.await {
            // Another server has taken the entry over and will finish it.
            Ok(_) | Err(StoreError::LeaseLost { .. }) => {}
            Err(error) => {
                tracing::warn!(entry = id, %error, "job action: done, but this could not be recorded; it will be done again");
            }
        }
    }
}

/// The outboxes of all tenants. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Outbox(Arc<Shared>);

struct Shared {
    context: Context,
    settings: Arc<Settings>,
    /// This server's name in the leases that it holds.
    owner: OnceLock<String>,
    /// When each tenant is checked next.
    known: Mutex<HashMap<String, Instant>>,
    tries: Arc<Semaphore>,
}

impl Outbox {
    /// Creates the outbox from a server's shared parts. Nothing is retried until [`start`](Self::start).
    pub(crate) fn new(context: Context, settings: Arc<Settings>) -> Self {
        let tries = Arc::new(Semaphore::new(CONCURRENT));
        Self(Arc::new(Shared { context, settings, owner: OnceLock::new(), known: Mutex::default(), tries }))
    }

    /// Starts a thread that retries waiting entries of all tenants, if any job type has actions that call other
    /// servers.
    pub(crate) fn start(&self) {
        let settings = &self.0.settings;
        let lists = settings.job_types.iter().flat_map(|it| [&it.create_actions, &it.update_actions]);
        if !lists.into_iter().any(|it| crate::jobs::outside::reach_outside(it, settings)) {
            return;
        }
        let weak = Arc::downgrade(&self.0);
        let thread = std::thread::Builder::new().name("scicat-actions".to_owned());
        if let Err(error) = thread.spawn(move || run_tries(&weak)) {
            tracing::error!(%error, "job action: failed actions are not retried: no thread could be started");
        }
    }

    /// Returns the entry for a change of a job; `None` if none of the actions to run calls another server.
    pub(super) fn pending(
        &self,
        job_type: &str,
        operation: Operation,
        actions: &[Action],
        scene: &Scene,
    ) -> Option<Pending> {
        let settings = &self.0.settings;
        let list = run::taken(actions, scene);
        let n_outside = list.iter().filter(|it| it.reaches_outside(settings)).count();
        if n_outside == 0 {
            return None;
        }
        let (request, pids, job) = scene.parts();
        let context = &self.0.context;
        let id = context.entropy().uuid_at(context.clock().now_ms()).to_string();
        let entry = Entry { id, job_type: job_type.to_owned(), operation, request, pids, job, n_done: 0 };
        Some(Pending { entry, owner: self.0.owner().to_owned(), lease_ms: lease_ms(settings, n_outside) })
    }

    /// Runs the actions of a stored job, one after the other. An action that another server does not accept now is
    /// retried later and is not an error.
    ///
    /// Errors: what an action refuses; 500 in shape E2 for the first action that no retry can complete. The job stays.
    pub(super) async fn perform(
        &self,
        tenant: &Tenant,
        held: Option<Held>,
        actions: &[Action],
        scene: &Scene,
    ) -> Result<(), ScicatError> {
        if let Some(held) = &held {
            // In case this request ends early.
            self.0.look_in(tenant.name(), Duration::from_millis(held.lease_ms.into()));
        }
        self.0.perform(tenant, held, actions, scene).await
    }
}

/// Returns how long an attempt holds its entry.
fn lease_ms(settings: &Settings, n_outside: usize) -> u32 {
    let n = u64::try_from(n_outside).unwrap_or(u64::MAX);
    let ms = settings.outgoing_timeout_ms.saturating_mul(n).saturating_add(SLACK_MS);
    u32::try_from(ms).unwrap_or(u32::MAX)
}

/// Returns the wait after an attempt, counted from 1.
fn wait_ms(first_ms: u64, n_tries: u64) -> u64 {
    let doubled = n_tries.saturating_sub(1).min(32);
    first_ms.saturating_mul(1 << doubled).min(LONGEST_WAIT_MS)
}

impl Shared {
    fn owner(&self) -> &str {
        self.owner.get_or_init(|| self.context.entropy().uuid().to_string())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a check of a tenant after this time, or earlier if one is already scheduled.
    fn look_in(&self, tenant: &str, wait: Duration) {
        let next = Instant::now() + wait;
        self.known().entry(tenant.to_owned()).and_modify(|it| *it = next.min(*it)).or_insert(next);
    }

    async fn perform(
        &self,
        tenant: &Tenant,
        mut held: Option<Held>,
        actions: &[Action],
        scene: &Scene,
    ) -> Result<(), ScicatError> {
        let list = run::taken(actions, scene);
        let n_before = held.as_ref().map_or(0, |it| it.n_done);
        for (at, action) in list.iter().enumerate().skip(n_before) {
            let failure = match run::take(&self.settings, action, scene).await {
                Ok(()) => {
                    let is_outside = action.reaches_outside(&self.settings);
                    let more = list[at + 1..].iter().any(|it| it.reaches_outside(&self.settings));
                    if let (Some(held), true) = (&mut held, is_outside && more)
                        && let Err(error) = held.note_done(tenant, at + 1).await
                    {
                        tracing::warn!(%error, "job action: done, but this could not be recorded");
                        if matches!(error, StoreError::LeaseLost { .. }) {
                            return Ok(()); // Another server has taken over.
                        }
                    }
                    continue;
                }
                Err(failure) => failure,
            };
            return self.end_try(tenant, held, scene, failure).await;
        }
        if let Some(held) = held {
            held.finish(tenant).await;
        }
        Ok(())
    }

    /// Schedules the next attempt, or gives up.
    async fn end_try(
        &self,
        tenant: &Tenant,
        held: Option<Held>,
        scene: &Scene,
        failure: Failure,
    ) -> Result<(), ScicatError> {
        let n_tries = held.as_ref().map_or(1, |it| it.lease.turn);
        let job = scene.job_id();
        let error = match (failure, held) {
            (Failure::Refused(refusal), held) => {
                if let Some(held) = held {
                    held.finish(tenant).await;
                }
                return Err(refusal);
            }
            (Failure::Passing(error), Some(held))
                if n_tries < u64::from(self.settings.job_action_attempts) =>
            {
                let wait_ms = wait_ms(self.settings.job_action_wait_ms, n_tries);
                tracing::warn!(job, error, n_tries, wait_ms, "job action: failed; it will be retried");
                let (lease, after_ms) = (held.lease, u32::try_from(wait_ms).unwrap_or(u32::MAX));
                let released = tenant.write(move |txn| txn.release_lease(&lease, after_ms));
                if let Err(error) = released.await {
                    // The entry is retried when the lease expires.
                    let error: StoreError = error;
                    tracing::warn!(job, %error, "job action: the time of the next attempt could not be recorded");
                }
                self.look_in(tenant.name(), Duration::from_millis(wait_ms));
                return Ok(());
            }
            (Failure::Lasting(error) | Failure::Passing(error), held) => {
                tracing::error!(job, error, n_tries, "job action: given up");
                if let Some(held) = held {
                    held.finish(tenant).await;
                }
                error
            }
        };
        let message = format!("The job was stored, but an action failed: {error}");
        Err(ScicatError::short(StatusCode::INTERNAL_SERVER_ERROR, message))
    }

    /// Retries what is due in a tenant. Returns how long to wait before the next check, or `None` if the tenant is
    /// gone.
    async fn look_at(self: &Arc<Self>, name: &str) -> Option<Duration> {
        let tenant = self.context.catalogue().tenant_aside(name).await.ok()?;
        loop {
            match self.try_first(&tenant).await {
                Ok(Some(wait)) => return Some(wait),
                Ok(None) => {}
                Err(StoreError::Closed) => return None,
                Err(error) => {
                    tracing::warn!(%error, tenant = name, "job action: entries could not be read; this will be retried");
                    return Some(LOOK);
                }
            }
        }
    }

    /// Retries the entry that has waited longest, if one is due; otherwise returns how long to wait.
    async fn try_first(self: &Arc<Self>, tenant: &Tenant) -> Result<Option<Duration>, StoreError> {
        let waiting = tenant.read(Weight::Point, |view| view.jobs(QUEUE, 1)).await?;
        if waiting.is_empty() {
            return Ok(Some(IDLE));
        }
        let permit = self.tries.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let owner = self.owner().to_owned();
        // Long enough for any configured list of actions; the actual number is only known once the entry is read.
        let n_most = self.settings.job_types.iter().flat_map(|it| [&it.create_actions, &it.update_actions]);
        let n_most = n_most.map(|it| crate::jobs::outside::n_outside(it)).max().unwrap_or(1);
        let lease_ms = lease_ms(&self.settings, n_most);
        let taken = tenant.write(move |txn| {
            let Some(lease) = txn.take_lease(QUEUE, &owner, lease_ms)? else { return Ok(None) };
            let entry = txn.get(&JOB_ACTION, &lease.id)?.map(|it| it.json()).transpose()?;
            let entry = entry.map(serde_json::from_value::<Entry>).transpose();
            match entry {
                Ok(Some(entry)) => Ok(Some((lease, entry))),
                other => {
                    if let Err(error) = other {
                        tracing::error!(entry = lease.id, %error, "job action: an entry that cannot be read is dropped");
                    }
                    txn.finish_job(&lease)?;
                    txn.delete(&JOB_ACTION, &lease.id)?;
                    Ok::<_, StoreError>(None)
                }
            }
        });
        let Some((lease, entry)) = taken.await?.0 else { return Ok(Some(LOOK)) };
        let (shared, tenant) = (Arc::clone(self), tenant.clone());
        tokio::spawn(async move {
            let held = Held { lease, n_done: entry.n_done, lease_ms };
            shared.try_again(&tenant, held, entry).await;
            drop(permit);
        });
        Ok(None)
    }

    async fn try_again(&self, tenant: &Tenant, held: Held, entry: Entry) {
        let job_type = self.settings.job_types.iter().find(|it| it.name == entry.job_type);
        let list = job_type.map(|it| match entry.operation {
            Operation::Create => it.create_actions.clone(),
            Operation::Update => it.update_actions.clone(),
        });
        let mut scene = Scene::new(&entry.request, entry.pids).with_job(&entry.job);
        let Some(list) = list else {
            let job = scene.job_id();
            tracing::error!(
                job,
                job_type = entry.job_type,
                "job action: given up, because the job's type is no longer configured"
            );
            return held.finish(tenant).await;
        };
        if u64::from(self.settings.job_action_attempts) < held.lease.turn {
            // Every attempt ended before its outcome could be recorded.
            tracing::error!(job = scene.job_id(), n_tries = held.lease.turn - 1, "job action: given up");
            return held.finish(tenant).await;
        }
        let (actions, mut seen) = (list.clone(), scene.clone());
        let read = tenant.read(Weight::Scan, move |view| {
            seen.see_datasets(view, &actions)?;
            Ok::<_, ScicatError>(seen.clone())
        });
        match read.await {
            Ok(seen) => scene = seen,
            Err(error) => {
                let failure = Failure::Passing(format!("the datasets could not be read: {error}"));
                return drop(self.end_try(tenant, Some(held), &scene, failure).await);
            }
        }
        // The failure has been logged; nobody waits for this result.
        drop(self.perform(tenant, Some(held), &list, &scene).await);
    }
}

/// Checks the tenants in turn until the server shuts down.
fn run_tries(weak: &Weak<Shared>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "job action: failed actions are not retried"),
    };
    runtime.block_on(async {
        if let Some(shared) = weak.upgrade() {
            let names = shared.context.catalogue().tenants().unwrap_or_else(|error| {
                tracing::error!(%error, "job action: the tenants could not be listed; their waiting actions run when the tenants are used");
                Vec::new()
            });
            // One at a time, so that a server with many tenants does not open them all at once.
            for (tenant, wait) in names.iter().zip(1..) {
                shared.look_in(&tenant.name, LOOK * wait);
            }
        }
        // The reference is dropped while sleeping, so that the server can shut down.
        while let Some(shared) = weak.upgrade() {
            let now = Instant::now();
            let due: Vec<String> =
                shared.known().iter().filter(|it| *it.1 <= now).map(|it| it.0.clone()).collect();
            for name in due {
                // Not checked again while a check is running, unless a request asks for it.
                let meanwhile = now + Duration::from_millis(LONGEST_WAIT_MS);
                shared.known().insert(name.clone(), meanwhile);
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    let wait = shared.look_at(&name).await;
                    let mut known = shared.known();
                    let Some(wait) = wait else {
                        known.remove(&name);
                        return;
                    };
                    // With many idle tenants, one per second is checked.
                    let n = u32::try_from(known.len()).unwrap_or(u32::MAX);
                    let wait = if wait == IDLE { wait.max(LOOK * n) } else { wait };
                    let next = Instant::now() + wait;
                    let planned = known.entry(name).or_insert(next);
                    if *planned == meanwhile || next < *planned {
                        *planned = next;
                    }
                });
            }
            drop(shared);
            tokio::time::sleep(LOOK / 4).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_an_hour() {
        for (n_tries, expected) in
            [(1, 10_000), (2, 20_000), (3, 40_000), (9, 2_560_000), (10, 3_600_000), (u64::MAX, 3_600_000)]
        {
            assert_eq!(wait_ms(10_000, n_tries), expected, "{n_tries}");
        }
    }
}
