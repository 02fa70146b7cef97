//! Finds the highest rate that a server sustains while p99 stays under a bound, by bisection; each trial is a
//! separate open-load step.

use crate::load::StepRecord;

/// The conditions for sustaining a rate.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Highest allowed 99th percentile of latency, in milliseconds.
    pub p99_ms: f64,
    /// Highest allowed share of failures, 0 to 1.
    pub error_share: f64,
    /// Lowest allowed share of the offered rate that was answered, 0 to 1.
    pub kept_share: f64,
}

impl Default for Bound {
    fn default() -> Self {
        Self { p99_ms: 50.0, error_share: 0.001, kept_share: 0.98 }
    }
}

/// How one trial went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Within the bound.
    Kept,
    /// Beyond it.
    Missed,
}

/// Judges the record of a trial at `rate_per_s`.
pub fn judge(record: &StepRecord, rate_per_s: f64, bound: &Bound) -> Trial {
    let mut latency_us = record.flows[0].latency_us.clone();
    for flow in &record.flows[1..] {
        latency_us += &flow.latency_us;
    }
    let n_errors: u64 = record.flows.iter().map(|flow| flow.n_errors() + flow.n_unsent).sum();
    let n_ok: u64 = record.flows.iter().map(|flow| flow.n_ok).sum();
    let p99_ms = latency_us.value_at_quantile(0.99) as f64 / 1e3;
    let errors_fit = n_errors as f64 <= bound.error_share * (n_ok + n_errors) as f64;
    let rate_fits = record.throughput_per_s() >= bound.kept_share * rate_per_s;
    if n_ok > 0 && errors_fit && rate_fits && p99_ms <= bound.p99_ms { Trial::Kept } else { Trial::Missed }
}

/// The search: call [`Search::next`] for a rate, report the outcome with [`Search::tell`].
#[derive(Clone, Debug)]
pub struct Search {
    kept_per_s: Option<f64>,
    missed_per_s: Option<f64>,
    first_per_s: f64,
    precision: f64,
    n_trials_left: u32,
}

impl Search {
    /// Starts at `first_per_s` (a guess: the throughput of a closed load) and ends when the highest sustained
    /// rate and the lowest missed one are within `precision` (0.05 is 5 %), or after `n_trials_max`.
    pub fn new(first_per_s: f64, precision: f64, n_trials_max: u32) -> Self {
        Self {
            kept_per_s: None,
            missed_per_s: None,
            first_per_s: first_per_s.max(1.0),
            precision,
            n_trials_left: n_trials_max,
        }
    }

    /// Returns the rate to try, or `None` if the search is over.
    pub fn next(&self) -> Option<f64> {
        if self.n_trials_left == 0 {
            return None;
        }
        match (self.kept_per_s, self.missed_per_s) {
            (None, None) => Some(self.first_per_s),
            (Some(kept), None) => Some(kept * 1.5),
            (None, Some(missed)) if missed > 1.0 => Some((missed / 2.0).max(1.0)),
            (None, Some(_)) => None,
            (Some(kept), Some(missed)) if missed <= kept * (1.0 + self.precision) => None,
            (Some(kept), Some(missed)) => Some((kept * missed).sqrt()),
        }
    }

    /// Records the outcome of a trial.
    pub fn tell(&mut self, rate_per_s: f64, trial: Trial) {
        self.n_trials_left = self.n_trials_left.saturating_sub(1);
        match trial {
            Trial::Kept => {
                self.kept_per_s = Some(self.kept_per_s.map_or(rate_per_s, |it| it.max(rate_per_s)))
            }
            Trial::Missed => {
                self.missed_per_s = Some(self.missed_per_s.map_or(rate_per_s, |it| it.min(rate_per_s)));
            }
        }
    }

    /// Returns the highest rate that was sustained.
    pub fn best_per_s(&self) -> Option<f64> {
        self.kept_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit of a server that sustains every rate up to `limit` must be found within 5 % from any first
    /// guess.
    fn check(limit: f64, first: f64) {
        let mut search = Search::new(first, 0.05, 30);
        while let Some(rate) = search.next() {
            search.tell(rate, if rate <= limit { Trial::Kept } else { Trial::Missed });
        }
        let best = search.best_per_s().unwrap();
        assert!(best <= limit && best * 1.06 >= limit, "limit {limit}, first {first}: found {best}");
    }

    #[test]
    fn finds_the_limit() {
        for limit in [3.0, 140.0, 5_000.0, 25_000.0] {
            for first in [1.0, limit / 3.0, limit, limit * 20.0] {
                check(limit, first);
            }
        }
    }

    #[test]
    fn gives_up_on_a_server_that_keeps_nothing() {
        let mut search = Search::new(64.0, 0.05, 30);
        while let Some(rate) = search.next() {
            search.tell(rate, Trial::Missed);
        }
        assert_eq!(search.best_per_s(), None);
    }
}
