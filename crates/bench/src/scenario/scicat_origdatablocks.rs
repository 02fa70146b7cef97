//! `scicat-origdatablocks`: registers the files of a dataset. Measures how long a block of 1,000 to 1,000,000
//! files takes, and whether the n-th block of a dataset costs what the first did.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use http::Method;
use serde_json::Value;

use super::scicat::{ScicatArgs, Site, clean_after, dataset_path};
use super::{CommonArgs, Scale};
use crate::client::Request;
use crate::error::BenchError;
use crate::generate::datasets::BASE_FIELDS;
use crate::generate::files::block;
use crate::load::{Flow, Group, Load, Loops, Script, Step, Work};
use crate::published;
use crate::result::{RunResult, Series, StepKind, StepResult};
use crate::runner::{COUNTED_WORK_MAX, Finished, Runner};
use crate::stop::Stop;
use crate::verdict::{ms, thousands};

/// Limit for one block, unless given: the published server took 86 s.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(900);

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct ScicatOrigdatablocksArgs {
    /// Server, scale and report.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Accounts.
    #[command(flatten)]
    pub scicat: ScicatArgs,
    /// Numbers of files in one block. Default: by scale, 1000,10000 or 1000,10000,75000,1000000.
    #[arg(long, value_delimiter = ',')]
    pub files: Vec<u64>,
    /// Blocks of the second part, one after the other into one dataset. Default: by scale, 50, 200 or 1000.
    #[arg(long)]
    pub blocks: Option<u64>,
    /// Files of each of these.
    #[arg(long, default_value_t = 1000)]
    pub files_per_block: u64,
}

impl ScicatOrigdatablocksArgs {
    fn files(&self) -> Vec<u64> {
        match (self.files.is_empty(), self.common.scale) {
            (false, _) => self.files.clone(),
            (true, Scale::Quick) => vec![1000, 10_000],
            (true, Scale::Seed | Scale::Full) => vec![1000, 10_000, 75_000, 1_000_000],
        }
    }

    fn blocks(&self) -> u64 {
        self.blocks.unwrap_or(match self.common.scale {
            Scale::Quick => 50,
            Scale::Seed => 200,
            Scale::Full => 1000,
        })
    }
}

/// Runs the scenario and writes its report.
pub async fn run(args: &ScicatOrigdatablocksArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let title = "SciCat: registering the files of a dataset in blocks";
    let mut runner = args.common.begin("scicat-origdatablocks", title, stop).await?;
    if args.common.timeout_s.is_none() {
        runner.settings.timeout = BLOCK_TIMEOUT;
    }
    let outcome = run_on(args, &mut runner).await;
    Ok(runner.finish(outcome))
}

async fn run_on(args: &ScicatOrigdatablocksArgs, runner: &mut Runner) -> Result<(), BenchError> {
    let mut site = Site::begin(runner, &args.scicat, BASE_FIELDS).await?;
    let outcome = measure(args, runner, &mut site).await;
    clean_after(runner, &mut site, outcome).await
}

async fn measure(
    args: &ScicatOrigdatablocksArgs,
    runner: &mut Runner,
    site: &mut Site,
) -> Result<(), BenchError> {
    let repeats = std::mem::replace(&mut runner.timing.repeats, 1);
    for n_files in args.files() {
        for repeat in 0..repeats {
            measure_block(runner, site, n_files, repeat).await?;
        }
    }
    measure_blocks(args, runner, site).await?;
    let alone = block_series(&runner.result);
    runner.result.series.push(alone);
    Ok(())
}

/// Measures one block of `n_files` in a separate dataset.
async fn measure_block(
    runner: &mut Runner,
    site: &mut Site,
    n_files: u64,
    repeat: u32,
) -> Result<(), BenchError> {
    let pid = site.create_one(n_files + u64::from(repeat)).await?;
    site.paths.push(site.session.path(&dataset_path(&pid)));
    let (body, _size_bytes) = block(&pid, site.seed, 0, n_files);
    let (headers, path) = (site.session.headers(), site.session.path("/api/v3/origdatablocks"));
    let flow =
        Flow::only("create block", Arc::new(move |_| Request::post(path.clone(), &headers, body.clone())));
    let step = one_user(
        format!("one block of {} files", thousands(n_files)),
        [("files", n_files.to_string()), ("load", "one block".to_owned())],
        Work::Mix(vec![flow]),
    );
    let index = runner.measure(&step, StepKind::Closed, published::scicat_block(n_files)).await?;
    runner.result.steps[index].repeat = repeat;
    if runner.result.steps[index].total.n_ok == 1 {
        check_count(runner, site, &pid, n_files).await?;
    }
    Ok(())
}

/// Measures many blocks of one dataset, one after the other: each with its own time.
async fn measure_blocks(
    args: &ScicatOrigdatablocksArgs,
    runner: &mut Runner,
    site: &mut Site,
) -> Result<(), BenchError> {
    let (n_blocks, n_files, seed) = (args.blocks(), args.files_per_block, site.seed);
    if n_blocks == 0 {
        return Ok(());
    }
    let pid = site.create_one(0).await?;
    site.paths.push(site.session.path(&dataset_path(&pid)));
    let (headers, path) = (site.session.headers(), site.session.path("/api/v3/origdatablocks"));
    let times: Arc<Mutex<Vec<[f64; 2]>>> = Arc::default();
    let script = Script {
        flows: vec!["create block".to_owned()],
        body: {
            let (times, pid) = (Arc::clone(&times), pid.clone());
            Arc::new(move |user, pass| {
                let (body, _size_bytes) = block(&pid, seed, pass * n_files, n_files);
                let request = Request::post(path.clone(), &headers, body);
                let times = Arc::clone(&times);
                Box::pin(async move {
                    let sent = Instant::now();
                    user.send(0, request).await?;
                    let took_ms = sent.elapsed().as_secs_f64() * 1e3;
                    times.lock().unwrap_or_else(PoisonError::into_inner).push([pass as f64 + 1.0, took_ms]);
                    Ok(())
                })
            })
        },
    };
    let mut step = one_user(
        format!("{} blocks of {} files into one dataset", thousands(n_blocks), thousands(n_files)),
        [("files", n_files.to_string()), ("load", format!("{n_blocks} blocks in turn"))],
        Work::Script(script),
    );
    for group in &mut step.groups {
        let loops = Loops::PerUser(n_blocks);
        group.load = Load::closed(loops);
    }
    let outcome = runner.measure(&step, StepKind::Closed, None).await;
    let points = std::mem::take(&mut *times.lock().unwrap_or_else(PoisonError::into_inner));
    let n_made = points.len() as u64;
    runner.result.series.push(nth_block_series(points, n_files));
    outcome?;
    check_count(runner, site, &pid, n_made * n_files).await
}

fn one_user(name: String, labels: [(&str, String); 2], work: Work) -> Step {
    Step {
        name,
        labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        warmup: Duration::ZERO,
        measured: COUNTED_WORK_MAX,
        groups: vec![Group {
            name: String::new(),
            load: Load::closed(Loops::PerUser(1)),
            connections: 1,
            work,
        }],
    }
}

/// Checks that the dataset counts the registered files: a fast server that miscounts is not fast.
async fn check_count(runner: &mut Runner, site: &Site, pid: &str, wanted: u64) -> Result<(), BenchError> {
    let answer = site.session.send(Method::GET, &dataset_path(pid), None).await?;
    let counted =
        serde_json::from_slice::<Value>(&answer.body).ok().and_then(|it| it["numberOfFiles"].as_u64());
    if counted != Some(wanted) {
        let counted = counted.map_or_else(|| answer.excerpt(), thousands);
        runner.note(format!("after {} files the dataset's numberOfFiles says {counted}", thousands(wanted)));
    }
    Ok(())
}

fn nth_block_series(points: Vec<[f64; 2]>, n_files: u64) -> Series {
    let tenth = (points.len() / 10).max(1).min(points.len());
    let median = |part: &[[f64; 2]]| {
        let mut times: Vec<f64> = part.iter().map(|point| point[1]).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    };
    let (first, last) = (median(&points[..tenth]), median(&points[points.len() - tenth..]));
    Series {
        title: format!("Cost of the n-th block of {} files", thousands(n_files)),
        x_label: "number of the block".to_owned(),
        y_label: "time of the request (ms)".to_owned(),
        summary: format!(
            "median of the first tenth {}, of the last tenth {}: the n-th block costs {:.2} times the first",
            ms(first),
            ms(last),
            if first > 0.0 { last / first } else { 0.0 }
        ),
        by_factors: false,
        points,
    }
}

/// Returns the times of the blocks that were each alone in their dataset; repeats are separate points.
fn block_series(result: &RunResult) -> Series {
    let alone = result.steps.iter().filter(|step| step.total.n_ok == 1);
    let point =
        |step: &StepResult| Some([step.labels.get("files")?.parse().ok()?, step.total.latency.max_ms]);
    let points: Vec<[f64; 2]> = alone.filter_map(point).collect();
    let last = points.iter().copied().reduce(|a, b| if a[0] < b[0] { b } else { a });
    let summary = last.map_or_else(String::new, |[n_files, took_ms]| {
        let per_s = n_files / took_ms.max(1e-3) * 1e3;
        format!(
            "{} files in {}: {} files per second",
            thousands(n_files as u64),
            ms(took_ms),
            thousands(per_s as u64)
        )
    });
    Series {
        title: "Time of one block by its files".to_owned(),
        x_label: "files in the block".to_owned(),
        y_label: "time of the request (ms)".to_owned(),
        summary,
        by_factors: true,
        points,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_by_the_medians_of_both_ends() {
        let points = (0..100).map(|n| [f64::from(n), 10.0 + f64::from(n)]).collect();
        let series = nth_block_series(points, 1000);
        assert!(series.summary.contains("costs 7.00 times"), "{}", series.summary);
        assert!(nth_block_series(Vec::new(), 1).points.is_empty());
    }
}
