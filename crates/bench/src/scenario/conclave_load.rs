//! `conclave-load`: an Open Directory of the published size, sent to a running server: categories in parts of its
//! structure file, each one import and one transaction.
//!
//! `pinakes import topics` loads the same from a file, without a server in between, and prints how long it
//! takes.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use http::header::{CONTENT_TYPE, HeaderValue};

use super::conclave_pages::headers_of;
use super::{CommonArgs, Scale};
use crate::client::Request;
use crate::error::BenchError;
use crate::generate::topics::{FOOT, HEAD, structure};
use crate::load::{Flow, Group, Load, Loops, RequestSource, Step, Work};
use crate::result::{StepKind, StepResult, Table};
use crate::runner::{COUNTED_WORK_MAX, Finished, Runner};
use crate::stop::Stop;
use crate::verdict::{rate, thousands};

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct ConclaveLoadArgs {
    /// Server, scale and report.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Topics to send. Default: by scale, 20,000 or 780,000.
    #[arg(long)]
    pub topics: Option<u64>,
    /// Topics per request.
    #[arg(long, default_value_t = 5_000)]
    pub batch: u64,
    /// The map; its existing content is merged with.
    #[arg(long, default_value = "load")]
    pub map: String,
    /// Environment variable with the token of an administrator.
    #[arg(long, value_name = "NAME")]
    pub token_env: String,
    /// Concurrent requests.
    #[arg(long, default_value_t = 2)]
    pub connections: usize,
}

/// Runs the scenario and writes its report.
pub async fn run(args: &ConclaveLoadArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let mut headers = headers_of(&args.token_env)?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/rdf+xml"));
    let mut runner = args.common.begin("conclave-load", "Conclave: topics loaded over HTTP", stop).await?;
    let n_topics = args.topics.unwrap_or(match args.common.scale {
        Scale::Quick => 20_000,
        Scale::Seed | Scale::Full => 780_000,
    });
    runner.result.settings.insert("topics".to_owned(), n_topics.to_string());
    runner.result.settings.insert("topics of a request".to_owned(), args.batch.to_string());
    let step = step(args, &runner, n_topics.max(1), Arc::new(headers));
    let outcome = measure(&mut runner, &step, n_topics).await;
    Ok(runner.finish(outcome))
}

/// Sends all topics, once: a repetition would find them in the map.
async fn measure(runner: &mut Runner, step: &Step, n_topics: u64) -> Result<(), BenchError> {
    let at = runner.measure_once(step, StepKind::Closed, |_| {}).await?;
    let result = &mut runner.result;
    let StepResult { measured_s, ref total, .. } = result.steps[at];
    if total.n_errors == 0 {
        let per_s = rate(n_topics as f64 / measured_s);
        let summary = format!("{} topics were loaded in {measured_s:.1} s, {per_s}", thousands(n_topics));
        let head = ["topics", "time", "topics a second"].map(str::to_owned).to_vec();
        let row = vec![thousands(n_topics), format!("{measured_s:.1} s"), per_s];
        result.tables.push(Table { title: "Topics".to_owned(), rows: vec![head, row], summary });
    }
    Ok(())
}

fn step(args: &ConclaveLoadArgs, runner: &Runner, n_topics: u64, headers: Arc<http::HeaderMap>) -> Step {
    let batch = args.batch.clamp(1, 100_000);
    let n_requests = n_topics.div_ceil(batch);
    let path = runner.target.path(&format!("/topics/v1/{}/import?format=dmoz-structure", args.map));
    let seed = args.common.seed;
    let imports: RequestSource = Arc::new(move |n| {
        let mut body = String::from(HEAD);
        for at in n * batch..((n + 1) * batch).min(n_topics) {
            let _ = write!(body, "{}", structure(seed, at, n_topics));
        }
        body.push_str(FOOT);
        Request::post(path.clone(), &headers, body.into())
    });
    let load = Load::closed(Loops::Together(n_requests));
    Step {
        name: format!("{n_topics} topics, {batch} a request"),
        labels: std::collections::BTreeMap::from([("topics".to_owned(), n_topics.to_string())]),
        warmup: Duration::ZERO,
        // It ends when all are loaded.
        measured: COUNTED_WORK_MAX,
        groups: vec![Group {
            name: String::new(),
            load,
            connections: args.connections,
            work: Work::Mix(vec![Flow::only("import", imports)]),
        }],
    }
}
