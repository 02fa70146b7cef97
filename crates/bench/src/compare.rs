//! `compare`: two runs, or two sets of repeated runs, step by step. It shows ratios with their noise: if the
//! middle halves of both overlap, the difference cannot be distinguished from noise.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::BenchError;
use crate::report::markdown::table;
use crate::result::{RunResult, SCHEMA, StepKind, StepResult};
use crate::verdict::{ms, rate};

/// What makes steps comparable: scenario, labels and kind.
type Key = (String, String);

/// A figure of a step.
type Figure = (&'static str, fn(&StepResult) -> f64, fn(f64) -> String);

/// The figures that are compared.
const FIGURES: [Figure; 3] = [
    ("answered", |step| step.throughput_per_s, rate),
    ("p50", |step| step.total.latency.p50_ms, ms),
    ("p99", |step| step.total.latency.p99_ms, ms),
];

/// Compares `a` with `b`: each a `result.json`, a folder with one, or a folder of such folders (repeated
/// runs). Returns a Markdown table.
pub fn compare(a: &Path, b: &Path) -> Result<String, BenchError> {
    let (runs_a, runs_b) = (load(a)?, load(b)?);
    let (steps_a, steps_b) = (steps_by_key(&runs_a), steps_by_key(&runs_b));
    let header = ["step", "figure", "A: median [quartiles]", "B: median [quartiles]", "B / A", "difference"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for (key, of_a) in &steps_a {
        let Some(of_b) = steps_b.get(key) else { continue };
        rows.extend(FIGURES.iter().map(|figure| row(figure, of_a, of_b)));
    }
    let mut text =
        format!("A: {} ({} runs)\nB: {} ({} runs)\n\n", a.display(), runs_a.len(), b.display(), runs_b.len());
    if rows.len() == 1 {
        text += "No step is in both: the scenarios or their conditions differ.\n";
        return Ok(text);
    }
    text += &table(&rows);
    text += &missing("A", &steps_a, &steps_b);
    text += &missing("B", &steps_b, &steps_a);
    Ok(text)
}

fn row((name, value, words): &Figure, of_a: &[&StepResult], of_b: &[&StepResult]) -> Vec<String> {
    let (a, b) =
        (Spread::of(of_a.iter().map(|step| value(step))), Spread::of(of_b.iter().map(|step| value(step))));
    let ratio = |x: f64, y: f64| if y > 0.0 { x / y } else { 0.0 };
    let (low, high) = (ratio(b.low, a.high), ratio(b.high, a.low));
    let middle = format!("{:.2}", ratio(b.median, a.median));
    let told = if of_a.len() < 3 || of_b.len() < 3 {
        "unknown noise: repeat the runs (3 or more)".to_owned()
    } else if a.low <= b.high && b.low <= a.high {
        "within noise".to_owned()
    } else {
        "beyond noise".to_owned()
    };
    vec![
        of_a[0].name.clone(),
        (*name).to_owned(),
        a.in_words(*words),
        b.in_words(*words),
        if of_a.len() + of_b.len() > 2 { format!("{middle} [{low:.2} to {high:.2}]") } else { middle },
        told,
    ]
}

/// Median and quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    low: f64,
    median: f64,
    high: f64,
    n: usize,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |share| quantile(&values, share);
        Self { low: at(0.25), median: at(0.5), high: at(0.75), n: values.len() }
    }

    fn in_words(self, words: fn(f64) -> String) -> String {
        if self.n < 2 {
            return words(self.median);
        }
        format!("{} [{} to {}]", words(self.median), words(self.low), words(self.high))
    }
}

/// Returns the quantile of sorted values, interpolated between neighbours; 0 if there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share * last as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (at - at.floor())
}

fn steps_by_key(runs: &[RunResult]) -> BTreeMap<Key, Vec<&StepResult>> {
    let mut steps: BTreeMap<Key, Vec<&StepResult>> = BTreeMap::new();
    for run in runs {
        for step in run.steps.iter().filter(|step| step.kind != StepKind::Trial && step.cut_short.is_none()) {
            let labels: Vec<String> =
                step.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            steps.entry((run.scenario.clone(), labels.join(" "))).or_default().push(step);
        }
    }
    steps
}

fn missing(
    name: &str,
    of: &BTreeMap<Key, Vec<&StepResult>>,
    other: &BTreeMap<Key, Vec<&StepResult>>,
) -> String {
    let only: Vec<&str> =
        of.iter().filter(|(key, _)| !other.contains_key(*key)).map(|(_, it)| it[0].name.as_str()).collect();
    if only.is_empty() { String::new() } else { format!("\nOnly in {name}: {}\n", only.join("; ")) }
}

/// Reads one run or a folder of runs.
fn load(path: &Path) -> Result<Vec<RunResult>, BenchError> {
    if path.is_file() {
        return Ok(vec![load_file(path)?]);
    }
    let direct = path.join("result.json");
    if direct.is_file() {
        return Ok(vec![load_file(&direct)?]);
    }
    let read = |source| BenchError::Read { path: path.to_owned(), source };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(read)? {
        let file = entry.map_err(read)?.path().join("result.json");
        if file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(BenchError::BadResult {
            path: path.to_owned(),
            reason: "neither result.json nor folders with one in it".to_owned(),
        });
    }
    files.iter().map(|file| load_file(file)).collect()
}

fn load_file(path: &Path) -> Result<RunResult, BenchError> {
    let bytes = fs::read(path).map_err(|source| BenchError::Read { path: path.to_owned(), source })?;
    let bad = |reason: String| BenchError::BadResult { path: path.to_owned(), reason };
    let result: RunResult = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    if result.schema != SCHEMA {
        return Err(bad(format!("its schema is {:?}, this program reads {SCHEMA:?}", result.schema)));
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0, 5.0].into_iter());
        assert_eq!(spread, Spread { low: 2.0, median: 3.0, high: 4.0, n: 5 });
        assert_eq!(Spread::of([7.0].into_iter()).median.to_bits(), 7.0_f64.to_bits());
        assert_eq!(quantile(&[], 0.5).to_bits(), 0.0_f64.to_bits());
    }
}
