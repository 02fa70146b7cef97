//! How long a read of the embedded engine may take, looked at every so many of its instructions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::Result;

/// Instructions between two looks.
pub(crate) const LOOK_STEPS: u32 = 20_000;

/// Stands for a read, or a statement, without a bound.
const NEVER: u64 = u64::MAX;

/// The bounds of what a connection is reading.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    born: Instant,
    /// When the read must be done, in milliseconds since `born`.
    deadline_ms: Arc<AtomicU64>,
    /// When the read began, in the same way.
    began_ms: Arc<AtomicU64>,
    /// How many looks the statement has left.
    looks: Arc<AtomicU64>,
}

impl Pace {
    /// Begins to look after a connection.
    pub(crate) fn of(connection: &mut Connection) -> Result<Self> {
        let never = || Arc::new(AtomicU64::new(NEVER));
        let pace = Self { born: Instant::now(), deadline_ms: never(), began_ms: never(), looks: never() };
        let own = pace.clone();
        connection.progress_handler(LOOK_STEPS.cast_signed(), Some(move || own.is_over()))?;
        Ok(pace)
    }

    /// The read that begins may take so long.
    pub(crate) fn allow(&self, timeout: Duration) {
        let deadline = self.born.elapsed().saturating_add(timeout);
        let began = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(NEVER);
        self.began_ms.store(began, Ordering::Relaxed);
        self.deadline_ms.store(u64::try_from(deadline.as_millis()).unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// No read is under way.
    pub(crate) fn rest(&self) {
        self.deadline_ms.store(NEVER, Ordering::Relaxed);
        self.began_ms.store(NEVER, Ordering::Relaxed);
    }

    /// For how long the read under way has been; `None` when there is none.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        let began = self.began_ms.load(Ordering::Relaxed);
        (began != NEVER).then(|| self.born.elapsed().saturating_sub(Duration::from_millis(began)))
    }

    /// Whether the connection that it looks after is still there.
    pub(crate) fn is_used(&self) -> bool {
        2 < Arc::strong_count(&self.began_ms)
    }

    /// Runs a statement for about so many instructions at most, one look at least; `None` when they did not do.
    pub(crate) fn within<T>(&self, n_steps: u64, run: impl FnOnce() -> Result<T>) -> Option<Result<T>> {
        self.looks.store(1 + n_steps / u64::from(LOOK_STEPS), Ordering::Relaxed);
        let result = run();
        match (result, self.looks.swap(NEVER, Ordering::Relaxed)) {
            (Err(crate::StoreError::TooLong), 0) => None,
            (result, _) => Some(result),
        }
    }

    /// For what is done between statements.
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
