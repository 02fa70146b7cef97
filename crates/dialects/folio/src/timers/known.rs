//! The timers of a server: the tenants for which it runs them, and when it checks each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pinakes_http::Context;

use crate::platform::collection::Collections;
use crate::platform::limits::TIMER_ACTIVE_S;

/// The timers of a server. Cheap to clone.
#[derive(Clone)]
pub struct Timers(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) context: Context,
    /// The collections through which chores write.
    pub(crate) collections: Collections,
    /// This server's name in leases.
    pub(crate) owner: String,
    /// Tenants whose timers this server runs.
    pub(crate) known: Mutex<HashMap<String, Known>>,
}

/// When a tenant is checked. One that was written to recently is checked continuously, because writes change timers and
/// queue messages; others only when something is due, so that they need not be open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) active_until: Instant,
    pub(crate) next: Instant,
}

impl Timers {
    /// Creates the timers of a server.
    pub fn new(context: Context, collections: Collections) -> Self {
        let owner = context.entropy().uuid().to_string();
        Self(Arc::new(Shared { context, collections, owner, known: Mutex::default() }))
    }

    /// Records that a tenant is written to.
    pub fn meet(&self, tenant: &str) {
        let now = Instant::now();
        let active_until = now + Duration::from_secs(TIMER_ACTIVE_S);
        let mut known = self.0.known();
        match known.get_mut(tenant) {
            Some(it) => it.active_until = active_until,
            None => {
                known.insert(tenant.to_owned(), Known { active_until, next: now });
            }
        }
    }

    /// Forgets a tenant that is being removed.
    pub fn forget(&self, tenant: &str) {
        self.0.known().remove(tenant);
    }
}

impl Shared {
    pub(crate) fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
