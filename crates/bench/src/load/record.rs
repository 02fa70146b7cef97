//! The results: counters, histograms, a line per second, the slowest requests. Each client thread has its own
//! [`FlowRecord`]s; they are added up when the step is over.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::client::{Answer, Failure};

/// Number of slowest requests kept per flow.
pub const SLOWEST_KEPT: usize = 100;

/// Latencies above this are recorded as this, in microseconds: one hour.
const LATENCY_US_MAX: u64 = 3_600_000_000;

/// Number of distinct failure messages kept per flow.
const MESSAGES_KEPT: usize = 20;

/// The parts of a step's time.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// First request.
    pub start: Instant,
    /// Requests due (open) or sent (closed) from here on are measured.
    pub measured_from: Instant,
    /// No request is sent from here on.
    pub end: Instant,
}

/// One request and its outcome.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// When it was due (open) or sent (closed): latency counts from here.
    pub intended: Instant,
    /// When it was sent.
    pub sent: Instant,
    /// When the last byte of the answer arrived, or the failure occurred.
    pub done: Instant,
    /// Request target.
    pub path: &'a str,
    /// Length of the request's body.
    pub request_bytes: u64,
    /// The answer, or the failure.
    pub outcome: &'a Result<Answer, Failure>,
}

/// One second of one flow, by the time of the answer.
#[derive(Clone, Debug)]
pub struct Second {
    /// Successful answers.
    pub n_ok: u64,
    /// Failures of every kind.
    pub n_errors: u64,
    /// Latency of the successful, in microseconds, two digits.
    pub latency_us: Histogram<u32>,
}

/// One of the slowest requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slow {
    /// From the intended time, in microseconds.
    pub latency_us: u64,
    /// From the sending, in microseconds.
    pub service_us: u64,
    /// When it was due, in microseconds after the start of the measured window.
    pub at_us: u64,
    /// Request target.
    pub path: String,
    /// HTTP status, 0 without an answer.
    pub status: u16,
    /// `Server-Timing` of the answer; empty if the server does not send it.
    pub server_timing: String,
}

/// The results of one flow in the measured part of a step.
#[derive(Clone, Debug)]
pub struct FlowRecord {
    /// Name of the flow, with its group's.
    pub name: String,
    /// Latency from the intended time, in microseconds, of successes; time-outs and unsent requests are
    /// included at the age they had reached, which is a lower bound.
    pub latency_us: Histogram<u64>,
    /// Time from sending to the last byte, in microseconds, of the successes.
    pub service_us: Histogram<u64>,
    /// Time from sending to the head of the answer, in microseconds, of the successes.
    pub head_us: Histogram<u64>,
    /// Successful answers to requests of the measured window.
    pub n_ok: u64,
    /// Successful answers that arrived inside the measured window: what throughput counts.
    pub n_ok_in_window: u64,
    /// Requests of the warm-up.
    pub n_warmup: u64,
    /// Answers by failure status.
    pub n_status: BTreeMap<u16, u64>,
    /// No connection.
    pub n_connect_errors: u64,
    /// Connections lost in the middle.
    pub n_lost: u64,
    /// Time-outs.
    pub n_timeouts: u64,
    /// Due but never sent: no connection was free until the end.
    pub n_unsent: u64,
    /// Sent later than allowed after they were due.
    pub n_late: u64,
    /// Of the late ones, those for which a connection was free: the client's own delay, not the server's.
    pub n_late_by_client: u64,
    /// How long after the due time an idle connection got to send, in microseconds: the client's delay.
    pub client_lag_us: Histogram<u64>,
    /// Bytes of answer bodies, of successes.
    pub answer_bytes: u64,
    /// Bytes of request bodies, of all requests answered.
    pub request_bytes: u64,
    /// By second after the start of the measured window.
    pub seconds: BTreeMap<u64, Second>,
    /// Distinct failures with their number.
    pub messages: BTreeMap<String, u64>,
    slowest: BinaryHeap<Reverse<Slow>>,
}

/// Returns an empty histogram of microseconds with three significant digits.
fn histogram_us() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("constant bounds are valid")
}

/// Returns `duration` in whole microseconds, at most the maximum of the histograms.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(LATENCY_US_MAX).min(LATENCY_US_MAX)
}

impl FlowRecord {
    /// Creates an empty record.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            latency_us: histogram_us(),
            service_us: histogram_us(),
            head_us: histogram_us(),
            n_ok: 0,
            n_ok_in_window: 0,
            n_warmup: 0,
            n_status: BTreeMap::new(),
            n_connect_errors: 0,
            n_lost: 0,
            n_timeouts: 0,
            n_unsent: 0,
            n_late: 0,
            n_late_by_client: 0,
            client_lag_us: histogram_us(),
            answer_bytes: 0,
            request_bytes: 0,
            seconds: BTreeMap::new(),
            messages: BTreeMap::new(),
            slowest: BinaryHeap::new(),
        }
    }

    /// Adds one exchange.
    pub fn record(&mut self, window: &Window, exchange: &Exchange<'_>) {
        let success = matches!(exchange.outcome, Ok(answer) if answer.is_success());
        if success && exchange.done >= window.measured_from && exchange.done < window.end {
            self.n_ok_in_window += 1;
        }
        if exchange.intended < window.measured_from {
            self.n_warmup += 1;
            return;
        }
        let latency_us = micros(exchange.done.saturating_duration_since(exchange.intended));
        let service_us = micros(exchange.done.saturating_duration_since(exchange.sent));
        self.request_bytes += exchange.request_bytes;
        match exchange.outcome {
            Ok(answer) if success => {
                self.n_ok += 1;
                self.answer_bytes += answer.body_bytes;
                self.latency_us.saturating_record(latency_us);
                self.service_us.saturating_record(service_us);
                self.head_us.saturating_record(micros(answer.head_after));
            }
            Ok(answer) => {
                *self.n_status.entry(answer.status).or_default() += 1;
                self.note(answer.excerpt());
            }
            Err(failure) => self.record_failure(failure, latency_us),
        }
        let after = exchange.done.saturating_duration_since(window.measured_from);
        self.record_second(after.as_secs(), success, latency_us);
        self.keep_if_slow(window, exchange, latency_us, service_us);
    }

    fn record_failure(&mut self, failure: &Failure, latency_us: u64) {
        match failure {
            Failure::Connect(_) => self.n_connect_errors += 1,
            Failure::Lost(_) | Failure::BadRequest(_) => self.n_lost += 1,
            Failure::TimedOut(_) => {
                self.n_timeouts += 1;
                self.latency_us.saturating_record(latency_us);
            }
        }
        self.note(failure.to_string());
    }

    fn note(&mut self, message: String) {
        if self.messages.len() < MESSAGES_KEPT || self.messages.contains_key(&message) {
            *self.messages.entry(message).or_default() += 1;
        }
    }

    fn record_second(&mut self, second: u64, success: bool, latency_us: u64) {
        let entry = self.seconds.entry(second).or_insert_with(|| Second {
            n_ok: 0,
            n_errors: 0,
            latency_us: Histogram::new(2).expect("two digits are valid"),
        });
        if success {
            entry.n_ok += 1;
            // Below the bound of one hour, to which the histogram grows.
            entry.latency_us.record(latency_us).expect("a histogram that grows takes every value");
        } else {
            entry.n_errors += 1;
        }
    }

    fn keep_if_slow(&mut self, window: &Window, exchange: &Exchange<'_>, latency_us: u64, service_us: u64) {
        let fastest_kept = self.slowest.peek().map_or(0, |kept| kept.0.latency_us);
        if self.slowest.len() >= SLOWEST_KEPT && latency_us <= fastest_kept {
            return;
        }
        let timing = exchange.outcome.as_ref().ok().and_then(|answer| answer.headers.get("server-timing"));
        self.slowest.push(Reverse(Slow {
            latency_us,
            service_us,
            at_us: micros(exchange.intended.saturating_duration_since(window.measured_from)),
            path: exchange.path.to_owned(),
            status: exchange.outcome.as_ref().map_or(0, |answer| answer.status),
            server_timing: timing.and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned(),
        }));
        if self.slowest.len() > SLOWEST_KEPT {
            self.slowest.pop();
        }
    }

    /// Counts a connection that could not be opened: no request was taken for it.
    pub fn record_connect_failure(&mut self, failure: &Failure) {
        self.n_connect_errors += 1;
        self.note(failure.to_string());
    }

    /// Records how late an open-load request is sent: `lag` after its due time, by a connection that was idle
    /// at that time or not.
    pub fn record_lag(&mut self, lag: Duration, late: Duration, connection: AtDueTime) {
        if connection == AtDueTime::Idle {
            self.client_lag_us.saturating_record(micros(lag));
        }
        if lag > late {
            self.n_late += 1;
            if connection == AtDueTime::Idle {
                self.n_late_by_client += 1;
            }
        }
    }

    /// Counts a request that was due but never sent, at the age it had at the end.
    pub fn record_unsent(&mut self, window: &Window, due: Instant) {
        if due < window.measured_from {
            self.n_warmup += 1;
            return;
        }
        self.n_unsent += 1;
        self.latency_us.saturating_record(micros(window.end.saturating_duration_since(due)));
    }

    /// Adds the results of another thread for the same flow.
    pub fn add(&mut self, other: Self) {
        self.latency_us += &other.latency_us;
        self.service_us += &other.service_us;
        self.head_us += &other.head_us;
        self.client_lag_us += &other.client_lag_us;
        self.n_ok += other.n_ok;
        self.n_ok_in_window += other.n_ok_in_window;
        self.n_warmup += other.n_warmup;
        self.n_connect_errors += other.n_connect_errors;
        self.n_lost += other.n_lost;
        self.n_timeouts += other.n_timeouts;
        self.n_unsent += other.n_unsent;
        self.n_late += other.n_late;
        self.n_late_by_client += other.n_late_by_client;
        self.answer_bytes += other.answer_bytes;
        self.request_bytes += other.request_bytes;
        for (status, n) in other.n_status {
            *self.n_status.entry(status).or_default() += n;
        }
        for (message, n) in other.messages {
            *self.messages.entry(message).or_default() += n;
        }
        for (second, theirs) in other.seconds {
            let Some(ours) = self.seconds.get_mut(&second) else {
                self.seconds.insert(second, theirs);
                continue;
            };
            ours.n_ok += theirs.n_ok;
            ours.n_errors += theirs.n_errors;
            ours.latency_us += &theirs.latency_us;
        }
        self.slowest.extend(other.slowest);
        while self.slowest.len() > SLOWEST_KEPT {
            self.slowest.pop();
        }
    }

    /// Returns the number of failures of every kind, without unsent requests.
    pub fn n_errors(&self) -> u64 {
        self.n_status.values().sum::<u64>() + self.n_connect_errors + self.n_lost + self.n_timeouts
    }

    /// Returns the slowest requests, slowest first.
    pub fn slowest(&self) -> Vec<Slow> {
        let mut slowest: Vec<Slow> = self.slowest.iter().map(|it| it.0.clone()).collect();
        slowest.sort_by(|a, b| b.cmp(a));
        slowest
    }
}

/// Whether the connection that sends a request was free when it fell due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtDueTime {
    /// It waited for work: a delay is the client's.
    Idle,
    /// It was busy with an earlier request: a delay is the server's.
    Busy,
}

/// The results of one step.
#[derive(Debug)]
pub struct StepRecord {
    /// The step's actual time.
    pub window: Window,
    /// Per flow, in the order of the groups and their flows.
    pub flows: Vec<FlowRecord>,
    /// Why the step ended before its time, if it did.
    pub cut_short: Option<CutShort>,
    /// CPU time of the client's threads in the measured window, in seconds.
    pub client_cpu_s: f64,
}

impl StepRecord {
    /// Length of the measured window in seconds; never zero.
    pub fn measured_s(&self) -> f64 {
        self.window.end.saturating_duration_since(self.window.measured_from).as_secs_f64().max(1e-6)
    }

    /// Returns the successful answers per second in the measured window, all flows together.
    pub fn throughput_per_s(&self) -> f64 {
        self.flows.iter().map(|flow| flow.n_ok_in_window).sum::<u64>() as f64 / self.measured_s()
    }
}

/// Why a step ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutShort {
    /// Ctrl-C.
    Interrupted,
    /// The server no longer accepts connections.
    ServerGone,
}
