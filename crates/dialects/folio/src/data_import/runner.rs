//! The work of imports: one thread per tenant with imports, batch by batch.
//!
//! All jobs of a tenant share its thread and take turns batch by batch; tenants share a bounded number of permits for
//! processor-intensive work, first come, first served. A batch is small, so that it never holds the tenant's writer for
//! long, and waits while other writes wait. The records of a batch and the job's progress are written in one
//! transaction: a server that is killed continues after its last batch.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pinakes_store::{End, Expr, Lease, Query, StoreError, Tenant, Txn};

use super::job::JOB;
use crate::data_import::imports::{Imports, Shared, Wanted, lock};
use crate::data_import::job::Job;
use crate::data_import::pace::Pace;
use crate::data_import::work::{Active, Step};
use crate::platform::limits::{LEASE_MS, LEASE_WAIT_MS, LOOK_S};

/// The queue, and the single job in it that stands for all imports of a tenant: the server that holds its lease runs
/// them.
pub(crate) const QUEUE: &str = "folio-import";
const ALL: &str = "all";

/// Resumes unfinished imports: at start-up in every tenant, later in those that this server knows.
fn look_after(weak: &Weak<Shared>) {
    let mut is_first = true;
    while let Some(shared) = weak.upgrade() {
        let Some(context) = shared.parts.context.clone() else { return };
        let names: Vec<String> = match is_first {
            true => context
                .catalogue()
                .tenants()
                .map(|list| list.into_iter().map(|it| it.name).collect())
                .unwrap_or_default(),
            false => lock(&shared.known).iter().cloned().collect(),
        };
        let imports = Imports(shared);
        for name in names {
            let Ok(tenant) = context.catalogue().tenant(&name) else { continue };
            let since_ms = imports.0.parts.clock.now_ms()
                - imports.0.parts.settings.import_silence_s.saturating_mul(1_000);
            if let Err(error) = give_up(&tenant, since_ms) {
                tracing::warn!(%error, tenant = name, "imports whose sender is gone could not be looked for");
            }
            match has_pending(&tenant) {
                Ok(true) => imports.wake(&tenant),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, tenant = name, "unfinished imports could not be looked for")
                }
            }
        }
        is_first = false;
        drop((imports, context));
        // The imports are not held while sleeping, so that the server can shut down.
        for _ in 0..LOOK_S * 2 {
            if weak.strong_count() == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// Gives up imports whose sender is gone; writes nothing if there are none.
fn give_up(tenant: &Tenant, since_ms: i64) -> Result<(), StoreError> {
    let unheard = Expr::Range("_work.heardAt".into(), End::Open, End::Excluded(since_ms.into()));
    if tenant.read_blocking(move |view| Ok::<_, StoreError>(view.first(&JOB, unheard.clone())?.is_some()))? {
        tenant.write_blocking(move |txn: &mut Txn<'_>| super::job::give_up_unheard(txn, since_ms))?;
    }
    Ok(())
}

fn has_pending(tenant: &Tenant) -> Result<bool, StoreError> {
    tenant
        .read_blocking(|view| Ok(view.first(&JOB, Expr::Is("_work.pending".into(), true.into()))?.is_some()))
}

impl Imports {
    /// Resumes what an earlier run has left unfinished, and checks again periodically.
    pub fn start(&self) {
        let weak = Arc::downgrade(&self.0);
        let look = move || look_after(&weak);
        if let Err(error) = std::thread::Builder::new().name("folio-imports".to_owned()).spawn(look) {
            tracing::error!(%error, "imports that an earlier run left unfinished are not resumed");
        }
    }

    /// Ensures that the tenant's imports are being processed.
    pub fn wake(&self, tenant: &Tenant) {
        let name = tenant.name().to_owned();
        lock(&self.0.known).insert(name.clone());
        {
            let mut tenants = lock(&self.0.tenants);
            if let Some(state) = tenants.get_mut(&name) {
                *state = Wanted::RunningAndAskedAgain;
                return;
            }
            tenants.insert(name.clone(), Wanted::Running);
        }
        let (shared, tenant) = (Arc::clone(&self.0), tenant.clone());
        let thread = std::thread::Builder::new().name("folio-import".to_owned());
        let serve = move || {
            pinakes_store::step_back();
            shared.serve(&tenant);
        };
        if let Err(error) = thread.spawn(serve) {
            tracing::error!(%error, tenant = name, "no thread could be started for imports; they wait until the next check");
            lock(&self.0.tenants).remove(&name);
        }
    }

    /// Runs one tenant's imports on this thread until nothing is left to do.
    pub(crate) fn run(&self, tenant: &Tenant) -> Result<(), StoreError> {
        self.0.work(tenant).map(drop)
    }
}

impl Shared {
    /// Runs a tenant's thread.
    fn serve(&self, tenant: &Tenant) {
        loop {
            let work = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.work(tenant)));
            let again = match work {
                Ok(Ok(())) => false,
                Ok(Err(StoreError::Closed)) => break,
                Ok(Err(error)) => {
                    tracing::error!(%error, tenant = tenant.name(), "imports stopped; they will be retried");
                    true
                }
                Err(_) => {
                    tracing::error!(tenant = tenant.name(), "imports stopped by an internal fault");
                    false
                }
            };
            let mut tenants = lock(&self.tenants);
            if tenants.get(tenant.name()) == Some(&Wanted::RunningAndAskedAgain) {
                tenants.insert(tenant.name().to_owned(), Wanted::Running);
                continue;
            }
            if !again {
                tenants.remove(tenant.name());
                return;
            }
            drop(tenants);
            std::thread::sleep(Duration::from_secs(1));
        }
        lock(&self.tenants).remove(tenant.name());
    }

    /// Takes the tenant's lease and works until nothing is left to do.
    fn work(&self, tenant: &Tenant) -> Result<(), StoreError> {
        // Another server may hold it: either that server does the work, or its lease expires.
        let lease = loop {
            if !has_pending(tenant)? {
                return Ok(());
            }
            let owner = self.parts.owner.clone();
            let taken =
                tenant.write_blocking(move |txn: &mut Txn<'_>| -> Result<Option<Lease>, StoreError> {
                    txn.queue_job(QUEUE, ALL)?;
                    txn.take_lease_of(QUEUE, ALL, &owner, LEASE_MS)
                })?;
            match taken {
                Some(lease) => break lease,
                None => std::thread::sleep(Duration::from_millis(LEASE_WAIT_MS)),
            }
        };
        let heartbeat = tenant.keep_lease(lease.clone(), LEASE_MS)?;
        let mut active: HashMap<String, Active> = HashMap::new();
        let mut pace = Pace::new(tenant, &self.parts.settings);
        let mut result = Ok(());
        while !heartbeat.is_lost() {
            match self.round(tenant, &lease, &mut active, &mut pace) {
                Ok(true) => {}
                Ok(false) => break,
                Err(StoreError::LeaseLost { .. }) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        drop(heartbeat);
        let released = tenant.write_blocking(move |txn: &mut Txn<'_>| txn.release_lease(&lease, 0));
        match (result, released) {
            (Err(error), _) => Err(error),
            (Ok(()), Ok(()) | Err(StoreError::LeaseLost { .. })) => Ok(()),
            (Ok(()), Err(error)) => Err(error),
        }
    }

    /// Processes one batch of each job that has any; returns whether there was one.
    fn round(
        &self,
        tenant: &Tenant,
        lease: &Lease,
        active: &mut HashMap<String, Active>,
        pace: &mut Pace,
    ) -> Result<bool, StoreError> {
        let pending = Query::filter(Expr::Is("_work.pending".into(), true.into()))
            .sorted("hrId", pinakes_store::Direction::Ascending);
        let pending = Query { limit: Some(self.parts.settings.import_jobs.max(1)), ..pending };
        let jobs = tenant.read_blocking(move |view| -> Result<Vec<Job>, StoreError> {
            let found = view.find(&JOB, &pending)?;
            Ok(found.iter().filter_map(|it| it.json().ok()).filter_map(Job::of).collect())
        })?;
        active.retain(|id, _| jobs.iter().any(|it| it.id() == id));
        let mut did_any = false;
        for job in jobs {
            let hold = pace.next(tenant);
            let state = active.entry(job.id().to_owned()).or_default();
            let id = job.id().to_owned();
            let step = state.step(tenant, lease, job, hold, &self.parts, &self.permits)?;
            state.take_wrote().into_iter().for_each(|it| pace.note(it));
            match step {
                Step::Did => did_any = true,
                Step::Waits => {}
                Step::Ended => {
                    did_any = true;
                    active.remove(&id);
                }
            }
        }
        Ok(did_any)
    }
}
