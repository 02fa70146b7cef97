//! The time of day, passed in so that tests are exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A clock. Clones of a fixed clock share its time.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// Stands still until it is advanced; milliseconds since 1970.
    Fixed(Arc<AtomicI64>),
}

impl Clock {
    /// Creates a clock that stands at `now_ms`, in milliseconds since 1970.
    pub fn fixed(now_ms: i64) -> Self {
        Self::Fixed(Arc::new(AtomicI64::new(now_ms)))
    }

    /// Returns milliseconds since 1970-01-01T00:00:00Z.
    pub fn now_ms(&self) -> i64 {
        match self {
            Self::System => since_1970_ms(SystemTime::now()),
            Self::Fixed(now_ms) => now_ms.load(Ordering::Relaxed),
        }
    }

    /// Returns whole seconds since 1970-01-01T00:00:00Z, as used in tokens.
    pub fn now_s(&self) -> i64 {
        self.now_ms().div_euclid(1000)
    }

    /// Advances a fixed clock by `ms`; has no effect on the system's clock.
    pub fn advance_ms(&self, ms: i64) {
        if let Self::Fixed(now_ms) = self {
            now_ms.fetch_add(ms, Ordering::Relaxed);
        }
    }
}

fn since_1970_ms(at: SystemTime) -> i64 {
    match at.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_clocks_move_together() {
        let clock = Clock::fixed(1_500);
        let same = clock.clone();
        clock.advance_ms(600);
        assert_eq!((same.now_ms(), same.now_s()), (2_100, 2));
    }
}
