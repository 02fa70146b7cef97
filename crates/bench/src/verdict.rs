//! What limited a step: rules over the measurements, in a fixed order, each with the numbers it rests on; if
//! the numbers do not tell, the verdict says so and what would be needed.

use crate::observe::{Sample, StageTime};
use crate::result::{StepKind, StepResult};

pub use crate::result::{BoundBy, Verdict};

/// Share of a thread or of all cores above which a CPU counts as full.
const CPU_FULL_SHARE: f64 = 0.88;

/// Share of the stages' time above which one stage counts as the limit.
const STAGE_SHARE: f64 = 0.4;

/// Share of a bare server's rate above which the stack counts as the limit.
const BARE_SHARE: f64 = 0.75;

/// Share of the offered rate that must be answered for it to count as sustained.
const KEPT_SHARE: f64 = 0.98;

/// Judges a step on a machine with `n_cores`.
pub fn judge(step: &StepResult, n_cores: usize) -> Verdict {
    let rules: [Rule; 8] =
        [by_errors, by_client, by_nothing, by_acknowledgements, by_stage, by_cpu, by_disk, by_network];
    let means = Means::of(step, n_cores);
    rules
        .iter()
        .find_map(|rule| rule(step, &means))
        .unwrap_or_else(|| Verdict { bound_by: BoundBy::Unknown, evidence: unknown_evidence(step, &means) })
}

/// A verdict if the numbers allow this one.
type Rule = fn(&StepResult, &Means) -> Option<Verdict>;

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
        // Those that mostly cover the measured window.
        let samples: Vec<&Sample> = step
            .samples
            .iter()
            .filter(|it| it.at_s >= it.span_s / 2.0 && it.at_s <= step.measured_s + it.span_s / 2.0)
            .collect();
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
    verdict(
        BoundBy::Errors,
        format!("{} failures beside {} answers; most often: {message}", total.n_errors, total.n_ok),
    )
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

/// Returns the stage with the most time, its share of all stages' time, and its mean.
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

/// Judges by delayed acknowledgements: if half of all answers take the 40 ms of Linux' delayed
/// acknowledgement, the server sends head and body separately and waits for the acknowledgement in between
/// (Nagle's algorithm).
fn by_acknowledgements(step: &StepResult, means: &Means) -> Option<Verdict> {
    let service = &step.total.service;
    let is_typical = (39.0..47.0).contains(&service.p50_ms);
    let is_idle = means.server_cores.is_none_or(|cores| cores < means.n_cores / 2.0);
    let told_ms: f64 = step.stages.iter().map(StageTime::mean_ms).sum();
    (is_typical && is_idle && told_ms < service.p50_ms / 2.0).then(|| Verdict {
        bound_by: BoundBy::Network,
        evidence: format!(
            "half of the answers take {}, close to the 40 ms of a delayed acknowledgement, {}: does the server set \
             TCP_NODELAY?",
            ms(service.p50_ms),
            in_flight(step)
        ),
    })
}

/// Returns the mean number of requests in progress (Little's law), of the connections there are.
fn in_flight(step: &StepResult) -> String {
    let n = step.throughput_per_s * step.total.service.mean_ms / 1e3;
    format!("{n:.1} of {} connections busy", step.connections)
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
            let evidence =
                format!("it used one core ({server:.2}) while others were free: work on a single thread");
            return verdict(BoundBy::ServerCpu, evidence);
        }
    }
    cpu_is_full(means).then(|| {
        let mut evidence = format!(
            "{}, client {:.2}: other programs share the machine; {}",
            means.in_words(),
            step.client_cpu_cores,
            in_flight(step)
        );
        if let Some(stage) = largest_stage(&step.stages) {
            evidence += &format!("; of the server's time most went to {}", stage_words(&stage));
        }
        Verdict { bound_by: BoundBy::MachineCpu, evidence }
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
        format!(
            "{:.0} % of a bare server that sends the same bytes ({})",
            share * 100.0,
            rate(bare.rate_per_s)
        ),
    )
}

fn unknown_evidence(step: &StepResult, means: &Means) -> String {
    let mut evidence = format!("{} answered", rate(step.throughput_per_s));
    if let Some(offered) = step.offered_per_s {
        evidence += &format!(" of {}", rate(offered));
    }
    evidence += &format!("; {}", in_flight(step));
    let words = means.in_words();
    if words.is_empty() && step.measured_s < 1.0 {
        return evidence + "; the step was over before its resources could be sampled";
    }
    if words.is_empty() {
        return evidence
            + "; neither the server's process (--pid) nor its metrics page (--metrics-url) could be read";
    }
    evidence += &format!("; {words}");
    if step.stages.is_empty() {
        evidence += "; the server tells no stages, so it may wait for anything";
    }
    evidence
}

/// Describes how fast a step was: rate and percentiles, or the work done and its time.
pub fn speed(step: &StepResult) -> String {
    let latency = &step.total.latency;
    match &step.work {
        Some(work) => {
            let (n, took) = (thousands(work.n), ms(work.took_s * 1e3));
            format!("{n} {} in {took}, {}", work.unit, rate(work.per_s()))
        }
        None => {
            format!("{}, p50 {}, p99 {}", rate(step.throughput_per_s), ms(latency.p50_ms), ms(latency.p99_ms))
        }
    }
}

/// Formats `1.5 ms` with a precision that suits the size.
pub fn ms(value: f64) -> String {
    match value {
        it if it >= 10_000.0 => format!("{:.1} s", it / 1e3),
        it if it >= 100.0 => format!("{it:.0} ms"),
        it if it >= 10.0 => format!("{it:.1} ms"),
        it => format!("{it:.2} ms"),
    }
}

/// Formats `1,234/s` with a precision that suits the size.
pub fn rate(per_s: f64) -> String {
    match per_s {
        it if it >= 100.0 => format!("{}/s", thousands(it.round() as u64)),
        it => format!("{it:.1}/s"),
    }
}

/// Formats `1,234,567`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{BareCeiling, FlowResult, Latency};

    /// Returns a step of 10 s on two cores that answered 900 of 1,000 offered requests each second.
    fn step() -> StepResult {
        let latency = Latency { n: 9000, mean_ms: 5.0, p50_ms: 5.0, p99_ms: 50.0, ..Latency::default() };
        StepResult {
            name: "step".to_owned(),
            labels: std::collections::BTreeMap::new(),
            kind: StepKind::Rate,
            repeat: 0,
            offered_per_s: Some(1000.0),
            throughput_per_s: 900.0,
            connections: 10,
            measured_s: 10.0,
            cut_short: None,
            total: FlowResult { n_ok: 9000, latency, service: latency, ..FlowResult::default() },
            flows: Vec::new(),
            client_cpu_cores: 0.2,
            client_threads: 1,
            client_lag_p99_ms: 0.1,
            samples: samples(0.5, 0.8, 0.0),
            stages: Vec::new(),
            verdict: Verdict::default(),
            work: None,
            bare: None,
            published: None,
        }
    }

    fn samples(server: f64, machine: f64, io_wait: f64) -> Vec<Sample> {
        let sample = |at: u32| Sample {
            at_s: f64::from(at),
            span_s: 1.0,
            server_cpu_cores: Some(server),
            machine_cpu_cores: Some(machine),
            machine_io_wait_cores: Some(io_wait),
            ..Sample::default()
        };
        (1..=10).map(sample).collect()
    }

    fn stages(commit_s: f64, wait_s: f64, store_s: f64) -> Vec<StageTime> {
        let stage = |name: &str, total_s| StageTime { stage: name.to_owned(), n: 9000, total_s };
        vec![stage("commit", commit_s), stage("wait", wait_s), stage("store", store_s)]
    }

    /// Checks that `step` is judged `bound_by`, with `evidence` in the words.
    fn check(step: &StepResult, bound_by: BoundBy, evidence: &str) {
        let verdict = judge(step, 2);
        assert_eq!(verdict.bound_by, bound_by, "{}", verdict.evidence);
        assert!(verdict.evidence.contains(evidence), "{}", verdict.evidence);
    }

    #[test]
    fn each_bound_is_told_by_its_numbers() {
        check(&step(), BoundBy::Unknown, "tells no stages");
        check(&StepResult { samples: Vec::new(), ..step() }, BoundBy::Unknown, "--pid");
        check(&StepResult { throughput_per_s: 999.0, ..step() }, BoundBy::Nothing, "kept 999/s of 1,000/s");
        check(&StepResult { client_cpu_cores: 0.95, ..step() }, BoundBy::Client, "95 %");
        check(
            &StepResult { stages: stages(30.0, 5.0, 5.0), ..step() },
            BoundBy::CommitWait,
            "commit: 75 %, 3.33 ms each",
        );
        check(&StepResult { stages: stages(5.0, 30.0, 5.0), ..step() }, BoundBy::Queue, "wait: 75 %");
        check(
            &StepResult { samples: samples(1.75, 1.98, 0.0), ..step() },
            BoundBy::ServerCpu,
            "server 1.75 of 2 cores",
        );
        check(&StepResult { samples: samples(1.0, 1.3, 0.0), ..step() }, BoundBy::ServerCpu, "single thread");
        check(
            &StepResult { samples: samples(0.3, 1.98, 0.0), ..step() },
            BoundBy::MachineCpu,
            "4.5 of 10 connections",
        );
        check(&StepResult { samples: samples(0.3, 0.5, 0.9), ..step() }, BoundBy::Disk, "0.90 cores waited");
    }

    #[test]
    fn errors_come_before_speed() {
        let mut failing = step();
        failing.total.n_errors = 4000;
        failing.total.messages.insert("status 503".to_owned(), 4000);
        check(&failing, BoundBy::Errors, "status 503");
    }

    #[test]
    fn the_stack_bounds_what_comes_near_a_bare_server() {
        let bare = BareCeiling {
            rate_per_s: 1000.0,
            request_bytes: 0,
            answer_bytes: 2048,
            connections: 10,
            share: Some(0.9),
        };
        check(&StepResult { bare: Some(bare), ..step() }, BoundBy::Network, "90 % of a bare server");
        let mut delayed = step();
        delayed.total.service.p50_ms = 44.0;
        check(&delayed, BoundBy::Network, "TCP_NODELAY");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [ms(0.5), ms(12.34), ms(1234.0), ms(54_000.0)],
            ["0.50 ms", "12.3 ms", "1234 ms", "54.0 s"]
        );
        assert_eq!([rate(9.5), rate(1234.5), thousands(1_234_567)], ["9.5/s", "1,235/s", "1,234,567"]);
    }
}
