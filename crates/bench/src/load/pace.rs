//! The timetable of open load. A separate thread wakes for each due request, because the timers of the async
//! runtime round up to whole milliseconds, as much as a fast server needs for an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::error::BenchError;

/// Highest rate of a timetable, per second. Far above what a client can send; keeps arithmetic exact.
pub const RATE_PER_S_MAX: f64 = 10_000_000.0;

/// Longest sleep of the pacing thread: bounds the time until it notices that the step was ended.
const SLEEP_MAX: Duration = Duration::from_millis(20);

/// When each request of an open group is due, and how many are.
#[derive(Debug)]
pub struct Timetable {
    start: Instant,
    end: Instant,
    rate_per_s: f64,
    /// One permit for each request that is due and not yet taken. Closed at the end.
    due: Semaphore,
    n_due: AtomicU64,
    n_taken: AtomicU64,
}

impl Timetable {
    /// Creates a timetable of requests at `rate_per_s` from `start` (the first is due then) until `end`.
    pub fn new(start: Instant, end: Instant, rate_per_s: f64) -> Self {
        Self {
            start,
            end,
            rate_per_s,
            due: Semaphore::new(0),
            n_due: AtomicU64::new(0),
            n_taken: AtomicU64::new(0),
        }
    }

    /// Waits for the next due request, takes it and returns when it was due. `None` after the end.
    pub async fn take(&self) -> Option<Instant> {
        self.due.acquire().await.ok()?.forget();
        let k = self.n_taken.fetch_add(1, Ordering::Relaxed);
        Some(self.due_at(k))
    }

    /// Returns when the k-th request (from 0) is due.
    pub fn due_at(&self, k: u64) -> Instant {
        self.start + Duration::from_secs_f64(k as f64 / self.rate_per_s)
    }

    /// Returns the requests that fell due but were never taken, each by the moment it was due. Call after the
    /// end.
    pub fn unsent(&self) -> impl Iterator<Item = Instant> + '_ {
        let taken = self.n_taken.load(Ordering::Relaxed);
        let due = self.n_due.load(Ordering::Relaxed);
        (taken..due).map(|k| self.due_at(k))
    }

    /// Returns when the timetable ends.
    pub fn end(&self) -> Instant {
        self.end
    }

    /// Withdraws requests that are not yet due: nobody waits any more.
    pub fn close(&self) {
        self.due.close();
    }

    /// Releases requests as they fall due, until the end or until closed.
    fn keep(&self) {
        let mut released: u64 = 0;
        loop {
            let now = Instant::now();
            if now >= self.end || self.due.is_closed() {
                break;
            }
            let since_start_s = now.saturating_duration_since(self.start).as_secs_f64();
            let due = if now < self.start { 0 } else { (since_start_s * self.rate_per_s) as u64 + 1 };
            if due > released {
                let fresh = usize::try_from(due - released).unwrap_or(Semaphore::MAX_PERMITS);
                self.n_due.store(due, Ordering::Relaxed);
                self.due.add_permits(fresh);
                released = due;
            }
            let wake = self.due_at(released).min(self.end).saturating_duration_since(Instant::now());
            std::thread::sleep(wake.min(SLEEP_MAX));
        }
        self.close();
    }
}

/// Starts the thread that runs `timetable`.
pub fn start(timetable: &Arc<Timetable>) -> Result<JoinHandle<()>, BenchError> {
    let timetable = Arc::clone(timetable);
    std::thread::Builder::new()
        .name("bench-pace".to_owned())
        .spawn(move || timetable.keep())
        .map_err(|error| BenchError::Thread { what: "pacing thread", reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_are_even_and_do_not_drift() {
        let start = Instant::now();
        let table = Timetable::new(start, start + Duration::from_secs(1), 300.0);
        assert_eq!(table.due_at(0), start);
        let third = table.due_at(3_000_000) - start;
        assert!(third.abs_diff(Duration::from_secs(10_000)) < Duration::from_micros(1), "{third:?}");
    }

    #[tokio::test]
    async fn what_nobody_takes_is_unsent() {
        let start = Instant::now();
        let table = Arc::new(Timetable::new(start, start + Duration::from_millis(50), 1000.0));
        let pacer = super::start(&table).unwrap();
        assert_eq!(table.take().await, Some(start));
        tokio::task::spawn_blocking(move || pacer.join().unwrap()).await.unwrap();
        let n_unsent = table.unsent().count();
        assert!((1..=50).contains(&n_unsent), "{n_unsent}");
        assert_eq!(table.take().await, None);
    }
}
