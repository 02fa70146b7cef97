//! Rate limit of feedback, per sender and hour.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An hour, in milliseconds.
const HOUR_MS: i64 = 3_600_000;
/// Number of senders above which those without feedback in the last hour are dropped.
const SENDERS: usize = 10_000;

/// Times of recent feedback by sender.
#[derive(Clone, Default)]
pub(crate) struct Feedback(Arc<Mutex<HashMap<String, Vec<i64>>>>);

impl Feedback {
    /// Returns whether another feedback is within the limit, and counts it if so.
    pub(crate) fn takes(&self, who: &str, limit_per_hour: u64, now_ms: i64) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if SENDERS < all.len() {
            all.retain(|_, times| times.last().is_some_and(|it| now_ms - it < HOUR_MS));
        }
        let times = all.entry(who.to_owned()).or_default();
        times.retain(|it| now_ms - it < HOUR_MS);
        let is_within = (times.len() as u64) < limit_per_hour;
        if is_within {
            times.push(now_ms);
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_of_an_hour() {
        let feedback = Feedback::default();
        assert!(feedback.takes("a", 1, 0) && !feedback.takes("a", 1, 1000) && feedback.takes("b", 1, 1000));
        assert!(feedback.takes("a", 1, HOUR_MS));
    }
}
