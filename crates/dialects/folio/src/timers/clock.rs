//! The thread that runs timers when they are due.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use pinakes_accounts::Entropy;
use pinakes_store::{Lease, StoreError, Tenant, Txn};
use serde_json::Value;

use crate::chores;
use crate::circulation::records::text;
use crate::platform::chore::{Chore, Parts};
use crate::platform::limits::{LEASE_MS, TIMER_ACTIVE_S, TIMER_IDLE_S, TIMER_LOOK_MS};
use crate::timers::known::{Known, Shared, Timers};
use crate::timers::{QUEUE, TIMERS, delay_ms};

/// The result of checking a tenant.
enum Next {
    Ran,
    Waits(Duration),
}

fn run(weak: &Weak<Shared>) {
    if let Some(shared) = weak.upgrade() {
        let names = shared.context.catalogue().tenants().unwrap_or_default();
        let now = Instant::now();
        // The first checks are spread out and leave room for the first requests.
        let first =
            |place: usize| now + Duration::from_millis(TIMER_LOOK_MS) * u32::try_from(place).unwrap_or(0);
        let known = names
            .into_iter()
            .enumerate()
            .map(|(n, it)| (it.name, Known { active_until: now, next: first(n + 1) }));
        shared.known().extend(known);
    }
    // The timers are not held while sleeping, so that the server can shut down.
    while let Some(shared) = weak.upgrade() {
        let now = Instant::now();
        let due: Vec<String> = shared
            .known()
            .iter()
            .filter(|(_, it)| now < it.active_until || it.next <= now)
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            shared.look_at(&name);
        }
        drop(shared);
        std::thread::sleep(Duration::from_millis(TIMER_LOOK_MS));
    }
}

impl Timers {
    /// Runs the timers of the existing tenants, and of those that appear later.
    pub fn start(&self) {
        let weak = Arc::downgrade(&self.0);
        let thread = std::thread::Builder::new().name("folio-timers".to_owned());
        if let Err(error) = thread.spawn(move || run(&weak)) {
            tracing::error!(%error, "timers do not run: no thread could be started for them");
        }
    }
}

impl Shared {
    /// Runs what is due in a tenant, and sets when to check it again.
    fn look_at(&self, name: &str) {
        let Ok(tenant) = self.context.catalogue().tenant(name) else {
            self.known().remove(name);
            return;
        };
        let wait = loop {
            match self.next(&tenant) {
                Ok(Next::Ran) => {}
                Ok(Next::Waits(wait)) => break wait,
                Err(StoreError::Closed) => {
                    self.known().remove(name);
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, tenant = name, "a timer could not be run; it will be retried");
                    break Duration::ZERO;
                }
            }
        };
        let wait = wait.clamp(Duration::from_secs(TIMER_ACTIVE_S), Duration::from_secs(TIMER_IDLE_S));
        if let Some(known) = self.known().get_mut(name) {
            known.next = Instant::now() + wait;
        }
    }

    /// Runs one timer that is due, or returns the time until one is.
    fn next(&self, tenant: &Tenant) -> Result<Next, StoreError> {
        let first = tenant.read_blocking(|view| view.jobs(QUEUE, 1))?;
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let Some(wait_ms) = first.first().map(|it| it.until_ms - now_ms) else {
            return Ok(Next::Waits(Duration::MAX));
        };
        if let Ok(ms @ 1..) = u64::try_from(wait_ms) {
            return Ok(Next::Waits(Duration::from_millis(ms)));
        }
        let owner = self.owner.clone();
        let taken = tenant.write_blocking(
            move |txn: &mut Txn<'_>| -> Result<Option<(Lease, Value)>, StoreError> {
                let Some(lease) = txn.take_lease(QUEUE, &owner, LEASE_MS)? else { return Ok(None) };
                let timer = txn.get(&TIMERS.kind, &lease.id)?.map(|it| it.json()).transpose()?;
                if timer.is_none() {
                    txn.finish_job(&lease)?;
                }
                Ok(timer.map(|it| (lease, it)))
            },
        )?;
        let Some((lease, timer)) = taken else { return Ok(Next::Waits(Duration::ZERO)) };
        let path = text(&timer, "routingEntry.pathPattern").to_owned();
        let heartbeat = tenant.keep_lease(lease.clone(), LEASE_MS)?;
        match chores::of_path(&path) {
            Some(chore) => self.do_chore(tenant, &path, chore),
            None => {
                tracing::debug!(path, tenant = tenant.name(), "a timer names a route that no timer can run")
            }
        }
        drop(heartbeat);
        let after_ms = delay_ms(&timer).unwrap_or(u32::MAX);
        let released = tenant.write_blocking(move |txn: &mut Txn<'_>| txn.release_lease(&lease, after_ms));
        match released {
            // The timer was changed in the meantime and planned again.
            Ok(()) | Err(StoreError::LeaseLost { .. }) => Ok(Next::Ran),
            Err(error) => Err(error),
        }
    }

    fn do_chore(&self, tenant: &Tenant, path: &str, chore: Chore) {
        let parts = Parts {
            tenant: tenant.clone(),
            now_ms: self.context.clock().now_ms(),
            user: None,
            entropy: Entropy::clone(self.context.entropy()),
            collections: self.collections,
        };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| chore(&parts)));
        match done {
            Ok(Ok(())) => tracing::debug!(path, tenant = tenant.name(), "timer ran"),
            Ok(Err(error)) => tracing::warn!(%error, path, tenant = tenant.name(), "timer failed"),
            Err(_) => tracing::error!(path, tenant = tenant.name(), "timer ended by an internal fault"),
        }
    }
}
