//! How much of a tenant's writer an import takes.
//!
//! While nobody else writes, batches are large: a commit costs about the same whatever is in it. Once a request has
//! written something, batches are short and pauses lie between them, so that who lends a book hardly ever finds a commit
//! under way, and never a large one. A batch that somebody waits for ends at once (`Engine::run`).

use std::time::{Duration, Instant};

use pinakes_store::Tenant;

use crate::platform::limits::{AT_WORK_S, PAUSE_MS, PAUSE_TIMES, YIELD_MS};
use crate::platform::settings::Settings;

/// How a batch was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrote {
    /// With its commit and the wait for the writer.
    pub(crate) took: Duration,
    pub(crate) ended_at: Instant,
}

/// The pace of one tenant's imports.
#[derive(Debug)]
pub(crate) struct Pace {
    alone: Duration,
    beside: Duration,
    /// Writes that requests have asked for until now.
    n_requested: u64,
    /// When one was last seen.
    asked_at: Option<Instant>,
    /// Until when nothing is written beside others.
    rests_until: Option<Instant>,
}

impl Pace {
    /// What requests wrote before the imports began is not held against them: it brought the files.
    pub(crate) fn new(tenant: &Tenant, settings: &Settings) -> Self {
        let hold = |ms: u32| Duration::from_millis(ms.max(1).into());
        Self {
            alone: hold(settings.import_hold_ms),
            beside: hold(settings.import_hold_beside_ms),
            n_requested: tenant.statistics().n_requested,
            asked_at: None,
            rests_until: None,
        }
    }

    /// Takes note that a batch was written: what is prepared meanwhile takes nothing of the pause that follows.
    pub(crate) fn note(&mut self, wrote: Wrote) {
        let pause = (wrote.took * PAUSE_TIMES).min(Duration::from_millis(PAUSE_MS));
        self.rests_until = Some(wrote.ended_at + pause);
    }

    /// Waits until the next batch may come, and says how long it may hold the writer.
    pub(crate) fn next(&mut self, tenant: &Tenant) -> Duration {
        let now = Instant::now();
        let n_requested = tenant.statistics().n_requested;
        if self.n_requested != n_requested {
            (self.n_requested, self.asked_at) = (n_requested, Some(now));
        }
        let is_alone = self.asked_at.is_none_or(|it| Duration::from_secs(AT_WORK_S) < now - it);
        if !is_alone && let Some(until) = self.rests_until {
            std::thread::sleep(until.saturating_duration_since(now));
        }
        let until = Instant::now() + Duration::from_millis(YIELD_MS);
        while 0 < tenant.n_waiting() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(500));
        }
        if is_alone { self.alone } else { self.beside }
    }
}
