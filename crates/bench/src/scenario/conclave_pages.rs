//! `conclave-pages`: the page of one topic again and again, as in the published figures, and of random topics, by users
//! who are signed in, at more and more connections; also with a concurrent writer.
//!
//! The topics are those of `pinakes bench generate topics-structure`, loaded with `pinakes import topics`.

use std::sync::Arc;

use clap::Args;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{HeaderMap, Method};

use super::token::token_header;
use super::{CommonArgs, Scale};
use crate::client::Request;
use crate::error::BenchError;
use crate::generate::random::hash;
use crate::generate::topics::topic_id;
use crate::load::{Flow, Group, Load, Loops, RequestSource, Step, Work};
use crate::published;
use crate::result::StepKind;
use crate::runner::{Finished, Runner};
use crate::stop::Stop;

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct ConclavePagesArgs {
    /// Server, scale and report.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Topics that were loaded.
    #[arg(long, default_value_t = 780_000)]
    pub topics: u64,
    /// The map.
    #[arg(long, default_value = "default")]
    pub map: String,
    /// Environment variable with a token: pages are requested by its user. Without it nobody is signed in.
    #[arg(long, value_name = "NAME")]
    pub token_env: Option<String>,
    /// Numbers of connections. Default: by scale, 8, 256 or 8 to 8192.
    #[arg(long, value_delimiter = ',')]
    pub connections: Vec<usize>,
    /// Changes per second of the writer concurrent with random pages; 0 leaves that step out. Needs a token that
    /// may edit.
    #[arg(long, default_value_t = 50.0)]
    pub writes: f64,
}

impl ConclavePagesArgs {
    fn connections(&self) -> Vec<usize> {
        match (self.connections.is_empty(), self.common.scale) {
            (false, _) => self.connections.clone(),
            (true, Scale::Quick) => vec![8, 256],
            (true, Scale::Seed | Scale::Full) => vec![8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192],
        }
    }
}

/// Runs the scenario and writes its report.
pub async fn run(args: &ConclavePagesArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let headers = Arc::new(headers(args)?);
    let title = "Conclave: the page of one topic and of random topics";
    let mut runner = args.common.begin("conclave-pages", title, stop).await?;
    let outcome = measure(args, &mut runner, &headers).await;
    Ok(runner.finish(outcome))
}

fn headers(args: &ConclavePagesArgs) -> Result<HeaderMap, BenchError> {
    args.token_env.as_deref().map_or(Ok(HeaderMap::new()), headers_of)
}

/// Headers with the token of an environment variable.
pub(super) fn headers_of(name: &str) -> Result<HeaderMap, BenchError> {
    Ok(HeaderMap::from_iter([(AUTHORIZATION, token_header(name, "Bearer ")?)]))
}

async fn measure(
    args: &ConclavePagesArgs,
    runner: &mut Runner,
    headers: &Arc<HeaderMap>,
) -> Result<(), BenchError> {
    let who = if args.token_env.is_some() { "signed in" } else { "nobody signed in" };
    runner.result.settings.insert("topics".to_owned(), args.topics.to_string());
    runner.result.settings.insert("reader".to_owned(), who.to_owned());
    for flow in ["one topic", "random topics"] {
        for connections in args.connections() {
            let step = step(args, runner, flow, connections, headers, None);
            runner.measure(&step, StepKind::Closed, Some(published::conclave_pages())).await?;
        }
    }
    if args.writes > 0.0 && args.token_env.is_some() {
        for connections in args.connections() {
            let step = step(args, runner, "random topics", connections, headers, Some(args.writes));
            runner.measure(&step, StepKind::Closed, None).await?;
        }
    }
    Ok(())
}

fn step(
    args: &ConclavePagesArgs,
    runner: &Runner,
    flow: &str,
    connections: usize,
    headers: &Arc<HeaderMap>,
    writes_per_s: Option<f64>,
) -> Step {
    let (n_topics, seed, map) = (args.topics.max(1), args.common.seed, args.map.clone());
    let hot = if flow == "one topic" { Some(topic_id(n_topics.min(13) - 1)) } else { None };
    let (base, page_headers) = (runner.target.path(&format!("/t/{map}/")), Arc::clone(headers));
    let pages: RequestSource = Arc::new(move |n| {
        let id = hot.clone().unwrap_or_else(|| topic_id(hash(seed, n) % n_topics));
        Request::get(format!("{base}{id}"), &page_headers)
    });
    let closed = Load::closed(Loops::UntilEnd);
    let mut groups = vec![Group {
        name: String::new(),
        load: closed,
        connections,
        work: Work::Mix(vec![Flow::only(flow, pages)]),
    }];
    if let Some(rate_per_s) = writes_per_s {
        let path = runner.target.path(&format!("/topics/v1/{map}/metadata"));
        let mut with_type = (**headers).clone();
        with_type
            .insert(HeaderName::from_static("content-type"), HeaderValue::from_static("application/json"));
        let with_type = Arc::new(with_type);
        let writes: RequestSource = Arc::new(move |n| {
            let id = topic_id(hash(seed ^ 0x57, n) % n_topics);
            let body = format!("{{\"for\":\"{id}\",\"name\":\"note\",\"value\":\"note {n}\"}}");
            Request {
                method: Method::PUT,
                path: path.clone(),
                headers: Arc::clone(&with_type),
                body: body.into(),
                also_fine: None,
            }
        });
        groups.push(Group {
            name: "writer".to_owned(),
            load: Load::Open { rate_per_s },
            connections: 2,
            work: Work::Mix(vec![Flow::only("set metadata", writes)]),
        });
    }
    let beside = writes_per_s.map_or(String::new(), |rate| format!(", beside {rate} changes a second"));
    let labels =
        [("pages", flow.to_owned()), ("connections", connections.to_string()), ("beside", beside.clone())];
    Step {
        name: format!("{flow}, {connections} connections{beside}"),
        labels: labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        warmup: runner.timing.warmup,
        measured: runner.timing.measured,
        groups,
    }
}
