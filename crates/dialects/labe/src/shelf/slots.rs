//! The current shelves, one per tenant, and the state of building the next ones.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::shelf::places::Shelf;

/// Maximum pause before the next shelf is built.
pub(crate) const REST_MAX: Duration = Duration::from_secs(60);

/// The shelves of all tenants.
#[derive(Default)]
pub(crate) struct Shelves {
    by_tenant: RwLock<HashMap<String, Arc<Slot>>>,
}

/// The shelf of a tenant, and whether the next one is being built.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) shelf: Mutex<Option<Arc<Shelf>>>,
    pub(crate) is_being_made: AtomicBool,
    /// The next one is not started before this time: while records change constantly, answers come from the store,
    /// instead of shelves occupying a core.
    rests_until: Mutex<Option<Instant>>,
}

impl Slot {
    pub(crate) fn get(&self) -> Option<Arc<Shelf>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_resting(&self) -> bool {
        let until = *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    pub(crate) fn rest(&self, pause: Duration) {
        let until = Instant::now().checked_add(pause.min(REST_MAX));
        *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

impl Shelves {
    pub(crate) fn slot(&self, tenant: &str) -> Arc<Slot> {
        if let Some(slot) = self.by_tenant.read().unwrap_or_else(PoisonError::into_inner).get(tenant) {
            return slot.clone();
        }
        let mut by_tenant = self.by_tenant.write().unwrap_or_else(PoisonError::into_inner);
        by_tenant.entry(tenant.to_owned()).or_default().clone()
    }
}
