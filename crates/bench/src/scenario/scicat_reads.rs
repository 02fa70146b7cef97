//! `scicat-reads`: reading datasets by PID and by fullquery while the catalogue grows from a thousand to a
//! million datasets, at constant rates, over 10 and 100 connections, and the highest rate of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::scicat::{ScicatArgs, Site, clean_after, escaped};
use super::{CommonArgs, Scale};
use crate::client::Request;
use crate::error::BenchError;
use crate::generate::datasets::{BASE_FIELDS, random_month};
use crate::generate::random::{Random, hash};
use crate::load::saturation::Bound;
use crate::load::{Flow, Group, Load, RequestSource, Step, Work};
use crate::published;
use crate::result::StepKind;
use crate::runner::{Finished, Runner};
use crate::stop::Stop;
use crate::verdict::{rate, thousands};

/// Distinct queries that are sent in turn.
const N_QUERIES: u64 = 4096;

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct ScicatReadsArgs {
    /// Server, scale and report.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Accounts.
    #[command(flatten)]
    pub scicat: ScicatArgs,
    /// Numbers of datasets, ascending. Default: by scale, up to 1,000 or 1,000,000.
    #[arg(long, value_delimiter = ',')]
    pub datasets: Vec<u64>,
    /// Rates, per second.
    #[arg(long, value_delimiter = ',', default_value = "10,100,1000")]
    pub rates: Vec<f64>,
    /// Numbers of connections. Default: 10, from scale seed on also 100.
    #[arg(long, value_delimiter = ',')]
    pub connections: Vec<usize>,
    /// `fields` of the fullquery, as JSON. Default: raw datasets created in a random month.
    #[arg(long)]
    pub fullquery_fields: Option<String>,
    /// `limits` of the fullquery, as JSON.
    #[arg(long, default_value = r#"{"skip":0,"limit":25,"order":"creationTime:desc"}"#)]
    pub fullquery_limits: String,
    /// Highest 99th percentile in the saturation search, in milliseconds.
    #[arg(long, default_value_t = 50.0)]
    pub p99_ms: f64,
    /// Leave the saturation search out.
    #[arg(long)]
    pub no_saturation: bool,
}

impl ScicatReadsArgs {
    fn sizes(&self) -> Vec<u64> {
        let mut sizes = match (self.datasets.is_empty(), self.common.scale) {
            (false, _) => self.datasets.clone(),
            (true, Scale::Quick) => vec![1000],
            (true, Scale::Seed | Scale::Full) => vec![1000, 10_000, 100_000, 1_000_000],
        };
        sizes.sort_unstable();
        sizes
    }

    fn connections(&self) -> Vec<usize> {
        match (self.connections.is_empty(), self.common.scale) {
            (false, _) => self.connections.clone(),
            (true, Scale::Quick) => vec![10],
            (true, Scale::Seed | Scale::Full) => vec![10, 100],
        }
    }
}

/// Runs the scenario and writes its report.
pub async fn run(args: &ScicatReadsArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let title = "SciCat: reading datasets by PID and by fullquery while the catalogue grows";
    let mut runner = args.common.begin("scicat-reads", title, stop).await?;
    let outcome = run_on(args, &mut runner).await;
    Ok(runner.finish(outcome))
}

async fn run_on(args: &ScicatReadsArgs, runner: &mut Runner) -> Result<(), BenchError> {
    let mut site = Site::begin(runner, &args.scicat, BASE_FIELDS).await?;
    let outcome = measure(args, runner, &mut site).await;
    clean_after(runner, &mut site, outcome).await
}

async fn measure(args: &ScicatReadsArgs, runner: &mut Runner, site: &mut Site) -> Result<(), BenchError> {
    let fields =
        args.fullquery_fields.as_deref().unwrap_or("raw datasets created in a random month of ten years");
    runner.result.settings.insert("fullquery fields".to_owned(), fields.to_owned());
    runner.result.settings.insert("fullquery limits".to_owned(), args.fullquery_limits.clone());
    for n_datasets in args.sizes() {
        let is_first = site.paths.is_empty();
        site.grow(runner, n_datasets).await?;
        if is_first {
            site.check_queries(runner).await?;
        }
        for connections in args.connections() {
            for flow in ["by PID", "fullquery"] {
                measure_flow(args, runner, site, flow, connections).await?;
            }
        }
    }
    Ok(())
}

async fn measure_flow(
    args: &ScicatReadsArgs,
    runner: &mut Runner,
    site: &mut Site,
    flow: &str,
    connections: usize,
) -> Result<(), BenchError> {
    for rate_per_s in &args.rates {
        site.session.refresh().await?;
        let step = step(args, runner, site, flow, connections, *rate_per_s)?;
        runner.measure(&step, StepKind::Rate, published::scicat_reads(*rate_per_s)).await?;
    }
    if args.no_saturation {
        return Ok(());
    }
    site.session.refresh().await?;
    let mut step = step(args, runner, site, flow, connections, 1.0)?;
    step.name = format!("{flow}, {} datasets, {connections} connections", thousands(site.paths.len() as u64));
    let bound = Bound { p99_ms: args.p99_ms, ..Bound::default() };
    runner.saturate(&step, &bound, Some(published::scicat_reads_saturation())).await
}

fn step(
    args: &ScicatReadsArgs,
    runner: &Runner,
    site: &Site,
    flow: &str,
    connections: usize,
    rate_per_s: f64,
) -> Result<Step, BenchError> {
    let n_datasets = site.paths.len() as u64;
    let source = if flow == "by PID" { reads_by_pid(site) } else { queries(args, site)? };
    let labels = [
        ("datasets", n_datasets.to_string()),
        ("flow", flow.to_owned()),
        ("connections", connections.to_string()),
        ("load", rate(rate_per_s)),
    ];
    Ok(Step {
        name: format!(
            "{flow}, {} datasets, {connections} connections, {}",
            thousands(n_datasets),
            rate(rate_per_s)
        ),
        labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>(),
        warmup: runner.timing.warmup,
        measured: runner.timing.measured,
        groups: vec![Group {
            name: String::new(),
            load: Load::Open { rate_per_s },
            connections,
            work: Work::Mix(vec![Flow::only(flow, source)]),
        }],
    })
}

/// Returns reads of datasets chosen at random: a hot record says nothing about a catalogue.
fn reads_by_pid(site: &Site) -> RequestSource {
    let (paths, headers, seed): (Arc<[String]>, _, _) =
        (site.paths.clone().into(), site.session.headers(), site.seed);
    Arc::new(move |n| {
        let index = hash(seed, n) % paths.len() as u64;
        Request::get(paths[index as usize].clone(), &headers)
    })
}

fn queries(args: &ScicatReadsArgs, site: &Site) -> Result<RequestSource, BenchError> {
    let limits: Value = parse_json("--fullquery-limits", &args.fullquery_limits)?;
    let given: Option<Value> =
        args.fullquery_fields.as_deref().map(|text| parse_json("--fullquery-fields", text)).transpose()?;
    let n_queries = if given.is_some() { 1 } else { N_QUERIES };
    let paths: Vec<String> = (0..n_queries)
        .map(|n| {
            let fields = given.clone().unwrap_or_else(|| month_query(site.seed, n));
            let query =
                format!("fields={}&limits={}", escaped(&fields.to_string()), escaped(&limits.to_string()));
            site.session.path(&format!("/api/v3/datasets/fullquery?{query}"))
        })
        .collect();
    let headers = site.session.headers();
    Ok(Arc::new(move |n| Request::get(paths[n as usize % paths.len()].clone(), &headers)))
}

/// Returns the frontend's query when a user picks a type and a period.
fn month_query(seed: u64, n: u64) -> Value {
    let (begin, end) = random_month(&mut Random::new(seed ^ 0x51, n));
    json!({"mode": {}, "type": ["raw"], "creationTime": {"begin": begin, "end": end}})
}

fn parse_json(option: &'static str, text: &str) -> Result<Value, BenchError> {
    serde_json::from_str(text).map_err(|error| BenchError::BadOption {
        option,
        value: text.to_owned(),
        reason: format!("not JSON: {error}"),
    })
}
