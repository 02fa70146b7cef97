//! Summary statistics of a numeric variable.

/// Statistics over the cells that are not missing. A statistic that cannot be computed is `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Cells with a value.
    pub n_valid: u64,
    /// Cells without a value.
    pub n_invalid: u64,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Middle value, or the mean of the two in the middle.
    pub median: Option<f64>,
    /// Standard deviation of a sample.
    pub standard_deviation: Option<f64>,
}

/// Statistics being computed.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    n_valid: u64,
    n_invalid: u64,
    min: Option<f64>,
    max: Option<f64>,
    /// Mean so far and the sum of squared differences from it (Welford).
    mean: f64,
    squares: f64,
    /// All values, unless there were too many to hold.
    pub(crate) held: Option<Vec<f64>>,
}

impl Gathering {
    pub(crate) fn new() -> Self {
        Self { held: Some(Vec::new()), ..Self::default() }
    }

    pub(crate) fn missing(&mut self) {
        self.n_invalid += 1;
    }

    pub(crate) fn value(&mut self, value: f64) {
        if !value.is_finite() {
            self.n_invalid += 1;
            return;
        }
        self.n_valid += 1;
        self.min = Some(self.min.map_or(value, |it| it.min(value)));
        self.max = Some(self.max.map_or(value, |it| it.max(value)));
        let difference = value - self.mean;
        self.mean += difference / count(self.n_valid);
        self.squares += difference * (value - self.mean);
        if let Some(held) = &mut self.held {
            held.push(value);
        }
    }

    pub(crate) fn finish(self) -> Summary {
        let (mut mean, mut squares) = (self.mean, self.squares);
        if let Some(held) = &self.held {
            (mean, squares) = moments(held);
        }
        Summary {
            n_valid: self.n_valid,
            n_invalid: self.n_invalid,
            min: self.min,
            max: self.max,
            mean: (0 < self.n_valid).then_some(mean),
            median: self.held.and_then(middle),
            standard_deviation: (1 < self.n_valid)
                .then(|| (squares / count(self.n_valid - 1)).max(0.0).sqrt()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of cells are far below 2^53")]
fn count(n: u64) -> f64 {
    n as f64
}

/// Returns the mean and the sum of squared differences from it, each in a second pass that takes back the error of the
/// first: the statistics that archives publish are to the last digit those.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = count(values.len() as u64);
    let rough = values.iter().sum::<f64>() / n;
    let mean = rough + values.iter().map(|it| it - rough).sum::<f64>() / n;
    let (mut squares, mut error) = (0.0, 0.0);
    for value in values {
        let difference = value - mean;
        squares += difference * difference;
        error += difference;
    }
    (mean, squares - error * error / n)
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    let upper = *values.get(n / 2)?;
    if n % 2 == 1 {
        return Some(upper);
    }
    let lower = values[n / 2 - 1];
    Some(lower + 0.5 * (upper - lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics() {
        let mut gathering = Gathering::new();
        [2.0, 4.0, 4.0, 5.0].into_iter().for_each(|it| gathering.value(it));
        gathering.missing();
        let summary = gathering.finish();
        assert_eq!((summary.n_valid, summary.n_invalid), (4, 1));
        assert_eq!((summary.min, summary.max, summary.mean), (Some(2.0), Some(5.0), Some(3.75)));
        assert_eq!(summary.median, Some(4.0));
        let deviation = summary.standard_deviation.unwrap();
        assert!((deviation - 1.258_305_739_211_791_6).abs() < 1e-12);
        assert_eq!(Gathering::new().finish(), Summary::default());
    }
}
