//! `report.html`: one file without external resources. First what is fast, slow and why; then the plots; then
//! the tables.

use std::collections::BTreeSet;

use super::markdown::{self, RATIO_NOTE, facts, shown};
use super::plots::{Plot, plots};
use crate::error::BenchError;
use crate::result::BoundBy;
use crate::result::{RunResult, StepResult};
use crate::verdict::ms;

/// Slow requests listed for each step.
const SLOW_SHOWN: usize = 10;

/// Colours of the stages, in the order in which a request passes them.
const STAGES: [(&str, &str); 6] = [
    ("auth", "#56b4e9"),
    ("parse", "#0072b2"),
    ("wait", "#e69f00"),
    ("store", "#009e73"),
    ("commit", "#d55e00"),
    ("render", "#cc79a7"),
];

const STYLE: &str = "
body{font:15px/1.45 system-ui,sans-serif;color:#1c1c1c;background:#fff;max-width:1100px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.3rem}h2{margin-top:2.2rem;border-bottom:1px solid #ddd;padding-bottom:.2rem}h3{margin:1.6rem 0 .2rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem}dt{color:#666}dd{margin:0}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}td{white-space:nowrap}td.wide{white-space:normal}table.told td:last-child,table.told th:last-child{white-space:normal;text-align:left;min-width:16rem}th,td{padding:.25rem .55rem;border-bottom:1px solid #e6e6e6;text-align:right}
th:first-child,td:first-child{text-align:left}th{color:#555;font-weight:600;position:sticky;top:0;background:#fff}.scroll{overflow-x:auto}
.caption{color:#555;margin:.1rem 0 .3rem}.legend{display:flex;flex-wrap:wrap}.legend span{margin-right:1.2rem;white-space:nowrap}.swatch{display:inline-block;width:.9em;height:.9em;margin-right:.35em;vertical-align:-.1em;border-radius:2px}
.tag{display:inline-block;padding:.05rem .5rem;border-radius:.6rem;font-size:13px;background:#eee}.good{background:#d8f0e4}.bad{background:#fbdcd0}.open{background:#fdf0c9}
.note{background:#fff6dd;border-left:4px solid #e69f00;padding:.4rem .8rem;margin:.4rem 0}.bar{display:flex;height:1.1em;min-width:2px}.bar i{display:block;height:100%}
svg{max-width:100%;height:auto}details{margin:.3rem 0}code{font-size:12px;overflow-wrap:anywhere}
";

/// Renders the file's text.
pub fn render(result: &RunResult) -> Result<String, BenchError> {
    let title = escape(&result.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    html += "<dl>";
    for (name, value) in facts(result) {
        html += &format!("<dt>{}</dt><dd>{}</dd>", escape(&name), escape(&value));
    }
    html += "</dl>\n";
    for note in &result.notes {
        html += &format!("<p class=\"note\">{}</p>\n", escape(note));
    }
    html += "<h2>In short</h2>\n";
    let sentences: String =
        markdown::headlines(result).iter().map(|it| format!("<li>{}</li>\n", escape(it))).collect();
    html += &format!("<ul>\n{sentences}</ul>\n");
    for own in &result.tables {
        html += &format!("<h2>{}</h2>\n{}", escape(&own.title), table(&own.rows));
    }
    if result.steps.iter().any(|step| step.published.is_some()) {
        html += &format!(
            "<h2>Beside the published figures</h2>\n{}<p class=\"caption\">{}</p>\n",
            table(&markdown::published(result)).replacen("<table>", "<table class=\"told\">", 1),
            escape(RATIO_NOTE)
        );
    }
    html += &stages(result);
    html += "<h2>Plots</h2>\n";
    for plot in plots(result) {
        html += &figure(&plot)?;
    }
    html += &format!("<h2>All steps</h2>\n{}", table(&markdown::results(result)));
    html += TABLE_LEGEND;
    let long = markdown::long_answers(result);
    if 1 < long.len() {
        html += &format!("<h2>Long answers</h2>\n{}{LONG_LEGEND}", table(&long));
    }
    html += "<h2>What bounded each step</h2>\n";
    html += &verdicts(result);
    html += &slowest(result);
    html += &failures(result);
    html += "</body></html>\n";
    Ok(html)
}

const TABLE_LEGEND: &str = "<p class=\"caption\">Latency counts from the moment a request was due (closed load: was sent) to the last byte \
of its answer. ≥: some requests never got an answer in time and count with the age they had, a lower bound. \
unsent: due, but no connection was free until the end. late: sent more than the allowed delay after they were due. \
bare server: closed load on a server with the same number of bytes and no store; share: our rate of it.</p>\n";

const LONG_LEGEND: &str =
    "<p class=\"caption\">begin: from sending the request to the head of its answer.</p>\n";

/// Renders one row per step: how fast it was, and what limited it.
fn verdicts(result: &RunResult) -> String {
    let mut html = "<div class=\"scroll\"><table><tr><th>step</th><th>answered</th><th>p50</th><th>p99</th>\
                    <th style=\"text-align:left\">bound by</th><th style=\"text-align:left\">evidence</th></tr>\n"
        .to_owned();
    for step in shown(result) {
        let latency = &step.total.latency;
        html += &format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td style=\"text-align:left\"><span class=\"tag {}\">{}</span></td>\
             <td class=\"wide\" style=\"text-align:left\">{}</td></tr>\n",
            escape(&step.name),
            markdown::answered(step),
            ms(latency.p50_ms),
            ms(latency.p99_ms),
            class(step.verdict.bound_by),
            step.verdict.bound_by.words(),
            escape(&step.verdict.evidence)
        );
    }
    html + "</table></div>\n"
}

fn class(bound_by: BoundBy) -> &'static str {
    match bound_by {
        BoundBy::Nothing => "good",
        BoundBy::Errors | BoundBy::Client => "bad",
        BoundBy::Unknown => "open",
        _ => "",
    }
}

/// Renders where the server's time went: a bar for each step, as long as the mean time of a request.
fn stages(result: &RunResult) -> String {
    let steps: Vec<&StepResult> =
        shown(result).filter(|step| mean_stages(step).iter().any(|it| it.1 > 0.0)).collect();
    if steps.is_empty() {
        return "<h2>Where the server's time went</h2>\n<p class=\"caption\">The server tells no stages (no metrics page \
                with pinakes_stage_seconds).</p>\n"
            .to_owned();
    }
    let total = |step: &StepResult| mean_stages(step).iter().map(|it| it.1).sum::<f64>();
    let longest = steps.iter().map(|step| total(step)).fold(1e-9, f64::max);
    let mut html = "<h2>Where the server's time went</h2>\n<p class=\"legend\">".to_owned();
    for (stage, colour) in STAGES {
        html += &format!("<span><i class=\"swatch\" style=\"background:{colour}\"></i>{stage}</span>");
    }
    html += "</p>\n<table><tr><th>step</th><th>mean of a request</th><th style=\"text-align:left;width:55%\">stages</th></tr>\n";
    for step in steps {
        let mut bars = String::new();
        for (index, (stage, mean_ms)) in mean_stages(step).iter().enumerate() {
            let width = mean_ms / longest * 100.0;
            let colour = STAGES[index].1;
            bars += &format!(
                "<i style=\"width:{width:.2}%;background:{colour}\" title=\"{stage} {}\"></i>",
                ms(*mean_ms)
            );
        }
        html += &format!(
            "<tr><td>{}</td><td>{}</td><td><div class=\"bar\">{bars}</div></td></tr>\n",
            escape(&step.name),
            ms(total(step))
        );
    }
    html + "</table>\n"
}

/// Returns the mean time of a request in each of [`STAGES`], in milliseconds.
fn mean_stages(step: &StepResult) -> Vec<(&'static str, f64)> {
    // Stages are passed by warm-up requests too, so the divisor is the most frequent stage's own count.
    let n =
        step.stages.iter().filter(|it| it.stage != "writer commit").map(|it| it.n).max().unwrap_or(0).max(1);
    STAGES
        .iter()
        .map(|(name, _)| {
            let total_s = step.stages.iter().find(|it| it.stage == *name).map_or(0.0, |it| it.total_s);
            (*name, total_s * 1e3 / n as f64)
        })
        .collect()
}

fn figure(plot: &Plot) -> Result<String, BenchError> {
    let mut html =
        format!("<h3>{}</h3>\n<p class=\"caption\">{}</p>\n", escape(&plot.title), escape(&plot.caption));
    if plot.lines.len() > 1 {
        html += "<p class=\"legend\">";
        for (name, colour) in plot.legend() {
            html += &format!(
                "<span><i class=\"swatch\" style=\"background:{colour}\"></i>{}</span>",
                escape(&name)
            );
        }
        html += "</p>\n";
    }
    Ok(html + &plot.draw()? + "\n")
}

fn table(rows: &[Vec<String>]) -> String {
    let mut html = "<div class=\"scroll\"><table>\n".to_owned();
    for (index, row) in rows.iter().enumerate() {
        let cell = if index == 0 { "th" } else { "td" };
        let cells: String = row.iter().map(|text| format!("<{cell}>{}</{cell}>", escape(text))).collect();
        html += &format!("<tr>{cells}</tr>\n");
    }
    html + "</table></div>\n"
}

/// Renders the slowest requests with the server's own timing.
fn slowest(result: &RunResult) -> String {
    let mut html = "<h2>Slowest requests</h2>\n".to_owned();
    for step in shown(result).filter(|step| !step.total.slowest.is_empty()) {
        let mut rows = vec![
            ["latency", "service", "at", "status", "request", "Server-Timing"].map(str::to_owned).to_vec(),
        ];
        rows.extend(step.total.slowest.iter().take(SLOW_SHOWN).map(|slow| {
            let timing =
                if slow.server_timing.is_empty() { "–".to_owned() } else { slow.server_timing.clone() };
            vec![
                ms(slow.latency_ms),
                ms(slow.service_ms),
                format!("{:.1} s", slow.at_s),
                slow.status.to_string(),
                slow.path.chars().take(120).collect(),
                timing,
            ]
        }));
        html += &format!("<details><summary>{}</summary>{}</details>\n", escape(&step.name), table(&rows));
    }
    html
}

fn failures(result: &RunResult) -> String {
    let lines: BTreeSet<String> = result
        .steps
        .iter()
        .flat_map(|step| {
            step.total.messages.iter().map(|(message, n)| format!("{}: {n} × {message}", step.name))
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let items: String =
        lines.iter().map(|line| format!("<li><code>{}</code></li>\n", escape(line))).collect();
    format!("<h2>Failures</h2>\n<ul>{items}</ul>\n")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
