//! Time limits on reads of the embedded engine, checked every so many of its virtual-machine instructions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::Result;

/// Instructions between two checks.
pub(crate) const LOOK_STEPS: u32 = 20_000;

/// Stands for a read or statement without a limit.
const NEVER: u64 = u64::MAX;

/// The limits on what a connection is reading.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    born: Instant,
    /// Deadline of the read, in milliseconds since `born`.
    deadline_ms: Arc<AtomicU64>,
    /// Start of the read, likewise.
    began_ms: Arc<AtomicU64>,
    /// Number of checks that the statement has left.
    looks: Arc<AtomicU64>,
}

impl Pace {
    /// Installs the checks on a connection.
    pub(crate) fn of(connection: &mut Connection) -> Result<Self> {
        let never = || Arc::new(AtomicU64::new(NEVER));
        let pace = Self { born: Instant::now(), deadline_ms: never(), began_ms: never(), looks: never() };
        let own = pace.clone();
        connection.progress_handler(LOOK_STEPS.cast_signed(), Some(move || own.is_over()))?;
        Ok(pace)
    }

    /// Starts a read that may take `timeout`.
    pub(crate) fn allow(&self, timeout: Duration) {
        let deadline = self.born.elapsed().saturating_add(timeout);
        let began = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(NEVER);
        self.began_ms.store(began, Ordering::Relaxed);
        self.deadline_ms.store(u64::try_from(deadline.as_millis()).unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// Ends the read.
    pub(crate) fn rest(&self) {
        self.deadline_ms.store(NEVER, Ordering::Relaxed);
        self.began_ms.store(NEVER, Ordering::Relaxed);
    }

    /// Returns how long the current read has been running; `None` when there is none.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        let began = self.began_ms.load(Ordering::Relaxed);
        (began != NEVER).then(|| self.born.elapsed().saturating_sub(Duration::from_millis(began)))
    }

    /// Returns whether the connection still exists.
    pub(crate) fn is_used(&self) -> bool {
        2 < Arc::strong_count(&self.began_ms)
    }

    /// Runs a statement for at most about `n_steps` instructions, at least until the first check; `None` when that was
    /// not enough.
    pub(crate) fn within<T>(&self, n_steps: u64, run: impl FnOnce() -> Result<T>) -> Option<Result<T>> {
        self.looks.store(1 + n_steps / u64::from(LOOK_STEPS), Ordering::Relaxed);
        let result = run();
        match (result, self.looks.swap(NEVER, Ordering::Relaxed)) {
            (Err(crate::StoreError::TooLong), 0) => None,
            (result, _) => Some(result),
        }
    }

    /// Checks the time limit between statements.
    ///
    /// Errors: the read took too long.
    pub(crate) fn check(&self) -> Result<()> {
        let now_ms = self.born.elapsed().as_millis();
        if u128::from(self.deadline_ms.load(Ordering::Relaxed)) < now_ms {
            return Err(crate::StoreError::TooLong);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let looks = self.looks.load(Ordering::Relaxed);
        if looks != NEVER {
            if looks == 0 {
                return true;
            }
            self.looks.store(looks - 1, Ordering::Relaxed);
        }
        u128::from(self.deadline_ms.load(Ordering::Relaxed)) < self.born.elapsed().as_millis()
    }
}
