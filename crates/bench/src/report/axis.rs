//! An axis with natural ticks: 1-2-5 steps on linear axes, decades on logarithmic ones, 50, 90, 99, 99.9 % on
//! the axis of percentiles.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// How values are distributed over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisScale {
    /// Evenly, from zero.
    Linear,
    /// By their logarithm; values are positive.
    Log,
    /// Percentiles, by the number of nines: 90, 99 and 99.9 % are equally far apart.
    Nines,
}

/// An axis over a range of values.
#[derive(Clone, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    scale: AxisScale,
    ticks: Vec<f64>,
}

/// Maximum number of nines that are distinguished: 99.999 %.
const NINES_MAX: f64 = 5.0;

impl Axis {
    /// Returns an axis that holds all of `values`.
    pub fn over(values: impl Iterator<Item = f64>, scale: AxisScale) -> Self {
        let usable = values.filter(|it| it.is_finite() && (scale != AxisScale::Log || *it > 0.0));
        let (low, high) =
            usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), it| (a.min(it), b.max(it)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        match scale {
            AxisScale::Linear => Self::linear(low.min(0.0), high),
            AxisScale::Log => Self::log(low, high),
            AxisScale::Nines => Self::nines(high),
        }
    }

    fn linear(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = nice_step((high - low) / 5.0);
        let first = (low / step).floor() as i64;
        let last = (high / step).ceil() as i64;
        let ticks: Vec<f64> = (first..=last).map(|n| n as f64 * step).collect();
        Self { low: first as f64 * step, high: last as f64 * step, scale: AxisScale::Linear, ticks }
    }

    fn log(low: f64, high: f64) -> Self {
        let first = (low * 1.000_001).log10().floor() as i32;
        let last = ((high * 0.999_999).log10().ceil() as i32).max(first + 1);
        let is_short = last - first <= 2;
        let multiples: &[f64] = if is_short { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut ticks: Vec<f64> = (first..=last)
            .flat_map(|decade| multiples.iter().map(move |it| it * 10_f64.powi(decade)))
            .filter(|tick| *tick <= 10_f64.powi(last) * 1.000_001)
            .collect();
        if is_short {
            // From the last tick below the values to the first above.
            let begin = ticks.iter().rposition(|tick| *tick <= low * 1.000_001).unwrap_or(0);
            let end = ticks.iter().position(|tick| *tick >= high * 0.999_999).unwrap_or(ticks.len() - 1);
            ticks = ticks[begin..=end.max(begin + 1).min(ticks.len() - 1)].to_vec();
        }
        let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
        Self { low, high, scale: AxisScale::Log, ticks }
    }

    fn nines(high: f64) -> Self {
        const TICKS: [f64; 7] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];
        let top = nines_of(high).ceil().clamp(1.0, NINES_MAX);
        let high = 100.0 * (1.0 - 10_f64.powf(-top));
        let ticks = TICKS.into_iter().filter(|tick| *tick <= high + 1e-9).collect();
        Self { low: 0.0, high, scale: AxisScale::Nines, ticks }
    }

    /// Returns the position of `value`, 0 to 1; values beyond the ends are at the end.
    fn position(&self, value: f64) -> f64 {
        let share = match self.scale {
            AxisScale::Linear => (value - self.low) / (self.high - self.low),
            AxisScale::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            AxisScale::Nines => nines_of(value) / nines_of(self.high),
        };
        share.clamp(0.0, 1.0)
    }
}

fn nines_of(percentile: f64) -> f64 {
    -(1.0 - percentile.clamp(0.0, 99.999) / 100.0).log10()
}

fn nice_step(rough: f64) -> f64 {
    let decade = 10_f64.powf(rough.log10().floor());
    let multiple = [1.0, 2.0, 5.0, 10.0].into_iter().find(|it| it * decade >= rough * 0.999).unwrap_or(10.0);
    multiple * decade
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (self.position(*value) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        short(*value)
    }
}

/// Formats a tick's number: `0.5`, `20`, `5k`, `1M`.
pub fn short(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        it if it >= 1e9 => (value / 1e9, "G"),
        it if it >= 1e6 => (value / 1e6, "M"),
        it if it >= 10_000.0 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // Six digits are more than any tick has; trailing zeros go.
    let text = format!("{scaled:.6}");
    format!("{}{suffix}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ticks of an axis over `values` must read as `expected`.
    fn check(values: &[f64], scale: AxisScale, expected: &str) {
        let axis = Axis::over(values.iter().copied(), scale);
        let ticks: Vec<String> = axis.ticks.iter().map(|tick| short(*tick)).collect();
        assert_eq!(ticks.join(" "), expected);
    }

    #[test]
    fn ticks() {
        check(&[3.0, 97.0], AxisScale::Linear, "0 20 40 60 80 100");
        check(&[0.0, 0.0], AxisScale::Linear, "0 0.2 0.4 0.6 0.8 1");
        check(&[], AxisScale::Linear, "0 2 4 6 8 10");
        check(&[0.3, 20.0], AxisScale::Log, "0.1 1 10 100");
        check(&[2.0, 30.0], AxisScale::Log, "2 5 10 20 50");
        check(&[10.0, 10.0], AxisScale::Log, "10 20");
        check(&[50.0, 100.0], AxisScale::Log, "50 100");
        check(&[10.0, 25_000.0], AxisScale::Log, "10 100 1000 10k 100k");
        check(&[0.0, 99.95], AxisScale::Nines, "0 50 90 99 99.9 99.99");
    }

    #[test]
    fn positions_are_within_the_axis() {
        for scale in [AxisScale::Linear, AxisScale::Log, AxisScale::Nines] {
            let axis = Axis::over([1.0, 80.0].into_iter(), scale);
            for value in [-5.0, 0.0, 1.0, 50.0, 1e9] {
                assert!((0.0..=1.0).contains(&axis.position(value)), "{scale:?} {value}");
            }
        }
    }
}
