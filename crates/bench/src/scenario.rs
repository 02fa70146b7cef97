//! One scenario, one file: a published report that can be run again. Each has its `Args` (with [`CommonArgs`]
//! flattened in) and a `run` that prepares data through the server's public interface, passes
//! [`Step`](crate::load::Step)s to a [`Runner`], and cleans up.
//!
//! To add one: write `scenario/<name>.rs` after the pattern of `scicat_reads.rs`, put its published figures into
//! `published.rs` with their conditions, add one variant to `Command` in `cli.rs`, and describe it in
//! `docs/bench.md`. Dependent requests (create, then upload into the result) are a
//! [`Script`](crate::load::Script) in closed load; concurrent bulk and interactive load are two groups in one
//! step.

pub mod conclave_load;
pub mod conclave_pages;
pub mod dataverse_deposit;
pub mod folio;
pub mod folio_desk;
pub mod folio_import;
pub mod folio_search;
pub mod http;
pub mod labe;
pub mod labe_data;
pub mod scicat;
pub mod scicat_ingest;
pub mod scicat_origdatablocks;
pub mod scicat_reads;
pub mod search;
mod token;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::error::BenchError;
use crate::load::ClientSettings;
use crate::observe::{MetricsPage, Observer, process};
use crate::runner::{CeilingMode, Runner, RunnerSetup, StepTiming};
use crate::stop::Stop;
use crate::target::{Reach, Target};

/// How much of a published report is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// A minute: does it work, and roughly how fast.
    #[default]
    Quick,
    /// The published conditions.
    Seed,
    /// The published conditions with long steps, three times each.
    Full,
}

/// Options of every scenario.
#[derive(Clone, Debug, Args)]
pub struct CommonArgs {
    /// The server, for example `http://127.0.0.1:3000`.
    #[arg(long)]
    pub url: String,
    /// How much to run.
    #[arg(long, value_enum, default_value_t)]
    pub scale: Scale,
    /// Folder for the report; created if needed. Default: `bench-<scenario>-<time>`.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Allow a server on another machine. Only with the consent of its operator.
    #[arg(long)]
    pub allow_remote: bool,
    /// Process of the server to monitor; several for a server and its database. Default: the one that listens
    /// at the URL's port on this machine.
    #[arg(long = "pid")]
    pub pids: Vec<u32>,
    /// The server's metrics page in the Prometheus text format. Default: `/metrics` of the URL, if it answers.
    #[arg(long)]
    pub metrics_url: Option<String>,
    /// Sender threads.
    #[arg(long, default_value_t = 1)]
    pub client_threads: usize,
    /// Limit for one exchange, in seconds.
    #[arg(long)]
    pub timeout_s: Option<f64>,
    /// Requests sent later than this after they were due are counted as late, in milliseconds.
    #[arg(long, default_value_t = 5.0)]
    pub late_ms: f64,
    /// Length of the measured part of each step, in seconds. Default: by scale.
    #[arg(long)]
    pub step_s: Option<f64>,
    /// Length of the warm-up before it, in seconds. Default: by scale.
    #[arg(long)]
    pub warmup_s: Option<f64>,
    /// How often each step runs. Default: by scale.
    #[arg(long)]
    pub repeats: Option<u32>,
    /// Seed of the generated data.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Do not measure the client's ceiling and bare servers in addition to the steps.
    #[arg(long)]
    pub no_ceiling: bool,
    /// What is measured, for the heading of the report (product, version, settings).
    #[arg(long, default_value = "")]
    pub server_note: String,
}

impl CommonArgs {
    /// Begins a run of `scenario` at the server of the options.
    pub async fn begin(&self, scenario: &str, title: &str, stop: &Stop) -> Result<Runner, BenchError> {
        let reach = if self.allow_remote { Reach::AnyHost } else { Reach::LoopbackOnly };
        let target = Arc::new(Target::parse(&self.url, reach)?);
        let timing = self.timing()?;
        let observer = self.observer(&target, reach).await?;
        let mut server = self.server_note.clone();
        if let Some(commit) = crate::machine::commit_of_working_directory() {
            let space = if server.is_empty() { "" } else { "; " };
            server += &format!("{space}commit of the working directory: {commit}");
        }
        Runner::begin(RunnerSetup {
            scenario: scenario.to_owned(),
            title: title.to_owned(),
            url: self.url.clone(),
            server,
            settings: ClientSettings {
                threads: self.client_threads.max(1),
                timeout: seconds("--timeout-s", self.timeout_s.unwrap_or(60.0))?,
                late: seconds("--late-ms", self.late_ms / 1e3)?,
                seed: self.seed,
            },
            observer,
            ceiling: if self.no_ceiling { CeilingMode::Skip } else { CeilingMode::Measure },
            timing,
            out: self.out.clone().unwrap_or_else(|| default_folder(scenario)),
            stop: stop.clone(),
            target,
        })
        .await
    }

    fn timing(&self) -> Result<StepTiming, BenchError> {
        let (warmup_s, measured_s, repeats) = match self.scale {
            Scale::Quick => (1.0, 3.0, 1),
            Scale::Seed => (2.0, 10.0, 1),
            Scale::Full => (5.0, 60.0, 3),
        };
        let repeats = self.repeats.unwrap_or(repeats);
        let measured = seconds("--step-s", self.step_s.unwrap_or(measured_s))?;
        if repeats == 0 || measured.is_zero() {
            return Err(BenchError::BadOption {
                option: "--repeats / --step-s",
                value: format!("{repeats} / {measured:?}"),
                reason: "nothing would be measured".to_owned(),
            });
        }
        Ok(StepTiming {
            warmup: seconds("--warmup-s", self.warmup_s.unwrap_or(warmup_s))?,
            measured,
            repeats,
        })
    }

    async fn observer(&self, target: &Arc<Target>, reach: Reach) -> Result<Observer, BenchError> {
        let mut pids = self.pids.clone();
        for pid in &pids {
            if process::usage(*pid).is_none() {
                return Err(BenchError::BadOption {
                    option: "--pid",
                    value: pid.to_string(),
                    reason: "there is no such process on this machine".to_owned(),
                });
            }
        }
        if pids.is_empty() && target.address.ip().to_canonical().is_loopback() {
            pids.extend(process::listener(target.address));
        }
        let page = self.metrics_page(target, reach)?;
        let answers = page.read().await.is_some();
        if self.metrics_url.is_some() && !answers {
            return Err(BenchError::OtherDialect {
                url: page.target.url(&page.path),
                expected: "a metrics page in the Prometheus text format".to_owned(),
                found: "no readable page".to_owned(),
            });
        }
        Ok(Observer { pids, metrics: answers.then_some(page) })
    }

    fn metrics_page(&self, target: &Arc<Target>, reach: Reach) -> Result<MetricsPage, BenchError> {
        match &self.metrics_url {
            None => Ok(MetricsPage { target: Arc::clone(target), path: "/metrics".to_owned() }),
            Some(url) => {
                let mut page = Target::parse(url, reach)?;
                let path = std::mem::take(&mut page.base_path);
                Ok(MetricsPage {
                    target: Arc::new(page),
                    path: if path.is_empty() { "/".to_owned() } else { path },
                })
            }
        }
    }
}

/// Returns a duration from an option, which must be a number from 0 to a week.
pub fn seconds(option: &'static str, value_s: f64) -> Result<Duration, BenchError> {
    const WEEK_S: f64 = 7.0 * 86_400.0;
    if (0.0..=WEEK_S).contains(&value_s) {
        return Ok(Duration::from_secs_f64(value_s));
    }
    Err(BenchError::BadOption {
        option,
        value: value_s.to_string(),
        reason: "a time is at least 0 and at most a week".to_owned(),
    })
}

/// Returns a folder in the working directory, named by the time, so that no run overwrites another.
fn default_folder(scenario: &str) -> PathBuf {
    let now = time::OffsetDateTime::now_utc();
    PathBuf::from(format!(
        "bench-{scenario}-{:04}{:02}{:02}-{:02}{:02}{:02}",
        now.year(),
        u8::from(now.month()),
        now.day(),
        now.hour(),
        now.minute(),
        now.second()
    ))
}
