//! The result of a run: `result.json`, from which the reports and `compare` are generated. The schema is
//! described for readers in `docs/bench.md`; a change of meaning changes [`SCHEMA`].

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::load::record::{CutShort, FlowRecord, StepRecord};
use crate::load::{Load, Slow, Step};
use crate::observe::{Sample, StageTime};
use crate::published::Published;

/// Name and version of the schema.
pub const SCHEMA: &str = "pinakes-bench/1";

/// Percentiles of the stored distribution: fine at the slow end, where it matters.
const DISTRIBUTION_PERCENTILES: [f64; 24] = [
    0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.5, 95.0, 97.0, 98.0, 99.0,
    99.5, 99.8, 99.9, 99.95, 99.99, 99.999, 100.0,
];

/// One run of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the scenario, as its subcommand.
    pub scenario: String,
    /// One sentence: what is measured.
    pub title: String,
    /// Start, RFC 3339 in UTC.
    pub started: String,
    /// Duration of the whole run including preparation, in seconds.
    pub took_s: f64,
    /// How it ended.
    pub ended: Ended,
    /// The server's URL.
    pub url: String,
    /// What is known of the server.
    pub server: String,
    /// The machine of the client, and of the server when the URL is loopback.
    pub machine: Machine,
    /// Settings in words, by name.
    pub settings: BTreeMap<String, String>,
    /// What the client itself can send.
    pub client_ceiling: Option<ClientCeiling>,
    /// The steps in their order.
    pub steps: Vec<StepResult>,
    /// Further curves.
    pub series: Vec<Series>,
    /// The scenario's own tables.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// Remarks that a reader must see.
    pub notes: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All steps ran.
    Complete,
    /// Ctrl-C.
    Interrupted,
    /// An error, in words.
    Failed(String),
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Host name.
    pub name: String,
    /// Model of the processor.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Kernel.
    pub kernel: String,
}

/// What the client can send, measured against the bare server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientCeiling {
    /// Requests per second in the measurement, with the bare server on the same machine.
    pub rate_per_s: f64,
    /// Requests per second of client CPU time: what one core of the client can send.
    pub rate_per_core_s: f64,
    /// Client threads.
    pub threads: usize,
    /// Connections.
    pub connections: usize,
}

/// A bare server under the same load: same bytes, no store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BareCeiling {
    /// Successful answers per second in closed load; for a step with [`WorkDone`], units of its work per second.
    pub rate_per_s: f64,
    /// Bytes of each request's body.
    pub request_bytes: u64,
    /// Bytes of each answer's body.
    pub answer_bytes: u64,
    /// Connections.
    pub connections: usize,
    /// The step's rate as a share of it, 0 to 1; only for steps that were not limited by their rate.
    pub share: Option<f64>,
}

/// What kind of load a step was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Constant rate.
    Rate,
    /// Users who wait for their answers.
    Closed,
    /// A trial of the saturation search.
    Trial,
    /// The highest rate that the search found to be sustained.
    Saturation,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// Name.
    pub name: String,
    /// Conditions; equal labels in two runs make steps comparable.
    pub labels: BTreeMap<String, String>,
    /// What kind of load.
    pub kind: StepKind,
    /// Number of the repetition, from 0.
    pub repeat: u32,
    /// Requests per second offered by the first group; `None` for closed load.
    pub offered_per_s: Option<f64>,
    /// Successful answers per second of the first group in the measured window.
    pub throughput_per_s: f64,
    /// Connections of all groups.
    pub connections: usize,
    /// Length of the measured window, in seconds.
    pub measured_s: f64,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
    /// The flows of the first group together. Concurrent groups have a load of their own, and bulk would hide
    /// what interactive users see.
    pub total: FlowResult,
    /// Each flow of each group.
    pub flows: Vec<FlowResult>,
    /// Cores that the client's threads used.
    pub client_cpu_cores: f64,
    /// Threads of the client.
    pub client_threads: usize,
    /// 99th percentile of the client's own delay in sending (of the worst flow), in milliseconds.
    pub client_lag_p99_ms: f64,
    /// Resources by second.
    pub samples: Vec<Sample>,
    /// The server's stages.
    pub stages: Vec<StageTime>,
    /// What limited it.
    pub verdict: Verdict,
    /// The work done by the requests, if their number is not meaningful.
    #[serde(default)]
    pub work: Option<WorkDone>,
    /// The bare server for comparison.
    pub bare: Option<BareCeiling>,
    /// What the published report says for these conditions.
    pub published: Option<Published>,
}

/// Work done by a step's requests, if one request stands for many units of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkDone {
    /// What is counted, in the plural: `records`.
    pub unit: String,
    /// Units done.
    pub n: u64,
    /// From the first request to the moment when the client saw the end, in seconds.
    pub took_s: f64,
    /// Requests that carried the units.
    pub n_requests: u64,
    /// Bytes of their bodies.
    pub sent_bytes: u64,
}

impl WorkDone {
    /// Units per second.
    pub fn per_s(&self) -> f64 {
        if self.took_s > 0.0 { self.n as f64 / self.took_s } else { 0.0 }
    }
}

/// One flow of a step, or all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Name.
    pub name: String,
    /// Successful answers to requests of the measured window.
    pub n_ok: u64,
    /// Failures of every kind.
    pub n_errors: u64,
    /// Of them by status.
    pub n_status: BTreeMap<u16, u64>,
    /// Of them without connection.
    pub n_connect_errors: u64,
    /// Of them with a connection lost.
    pub n_lost: u64,
    /// Of them without complete answer in time.
    pub n_timeouts: u64,
    /// Due but never sent.
    pub n_unsent: u64,
    /// Sent later than `--late-ms` after they were due.
    pub n_late: u64,
    /// Of them by the client's own fault.
    pub n_late_by_client: u64,
    /// Requests of the warm-up, not counted above.
    pub n_warmup: u64,
    /// Successful answers per second in the measured window.
    pub throughput_per_s: f64,
    /// Mean bytes of an answer's body.
    pub answer_bytes_mean: f64,
    /// Mean bytes of a request's body.
    pub request_bytes_mean: f64,
    /// From the intended time.
    pub latency: Latency,
    /// From the sending.
    pub service: Latency,
    /// From the sending to the head of the answer.
    #[serde(default)]
    pub head: Latency,
    /// Percentile and latency in milliseconds.
    pub distribution: Vec<[f64; 2]>,
    /// By second of the measured window.
    pub seconds: Vec<SecondResult>,
    /// Slowest requests, slowest first.
    pub slowest: Vec<SlowResult>,
    /// Failure messages, with their number.
    pub messages: BTreeMap<String, u64>,
    /// Every bucket of the latency histogram (microseconds, count): goes to `raw.csv.gz`.
    #[serde(skip)]
    pub buckets: Vec<(u64, u64)>,
}

/// Percentiles, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of values.
    pub n: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.5th percentile.
    #[serde(default)]
    pub p99_5_ms: f64,
    /// 99.9th percentile.
    pub p99_9_ms: f64,
    /// Highest.
    pub max_ms: f64,
}

impl Latency {
    /// Returns the percentiles of a histogram of microseconds.
    pub fn of(histogram_us: &Histogram<u64>) -> Self {
        let ms = |quantile| histogram_us.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            n: histogram_us.len(),
            mean_ms: histogram_us.mean() / 1e3,
            p50_ms: ms(0.5),
            p90_ms: ms(0.9),
            p95_ms: ms(0.95),
            p99_ms: ms(0.99),
            p99_5_ms: ms(0.995),
            p99_9_ms: ms(0.999),
            max_ms: histogram_us.max() as f64 / 1e3,
        }
    }
}

/// One second of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SecondResult {
    /// Seconds after the start of the measured window.
    pub at_s: u64,
    /// Successes.
    pub n_ok: u64,
    /// Failures.
    pub n_errors: u64,
    /// Median latency, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, in milliseconds.
    pub p99_ms: f64,
}

/// One of the slowest requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowResult {
    /// From the intended time.
    pub latency_ms: f64,
    /// From the sending.
    pub service_ms: f64,
    /// Seconds after the start of the measured window at which it was due.
    pub at_s: f64,
    /// Request target.
    pub path: String,
    /// Status, 0 without an answer.
    pub status: u16,
    /// The answer's `Server-Timing`.
    pub server_timing: String,
}

impl From<Slow> for SlowResult {
    fn from(slow: Slow) -> Self {
        Self {
            latency_ms: slow.latency_us as f64 / 1e3,
            service_ms: slow.service_us as f64 / 1e3,
            at_s: slow.at_us as f64 / 1e6,
            path: slow.path,
            status: slow.status,
            server_timing: slow.server_timing,
        }
    }
}

/// A further curve: named points with named axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Title of the plot.
    pub title: String,
    /// Horizontal axis, with its unit.
    pub x_label: String,
    /// Vertical axis, with its unit.
    pub y_label: String,
    /// Whether both axes are logarithmic.
    #[serde(default)]
    pub by_factors: bool,
    /// The points.
    pub points: Vec<[f64; 2]>,
    /// What the points say, in a sentence.
    pub summary: String,
}

/// A table of the scenario's own: the figures that a published report compares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Title.
    pub title: String,
    /// Header and rows.
    pub rows: Vec<Vec<String>>,
    /// What the rows say, in a sentence without its full stop.
    pub summary: String,
}

/// Returns the result of a step before the verdict, the bare server and the published figures are added.
pub fn step_result(step: &Step, kind: StepKind, record: &StepRecord, client_threads: usize) -> StepResult {
    let measured_s = record.measured_s();
    let mut total = FlowRecord::new("all");
    let first = step.groups.first();
    let n_flows = first.map_or(0, |group| group.work.flow_names().len());
    for flow in record.flows.iter().take(n_flows) {
        total.add(flow.clone());
    }
    let total = flow_result(&total, measured_s);
    let lag = record.flows.iter().take(n_flows).map(|flow| flow.client_lag_us.value_at_quantile(0.99)).max();
    StepResult {
        name: step.name.clone(),
        labels: step.labels.clone(),
        kind,
        repeat: 0,
        offered_per_s: first.and_then(|group| match group.load {
            Load::Open { rate_per_s } => Some(rate_per_s),
            Load::Closed { .. } => None,
        }),
        throughput_per_s: total.throughput_per_s,
        connections: step.groups.iter().map(|group| group.connections).sum(),
        measured_s,
        cut_short: record.cut_short.map(|reason| {
            match reason {
                CutShort::Interrupted => "interrupted",
                CutShort::ServerGone => "the server stopped accepting connections",
            }
            .to_owned()
        }),
        client_cpu_cores: record.client_cpu_s / measured_s,
        client_threads,
        client_lag_p99_ms: lag.unwrap_or(0) as f64 / 1e3,
        flows: record.flows.iter().map(|flow| flow_result(flow, measured_s)).collect(),
        total,
        samples: Vec::new(),
        stages: Vec::new(),
        verdict: Verdict::default(),
        work: None,
        bare: None,
        published: None,
    }
}

fn flow_result(record: &FlowRecord, measured_s: f64) -> FlowResult {
    let mean = |sum: u64, n: u64| if n == 0 { 0.0 } else { sum as f64 / n as f64 };
    let histogram = &record.latency_us;
    FlowResult {
        name: record.name.clone(),
        n_ok: record.n_ok,
        n_errors: record.n_errors(),
        n_status: record.n_status.clone(),
        n_connect_errors: record.n_connect_errors,
        n_lost: record.n_lost,
        n_timeouts: record.n_timeouts,
        n_unsent: record.n_unsent,
        n_late: record.n_late,
        n_late_by_client: record.n_late_by_client,
        n_warmup: record.n_warmup,
        throughput_per_s: record.n_ok_in_window as f64 / measured_s,
        answer_bytes_mean: mean(record.answer_bytes, record.n_ok),
        request_bytes_mean: mean(record.request_bytes, record.n_ok + record.n_errors()),
        latency: Latency::of(histogram),
        service: Latency::of(&record.service_us),
        head: Latency::of(&record.head_us),
        distribution: if histogram.is_empty() {
            Vec::new()
        } else {
            DISTRIBUTION_PERCENTILES
                .iter()
                .map(|it| [*it, histogram.value_at_percentile(*it) as f64 / 1e3])
                .collect()
        },
        seconds: record
            .seconds
            .iter()
            .map(|(at_s, second)| SecondResult {
                at_s: *at_s,
                n_ok: second.n_ok,
                n_errors: second.n_errors,
                p50_ms: second.latency_us.value_at_quantile(0.5) as f64 / 1e3,
                p99_ms: second.latency_us.value_at_quantile(0.99) as f64 / 1e3,
            })
            .collect(),
        slowest: record.slowest().into_iter().map(SlowResult::from).collect(),
        messages: record.messages.clone(),
        buckets: histogram
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
            .collect(),
    }
}

/// The resource or stage that limited a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundBy {
    /// Nothing: the offered rate was sustained, with resources to spare.
    Nothing,
    /// The client itself: the numbers are not the server's.
    Client,
    /// The server answers with errors: its speed does not matter.
    Errors,
    /// Waiting for the commit to reach the disk.
    CommitWait,
    /// Waiting in the server's queue for the writer.
    Queue,
    /// The server's CPU.
    ServerCpu,
    /// The machine's CPU, which client and server share.
    MachineCpu,
    /// The storage.
    Disk,
    /// Network and HTTP stack: a bare server is not much faster.
    Network,
    /// The data does not say.
    #[default]
    Unknown,
}

impl BoundBy {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Client => "the client",
            Self::Errors => "errors",
            Self::CommitWait => "commit wait",
            Self::Queue => "the writer's queue",
            Self::ServerCpu => "server CPU",
            Self::MachineCpu => "CPU of the machine",
            Self::Disk => "disk",
            Self::Network => "network and HTTP stack",
            Self::Unknown => "the data does not tell",
        }
    }
}

/// A verdict with its evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What limited the step.
    pub bound_by: BoundBy,
    /// The numbers behind it.
    pub evidence: String,
}
