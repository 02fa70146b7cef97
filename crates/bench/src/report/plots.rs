//! The plots of `report.html`, drawn by plotters as SVG.

use std::collections::{BTreeMap, BTreeSet};

use plotters::prelude::*;

use super::axis::{Axis, AxisScale, short};
use crate::error::BenchError;
use crate::observe::Sample;
use crate::result::{RunResult, StepKind, StepResult};

/// Maximum number of lines in one plot; more cannot be distinguished.
const LINES_MAX: usize = 8;

/// Colours that people with any kind of colour vision can distinguish on white (Okabe and Ito, 2008).
const COLOURS: [RGBColor; LINES_MAX] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(80, 80, 80),
    RGBColor(170, 150, 0),
];

/// Minimum number of requests for meaningful percentiles.
const PERCENTILES_MIN: u64 = 20;

/// Minimum number of points for a meaningful curve over time.
const OVER_TIME_MIN: usize = 5;

/// Size in pixels.
const SIZE: (u32, u32) = (860, 380);

/// How the points of a line are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Joined.
    Joined,
    /// Joined, with each point visible.
    JoinedDots,
    /// Separate points.
    Dots,
}

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// A plot before it is drawn.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Title.
    pub title: String,
    /// How to read it, in a sentence.
    pub caption: String,
    /// Horizontal axis with its unit.
    pub x_label: String,
    /// Vertical axis with its unit.
    pub y_label: String,
    /// Scale of the horizontal axis.
    pub x_scale: AxisScale,
    /// Scale of the vertical axis.
    pub y_scale: AxisScale,
    /// The lines.
    pub lines: Vec<Line>,
    /// Positions of vertical divisions (ends of steps).
    pub divisions: Vec<f64>,
}

impl Plot {
    /// Returns the legend: name and colour of each line, as `#rrggbb`.
    pub fn legend(&self) -> Vec<(String, String)> {
        let colour = |index: usize| {
            let RGBColor(red, green, blue) = COLOURS[index % LINES_MAX];
            format!("#{red:02x}{green:02x}{blue:02x}")
        };
        self.lines.iter().enumerate().map(|(index, line)| (line.name.clone(), colour(index))).collect()
    }

    /// Draws the plot as an SVG element.
    pub fn draw(&self) -> Result<String, BenchError> {
        let mut svg = String::new();
        self.draw_into(&mut svg)
            .map_err(|reason| BenchError::Plot { plot: self.title.clone(), reason: reason.to_string() })?;
        Ok(svg)
    }

    fn draw_into(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        const GRID: RGBColor = RGBColor(226, 226, 226);
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let points = || self.lines.iter().flat_map(|line| line.points.iter());
        let x_axis = Axis::over(points().map(|point| point.0), self.x_scale);
        let y_axis = Axis::over(points().map(|point| point.1), self.y_scale);
        let y_low = plotters::coord::ranged1d::Ranged::range(&y_axis);
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .margin_right(28)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(x_axis, y_axis)?;
        chart
            .configure_mesh()
            .x_desc(self.x_label.as_str())
            .y_desc(self.y_label.as_str())
            .axis_desc_style(("sans-serif", 15))
            .label_style(("sans-serif", 13))
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| short(*value))
            .draw()?;
        for at in &self.divisions {
            let style = RGBColor(200, 200, 200).stroke_width(1);
            chart.draw_series(LineSeries::new([(*at, y_low.start), (*at, y_low.end)], style))?;
        }
        for (index, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[index % LINES_MAX];
            if line.mark != Mark::Dots {
                chart.draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(2)))?;
            }
            if line.mark != Mark::Joined {
                let dots = line.points.iter().map(|point| Circle::new(*point, 3, colour.filled()));
                chart.draw_series(dots)?;
            }
        }
        area.present()?;
        Ok(())
    }
}

/// Returns all plots of a run.
pub fn plots(result: &RunResult) -> Vec<Plot> {
    let mut plots = Vec::new();
    for (conditions, steps) in families(result) {
        plots.extend(by_percentile(&conditions, &steps));
        plots.extend(against_rate(&conditions, &steps));
    }
    plots.extend(over_time(result));
    for series in result.series.iter().filter(|series| !series.points.is_empty()) {
        plots.push(Plot {
            title: series.title.clone(),
            caption: series.summary.clone(),
            x_label: series.x_label.clone(),
            y_label: series.y_label.clone(),
            x_scale: if series.by_factors { AxisScale::Log } else { AxisScale::Linear },
            y_scale: if series.by_factors { AxisScale::Log } else { AxisScale::Linear },
            lines: vec![Line {
                name: series.y_label.clone(),
                mark: if series.by_factors { Mark::JoinedDots } else { Mark::Dots },
                points: series.points.iter().map(|[x, y]| (*x, *y)).collect(),
            }],
            divisions: Vec::new(),
        });
    }
    plots
}

/// Steps of one family, and the line each belongs to.
type Family<'a> = Vec<(String, &'a StepResult)>;

/// Groups steps that belong in one plot: all that differ only in the load and in the label with the most
/// values, which names the lines.
fn families(result: &RunResult) -> Vec<(String, Family<'_>)> {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for step in &result.steps {
        for (name, value) in &step.labels {
            values.entry(name).or_default().insert(value);
        }
    }
    let naming = values
        .iter()
        .filter(|(name, _)| **name != "load")
        .max_by_key(|(_, values)| values.len())
        .map(|(name, _)| (*name).to_owned())
        .unwrap_or_default();
    let mut families: Vec<(String, Family<'_>)> = Vec::new();
    for step in &result.steps {
        let rest: Vec<String> = step
            .labels
            .iter()
            .filter(|(name, _)| *name != "load" && **name != naming)
            .map(|(name, value)| named(name, value))
            .collect();
        let line = step.labels.get(&naming).map(|value| named(&naming, value)).unwrap_or_default();
        let conditions = rest.join(", ");
        match families.iter_mut().find(|family| family.0 == conditions) {
            Some(family) => family.1.push((line, step)),
            None => families.push((conditions, vec![(line, step)])),
        }
    }
    families
}

/// Formats a condition: a number means nothing without its name, words do.
fn named(name: &str, value: &str) -> String {
    if value.starts_with(|it: char| it.is_ascii_digit()) {
        format!("{name} {value}")
    } else {
        value.to_owned()
    }
}

fn titled(what: &str, conditions: &str) -> String {
    if conditions.is_empty() { what.to_owned() } else { format!("{what}: {conditions}") }
}

fn by_percentile(conditions: &str, steps: &Family<'_>) -> Option<Plot> {
    let usable = |step: &StepResult| step.kind != StepKind::Trial && PERCENTILES_MIN <= step.total.latency.n;
    let n_names = steps.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len();
    // Name, line, step.
    let mut chosen: Vec<(String, String, &StepResult)> = Vec::new();
    for (name, step) in steps.iter().filter(|(_, step)| usable(step) && step.repeat == 0) {
        let load = step.labels.get("load").map_or("", String::as_str);
        // One line for each name; with only one name, one for each load.
        if n_names == 1 {
            chosen.push((name.clone(), load.to_owned(), step));
        } else if step.kind != StepKind::Saturation {
            let offered = step.offered_per_s.unwrap_or(0.0);
            let line = if load.is_empty() { name.clone() } else { format!("{name}, {load}") };
            match chosen.iter_mut().find(|(of, ..)| of == name) {
                Some(known)
                    if step.kind == StepKind::Rate && known.2.offered_per_s.unwrap_or(0.0) <= offered =>
                {
                    *known = (name.clone(), line, step);
                }
                Some(_) => {}
                None => chosen.push((name.clone(), line, step)),
            }
        }
    }
    chosen.truncate(LINES_MAX);
    let lines: Vec<Line> = chosen
        .into_iter()
        .map(|(_, name, step)| Line { name, mark: Mark::Joined, points: percentiles(step) })
        .collect();
    (!lines.is_empty()).then(|| Plot {
        title: titled("Latency by percentile", conditions),
        caption: "At 99 stands the time within which 99 of 100 requests were answered. A line that stays low to the \
                  right is good; one that bends up early makes many users wait."
            .to_owned(),
        x_label: "percentile (%)".to_owned(),
        y_label: "latency (ms)".to_owned(),
        x_scale: AxisScale::Nines,
        y_scale: AxisScale::Log,
        lines,
        divisions: Vec::new(),
    })
}

/// Returns the distribution as far as there are requests beyond each percentile; after that only the maximum
/// is left.
fn percentiles(step: &StepResult) -> Vec<(f64, f64)> {
    let last = 100.0 * (1.0 - 1.0 / step.total.latency.n.max(2) as f64);
    let told = step.total.distribution.iter().filter(|[percentile, _]| *percentile < last);
    let mut points: Vec<(f64, f64)> = told.map(|[percentile, ms]| (*percentile, ms.max(1e-3))).collect();
    points.push((last, step.total.latency.max_ms.max(1e-3)));
    points
}

fn against_rate(conditions: &str, steps: &Family<'_>) -> Option<Plot> {
    let mut lines: Vec<Line> = Vec::new(); // In the order of the steps.
    for (name, step) in steps {
        let Some(offered) = step.offered_per_s else { continue };
        if step.kind == StepKind::Saturation || step.total.latency.n == 0 {
            continue;
        }
        let space = if name.is_empty() { "" } else { ", " };
        for (what, value) in [("p50", step.total.latency.p50_ms), ("p99", step.total.latency.p99_ms)] {
            let (name, point) = (format!("{name}{space}{what}"), (offered, value.max(1e-3)));
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(point),
                None => lines.push(Line { name, mark: Mark::JoinedDots, points: vec![point] }),
            }
        }
    }
    lines.retain(|line| line.points.len() >= 2);
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines.truncate(LINES_MAX);
    (!lines.is_empty()).then(|| Plot {
        title: titled("Latency against rate", conditions),
        caption: "Where a line turns up steeply, the server has reached its limit.".to_owned(),
        x_label: "offered rate (requests/s)".to_owned(),
        y_label: "latency (ms)".to_owned(),
        x_scale: AxisScale::Log,
        y_scale: AxisScale::Log,
        lines,
        divisions: Vec::new(),
    })
}

/// Curves over the measured time of all steps, one after the other.
fn over_time(result: &RunResult) -> Vec<Plot> {
    let mut offsets = Vec::new();
    let mut offset_s = 0.0;
    for step in result.steps.iter().filter(|step| step.kind != StepKind::Saturation) {
        offsets.push((offset_s, step));
        offset_s += step.measured_s;
    }
    let divisions: Vec<f64> = offsets.iter().skip(1).map(|(offset_s, _)| *offset_s).collect();
    let seconds = |value: fn(&crate::result::SecondResult) -> f64| -> Vec<(f64, f64)> {
        offsets
            .iter()
            .flat_map(|(offset_s, step)| {
                // The incomplete second at the end of the step and answers after it would look like a drop.
                let whole =
                    step.total.seconds.iter().filter(|it| (it.at_s + 1) as f64 <= step.measured_s + 0.01);
                whole.map(move |second| (offset_s + second.at_s as f64 + 0.5, value(second)))
            })
            .collect()
    };
    let samples = |value: fn(&Sample) -> Option<f64>| -> Vec<(f64, f64)> {
        offsets
            .iter()
            .flat_map(|(offset_s, step)| {
                let inside = step.samples.iter().filter(|it| it.at_s >= 0.0 && it.at_s <= step.measured_s);
                inside.filter_map(move |sample| Some((offset_s + sample.at_s, value(sample)?)))
            })
            .collect()
    };
    let plot = |title: &str, y_label: &str, y_scale: AxisScale, lines: Vec<(&str, Vec<(f64, f64)>)>| {
        let lines: Vec<Line> = lines
            .into_iter()
            .filter(|(_, points)| OVER_TIME_MIN <= points.len())
            .map(|(name, points)| Line { name: name.to_owned(), mark: Mark::Joined, points })
            .collect();
        (!lines.is_empty()).then(|| Plot {
            title: title.to_owned(),
            caption: "All measured windows of the run one after the other; a grey line divides two steps."
                .to_owned(),
            x_label: "measured time (s)".to_owned(),
            y_label: y_label.to_owned(),
            x_scale: AxisScale::Linear,
            y_scale,
            lines,
            divisions: divisions.clone(),
        })
    };
    let answers = vec![
        ("answers", seconds(|it| it.n_ok as f64)),
        (
            "errors",
            if result.steps.iter().any(|it| it.total.n_errors > 0) {
                seconds(|it| it.n_errors as f64)
            } else {
                Vec::new()
            },
        ),
    ];
    let latency =
        vec![("p50", seconds(|it| it.p50_ms.max(1e-3))), ("p99", seconds(|it| it.p99_ms.max(1e-3)))];
    let cpu = vec![
        ("server", samples(|it| it.server_cpu_cores)),
        ("whole machine", samples(|it| it.machine_cpu_cores)),
        ("waiting for storage", samples(|it| it.machine_io_wait_cores)),
    ];
    let megabytes = vec![
        ("written to storage", samples(|it| it.disk_write_bytes_per_s.map(|bytes| bytes / 1e6))),
        ("read from storage", samples(|it| it.disk_read_bytes_per_s.map(|bytes| bytes / 1e6))),
        ("network", samples(|it| it.network_bytes_per_s.map(|bytes| bytes / 1e6))),
    ];
    let memory = vec![("resident", samples(|it| it.server_memory_bytes.map(|bytes| bytes as f64 / 1e6)))];
    let queue = vec![("writes waiting", samples(|it| it.writer_queue_depth))];
    [
        plot("Throughput over time", "answers per second", AxisScale::Linear, answers),
        plot("Latency over time", "latency (ms)", AxisScale::Log, latency),
        plot("CPU over time", "cores in use", AxisScale::Linear, cpu),
        plot("Memory of the server over time", "memory (MB)", AxisScale::Linear, memory),
        plot("Storage and network over time", "MB per second", AxisScale::Linear, megabytes),
        plot("Writer's queue over time", "writes waiting", AxisScale::Linear, queue),
    ]
    .into_iter()
    .flatten()
    .collect()
}
