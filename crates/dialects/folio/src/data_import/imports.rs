//! The imports of a server: which tenants have any, and how many batches are prepared concurrently.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use pinakes_accounts::{Clock, Entropy};
use pinakes_http::Context;

use crate::platform::collection::Collections;
use crate::platform::settings::Settings;

/// The imports of a server. Cheap to clone.
#[derive(Clone)]
pub struct Imports(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) parts: Parts,
    pub(crate) tenants: Mutex<HashMap<String, Wanted>>,
    /// Tenants with imports that this server has seen.
    pub(crate) known: Mutex<HashSet<String>>,
    pub(crate) permits: Permits,
}

/// The parts of the server that the work needs.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) context: Option<Context>,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    /// This server's name in leases.
    pub(crate) owner: String,
    pub(crate) settings: Arc<Settings>,
    pub(crate) collections: Collections,
}

#[derive(PartialEq, Eq)]
pub(crate) enum Wanted {
    Running,
    RunningAndAskedAgain,
}

/// A limit on the batches prepared concurrently; permits are given in the order of the requests.
pub(crate) struct Permits {
    state: Mutex<Tickets>,
    changed: Condvar,
}

pub(crate) struct Tickets {
    next: u64,
    serving: u64,
}

impl Permits {
    fn new(n: u64) -> Self {
        Self { state: Mutex::new(Tickets { next: 0, serving: n }), changed: Condvar::new() }
    }

    /// Runs `work` once a permit is free.
    pub(crate) fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let own = state.next;
        state.next += 1;
        while state.serving <= own {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let done = Done(self);
        let result = work();
        drop(done);
        result
    }
}

/// Returns the permit when dropped, even if the work panics.
pub(crate) struct Done<'p>(&'p Permits);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).serving += 1;
        self.0.changed.notify_all();
    }
}

impl Imports {
    /// Creates the imports of a server.
    pub fn new(context: Context, settings: Arc<Settings>, collections: Collections) -> Self {
        let parts = Parts {
            clock: context.clock().clone(),
            entropy: context.entropy().clone(),
            owner: context.entropy().uuid().to_string(),
            context: Some(context),
            settings,
            collections,
        };
        Self::of(parts)
    }

    /// Creates the imports of a program that runs a single import.
    pub(crate) fn alone(
        clock: Clock,
        entropy: Entropy,
        settings: Arc<Settings>,
        collections: Collections,
    ) -> Self {
        let owner = entropy.uuid().to_string();
        Self::of(Parts { context: None, clock, entropy, owner, settings, collections })
    }

    fn of(parts: Parts) -> Self {
        // Use half of the processors: the other half answers requests and writes.
        let n = std::thread::available_parallelism().map_or(1, |it| (it.get() / 2).max(1)) as u64;
        Self(Arc::new(Shared {
            parts,
            tenants: Mutex::default(),
            known: Mutex::default(),
            permits: Permits::new(n),
        }))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
