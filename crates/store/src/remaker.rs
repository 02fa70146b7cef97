//! The thread that rebuilds kinds while serving; see [`crate::remake`].

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::remake::{self, Left, STEP_ROWS};
use crate::tenant::{Engine, Inner};
use crate::{Expr, Kind, Result, StoreError, Tenant, Txn};

/// Pause between two checks while waiting for other processes.
const OTHERS: Duration = Duration::from_millis(100);
/// Maximum number of such checks before a tenant is served.
const FIRST_WAITS: u32 = 20;
/// Pause after a failed step; doubled after each further failure, up to [`DOUBLINGS`] times.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);
const DOUBLINGS: u32 = 6;

/// Rebuilds the first records of each kind, and starts a thread for the rest.
pub(crate) fn start(tenant: &Tenant) -> Result<()> {
    let n_first =
        usize::try_from(tenant.limits().remake_records_first).unwrap_or(usize::MAX).div_ceil(STEP_ROWS);
    let mut left = tenant.remade_kinds();
    left.retain(|kind| match first_steps(tenant, kind, n_first) {
        Ok(left) => left != Left::Nothing,
        Err(error) => {
            tracing::warn!(kind = kind.name, %error, "rebuilding a kind failed; it will be retried");
            true
        }
    });
    if left.is_empty() {
        return Ok(());
    }
    let (living, ends) = mpsc::channel();
    let weak = Arc::downgrade(&tenant.0);
    std::thread::Builder::new()
        .name("store-remake".to_owned())
        .spawn(move || go_on(&weak, left, &ends))
        .map_err(|source| StoreError::Io { path: "thread store-remake".to_owned(), source })?;
    // The tenant is opened only once, so this cannot have been set before.
    tenant.0.remaker.set(living).ok();
    Ok(())
}

/// Takes steps of which at most `n_most` rebuild rows. Indexes of a kind with more than `remake_records_first` records
/// are left to be built while serving.
fn first_steps(tenant: &Tenant, kind: &'static Kind, n_most: usize) -> Result<Left> {
    let n_records = tenant.read_blocking(|view| view.count(kind, &Expr::All))?;
    let is_small = n_records <= tenant.limits().remake_records_first;
    let (mut n_left, mut n_waits) = (n_most, FIRST_WAITS);
    while 0 < n_left {
        let is_for_later = !is_small
            && tenant.read_blocking(|view| {
                Ok::<_, StoreError>(view.remake(kind)?.is_some_and(|it| it.is_at_indexes()))
            })?;
        if is_for_later {
            break;
        }
        match tenant.remake_step(kind)? {
            Left::Rows => n_left -= 1,
            Left::Steps | Left::Indexes => {}
            Left::Wait if 0 < n_waits => {
                n_waits -= 1;
                std::thread::sleep(OTHERS);
            }
            left => return Ok(left),
        }
    }
    Ok(Left::Steps)
}

/// Takes steps until nothing is left or the tenant is closed. A kind that has to wait does not delay the others.
fn go_on(weak: &Weak<Inner>, kinds: Vec<&'static Kind>, ends: &Receiver<()>) {
    let mut kinds: VecDeque<&'static Kind> = kinds.into();
    // Number of kinds that had to wait since the last one that made progress, and the longest wait.
    let (mut n_waiting, mut longest) = (0, Duration::ZERO);
    let (mut n_failures, mut pause) = (0_u32, Duration::ZERO);
    while let Some(kind) = kinds.front().copied() {
        let Some(tenant) = weak.upgrade().map(Tenant) else { return };
        pause = pause.max(Duration::from_millis(tenant.limits().remake_pause_ms));
        drop(tenant);
        if ends.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let Some(tenant) = weak.upgrade().map(Tenant) else { return };
        let began = Instant::now();
        let waits = match tenant.remake_step(kind) {
            Ok(Left::Nothing) => {
                tracing::info!(kind = kind.name, "a kind has been rebuilt");
                kinds.pop_front();
                None
            }
            Ok(Left::Steps | Left::Rows | Left::Indexes) => None,
            Ok(Left::Wait) | Err(StoreError::Busy { .. } | StoreError::Conflict(_)) => Some(OTHERS),
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::warn!(kind = kind.name, %error, "rebuilding a kind failed; it will be retried");
                n_failures = n_failures.saturating_add(1);
                Some(FAILURE_PAUSE * (1 << (n_failures - 1).min(DOUBLINGS)))
            }
        };
        pause = began.elapsed();
        match waits {
            None => (n_waiting, n_failures, longest) = (0, 0, Duration::ZERO),
            Some(waits) => {
                (n_waiting, longest) = (n_waiting + 1, longest.max(waits));
                kinds.rotate_left(1);
                if kinds.len() <= n_waiting {
                    pause = longest;
                    (n_waiting, longest) = (0, Duration::ZERO);
                }
            }
        }
    }
}

impl Tenant {
    /// Returns the kinds that are being rebuilt, as far as this process knows.
    fn remade_kinds(&self) -> Vec<&'static Kind> {
        let under_way = self.shared().remakes.current().unwrap_or_default();
        self.shared().kinds.iter().copied().filter(|it| under_way.contains_key(it.name)).collect()
    }

    /// Takes one step on this thread.
    fn remake_step(&self, kind: &'static Kind) -> Result<Left> {
        let step = move |txn: &mut Txn<'_>| remake::step(txn, kind);
        // In a file, each step is on disk when it is done, so that a power failure costs no more than a kill.
        let mut left = if self.is_embedded() { self.write_blocking(step) } else { self.load_blocking(step) }?;
        if let (Left::Indexes, Engine::Postgres(engine)) = (left, &self.0.engine) {
            engine.bring_indexes(kind).map_err(|error| remake::not_unique(kind, error))?;
            left = self.load_blocking(step)?;
            if left == Left::Indexes {
                // Another server builds them.
                left = Left::Wait;
            }
        }
        if left == Left::Nothing {
            self.shared().remakes.end(kind);
            if let Some(indexes) = self.shared().indexes.get() {
                indexes.ring();
            }
        }
        Ok(left)
    }

    /// Takes all remaining steps without pauses.
    pub(crate) fn finish_remakes(&self) -> Result<()> {
        for kind in self.remade_kinds() {
            loop {
                match self.remake_step(kind)? {
                    Left::Nothing => break,
                    Left::Wait => std::thread::sleep(OTHERS),
                    Left::Steps | Left::Rows | Left::Indexes => {}
                }
            }
        }
        Ok(())
    }
}
