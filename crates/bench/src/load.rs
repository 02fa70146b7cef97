//! The load engine: what to send ([`Step`], [`Group`], [`Flow`]), when to send it ([`Load`]), and the results
//! ([`StepRecord`]).
//!
//! Open load follows a timetable that the server cannot influence: the k-th request is due at `start + k /
//! rate`, and its latency counts from then, even if it had to wait for a free connection (otherwise a stalled
//! server would slow the client down and so hide its own queue, the "coordinated omission"). Closed load is a
//! number of users who wait for each answer; its latency counts from the sending, and its throughput is the
//! result.

pub mod pace;
pub mod record;
pub mod run;
pub mod saturation;
mod worker;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use crate::client::{Answer, Request};
use crate::error::BenchError;
pub use record::{FlowRecord, Slow, StepRecord};
pub use worker::User;

/// When a group sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// At a constant rate, whatever the server does.
    Open {
        /// Requests per second.
        rate_per_s: f64,
    },
    /// As many users as the group has connections, each waiting for its answer.
    Closed {
        /// The users start distributed over this time.
        ramp_up: Duration,
        /// When a user stops.
        loops: Loops,
        /// Pause of a user after each answer (of a script: after each pass).
        think: Duration,
    },
}

impl Load {
    /// Returns users that start together and send again as soon as they are answered.
    pub fn closed(loops: Loops) -> Self {
        Self::Closed { ramp_up: Duration::ZERO, loops, think: Duration::ZERO }
    }
}

/// How often the users of a closed load repeat their work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    /// Until the step's time is over.
    UntilEnd,
    /// This often for each user; the step ends when all are done.
    PerUser(u64),
    /// This often in total; the step ends when all are done.
    Together(u64),
}

/// Makes the n-th request of a flow. Called outside the measured time.
pub type RequestSource = Arc<dyn Fn(u64) -> Request + Send + Sync>;

/// Receives an answer with its body, after the clock was stopped. `n` is that of the request source.
pub type AnswerSink = Arc<dyn Fn(u64, &Answer) + Send + Sync>;

/// One kind of request within a group.
#[derive(Clone)]
pub struct Flow {
    /// Name in the report.
    pub name: String,
    /// Share of the group's requests, relative to the other flows.
    pub share: u32,
    /// The requests.
    pub source: RequestSource,
    /// Receives the answers, if wanted; keeps their bodies in memory meanwhile.
    pub sink: Option<AnswerSink>,
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("name", &self.name).field("share", &self.share).finish_non_exhaustive()
    }
}

impl Flow {
    /// Creates a flow that is the only one of its group.
    pub fn only(name: &str, source: RequestSource) -> Self {
        Self { name: name.to_owned(), share: 1, source, sink: None }
    }
}

/// The work of one user in one pass, if requests depend on earlier answers (create, then upload into the
/// result). `user` sends and records; `pass` counts from 0 for each user.
pub type ScriptBody =
    Arc<dyn for<'a> Fn(&'a mut User, u64) -> LocalBoxFuture<'a, Result<(), ()>> + Send + Sync>;

/// A sequence of named requests that one user sends in order.
#[derive(Clone)]
pub struct Script {
    /// Names of the requests; [`User::send`] takes the position in this list.
    pub flows: Vec<String>,
    /// The sequence. `Err(())` ends the pass; the failed request was recorded by [`User::send`].
    pub body: ScriptBody,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("flows", &self.flows).finish_non_exhaustive()
    }
}

/// What a group sends.
#[derive(Clone, Debug)]
pub enum Work {
    /// Independent requests, mixed by their shares.
    Mix(Vec<Flow>),
    /// Dependent requests; needs [`Load::Closed`].
    Script(Script),
}

impl Work {
    /// Returns the names of its flows, in the order of the records.
    pub fn flow_names(&self) -> Vec<String> {
        match self {
            Self::Mix(flows) => flows.iter().map(|flow| flow.name.clone()).collect(),
            Self::Script(script) => script.flows.clone(),
        }
    }
}

/// Connections that share a load and a kind of work. Groups of one step run concurrently: bulk and
/// interactive load are two groups.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name in the report; empty when the step has one group.
    pub name: String,
    /// When it sends.
    pub load: Load,
    /// Its connections; in closed load, its users.
    pub connections: usize,
    /// What it sends.
    pub work: Work,
}

/// One measurement under constant conditions.
#[derive(Clone, Debug)]
pub struct Step {
    /// Name in the report and in messages.
    pub name: String,
    /// The conditions (`datasets=1000`, `rate=100`): what `compare` matches steps by.
    pub labels: BTreeMap<String, String>,
    /// Time before the measurement starts, under the same load; its answers are counted separately.
    pub warmup: Duration,
    /// Time that is measured. A step of [`Loops::PerUser`] or [`Loops::Together`] ends when its work is done;
    /// this is then the longest it may take.
    pub measured: Duration,
    /// The groups that send.
    pub groups: Vec<Group>,
}

/// How the client works, the same for all steps of a run.
#[derive(Clone, Copy, Debug)]
pub struct ClientSettings {
    /// Sender threads; each has its own event loop and its part of the connections.
    pub threads: usize,
    /// Limit for one exchange.
    pub timeout: Duration,
    /// An open-load request counts as sent late beyond this.
    pub late: Duration,
    /// Seeds the choice between flows.
    pub seed: u64,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self { threads: 1, timeout: Duration::from_secs(60), late: Duration::from_millis(5), seed: 1 }
    }
}

/// Refuses steps that cannot be run, before anything is sent.
pub fn check_step(step: &Step, settings: &ClientSettings) -> Result<(), BenchError> {
    let wrong = |option, value: String, reason: &str| {
        Err(BenchError::BadOption { option, value, reason: format!("{reason} (step {:?})", step.name) })
    };
    for group in &step.groups {
        if group.connections == 0 || settings.threads == 0 {
            return wrong("--connections", group.connections.to_string(), "at least one is needed");
        }
        match (&group.work, group.load) {
            (Work::Script(_), Load::Open { .. }) => {
                return wrong("--rate", String::new(), "a sequence of dependent requests has users, no rate");
            }
            (_, Load::Open { rate_per_s }) if !(rate_per_s > 0.0 && rate_per_s <= pace::RATE_PER_S_MAX) => {
                return wrong("--rate", rate_per_s.to_string(), "a rate is above 0 and at most 10,000,000/s");
            }
            (Work::Mix(flows), _) if flows.iter().map(|flow| u64::from(flow.share)).sum::<u64>() == 0 => {
                return wrong("--flow", String::new(), "the shares add up to nothing");
            }
            _ => {}
        }
    }
    check_open_files(step)
}

/// Each connection is an open file; the limit is checked before the step, not hit in its middle.
fn check_open_files(step: &Step) -> Result<(), BenchError> {
    /// Files that this process has open besides its connections: its own logs, epoll, the bare server.
    const OTHER_FILES: usize = 64;
    let wanted: usize = step.groups.iter().map(|group| group.connections).sum();
    // The bare server measured after the step is in this process: it holds the other ends.
    let needed = wanted.saturating_mul(2).saturating_add(OTHER_FILES);
    let Ok(limits) = std::fs::read_to_string("/proc/self/limits") else {
        return Ok(()); // Not Linux: the operating system will report it.
    };
    let limit = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .and_then(|line| line.split_whitespace().nth(3))
        .and_then(|soft| soft.parse().ok())
        .unwrap_or(usize::MAX);
    if needed > limit {
        return Err(BenchError::OpenFiles { wanted, needed, limit });
    }
    Ok(())
}
