//! Runs scenarios: it measures their steps, observes the server meanwhile, adds verdicts and ceilings, and
//! preserves the results whatever happens.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::oneshot;

use crate::ceiling::{Ceilings, client_ceiling};
use crate::error::BenchError;
use crate::load::record::CutShort;
use crate::load::run::{Live, run_step};
use crate::load::saturation::{Bound, Search, Trial, judge as judge_trial};
use crate::load::{ClientSettings, Flow, Group, Load, Loops, Step, StepRecord, Work};
use crate::machine;
use crate::observe::{Observer, Sample, stage_difference};
use crate::progress::Progress;
use crate::published::Published;
use crate::report;
use crate::result::{Ended, RunResult, SCHEMA, StepKind, StepResult, step_result};
use crate::stop::Stop;
use crate::target::Target;
use crate::verdict::{self, ms, rate};

/// Longest time for work that is counted rather than timed (preparing a million datasets).
pub const COUNTED_WORK_MAX: Duration = Duration::from_secs(12 * 3600);

/// Connections with which the client's own ceiling is measured.
const CLIENT_CEILING_CONNECTIONS: usize = 32;

/// Precision and maximum number of trials of a saturation search.
const SATURATION_PRECISION: f64 = 0.06;
const SATURATION_TRIALS_MAX: u32 = 9;

/// Share of the closed load's throughput at which the search begins.
const FIRST_TRIAL_SHARE: f64 = 0.8;

/// A trial that fails below this share of the closed load's throughput is repeated: another program may have
/// occupied the machine for a moment, and one such moment would halve the result.
const SURPRISE_SHARE: f64 = 0.9;

/// Whether bare servers are measured too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CeilingMode {
    /// After the steps that can be compared with it.
    Measure,
    /// No: the run is shorter, the report has no shares.
    Skip,
}

/// How long steps take and how often they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTiming {
    /// Before the measured window.
    pub warmup: Duration,
    /// The measured window.
    pub measured: Duration,
    /// Runs of each step.
    pub repeats: u32,
}

/// What a runner is made from.
#[derive(Debug)]
pub struct RunnerSetup {
    /// Name of the scenario, as its subcommand.
    pub scenario: String,
    /// What it measures, in a sentence.
    pub title: String,
    /// The server.
    pub target: Arc<Target>,
    /// Its URL as given.
    pub url: String,
    /// What is known of it.
    pub server: String,
    /// How the client works.
    pub settings: ClientSettings,
    /// The source of the server's resource figures.
    pub observer: Observer,
    /// Whether bare servers are measured.
    pub ceiling: CeilingMode,
    /// Length and number of steps.
    pub timing: StepTiming,
    /// Where the report goes.
    pub out: PathBuf,
    /// Ends everything.
    pub stop: Stop,
}

/// A run.
#[derive(Debug)]
pub struct Runner {
    /// The server.
    pub target: Arc<Target>,
    /// How the client works.
    pub settings: ClientSettings,
    /// Length and number of steps.
    pub timing: StepTiming,
    /// Ends everything.
    pub stop: Stop,
    /// The results so far.
    pub result: RunResult,
    /// Where the report goes.
    pub out: PathBuf,
    /// The line on the terminal.
    pub progress: Progress,
    observer: Observer,
    ceiling: CeilingMode,
    ceilings: Ceilings,
    began: Instant,
}

impl Runner {
    /// Begins a run: creates the folder of its report and measures what the client can send.
    pub async fn begin(setup: RunnerSetup) -> Result<Self, BenchError> {
        let write = |source| BenchError::Write { path: setup.out.clone(), source };
        std::fs::create_dir_all(&setup.out).map_err(write)?;
        let started = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
        let mut runner = Self {
            result: RunResult {
                schema: SCHEMA.to_owned(),
                scenario: setup.scenario,
                title: setup.title,
                started,
                took_s: 0.0,
                ended: Ended::Complete,
                url: setup.url,
                server: setup.server,
                machine: machine::this_machine(),
                settings: settings_in_words(&setup.settings, &setup.timing, &setup.observer),
                client_ceiling: None,
                steps: Vec::new(),
                series: Vec::new(),
                tables: Vec::new(),
                notes: Vec::new(),
            },
            target: setup.target,
            settings: setup.settings,
            timing: setup.timing,
            stop: setup.stop,
            out: setup.out,
            progress: Progress::default(),
            observer: setup.observer,
            ceiling: setup.ceiling,
            ceilings: Ceilings::default(),
            began: Instant::now(),
        };
        if runner.ceiling == CeilingMode::Measure {
            let ceiling = client_ceiling(CLIENT_CEILING_CONNECTIONS, &runner.settings, &runner.stop).await?;
            runner.progress.say(&format!(
                "client ceiling: {} on one core of the client ({} in the measurement)",
                rate(ceiling.rate_per_core_s),
                rate(ceiling.rate_per_s)
            ));
            runner.result.client_ceiling = Some(ceiling);
        }
        Ok(runner)
    }

    /// Returns a step of the ordinary length in which every connection sends as soon as it is answered.
    pub fn closed_step<const N: usize>(
        &self,
        name: String,
        labels: [(&str, String); N],
        connections: usize,
        flow: Flow,
    ) -> Step {
        Step {
            name,
            labels: labels.map(|(name, value)| (name.to_owned(), value)).into(),
            warmup: self.timing.warmup,
            measured: self.timing.measured,
            groups: vec![Group {
                name: String::new(),
                load: Load::closed(Loops::UntilEnd),
                connections,
                work: Work::Mix(vec![flow]),
            }],
        }
    }

    /// Measures `step` as often as the timing says and adds the results. Returns the last one's position.
    ///
    /// Errors: the step cannot run, the run was interrupted, or the server is gone; everything measured
    /// before, and of this step until then, is in the result.
    pub async fn measure(
        &mut self,
        step: &Step,
        kind: StepKind,
        published: Option<Published>,
    ) -> Result<usize, BenchError> {
        for repeat in 0..self.timing.repeats {
            let complete = |result: &mut StepResult| {
                result.repeat = repeat;
                result.published.clone_from(&published);
            };
            self.measure_once(step, kind, complete).await?;
        }
        Ok(self.result.steps.len() - 1)
    }

    /// Measures `step` once. `complete` adds what the scenario knows about the result before it is judged.
    /// Returns the result's position. Errors as [`Runner::measure`].
    pub async fn measure_once(
        &mut self,
        step: &Step,
        kind: StepKind,
        complete: impl FnOnce(&mut StepResult),
    ) -> Result<usize, BenchError> {
        let (record, mut result) = self.run_watched(step, kind).await?;
        complete(&mut result);
        self.add(step, &record, result).await?;
        Ok(self.result.steps.len() - 1)
    }

    /// Adds a step that was run with [`Runner::run_watched`]: ceiling, verdict, a line on the terminal.
    async fn add(
        &mut self,
        step: &Step,
        record: &StepRecord,
        mut result: StepResult,
    ) -> Result<(), BenchError> {
        if record.cut_short.is_none() && kind_has_share(result.kind) {
            result.bare = self.bare(&result).await?;
        }
        result.verdict = verdict::judge(&result, self.result.machine.cores);
        self.progress.say(&line(&result));
        self.result.steps.push(result);
        self.keep()?;
        match record.cut_short {
            None => Ok(()),
            Some(CutShort::Interrupted) => Err(BenchError::Interrupted),
            Some(CutShort::ServerGone) => Err(BenchError::ServerGone {
                address: self.target.authority.clone(),
                step: step.name.clone(),
            }),
        }
    }

    async fn bare(&mut self, result: &StepResult) -> Result<Option<crate::result::BareCeiling>, BenchError> {
        if self.ceiling == CeilingMode::Skip || result.total.n_ok == 0 {
            return Ok(None);
        }
        let total = &result.total;
        // Work is measured against the requests that carried it, sent to a server that does none.
        let (request_bytes, answer_bytes, ours_per_s, per_request) = match &result.work {
            Some(work) if 0 < work.n_requests => {
                let mean = |sum: u64| sum as f64 / work.n_requests as f64;
                (mean(work.sent_bytes), 0.0, work.per_s(), mean(work.n))
            }
            _ => (total.request_bytes_mean, total.answer_bytes_mean, result.throughput_per_s, 1.0),
        };
        let (settings, connections) = (&self.settings, result.connections);
        let mut bare =
            self.ceilings.bare(request_bytes, answer_bytes, connections, settings, &self.stop).await?;
        bare.rate_per_s *= per_request;
        bare.share = (bare.rate_per_s > 0.0).then(|| ours_per_s / bare.rate_per_s);
        Ok(Some(bare))
    }

    /// Runs `step` once while observing the server. Neither ceiling nor verdict yet.
    async fn run_watched(
        &mut self,
        step: &Step,
        kind: StepKind,
    ) -> Result<(StepRecord, StepResult), BenchError> {
        if self.stop.is_asked() {
            return Err(BenchError::Interrupted);
        }
        let live = Arc::new(Live::default());
        let line = self.progress.follow(step.name.clone(), 0, Arc::clone(&live));
        let stages_before = self.observer.stages().await;
        let (end, ended) = oneshot::channel();
        let watched_from = Instant::now();
        let sampling = tokio::spawn(self.observer.clone().sample(watched_from, ended));
        let record = run_step(&self.target, step, &self.settings, &self.stop, &live).await;
        line.abort();
        // The receiver is gone only if sampling panicked, which awaiting it reports.
        let _unheard = end.send(());
        let samples = sampling
            .await
            .map_err(|error| BenchError::Thread { what: "sampling", reason: error.to_string() })?;
        let record = record?;
        let mut result = step_result(step, kind, &record, self.settings.threads);
        result.samples = shifted(samples, watched_from, record.window.measured_from);
        result.stages = stage_difference(&stages_before, &self.observer.stages().await);
        Ok((record, result))
    }

    /// Does work that is not measured (preparing, cleaning): runs `step` and returns its record.
    pub async fn work(&mut self, step: &Step, wanted: u64) -> Result<StepRecord, BenchError> {
        let live = Arc::new(Live::default());
        let line = self.progress.follow(step.name.clone(), wanted, Arc::clone(&live));
        let record = run_step(&self.target, step, &self.settings, &self.stop, &live).await;
        line.abort();
        let record = record?;
        match record.cut_short {
            None => Ok(record),
            Some(CutShort::Interrupted) => Err(BenchError::Interrupted),
            Some(CutShort::ServerGone) => Err(BenchError::ServerGone {
                address: self.target.authority.clone(),
                step: step.name.clone(),
            }),
        }
    }

    /// Searches for the highest rate of `step`'s only group that is sustained within `bound`. First its
    /// closed load shows the server's maximum, then open-load trials close in.
    pub async fn saturate(
        &mut self,
        step: &Step,
        bound: &Bound,
        published: Option<Published>,
    ) -> Result<(), BenchError> {
        let closed = Load::Closed { ramp_up: Duration::ZERO, loops: Loops::UntilEnd, think: Duration::ZERO };
        let burst = with_load(step, closed, "as fast as answers come");
        let (record, result) = self.run_watched(&burst, StepKind::Closed).await?;
        self.add(&burst, &record, result).await?;
        let at_full_load = self.result.steps[self.result.steps.len() - 1].verdict.clone();
        let at_most_per_s = record.throughput_per_s();
        let mut search =
            Search::new(at_most_per_s * FIRST_TRIAL_SHARE, SATURATION_PRECISION, SATURATION_TRIALS_MAX);
        let mut best: Option<StepResult> = None;
        while let Some(rate_per_s) = search.next() {
            let rate_per_s = if rate_per_s > 100.0 { rate_per_s.round() } else { rate_per_s };
            let trial = with_load(step, Load::Open { rate_per_s }, &format!("trial {}", rate(rate_per_s)));
            let (mut record, mut result) = self.run_watched(&trial, StepKind::Trial).await?;
            let mut outcome = judge_trial(&record, rate_per_s, bound);
            let is_surprise = outcome == Trial::Missed && rate_per_s < SURPRISE_SHARE * at_most_per_s;
            if is_surprise && record.cut_short.is_none() {
                self.add(&trial, &record, result).await?;
                (record, result) = self.run_watched(&trial, StepKind::Trial).await?;
                outcome = judge_trial(&record, rate_per_s, bound);
            }
            search.tell(rate_per_s, outcome);
            if outcome == Trial::Kept && search.best_per_s() == Some(rate_per_s) {
                best = Some(result.clone());
            }
            self.add(&trial, &record, result).await?;
        }
        let Some(mut best) = best else {
            self.result.notes.push(format!(
                "{}: no rate was kept with p99 below {}",
                step.name,
                ms(bound.p99_ms)
            ));
            return Ok(());
        };
        best.kind = StepKind::Saturation;
        best.name = format!("{}, saturation (p99 below {})", step.name, ms(bound.p99_ms));
        best.labels = with_label(step, "saturation").labels;
        best.published = published;
        best.bare = self.bare(&best).await?;
        best.verdict = at_full_load;
        best.verdict.evidence = format!("at full load: {}", best.verdict.evidence);
        self.progress.say(&line(&best));
        self.result.steps.push(best);
        self.keep()
    }

    /// Adds a remark to the report.
    pub fn note(&mut self, note: String) {
        if self.result.notes.contains(&note) {
            return;
        }
        self.progress.say(&format!("note: {note}"));
        self.result.notes.push(note);
    }

    /// Writes the current `result.json`, so that not even a killed run loses its results.
    fn keep(&mut self) -> Result<(), BenchError> {
        self.result.took_s = self.began.elapsed().as_secs_f64();
        report::write_result(&self.result, &self.out)
    }

    /// Ends the run: records how it ended and writes all reports. Returns the result even if they cannot be
    /// written (a full disk), so that the caller can still print it.
    pub fn finish(mut self, outcome: Result<(), BenchError>) -> Finished {
        self.progress.finish();
        self.result.took_s = self.began.elapsed().as_secs_f64();
        self.result.ended = match &outcome {
            Ok(()) => Ended::Complete,
            Err(BenchError::Interrupted) => Ended::Interrupted,
            Err(error) => Ended::Failed(error.to_string()),
        };
        let written = report::write_all(&self.result, &self.out);
        Finished { result: self.result, outcome: outcome.and(written) }
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Finished {
    /// The results, complete or until the error.
    pub result: RunResult,
    /// What ended it early, or kept its reports from being written.
    pub outcome: Result<(), BenchError>,
}

/// Returns true for steps whose rate the server determined.
fn kind_has_share(kind: StepKind) -> bool {
    matches!(kind, StepKind::Closed | StepKind::Saturation)
}

/// `step` with another load in its groups, for the saturation search.
fn with_load(step: &Step, load: Load, what: &str) -> Step {
    let groups = step.groups.iter().map(|group| Group { load, ..group.clone() }).collect();
    let mut changed = with_label(step, what);
    changed.name = format!("{}, {what}", step.name);
    changed.groups = groups;
    changed
}

fn with_label(step: &Step, load: &str) -> Step {
    let mut labelled = step.clone();
    labelled.labels.insert("load".to_owned(), load.to_owned());
    labelled
}

/// Times of samples, counted from `zero` instead of `from`.
fn shifted(mut samples: Vec<Sample>, from: Instant, zero: Instant) -> Vec<Sample> {
    let shift_s = zero.saturating_duration_since(from).as_secs_f64();
    for sample in &mut samples {
        sample.at_s -= shift_s;
    }
    samples
}

/// Formats a step in one line.
fn line(step: &StepResult) -> String {
    let total = &step.total;
    let errors = total.n_errors + total.n_unsent;
    format!(
        "{}: {}{}; bound by {}: {}",
        step.name,
        verdict::speed(step),
        if errors > 0 {
            format!(", {} errors, {} unsent", total.n_errors, total.n_unsent)
        } else {
            String::new()
        },
        step.verdict.bound_by.words(),
        step.verdict.evidence
    )
}

fn settings_in_words(
    settings: &ClientSettings,
    timing: &StepTiming,
    observer: &Observer,
) -> std::collections::BTreeMap<String, String> {
    let mut words = std::collections::BTreeMap::new();
    let mut put = |name: &str, value: String| words.insert(name.to_owned(), value);
    put("client threads", settings.threads.to_string());
    put("time-out", format!("{:?}", settings.timeout));
    put("late from", format!("{:?}", settings.late));
    put("seed", settings.seed.to_string());
    put("warm-up", format!("{:?}", timing.warmup));
    put("measured", format!("{:?}", timing.measured));
    put("repeats", timing.repeats.to_string());
    let pids: Vec<String> = observer.pids.iter().map(ToString::to_string).collect();
    put("server processes watched", if pids.is_empty() { "none".to_owned() } else { pids.join(", ") });
    let page = observer.metrics.as_ref().map_or("none".to_owned(), |page| page.target.url(&page.path));
    put("metrics page", page);
    words
}
