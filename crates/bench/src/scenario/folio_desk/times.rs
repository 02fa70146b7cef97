//! The duration of the transactions at the desks: several requests each, so that a step's own figures do not
//! show it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::load::Step;
use crate::result::StepKind;
use crate::runner::Runner;

/// Durations by transaction: when it began, and milliseconds. Shared by the desks of a step.
#[derive(Clone, Default)]
pub(in crate::scenario) struct Times(Arc<Mutex<Noted>>);

type Noted = BTreeMap<&'static str, Vec<(Instant, f64)>>;

impl Times {
    pub(super) fn add(&self, what: &'static str, began: Instant, took: Duration) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.entry(what).or_default().push((began, took.as_secs_f64() * 1e3));
    }

    /// Takes the durations recorded after `warmup`.
    fn take(&self, warmup: Duration) -> BTreeMap<&'static str, Vec<f64>> {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(first) = noted.values().flatten().map(|it| it.0).min() else { return BTreeMap::new() };
        let after = |times: Vec<(Instant, f64)>| {
            times.into_iter().filter(|it| first + warmup <= it.0).map(|it| it.1).collect()
        };
        noted.into_iter().map(|(what, times)| (what, after(times))).collect()
    }
}

/// Quantiles of a transaction's time, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::scenario) struct Quantiles {
    pub(in crate::scenario) n: usize,
    pub(in crate::scenario) p50_ms: f64,
    pub(in crate::scenario) p95_ms: f64,
}

impl Quantiles {
    fn of(mut times_ms: Vec<f64>) -> Self {
        times_ms.sort_by(f64::total_cmp);
        let at = |q| quantile(&times_ms, q);
        Self { n: times_ms.len(), p50_ms: at(0.5), p95_ms: at(0.95) }
    }
}

/// Returns the smallest value that at least a share `q` of the sorted values does not exceed.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position in the list")]
    let rank = (sorted.len() as f64 * q).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// Measures a step of desks as often as the timing says; returns the durations of all repetitions together.
pub(in crate::scenario) async fn measure(
    runner: &mut Runner,
    step: &Step,
    times: &Times,
) -> Result<BTreeMap<&'static str, Quantiles>, BenchError> {
    let mut all: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for repeat in 0..runner.timing.repeats {
        runner.measure_once(step, StepKind::Closed, |it| it.repeat = repeat).await?;
        for (what, more) in times.take(step.warmup) {
            all.entry(what).or_default().extend(more);
        }
    }
    Ok(all.into_iter().map(|(what, times_ms)| (what, Quantiles::of(times_ms))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(Quantiles::of(values.clone()), Quantiles { n: 100, p50_ms: 50.0, p95_ms: 95.0 });
        assert_eq!(quantile(&values[..1], 0.95), 100.0);
        assert_eq!(Quantiles::of(Vec::new()), Quantiles::default());
    }

    #[test]
    fn the_warm_up_is_left_out() {
        let (times, start) = (Times::default(), Instant::now());
        for n in 0..10_u32 {
            times.add("loan", start + Duration::from_secs(n.into()), Duration::from_millis(n.into()));
        }
        let taken = times.take(Duration::from_secs(4));
        assert_eq!(taken["loan"], [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        assert!(times.take(Duration::ZERO).is_empty());
    }
}
