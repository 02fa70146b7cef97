//! How much of a tenant's writer an import uses.
//!
//! While nobody else writes, batches are large: a commit costs about the same whatever its size. Once a request has
//! written something, batches are short and separated by pauses, so that a check-out, for example, hardly ever meets a
//! commit in progress, and never a large one. A batch that others wait for ends at once (`Engine::run`).

use std::time::{Duration, Instant};

use pinakes_store::Tenant;

use crate::platform::limits::{AT_WORK_S, PAUSE_MS, PAUSE_TIMES, YIELD_MS};
use crate::platform::settings::Settings;

/// Timing of a written batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrote {
    /// Duration, including its commit and the wait for the writer.
    pub(crate) took: Duration,
    pub(crate) ended_at: Instant,
}

/// The pace of one tenant's imports.
#[derive(Debug)]
pub(crate) struct Pace {
    alone: Duration,
    beside: Duration,
    /// Number of writes that requests have asked for so far.
    n_requested: u64,
    /// When such a write was last seen.
    asked_at: Option<Instant>,
    /// End of the pause in which nothing is written while others write.
    rests_until: Option<Instant>,
}

impl Pace {
    /// Writes of requests before the imports began are ignored: they uploaded the files.
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

    /// Records that a batch was written; time spent on preparing the next one counts towards the pause that follows.
    pub(crate) fn note(&mut self, wrote: Wrote) {
        let pause = (wrote.took * PAUSE_TIMES).min(Duration::from_millis(PAUSE_MS));
        self.rests_until = Some(wrote.ended_at + pause);
    }

    /// Waits until the next batch may be written, and returns how long it may hold the writer.
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
