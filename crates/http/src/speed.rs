//! How long to wait for a slow client.

use std::time::Duration;

use pinakes_store::Limits;

/// The remaining patience with a client: a pause of `body_timeout_ms`, shortened by its lag behind the minimum speed,
/// and `transfer_timeout_ms` of waiting in total. Time in which nobody waits for the client does not count.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    pause: Duration,
    total: Duration,
    least_bytes_s: u64,
    behind: Duration,
    waited: Duration,
}

impl Patience {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            pause: Duration::from_millis(limits.body_timeout_ms),
            total: Duration::from_millis(limits.transfer_timeout_ms),
            least_bytes_s: limits.least_speed_bytes_s,
            behind: Duration::ZERO,
            waited: Duration::ZERO,
        }
    }

    /// Returns how long to wait now.
    pub(crate) fn left(&self) -> Duration {
        self.pause.saturating_sub(self.behind).min(self.total.saturating_sub(self.waited))
    }

    /// Records time spent waiting for the client.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.behind += time;
        self.waited += time;
    }

    /// Records bytes that it sent or received.
    pub(crate) fn credit(&mut self, n_bytes: usize) {
        let n_bytes = u64::try_from(n_bytes).unwrap_or(u64::MAX);
        let worth_ms = n_bytes.saturating_mul(1_000).checked_div(self.least_bytes_s);
        let worth = worth_ms.map_or(Duration::MAX, Duration::from_millis);
        self.behind = self.behind.saturating_sub(worth);
    }

    /// Begins waiting for another body or answer.
    pub(crate) fn begin_anew(&mut self) {
        self.waited = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_slower_than_the_least_speed_is_waited_for_shorter_each_time() {
        let s = Duration::from_secs;
        let limits = Limits { body_timeout_ms: 30_000, least_speed_bytes_s: 1_000, ..Limits::default() };
        let mut patience = Patience::new(&limits);
        assert_eq!(patience.left(), s(30));
        patience.wait(s(10));
        patience.credit(1_000);
        assert_eq!(patience.left(), s(21));
        patience.credit(1_000_000);
        assert_eq!(patience.left(), s(30), "a fast part pays for earlier pauses, not for later ones");
        patience.wait(s(31));
        assert_eq!(patience.left(), s(0));
    }

    #[test]
    fn the_waiting_has_an_end_altogether() {
        let limits = Limits { transfer_timeout_ms: 60_000, least_speed_bytes_s: 0, ..Limits::default() };
        let mut patience = Patience::new(&limits);
        for _ in 0..6 {
            patience.wait(Duration::from_secs(9));
            patience.credit(1);
        }
        assert_eq!(patience.left(), Duration::from_secs(6));
        patience.begin_anew();
        assert_eq!(patience.left(), Duration::from_secs(30));
    }
}
