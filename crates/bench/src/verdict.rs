//! What bounded a step. Rules over what was measured, in a fixed order, each with the numbers it rests
//! on; when the numbers do not tell, the verdict says so and what would be needed.

use serde::{Deserialize, Serialize};

use crate::observe::{Sample, StageTime};
use crate::result::{StepKind, StepResult};

/// The resource or stage that bounded a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundBy {
    /// Nothing: the offered rate was kept, with resources to spare.
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
    /// The data does not tell.
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
    /// What bounded the step.
    pub bound_by: BoundBy,
    /// The numbers that say so.
    pub evidence: String,
}

/// Share of a thread or of all cores from which on a CPU counts as full.
const CPU_FULL_SHARE: f64 = 0.88;

/// Share of the stages' time from which on one stage counts as the bound.
const STAGE_SHARE: f64 = 0.4;

/// Share of a bare server's rate from which on the stack counts as the bound.
const BARE_SHARE: f64 = 0.75;

/// Share of the offered rate that must be answered for it to count as kept.
const KEPT_SHARE: f64 = 0.98;

/// Judges a step on a machine with `n_cores`.
pub fn judge(step: &StepResult, n_cores: usize) -> Verdict {
    let rules: [fn(&StepResult, &Means) -> Option<Verdict>; 7] =
        [by_errors, by_client, by_nothing, by_stage, by_cpu, by_disk, by_network];
    let means = Means::of(step, n_cores);
    rules.iter().find_map(|rule| rule(step, &means)).unwrap_or_else(|| Verdict {
        bound_by: BoundBy::Unknown,
        evidence: unknown_evidence(step, &means),
    })
}

/// Means of the samples in the measured window.
struct Means {
    n_cores: f64,
    server_cores: Option<f64>,
    machine_cores: Option<f64>,
    io_wait_cores: Option<f64>,
    queue_depth: Option<f64>,
}

impl Means {
    fn of(step: &StepResult, n_cores: usize) -> Self {
        // A sample covers the second before it.
        let samples: Vec<&Sample> =
            step.samples.iter().filter(|it| it.at_s >= 0.9 && it.at_s <= step.measured_s + 0.5).collect();
        let mean = |value: fn(&Sample) -> Option<f64>| {
            let values: Vec<f64> = samples.iter().filter_map(|sample| value(sample)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        Self {
            n_cores: n_cores as f64,
            server_cores: mean(|it| it.server_cpu_cores),
            machine_cores: mean(|it| it.machine_cpu_cores),
            io_wait_cores: mean(|it| it.machine_io_wait_cores),
            queue_depth: mean(|it| it.writer_queue_depth),
        }
    }

    fn in_words(&self) -> String {
        let mut words = Vec::new();
        if let Some(cores) = self.server_cores {
            words.push(format!("server {cores:.2} of {} cores", self.n_cores));
        }
        if let Some(cores) = self.machine_cores {
            words.push(format!("machine {cores:.2} of {} cores busy", self.n_cores));
        }
        words.join(", ")
    }
}

fn verdict(bound_by: BoundBy, evidence: String) -> Option<Verdict> {
    Some(Verdict { bound_by, evidence })
}

fn by_errors(step: &StepResult, _means: &Means) -> Option<Verdict> {
    let total = &step.total;
    if total.n_errors == 0 || total.n_errors * 20 < total.n_ok {
        return None;
    }
    let message = total.messages.iter().max_by_key(|it| it.1).map(|it| it.0.as_str()).unwrap_or("no message");
    verdict(BoundBy::Errors, format!("{} failures beside {} answers; most often: {message}", total.n_errors, total.n_ok))
}

fn by_client(step: &StepResult, _means: &Means) -> Option<Verdict> {
    let share = step.client_cpu_cores / step.client_threads.max(1) as f64;
    let late = step.total.n_late_by_client;
    let n = step.total.n_ok + step.total.n_errors;
    if share >= CPU_FULL_SHARE {
        let evidence = format!(
            "its {} thread(s) used {:.0} % of their cores: the server may be faster than this; use more --client-threads or another machine",
            step.client_threads,
            share * 100.0
        );
        return verdict(BoundBy::Client, evidence);
    }
    if late * 10 > n && step.client_lag_p99_ms > step.total.service.p50_ms {
        let evidence = format!(
            "{late} of {n} requests were sent late although a connection was free (p99 of the delay {}): something else uses the client's CPU",
            ms(step.client_lag_p99_ms)
        );
        return verdict(BoundBy::Client, evidence);
    }
    None
}

fn by_nothing(step: &StepResult, means: &Means) -> Option<Verdict> {
    let offered = step.offered_per_s?;
    let kept = step.throughput_per_s >= KEPT_SHARE * offered && step.total.n_unsent == 0;
    if !kept || step.kind == StepKind::Saturation {
        return None;
    }
    let mut evidence = format!("kept {} of {}", rate(step.throughput_per_s), rate(offered));
    if let Some(stage) = largest_stage(&step.stages) {
        evidence += &format!("; of the server's time most went to {}", stage_words(&stage));
    }
    let words = means.in_words();
    if !words.is_empty() {
        evidence += &format!("; {words}");
    }
    verdict(BoundBy::Nothing, evidence)
}

/// The stage with the most time, its share of all stages' time, and its mean.
fn largest_stage(stages: &[StageTime]) -> Option<(String, f64, f64)> {
    // The writer's own commits are the same time as the requests' commit stage, counted once per commit.
    let of_requests: Vec<&StageTime> = stages.iter().filter(|it| it.stage != "writer commit").collect();
    let sum_s: f64 = of_requests.iter().map(|it| it.total_s).sum();
    let largest = of_requests.into_iter().max_by(|a, b| a.total_s.total_cmp(&b.total_s))?;
    (sum_s > 0.0).then(|| (largest.stage.clone(), largest.total_s / sum_s, largest.mean_ms()))
}

fn stage_words((stage, share, mean_ms): &(String, f64, f64)) -> String {
    format!("{stage}: {:.0} %, {} each", share * 100.0, ms(*mean_ms))
}

fn by_stage(step: &StepResult, means: &Means) -> Option<Verdict> {
    let stage = largest_stage(&step.stages)?;
    let bound_by = match stage.0.as_str() {
        "commit" => BoundBy::CommitWait,
        "wait" => BoundBy::Queue,
        _ => return None,
    };
    // A full CPU makes every stage wait: then it is the CPU.
    if stage.1 < STAGE_SHARE || cpu_is_full(means) {
        return None;
    }
    let mut evidence = format!("of the server's time most went to {}", stage_words(&stage));
    if let Some(depth) = means.queue_depth {
        evidence += &format!("; {depth:.0} writes waited on average");
    }
    let words = means.in_words();
    if !words.is_empty() {
        evidence += &format!("; {words}");
    }
    verdict(bound_by, evidence)
}

fn cpu_is_full(means: &Means) -> bool {
    means.machine_cores.or(means.server_cores).is_some_and(|cores| cores >= CPU_FULL_SHARE * means.n_cores)
}

fn by_cpu(step: &StepResult, means: &Means) -> Option<Verdict> {
    if let Some(server) = means.server_cores {
        let available = means.n_cores - step.client_cpu_cores.min(means.n_cores - 0.1);
        if server >= CPU_FULL_SHARE * means.n_cores || (cpu_is_full(means) && server >= 0.8 * available) {
            let evidence = format!("{}, client {:.2}", means.in_words(), step.client_cpu_cores);
            return verdict(BoundBy::ServerCpu, evidence);
        }
        // One thread at its limit while other cores are free: a server that does its work on one thread.
        if (0.93..1.1).contains(&server) && means.n_cores > 1.0 {
            let evidence = format!("it used one core ({server:.2}) while others were free: work on a single thread");
            return verdict(BoundBy::ServerCpu, evidence);
        }
    }
    cpu_is_full(means).then(|| Verdict {
        bound_by: BoundBy::MachineCpu,
        evidence: format!("{}, client {:.2}: other programs share the machine", means.in_words(), step.client_cpu_cores),
    })
}

fn by_disk(_step: &StepResult, means: &Means) -> Option<Verdict> {
    let io_wait = means.io_wait_cores?;
    (io_wait >= 0.5).then(|| Verdict {
        bound_by: BoundBy::Disk,
        evidence: format!("{io_wait:.2} cores waited for storage; {}", means.in_words()),
    })
}

fn by_network(step: &StepResult, _means: &Means) -> Option<Verdict> {
    let bare = step.bare.as_ref()?;
    let share = bare.share.filter(|share| *share >= BARE_SHARE)?;
    verdict(
        BoundBy::Network,
        format!("{:.0} % of a bare server that sends the same bytes ({})", share * 100.0, rate(bare.rate_per_s)),
    )
}

fn unknown_evidence(step: &StepResult, means: &Means) -> String {
    let mut evidence = format!("{} answered", rate(step.throughput_per_s));
    if let Some(offered) = step.offered_per_s {
        evidence += &format!(" of {}", rate(offered));
    }
    let words = means.in_words();
    if words.is_empty() {
        return evidence + "; neither the server's process (--pid) nor its metrics page (--metrics-url) could be read";
    }
    evidence += &format!("; {words}");
    if step.stages.is_empty() {
        evidence += "; the server tells no stages, so it may wait for anything";
    }
    evidence
}

/// `1.5 ms` with a precision that suits the size.
pub fn ms(value: f64) -> String {
    match value {
        it if it >= 10_000.0 => format!("{:.1} s", it / 1e3),
        it if it >= 100.0 => format!("{it:.0} ms"),
        it if it >= 10.0 => format!("{it:.1} ms"),
        it => format!("{it:.2} ms"),
    }
}

/// `1,234/s` with a precision that suits the size.
pub fn rate(per_s: f64) -> String {
    match per_s {
        it if it >= 100.0 => format!("{}/s", thousands(it.round() as u64)),
        it => format!("{it:.1}/s"),
    }
}

/// `1,234,567`.
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
