//! `http`: any URL under any kind of load. For questions that no published report asks, and for comparing
//! this client with others.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method};

use super::{CommonArgs, seconds};
use crate::client::Request;
use crate::error::BenchError;
use crate::load::saturation::Bound;
use crate::load::{Flow, Group, Load, Loops, Step, Work};
use crate::result::StepKind;
use crate::runner::{COUNTED_WORK_MAX, Finished, Runner};
use crate::stop::Stop;
use crate::target::Target;
use crate::verdict::rate;

/// The kind of load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Constant rates (`--rates`), one step each.
    #[default]
    Open,
    /// As many users as `--connections`, each waiting for its answer.
    Closed,
    /// The highest rate that keeps p99 below `--p99-ms`.
    Saturation,
    /// Rates from `--from` to `--to` in `--steps` equal factors.
    Stepped,
}

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct HttpArgs {
    /// Server and report. A path in `--url` is put before each path below.
    #[command(flatten)]
    pub common: CommonArgs,
    /// The kind of load.
    #[arg(long, value_enum, default_value_t)]
    pub mode: Mode,
    /// Path and query to ask for.
    #[arg(long, default_value = "/")]
    pub path: String,
    /// Method.
    #[arg(long, default_value = "GET")]
    pub method: String,
    /// File with the request's body.
    #[arg(long)]
    pub body_file: Option<PathBuf>,
    /// Header of each request, `Name: value`; may be repeated. A value that begins with `env:` is read
    /// from that environment variable, so that a token is not seen in the process list.
    #[arg(long = "header")]
    pub headers: Vec<String>,
    /// A further flow, `name,share,METHOD,/path[,body file]`; may be repeated. Without any, all requests are alike.
    #[arg(long = "flow")]
    pub flows: Vec<String>,
    /// A concurrent flow over connections of its own, `name,METHOD,/path[,body file]`: bulk load beside
    /// interactive load.
    #[arg(long)]
    pub beside: Option<String>,
    /// Connections of `--beside`.
    #[arg(long, default_value_t = 1)]
    pub beside_connections: usize,
    /// Rate of `--beside`, per second. Default: each connection as fast as answers come.
    #[arg(long)]
    pub beside_rate: Option<f64>,
    /// Connections; in closed mode, users.
    #[arg(long, default_value_t = 10)]
    pub connections: usize,
    /// Open mode: rates, per second.
    #[arg(long, value_delimiter = ',', default_value = "100")]
    pub rates: Vec<f64>,
    /// Stepped mode: lowest rate, per second.
    #[arg(long, default_value_t = 10.0)]
    pub from: f64,
    /// Stepped mode: highest rate, per second.
    #[arg(long, default_value_t = 1000.0)]
    pub to: f64,
    /// Stepped mode: number of rates.
    #[arg(long, default_value_t = 5)]
    pub steps: u32,
    /// Closed mode: the users start distributed over this time, in seconds.
    #[arg(long, default_value_t = 0.0)]
    pub ramp_up_s: f64,
    /// Closed mode: passes of each user. Default: until the step's time is over.
    #[arg(long)]
    pub loops: Option<u64>,
    /// Closed mode: pause of a user after each answer, in milliseconds.
    #[arg(long, default_value_t = 0.0)]
    pub think_ms: f64,
    /// Saturation mode: highest 99th percentile, in milliseconds.
    #[arg(long, default_value_t = 50.0)]
    pub p99_ms: f64,
}

/// Runs the load and writes its report.
pub async fn run(args: &HttpArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let flows = flows(args)?; // Before anything is sent or written: a wrong option costs nothing.
    let mut runner = args.common.begin("http", "HTTP requests as given", stop).await?;
    let outcome = measure(args, &mut runner, flows).await;
    Ok(runner.finish(outcome))
}

async fn measure(args: &HttpArgs, runner: &mut Runner, flows: Flows) -> Result<(), BenchError> {
    match args.mode {
        Mode::Open => measure_rates(args, runner, &flows, &args.rates).await,
        Mode::Stepped => measure_rates(args, runner, &flows, &stepped_rates(args)?).await,
        Mode::Closed => {
            let loops = args.loops.map_or(Loops::UntilEnd, Loops::PerUser);
            let load = Load::Closed {
                ramp_up: seconds("--ramp-up-s", args.ramp_up_s)?,
                loops,
                think: seconds("--think-ms", args.think_ms / 1e3)?,
            };
            let mut step = step(args, runner, &flows, load, &format!("{} users", args.connections));
            if loops != Loops::UntilEnd {
                (step.warmup, step.measured) = (Duration::ZERO, COUNTED_WORK_MAX);
            }
            runner.measure(&step, StepKind::Closed, None).await.map(|_| ())
        }
        Mode::Saturation => {
            if args.beside.is_some() {
                return Err(BenchError::BadOption {
                    option: "--beside",
                    value: String::new(),
                    reason: "the search varies one rate; use --mode stepped with a flow beside".to_owned(),
                });
            }
            let step = step(args, runner, &flows, Load::Open { rate_per_s: 1.0 }, "saturation");
            runner.saturate(&step, &Bound { p99_ms: args.p99_ms, ..Bound::default() }, None).await
        }
    }
}

async fn measure_rates(
    args: &HttpArgs,
    runner: &mut Runner,
    flows: &Flows,
    rates: &[f64],
) -> Result<(), BenchError> {
    for rate_per_s in rates {
        let load = Load::Open { rate_per_s: *rate_per_s };
        let step = step(args, runner, flows, load, &rate(*rate_per_s));
        runner.measure(&step, StepKind::Rate, None).await?;
    }
    Ok(())
}

fn stepped_rates(args: &HttpArgs) -> Result<Vec<f64>, BenchError> {
    const STEPS_MAX: u32 = 1000;
    let fits = args.from > 0.0 && args.to >= args.from && (2..=STEPS_MAX).contains(&args.steps);
    if !fits {
        return Err(BenchError::BadOption {
            option: "--from / --to / --steps",
            value: format!("{} / {} / {}", args.from, args.to, args.steps),
            reason: "expected 0 < from <= to and 2 to 1000 steps".to_owned(),
        });
    }
    let factor = (args.to / args.from).powf(1.0 / f64::from(args.steps - 1));
    Ok((0..args.steps).map(|n| args.from * factor.powf(f64::from(n))).collect())
}

/// The flows of the options.
struct Flows {
    mix: Vec<Flow>,
    beside: Option<Flow>,
}

fn flows(args: &HttpArgs) -> Result<Flows, BenchError> {
    let reach = if args.common.allow_remote {
        crate::target::Reach::AnyHost
    } else {
        crate::target::Reach::LoopbackOnly
    };
    let target = Target::parse(&args.common.url, reach)?;
    let headers = Arc::new(headers(&args.headers)?);
    let mut mix = Vec::new();
    for text in &args.flows {
        let wrong = |reason: &str| bad("--flow", text, reason);
        let (name, rest) = text.split_once(',').ok_or_else(|| wrong("no comma"))?;
        let (share, rest) = rest.split_once(',').ok_or_else(|| wrong("no method"))?;
        let share = share.parse().map_err(|_| wrong("the share is not a whole number"))?;
        mix.push(Flow { share, ..flow("--flow", name, rest, &target, &headers)? });
    }
    if mix.is_empty() {
        let body = args.body_file.as_deref().map(read_body).transpose()?.unwrap_or_default();
        let method = method("--method", &args.method)?;
        mix.push(fixed_flow("requests", method, target.path(&args.path), &headers, body));
    }
    let beside = match &args.beside {
        None => None,
        Some(text) => {
            let (name, rest) = text.split_once(',').ok_or_else(|| bad("--beside", text, "no comma"))?;
            Some(flow("--beside", name, rest, &target, &headers)?)
        }
    };
    Ok(Flows { mix, beside })
}

/// Parses `METHOD,/path[,body file]`.
fn flow(
    option: &'static str,
    name: &str,
    text: &str,
    target: &Target,
    headers: &Arc<HeaderMap>,
) -> Result<Flow, BenchError> {
    let mut parts = text.splitn(3, ',');
    let method = method(option, parts.next().unwrap_or_default())?;
    let path = parts.next().ok_or_else(|| bad(option, text, "no path"))?;
    let body = parts.next().map(|file| read_body(Path::new(file))).transpose()?.unwrap_or_default();
    Ok(fixed_flow(name, method, target.path(path), headers, body))
}

fn fixed_flow(name: &str, method: Method, path: String, headers: &Arc<HeaderMap>, body: Bytes) -> Flow {
    let request = Request { method, path, headers: Arc::clone(headers), body, also_fine: None };
    Flow::only(name, Arc::new(move |_| request.clone()))
}

fn method(option: &'static str, text: &str) -> Result<Method, BenchError> {
    text.parse().map_err(|_| bad(option, text, "not an HTTP method"))
}

fn read_body(path: &Path) -> Result<Bytes, BenchError> {
    std::fs::read(path).map(Bytes::from).map_err(|source| BenchError::Read { path: path.to_owned(), source })
}

fn headers(lines: &[String]) -> Result<HeaderMap, BenchError> {
    let mut headers = HeaderMap::new();
    for line in lines {
        // The value may be a secret: messages contain only the header's name.
        let (name, value) =
            line.split_once(':').ok_or_else(|| bad("--header", "", "expected Name: value"))?;
        let parsed =
            HeaderName::try_from(name.trim()).map_err(|_| bad("--header", name, "not a header name"))?;
        let value = match value.trim().strip_prefix("env:") {
            None => value.trim().to_owned(),
            Some(variable) => std::env::var(variable)
                .map_err(|_| bad("--header", variable, "this environment variable is not set"))?,
        };
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| bad("--header", name, "its value is not a header value"))?;
        value.set_sensitive(true);
        headers.append(parsed, value);
    }
    Ok(headers)
}

fn bad(option: &'static str, value: &str, reason: &str) -> BenchError {
    BenchError::BadOption { option, value: value.to_owned(), reason: reason.to_owned() }
}

fn step(args: &HttpArgs, runner: &Runner, flows: &Flows, load: Load, what: &str) -> Step {
    let mut groups = vec![Group {
        name: String::new(),
        load,
        connections: args.connections,
        work: Work::Mix(flows.mix.clone()),
    }];
    if let Some(beside) = &flows.beside {
        let closed = Load::closed(Loops::UntilEnd);
        groups.push(Group {
            name: "beside".to_owned(),
            load: args.beside_rate.map_or(closed, |rate_per_s| Load::Open { rate_per_s }),
            connections: args.beside_connections,
            work: Work::Mix(vec![beside.clone()]),
        });
    }
    let target = if args.flows.is_empty() { args.path.clone() } else { "mix".to_owned() };
    let labels =
        [("target", target), ("connections", args.connections.to_string()), ("load", what.to_owned())];
    Step {
        name: format!("{}, {} connections, {what}", labels[0].1, args.connections),
        labels: labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        warmup: runner.timing.warmup,
        measured: runner.timing.measured,
        groups,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_headers_stay_out_of_messages() {
        let error = headers(&["Authorization: Bearer se\u{7f}cret".to_owned()]).unwrap_err().to_string();
        assert!(!error.contains("cret"), "{error}");
        let headers = headers(&["X-A: b".to_owned(), "x-a: c".to_owned()]).unwrap();
        assert_eq!(headers.get_all("x-a").iter().count(), 2);
    }
}
