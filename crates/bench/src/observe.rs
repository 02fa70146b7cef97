//! Observes the server while it is measured: its process and its metrics page, once a second, and its stage
//! histograms before and after each step.

pub mod process;
pub mod prometheus;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::client::{AnswerBody, Connection, Request};
use crate::target::Target;
use process::{MachineUsage, ProcessUsage};
use prometheus::Metric;

/// Time between two samples.
const EVERY: Duration = Duration::from_secs(1);

/// Shortest time that a last sample may cover: below it, clock ticks of CPU time are too coarse.
const SHORTEST: Duration = Duration::from_millis(200);

/// Limit for one reading of the metrics page.
const METRICS_TIMEOUT: Duration = Duration::from_secs(2);

/// The server's resources in one second of a step. Rates are per second since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds after the start of the measured window; negative in the warm-up.
    pub at_s: f64,
    /// Length of time that it covers up to then, in seconds.
    pub span_s: f64,
    /// Cores that the server's processes used.
    pub server_cpu_cores: Option<f64>,
    /// Resident memory of the server's processes, in bytes.
    pub server_memory_bytes: Option<u64>,
    /// Bytes per second that the server's processes read from storage.
    pub disk_read_bytes_per_s: Option<f64>,
    /// Bytes per second that they wrote to storage.
    pub disk_write_bytes_per_s: Option<f64>,
    /// Cores of the machine that were busy, with everything that ran on it.
    pub machine_cpu_cores: Option<f64>,
    /// Cores of the machine that waited for storage.
    pub machine_io_wait_cores: Option<f64>,
    /// Cores of the machine that its host gave to other guests.
    pub machine_stolen_cores: Option<f64>,
    /// Bytes per second received on all interfaces of the machine, loopback included.
    pub network_bytes_per_s: Option<f64>,
    /// Writes that waited in the server's queue.
    pub writer_queue_depth: Option<f64>,
}

/// Time that the server spent in one stage during a step, from its own histogram.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// `auth`, `parse`, `wait`, `store`, `commit`, `render`, or `writer commit` for the writer's own.
    pub stage: String,
    /// Number of times that the stage was passed.
    pub n: u64,
    /// Sum of the time, in seconds.
    pub total_s: f64,
}

impl StageTime {
    /// Mean time, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        if self.n == 0 { 0.0 } else { self.total_s * 1e3 / self.n as f64 }
    }
}

/// The sources of the server's resource figures.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// Its processes: server and database.
    pub pids: Vec<u32>,
    /// Its metrics page, if it has one.
    pub metrics: Option<MetricsPage>,
}

/// A page in the Prometheus text format.
#[derive(Clone, Debug)]
pub struct MetricsPage {
    /// The server of the page.
    pub target: Arc<Target>,
    /// Its path.
    pub path: String,
}

impl MetricsPage {
    /// Reads the page; `None` if it does not answer or is not in this format.
    pub async fn read(&self) -> Option<Vec<Metric>> {
        let mut connection = Connection::new(Arc::clone(&self.target), METRICS_TIMEOUT);
        self.read_over(&mut connection).await
    }

    async fn read_over(&self, connection: &mut Connection) -> Option<Vec<Metric>> {
        let request = Request::get(self.path.clone(), &Arc::new(HeaderMap::new()));
        let answer = connection.exchange(&request, AnswerBody::Keep).await.ok()?;
        let metrics = prometheus::parse(std::str::from_utf8(&answer.body).ok()?);
        (answer.is_success() && !metrics.is_empty()).then_some(metrics)
    }
}

/// Everything read at one moment.
#[derive(Clone, Debug)]
struct Reading {
    at: Instant,
    process: Option<ProcessUsage>,
    machine: Option<MachineUsage>,
    queue_depth: Option<f64>,
}

impl Observer {
    /// Returns the current stage histograms; empty without a metrics page.
    pub async fn stages(&self) -> Vec<StageTime> {
        match &self.metrics {
            Some(page) => stages_of(&page.read().await.unwrap_or_default()),
            None => Vec::new(),
        }
    }

    /// Samples each second until `end` is sent or dropped. Times count from `zero`.
    pub async fn sample(self, zero: Instant, mut end: oneshot::Receiver<()>) -> Vec<Sample> {
        let mut connection =
            self.metrics.as_ref().map(|page| Connection::new(Arc::clone(&page.target), METRICS_TIMEOUT));
        let mut before = self.read(&mut connection).await;
        let mut samples = Vec::new();
        loop {
            tokio::select! {
                _ = &mut end => {
                    let now = self.read(&mut connection).await;
                    if now.at - before.at >= SHORTEST {
                        samples.push(difference(&before, &now, zero));
                    }
                    return samples;
                }
                () = tokio::time::sleep_until((before.at + EVERY).into()) => {}
            }
            let now = self.read(&mut connection).await;
            samples.push(difference(&before, &now, zero));
            before = now;
        }
    }

    async fn read(&self, connection: &mut Option<Connection>) -> Reading {
        let page = match (&self.metrics, connection) {
            (Some(page), Some(connection)) => page.read_over(connection).await,
            _ => None,
        };
        let process = sum_usage(&self.pids).or_else(|| page.as_deref().and_then(usage_of));
        Reading {
            at: Instant::now(),
            process,
            machine: process::machine(),
            queue_depth: page.as_deref().and_then(|it| prometheus::total(it, "pinakes_writer_queue_depth")),
        }
    }
}

fn sum_usage(pids: &[u32]) -> Option<ProcessUsage> {
    let all: Vec<ProcessUsage> = pids.iter().filter_map(|pid| process::usage(*pid)).collect();
    let add = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
    all.into_iter().reduce(|a, b| ProcessUsage {
        cpu_s: a.cpu_s + b.cpu_s,
        memory_bytes: a.memory_bytes + b.memory_bytes,
        disk_read_bytes: add(a.disk_read_bytes, b.disk_read_bytes),
        disk_write_bytes: add(a.disk_write_bytes, b.disk_write_bytes),
    })
}

/// Returns the process' usage by the metric names common to Prometheus clients of all languages.
fn usage_of(page: &[Metric]) -> Option<ProcessUsage> {
    Some(ProcessUsage {
        cpu_s: prometheus::total(page, "process_cpu_seconds_total")?,
        memory_bytes: prometheus::total(page, "process_resident_memory_bytes").unwrap_or(0.0) as u64,
        disk_read_bytes: None,
        disk_write_bytes: None,
    })
}

fn difference(before: &Reading, now: &Reading, zero: Instant) -> Sample {
    let span_s = (now.at - before.at).as_secs_f64().max(1e-3);
    let process = before.process.zip(now.process);
    let machine = before.machine.zip(now.machine);
    let per_s = |(a, b): (f64, f64)| ((b - a) / span_s).max(0.0);
    let bytes_per_s = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?) as f64 / span_s);
    Sample {
        at_s: if now.at >= zero { (now.at - zero).as_secs_f64() } else { -(zero - now.at).as_secs_f64() },
        span_s,
        server_cpu_cores: process.map(|(a, b)| per_s((a.cpu_s, b.cpu_s))),
        server_memory_bytes: now.process.map(|it| it.memory_bytes),
        disk_read_bytes_per_s: process.and_then(|(a, b)| bytes_per_s(a.disk_read_bytes, b.disk_read_bytes)),
        disk_write_bytes_per_s: process
            .and_then(|(a, b)| bytes_per_s(a.disk_write_bytes, b.disk_write_bytes)),
        machine_cpu_cores: machine.map(|(a, b)| per_s((a.busy_s, b.busy_s))),
        machine_io_wait_cores: machine.map(|(a, b)| per_s((a.io_wait_s, b.io_wait_s))),
        machine_stolen_cores: machine.map(|(a, b)| per_s((a.stolen_s, b.stolen_s))),
        network_bytes_per_s: machine
            .and_then(|(a, b)| bytes_per_s(Some(a.network_bytes), Some(b.network_bytes))),
        writer_queue_depth: now.queue_depth,
    }
}

/// Returns the stage sums in a metrics page. `commit` of a request is its wait for the shared commit; `writer
/// commit` counts each commit once, however many requests shared it.
fn stages_of(page: &[Metric]) -> Vec<StageTime> {
    let mut stages: BTreeMap<String, StageTime> = BTreeMap::new();
    for metric in page {
        let stage = match metric.name.as_str() {
            "pinakes_stage_seconds_sum" | "pinakes_stage_seconds_count" => {
                metric.labels.get("stage").cloned().unwrap_or_default()
            }
            "pinakes_commit_seconds_sum" | "pinakes_commit_seconds_count" => "writer commit".to_owned(),
            _ => continue,
        };
        let entry =
            stages.entry(stage.clone()).or_insert_with(|| StageTime { stage, ..StageTime::default() });
        if metric.name.ends_with("_sum") {
            entry.total_s += metric.value;
        } else {
            entry.n += metric.value.max(0.0) as u64;
        }
    }
    stages.into_values().collect()
}

/// Returns the differences between two readings; stages that were not passed are left out.
pub fn stage_difference(before: &[StageTime], after: &[StageTime]) -> Vec<StageTime> {
    after
        .iter()
        .map(|now| {
            let then = before.iter().find(|it| it.stage == now.stage).cloned().unwrap_or_default();
            StageTime {
                stage: now.stage.clone(),
                n: now.n.saturating_sub(then.n),
                total_s: (now.total_s - then.total_s).max(0.0),
            }
        })
        .filter(|stage| stage.n > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_the_difference_of_two_pages() {
        let page = |n, sum| {
            stages_of(&prometheus::parse(&format!(
                "pinakes_stage_seconds_sum{{stage=\"commit\"}} {sum}\npinakes_stage_seconds_count{{stage=\"commit\"}} {n}\n\
                 pinakes_stage_seconds_sum{{stage=\"auth\"}} 1\npinakes_stage_seconds_count{{stage=\"auth\"}} 5\n"
            )))
        };
        let difference = stage_difference(&page(10, 1.0), &page(14, 3.0));
        assert_eq!(difference.len(), 1);
        assert_eq!((difference[0].stage.as_str(), difference[0].n), ("commit", 4));
        assert!((difference[0].mean_ms() - 500.0).abs() < 1e-9);
    }
}
