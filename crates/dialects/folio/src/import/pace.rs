//! How much of a tenant's writer an import takes.
//!
//! While nobody else writes, batches are large: a commit costs about the same whatever is in it. Once a request has
//! written something, batches are short and pauses lie between them, so that who lends a book hardly ever finds a commit
//! under way, and never a large one. A batch that somebody waits for ends at once (`Engine::run`).

use std::time::{Duration, Instant};

use pinakes_store::Tenant;

use crate::limits::{AT_WORK_S, PAUSE_MS, PAUSE_TIMES, YIELD_MS};
use crate::settings::Settings;

/// The pace of one tenant's imports.
#[derive(Debug)]
pub(crate) struct Pace {
    alone: Duration,
    beside: Duration,
    /// Writes that requests have asked for until now.
    n_requested: u64,
    /// When one was last seen.
    asked_at: Option<Instant>,
    /// When the last batch was let go.
    begun_at: Option<Instant>,
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
            begun_at: None,
        }
    }

    /// Waits until the next batch may come, and says how long it may hold the writer.
    pub(crate) fn next(&mut self, tenant: &Tenant) -> Duration {
        let now = Instant::now();
        let n_requested = tenant.statistics().n_requested;
        if self.n_requested != n_requested {
            (self.n_requested, self.asked_at) = (n_requested, Some(now));
        }
        let is_alone = self.asked_at.is_none_or(|it| Duration::from_secs(AT_WORK_S) < now - it);
        if !is_alone && let Some(begun_at) = self.begun_at {
            std::thread::sleep(((now - begun_at) * PAUSE_TIMES).min(Duration::from_millis(PAUSE_MS)));
        }
        let until = Instant::now() + Duration::from_millis(YIELD_MS);
        while 0 < tenant.n_waiting() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(500));
        }
        self.begun_at = Some(Instant::now());
        if is_alone { self.alone } else { self.beside }
    }
}
