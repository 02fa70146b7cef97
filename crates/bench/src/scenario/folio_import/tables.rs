//! The two tables of the report: imports by size and number of tenants; desks idle and during an import.

use std::collections::BTreeMap;

use super::pass::{Imported, work_of};
use crate::published::{self, FOLIO_BESIDE_PERCENT};
use crate::report::markdown::in_words;
use crate::result::{RunResult, Series, StepResult, Table};
use crate::scenario::folio_desk::times::Quantiles;
use crate::scenario::folio_desk::{TIMED, WHOLE_CHECK_OUT};
use crate::verdict::{ms, rate, thousands};

/// Rows of imports.
pub(super) struct ImportTable(Table);

impl ImportTable {
    pub(super) fn new() -> Self {
        let header = [
            "import",
            "records",
            "upload",
            "took",
            "by the job's dates",
            "rate",
            "published",
            "ratio",
            "not created",
        ];
        let rows = vec![header.map(str::to_owned).to_vec()];
        Self(Table { title: "Imports".to_owned(), rows, summary: String::new() })
    }

    /// One row: the imports of a step, and how many of their records they did not create.
    pub(super) fn add(&mut self, name: &str, imports: &[Imported], n_missing: u64) {
        let Some(work) = work_of(imports) else {
            let mut row = vec![name.to_owned(), "failed".to_owned()];
            row.resize(self.0.rows[0].len(), "–".to_owned());
            return self.0.rows.push(row);
        };
        let longest = |of: fn(&Imported) -> Option<std::time::Duration>| {
            let longest = imports.iter().filter_map(of).max();
            longest.map_or("–".to_owned(), |it| ms(it.as_secs_f64() * 1e3))
        };
        let published = published::folio_import(work.n).filter(|_| imports.len() == 1);
        let published = published.and_then(|it| it.rate_per_s);
        self.0.summary = format!("{name}: {}", rate(work.per_s()));
        self.0.rows.push(vec![
            name.to_owned(),
            thousands(work.n),
            longest(|it| Some(it.uploaded)),
            ms(work.took_s * 1e3),
            longest(|it| it.job_took),
            rate(work.per_s()),
            published.map_or("–".to_owned(), |it| in_words(it, rate)),
            published.map_or("–".to_owned(), |it| format!("{:.0}", work.per_s() / it.high)),
            thousands(n_missing),
        ]);
    }

    /// Returns the table, with `summary` if there is one.
    pub(super) fn finish(mut self, summary: Option<String>) -> Table {
        self.0.summary = summary.unwrap_or(self.0.summary);
        self.0
    }
}

/// Returns the time of an import by its records: one tenant, without matching.
pub(super) fn by_size(result: &RunResult) -> Series {
    let is_plain = |step: &&StepResult| {
        step.labels.get("tenants").is_some_and(|it| it == "1") && step.labels["profile"] == "create"
    };
    let works = result.steps.iter().filter(is_plain).filter_map(|step| step.work.as_ref());
    let points: Vec<[f64; 2]> = works.map(|work| [work.n as f64, work.took_s]).collect();
    let largest = points.iter().max_by(|a, b| a[0].total_cmp(&b[0]));
    let summary = largest.map_or_else(String::new, |[n, took_s]| {
        format!("{} records in {}", thousands(*n as u64), ms(took_s * 1e3))
    });
    Series {
        title: "Time of an import by its records".to_owned(),
        x_label: "records".to_owned(),
        y_label: "from the first request to the end (s)".to_owned(),
        by_factors: true,
        points,
        summary,
    }
}

/// Returns the transactions of the desks: idle, and during an import.
pub(super) fn desk_table(
    n_desks: usize,
    idle: &BTreeMap<&'static str, Quantiles>,
    beside: &BTreeMap<&'static str, Quantiles>,
) -> Table {
    let header = [
        "transaction",
        "p50 idle",
        "p50 beside",
        "p95 idle",
        "p95 beside",
        "longer at p95",
        "published idle",
        "published beside",
        "published longer",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let mut summary = String::new();
    for (transaction, alone) in TIMED.iter().filter_map(|it| Some((it, idle.get(it)?))) {
        let both = beside.get(transaction).copied().unwrap_or_default();
        let longer = longer_percent(alone.p95_ms, both.p95_ms);
        let is_published = *transaction == WHOLE_CHECK_OUT;
        let published = |is_beside| {
            let figure = published::folio_check_out_ms(n_desks, is_beside).filter(|_| is_published);
            figure.map_or("–".to_owned(), |it| in_words(it, ms))
        };
        let percent = |it: f64| format!("{it:+.0} %");
        rows.push(vec![
            (*transaction).to_owned(),
            ms(alone.p50_ms),
            ms(both.p50_ms),
            ms(alone.p95_ms),
            ms(both.p95_ms),
            percent(longer),
            published(false),
            published(true),
            if is_published { in_words(FOLIO_BESIDE_PERCENT, percent) } else { "–".to_owned() },
        ]);
        if is_published {
            summary = format!(
                "{transaction}: p95 {} idle, {} beside an import ({})",
                ms(alone.p95_ms),
                ms(both.p95_ms),
                percent(longer)
            );
        }
    }
    Table { title: format!("{n_desks} desks beside an import"), rows, summary }
}

/// Returns by how many per cent `beside` is longer.
fn longer_percent(idle: f64, beside: f64) -> f64 {
    if idle > 0.0 { (beside / idle - 1.0) * 100.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_stand_beside_what_was_published() {
        let of =
            |p95_ms| BTreeMap::from([(WHOLE_CHECK_OUT, Quantiles { n: 9, p50_ms: p95_ms / 2.0, p95_ms })]);
        let table = desk_table(5, &of(20.0), &of(24.0));
        let expected = [
            WHOLE_CHECK_OUT,
            "10.0 ms",
            "12.0 ms",
            "20.0 ms",
            "24.0 ms",
            "+20 %",
            "1100 ms",
            "1529 ms to 1749 ms",
            "+39 % to +59 %",
        ];
        assert_eq!(table.rows[1], expected);
        assert!(
            table.summary.ends_with("p95 20.0 ms idle, 24.0 ms beside an import (+20 %)"),
            "{}",
            table.summary
        );
        assert_eq!(desk_table(3, &of(1.0), &of(1.0)).rows[1][6..8], ["–", "–"]);
    }
}
