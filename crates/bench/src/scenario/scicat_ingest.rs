//! `scicat-ingest`: creating datasets with 100 to 3,000 metadata fields at constant rates, and the highest
//! rate of each.

use std::sync::Arc;

use bytes::Bytes;
use clap::Args;

use super::scicat::{ScicatArgs, Site, clean_after};
use super::{CommonArgs, Scale};
use crate::client::Request;
use crate::error::BenchError;
use crate::generate::datasets::{DatasetShape, dataset};
use crate::load::saturation::Bound;
use crate::load::{Flow, Group, Load, RequestSource, Step, Work};
use crate::published;
use crate::result::StepKind;
use crate::runner::{Finished, Runner};
use crate::stop::Stop;
use crate::verdict::{rate, thousands};

/// Number of distinct bodies that are sent in turn: they are built before the step, because building one
/// takes as long as sending it. The server gives each its own PID.
const N_BODIES: u64 = 512;

/// Maximum size of these bodies together, in bytes.
const BODIES_BYTES_MAX: usize = 64 << 20;

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct ScicatIngestArgs {
    /// Server, scale and report.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Accounts.
    #[command(flatten)]
    pub scicat: ScicatArgs,
    /// Numbers of metadata fields. Default: by scale, 100 or 100,250,1000,3000.
    #[arg(long, value_delimiter = ',')]
    pub fields: Vec<usize>,
    /// Rates, per second. Default: by scale, 10,100,500 or 10,50,100,250,500,1000.
    #[arg(long, value_delimiter = ',')]
    pub rates: Vec<f64>,
    /// Connections.
    #[arg(long, default_value_t = 100)]
    pub connections: usize,
    /// Highest 99th percentile in the saturation search, in milliseconds.
    #[arg(long, default_value_t = 100.0)]
    pub p99_ms: f64,
    /// Leave the saturation search out.
    #[arg(long)]
    pub no_saturation: bool,
}

impl ScicatIngestArgs {
    fn fields(&self) -> Vec<usize> {
        match (self.fields.is_empty(), self.common.scale) {
            (false, _) => self.fields.clone(),
            (true, Scale::Quick) => vec![100],
            (true, Scale::Seed | Scale::Full) => vec![100, 250, 1000, 3000],
        }
    }

    fn rates(&self) -> Vec<f64> {
        match (self.rates.is_empty(), self.common.scale) {
            (false, _) => self.rates.clone(),
            (true, Scale::Quick) => vec![10.0, 100.0, 500.0],
            (true, Scale::Seed | Scale::Full) => vec![10.0, 50.0, 100.0, 250.0, 500.0, 1000.0],
        }
    }
}

/// Runs the scenario and writes its report.
pub async fn run(args: &ScicatIngestArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let title = "SciCat: creating datasets with many metadata fields";
    let mut runner = args.common.begin("scicat-ingest", title, stop).await?;
    let outcome = run_on(args, &mut runner).await;
    Ok(runner.finish(outcome))
}

async fn run_on(args: &ScicatIngestArgs, runner: &mut Runner) -> Result<(), BenchError> {
    let mut site = Site::begin(runner, &args.scicat, 0).await?;
    let outcome = measure(args, runner, &mut site).await;
    clean_after(runner, &mut site, outcome).await
}

async fn measure(args: &ScicatIngestArgs, runner: &mut Runner, site: &mut Site) -> Result<(), BenchError> {
    for n_fields in args.fields() {
        let bodies = bodies(&DatasetShape { n_fields, ..site.shape.clone() }, site.seed);
        for rate_per_s in args.rates() {
            site.session.refresh().await?;
            let step = step(args, runner, site, &bodies, n_fields, rate_per_s);
            let published = published::scicat_ingest(n_fields, rate_per_s);
            runner.measure(&step, StepKind::Rate, published).await?;
        }
        if !args.no_saturation {
            site.session.refresh().await?;
            let mut step = step(args, runner, site, &bodies, n_fields, 1.0);
            step.name = format!("{} fields", thousands(n_fields as u64));
            let bound = Bound { p99_ms: args.p99_ms, ..Bound::default() };
            runner.saturate(&step, &bound, published::scicat_ingest_saturation(n_fields)).await?;
        }
        // Each number of fields begins with the same catalogue.
        site.clean(runner).await?;
    }
    Ok(())
}

fn bodies(shape: &DatasetShape, seed: u64) -> Arc<[Bytes]> {
    let first = Bytes::from(dataset(shape, seed, 0).to_string());
    let n_bodies = N_BODIES.min((BODIES_BYTES_MAX / first.len()).max(1) as u64);
    (0..n_bodies).map(|n| dataset(shape, seed, n).to_string().into()).collect()
}

fn step(
    args: &ScicatIngestArgs,
    runner: &Runner,
    site: &Site,
    bodies: &Arc<[Bytes]>,
    n_fields: usize,
    rate_per_s: f64,
) -> Step {
    let (bodies, headers, path) =
        (Arc::clone(bodies), site.session.headers(), site.session.path("/api/v3/datasets"));
    let source: RequestSource =
        Arc::new(move |n| Request::post(path.clone(), &headers, bodies[n as usize % bodies.len()].clone()));
    let labels = [
        ("fields", n_fields.to_string()),
        ("connections", args.connections.to_string()),
        ("load", rate(rate_per_s)),
    ];
    Step {
        name: format!("{} fields, {}", thousands(n_fields as u64), rate(rate_per_s)),
        labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        warmup: runner.timing.warmup,
        measured: runner.timing.measured,
        groups: vec![Group {
            name: String::new(),
            load: Load::Open { rate_per_s },
            connections: args.connections,
            work: Work::Mix(vec![Flow::only("create dataset", source)]),
        }],
    }
}
