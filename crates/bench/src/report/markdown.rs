//! `report.md`: what was measured where, the table with the published figures beside ours, the verdicts, and
//! failures.

use std::fmt::Write;

use crate::published::{Published, Range};
use crate::result::BoundBy;
use crate::result::{Ended, RunResult, StepKind, StepResult, WorkDone};
use crate::verdict::{ms, rate, speed, thousands};

/// Renders the file's text.
pub fn render(result: &RunResult) -> String {
    let mut text = String::new();
    head(&mut text, result);
    write(&mut text, "\n## In short\n\n");
    for sentence in headlines(result) {
        write(&mut text, &format!("- {sentence}\n"));
    }
    for own in &result.tables {
        write(&mut text, &format!("\n## {}\n\n{}", own.title, table(&own.rows)));
    }
    write(&mut text, "\n## Results\n\n");
    write(&mut text, &results_table(result));
    if result.steps.iter().any(|step| step.published.is_some()) {
        write(&mut text, "\n## Beside the published figures\n\n");
        write(&mut text, &published_table(result));
        write(&mut text, &format!("\n{RATIO_NOTE}\n"));
    }
    let long = long_answers(result);
    if 1 < long.len() {
        write(&mut text, &format!("\n## Long answers\n\n{}", table(&long)));
    }
    write(&mut text, "\n## What bounded each step\n\n");
    for step in shown(result) {
        write(
            &mut text,
            &format!("- **{}**: {}: {}\n", step.name, step.verdict.bound_by.words(), step.verdict.evidence),
        );
    }
    for series in &result.series {
        write(&mut text, &format!("\n## {}\n\n{}\n", series.title, series.summary));
    }
    failures(&mut text, result);
    text
}

/// The explanation of the ratio, for both reports.
pub const RATIO_NOTE: &str = "Ratio: published over ours for latency, ours over published for rates, so that more than 1 \
is better. Of a published range the end that is worst for us counts. The published figures come from another \
machine: read the ratio as what a user of that installation would notice, not as a comparison of programs.";

/// Appends; a string cannot fail.
fn write(text: &mut String, part: &str) {
    text.write_str(part).expect("writing to a string cannot fail");
}

/// Returns how a run ended, in words.
pub fn ended(result: &RunResult) -> String {
    match &result.ended {
        Ended::Complete => "complete".to_owned(),
        Ended::Interrupted => "interrupted: only what ran until then is here".to_owned(),
        Ended::Failed(reason) => format!("ended early: {reason}"),
    }
}

/// Returns the facts at the head of both reports: name and value.
pub fn facts(result: &RunResult) -> Vec<(String, String)> {
    let machine = &result.machine;
    let mut facts = vec![
        ("Run".to_owned(), format!("{}, {:.0} s, {}", result.started, result.took_s, ended(result))),
        (
            "Server".to_owned(),
            format!(
                "{} ({})",
                result.url,
                if result.server.is_empty() { "no note given" } else { &result.server }
            ),
        ),
        (
            "Machine of the client".to_owned(),
            format!(
                "{}: {} cores, {}, {:.1} GB, Linux {}",
                machine.name,
                machine.cores,
                machine.cpu,
                machine.memory_bytes as f64 / 1e9,
                machine.kernel
            ),
        ),
    ];
    if let Some(ceiling) = &result.client_ceiling {
        facts.push((
            "Client ceiling".to_owned(),
            format!(
                "{} on one core of the client; {} in the measurement against a bare server on this machine \
                 ({} thread(s), {} connections). No higher rate can be seen here, whatever the server gives.",
                rate(ceiling.rate_per_core_s),
                rate(ceiling.rate_per_s),
                ceiling.threads,
                ceiling.connections
            ),
        ));
    }
    let settings: Vec<String> =
        result.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    facts.push(("Settings".to_owned(), settings.join("; ")));
    facts
}

fn head(text: &mut String, result: &RunResult) {
    write(text, &format!("# {}\n\n", result.title));
    for (name, value) in facts(result) {
        write(text, &format!("- {name}: {value}\n"));
    }
    for note in &result.notes {
        write(text, &format!("- **Note**: {note}\n"));
    }
}

/// Returns the steps that tables show: the trials of a search are only in `result.json`.
pub fn shown(result: &RunResult) -> impl Iterator<Item = &StepResult> {
    result.steps.iter().filter(|step| step.kind != StepKind::Trial)
}

/// Summarises the run in a few sentences: which rates were kept, which were not and why, the highest rates.
pub fn headlines(result: &RunResult) -> Vec<String> {
    /// Maximum number of sentences of one kind; the tables have the rest.
    const SENTENCES_MAX: usize = 12;
    let mut sentences: Vec<String> =
        result.tables.iter().map(|own| format!("{}: {}.", own.title, own.summary)).collect();
    let rates: Vec<&StepResult> = shown(result).filter(|step| step.kind == StepKind::Rate).collect();
    let (kept, missed): (Vec<&StepResult>, Vec<&StepResult>) =
        rates.into_iter().partition(|step| step.verdict.bound_by == BoundBy::Nothing);
    if let Some(worst) = kept.iter().max_by(|a, b| a.total.latency.p99_ms.total_cmp(&b.total.latency.p99_ms))
    {
        sentences.push(format!(
            "{} of {} offered rates were kept; the slowest of these: {}, with p50 {} and p99 {}.",
            kept.len(),
            kept.len() + missed.len(),
            worst.name,
            ms(worst.total.latency.p50_ms),
            ms(worst.total.latency.p99_ms)
        ));
    }
    let several = |steps: Vec<&StepResult>, what: &str| -> Vec<String> {
        let more = steps.len().saturating_sub(SENTENCES_MAX);
        let mut several: Vec<String> =
            steps.into_iter().take(SENTENCES_MAX).map(|step| sentence(step, what)).collect();
        if more > 0 {
            several.push(format!("… and {more} more steps of this kind, in the table of all steps."));
        }
        several
    };
    let of_kind = |kind| shown(result).filter(|step| step.kind == kind).collect::<Vec<_>>();
    let saturated = of_kind(StepKind::Saturation);
    if saturated.is_empty() {
        sentences.extend(several(of_kind(StepKind::Closed), "closed load"));
    }
    sentences.extend(several(saturated, "highest rate kept"));
    sentences.extend(several(missed, "not kept or unclear"));
    sentences.extend(result.series.iter().map(|series| format!("{}: {}.", series.title, series.summary)));
    sentences
}

fn sentence(step: &StepResult, what: &str) -> String {
    let bound_by = step.verdict.bound_by.words();
    // The evidence is listed with the verdicts; here it would hide the figures.
    match &step.work {
        Some(_) => format!("{}: {}; bound by {bound_by}.", step.name, speed(step)),
        None if step.total.n_ok == 1 => format!("{}: {}.", step.name, ms(step.total.latency.max_ms)),
        None => format!("{} ({what}): {}; bound by {bound_by}.", step.name, speed(step)),
    }
}

/// Header and rows of the table of results.
pub fn results(result: &RunResult) -> Vec<Vec<String>> {
    let header = [
        "step",
        "offered",
        "answered",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "errors",
        "unsent",
        "late",
        "bare server",
        "share",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for step in shown(result) {
        let total = &step.total;
        let latency = &total.latency;
        let at_least = if total.n_unsent + total.n_timeouts > 0 { "≥ " } else { "" };
        let time = |value| format!("{at_least}{}", ms(value));
        let repeat = if step.repeat > 0 { format!(" (run {})", step.repeat + 1) } else { String::new() };
        rows.push(vec![
            format!("{}{repeat}", step.name),
            step.offered_per_s.map_or("closed".to_owned(), rate),
            answered(step),
            time(latency.p50_ms),
            time(latency.p90_ms),
            time(latency.p99_ms),
            time(latency.p99_9_ms),
            time(latency.max_ms),
            thousands(total.n_errors),
            thousands(total.n_unsent),
            thousands(total.n_late),
            step.bare.as_ref().map_or("–".to_owned(), |bare| rate(bare.rate_per_s)),
            step.bare
                .as_ref()
                .and_then(|bare| bare.share)
                .map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0)),
        ]);
        if step.flows.len() > 1 {
            rows.extend(step.flows.iter().map(|flow| {
                let latency = &flow.latency;
                let mut row = vec![format!("· {}", flow.name), String::new(), rate(flow.throughput_per_s)];
                row.extend(
                    [latency.p50_ms, latency.p90_ms, latency.p99_ms, latency.p99_9_ms, latency.max_ms]
                        .map(ms),
                );
                row.extend([flow.n_errors, flow.n_unsent, flow.n_late].map(thousands));
                row.extend([String::new(), String::new()]);
                row
            }));
        }
    }
    rows
}

/// Returns the rate of a step: of its answers, or of the work they represent.
pub fn answered(step: &StepResult) -> String {
    step.work.as_ref().map_or_else(
        || rate(step.throughput_per_s),
        |work| format!("{} {}", rate(work.per_s()).trim_end_matches("/s"), work.unit) + "/s",
    )
}

/// Returns header and rows of the steps with long answers: when they begin, and their size.
pub fn long_answers(result: &RunResult) -> Vec<Vec<String>> {
    /// Answers of this size and above are sent while they are generated, by servers that can.
    const LONG_BYTES: f64 = 65_536.0;
    let header = ["step", "answered", "mean answer", "all answers", "begin p50", "begin p99", "begin max"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for step in shown(result).filter(|step| LONG_BYTES <= step.total.answer_bytes_mean) {
        let total = &step.total;
        rows.push(vec![
            step.name.clone(),
            rate(step.throughput_per_s),
            format!("{} KB", thousands((total.answer_bytes_mean / 1e3).round() as u64)),
            format!("{:.0} MB/s", total.answer_bytes_mean * step.throughput_per_s / 1e6),
            ms(total.head.p50_ms),
            ms(total.head.p99_ms),
            ms(total.head.max_ms),
        ]);
    }
    rows
}

fn results_table(result: &RunResult) -> String {
    table(&results(result))
}

/// Header and rows of the comparison with the published figures.
pub fn published(result: &RunResult) -> Vec<Vec<String>> {
    let header = ["step", "figure", "published", "ours", "ratio", "published conditions"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for step in shown(result) {
        if let Some(published) = &step.published {
            rows.extend(published_rows(step, published));
        }
    }
    // The same words in every row would hide the figures.
    for place in (2..rows.len()).rev() {
        if rows[place].last() == rows[place - 1].last()
            && let Some(conditions) = rows[place].last_mut()
        {
            *conditions = "as above".to_owned();
        }
    }
    rows
}

fn published_rows(step: &StepResult, published: &Published) -> Vec<Vec<String>> {
    let latency = &step.total.latency;
    let works = step.total.n_ok > 0;
    // Unanswered requests count with the age they had: ours is then at least that, the ratio at most.
    let is_bound = step.total.n_unsent + step.total.n_timeouts > 0;
    let lower = [
        ("p50", published.p50_ms, latency.p50_ms),
        ("p99", published.p99_ms, latency.p99_ms),
        ("p99.5", published.p99_5_ms, latency.p99_5_ms),
        ("mean", published.mean_ms, latency.mean_ms),
        ("time", published.single_ms, step.work.as_ref().map_or(latency.max_ms, |work| work.took_s * 1e3)),
    ];
    let mut rows = Vec::new();
    let mut row = |figure: &str, theirs: String, ours: String, ratio: f64| {
        let (ours, ratio) =
            if works { (ours, in_digits(ratio)) } else { ("failed".to_owned(), "–".to_owned()) };
        rows.push(vec![
            step.name.clone(),
            figure.to_owned(),
            theirs,
            ours,
            ratio,
            published.conditions.clone(),
        ]);
    };
    for (figure, theirs, ours) in lower {
        if let Some(range) = theirs {
            let mark = if is_bound { "≥ " } else { "" };
            row(figure, in_words(range, ms), format!("{mark}{}", ms(ours)), range.low / ours.max(1e-3));
        }
    }
    if let Some(range) = published.rate_per_s {
        let ours_per_s = step.work.as_ref().map_or(step.throughput_per_s, WorkDone::per_s);
        row("rate", in_words(range, rate), rate(ours_per_s), ours_per_s / range.high.max(1e-9));
    }
    rows
}

/// Formats a ratio with a precision that suits its size.
fn in_digits(ratio: f64) -> String {
    if ratio < 100.0 { format!("{ratio:.1}") } else { thousands(ratio.round() as u64) }
}

/// Formats a figure, or a range of figures.
pub fn in_words(range: Range, words: fn(f64) -> String) -> String {
    let (low, high) = (words(range.low), words(range.high));
    if low == high { low } else { format!("{low} to {high}") }
}

fn published_table(result: &RunResult) -> String {
    table(&published(result))
}

/// Renders a Markdown table; the first row is the header.
pub fn table(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        write(&mut text, &format!("| {} |\n", cells.join(" | ")));
        if index == 0 {
            write(&mut text, &format!("|{}\n", "---|".repeat(row.len())));
        }
    }
    text
}

fn failures(text: &mut String, result: &RunResult) {
    let failed: Vec<&StepResult> =
        result.steps.iter().filter(|step| !step.total.messages.is_empty()).collect();
    if failed.is_empty() {
        return;
    }
    write(text, "\n## Failures\n\n");
    for step in failed {
        for (message, n) in &step.total.messages {
            write(text, &format!("- {}: {} × {message}\n", step.name, thousands(*n)));
        }
    }
}
