//! `labe`: citation documents of a catalogue. Random ids at several numbers of connections, each requested once and
//! repeatedly, for everybody and for one institution; ids that have no citations; and the thousand most expensive, each
//! once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use http::{HeaderMap, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{CommonArgs, Scale, seconds};
use crate::client::{AnswerBody, Connection, Request};
use crate::error::BenchError;
use crate::generate::library::{Library, LibraryShape};
use crate::load::{Flow, Load, Loops, RequestSource, Step};
use crate::published;
use crate::result::StepKind;
use crate::runner::{COUNTED_WORK_MAX, Finished, Runner};
use crate::stop::Stop;
use crate::verdict::{rate, thousands};

/// Number of ids that are requested repeatedly where answers may come from a cache.
const N_AGAIN: usize = 1_000;
/// Answer to an id that has no citations.
const NO_CITATIONS: u16 = 404;
/// Connections of the step of ids without citations.
const UNCITED_CONNECTIONS: usize = 32;
/// Connections for the most expensive ids at a constant rate.
const DEAREST_CONNECTIONS: usize = 32;
/// A path segment: what must be escaped.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Odd, and near the golden ratio of 2^64: steps through a list of ids so that ids requested in succession are not
/// neighbours in the list.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct LabeArgs {
    /// Server, scale and report. The server must hold what `labe-data` wrote with the same scale and seed, or the
    /// files below must be given.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Numbers of connections of the random ids. Default: 32; from scale seed on 8, 16, 32, 48.
    #[arg(long, value_delimiter = ',')]
    pub connections: Vec<usize>,
    /// Numbers of connections of the most expensive ids.
    #[arg(long, value_delimiter = ',', default_value = "2,32")]
    pub dearest_connections: Vec<usize>,
    /// Rate at which the most expensive ids are requested in addition, per second.
    #[arg(long, default_value_t = 150.0)]
    pub dearest_rate: f64,
    /// How many ids are the most expensive.
    #[arg(long, default_value_t = 1_000)]
    pub dearest: usize,
    /// Institution of the filtered steps.
    #[arg(long, default_value = "DE-14")]
    pub institution: String,
    /// Ids of a catalogue of your own, one a line (text after a tab is ignored), instead of generated ones.
    #[arg(long, requires = "dearest_file")]
    pub ids_file: Option<PathBuf>,
    /// Its most expensive ids, one a line.
    #[arg(long, requires = "ids_file")]
    pub dearest_file: Option<PathBuf>,
}

/// Returns the size of a generated library. The larger one is that at which the original was measured.
pub fn shape_of(scale: Scale) -> LibraryShape {
    match scale {
        Scale::Quick => LibraryShape { n_ids: 20_000, n_works: 20_000, n_citations: 400_000 },
        Scale::Seed | Scale::Full => {
            LibraryShape { n_ids: 1_090_000, n_works: 1_090_000, n_citations: 29_600_000 }
        }
    }
}

/// Runs the scenario and writes its report.
pub async fn run(args: &LabeArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let ids = Ids::of(args)?;
    let title = "labe: citation documents of random ids, of ids without citations, and of the dearest";
    let mut runner = args.common.begin("labe", title, stop).await?;
    let outcome = measure(args, &mut runner, &ids).await;
    Ok(runner.finish(outcome))
}

/// Paths to request.
struct Ids {
    all: Arc<[String]>,
    /// Ids without citations; empty if they are not known.
    uncited: Arc<[String]>,
    dearest: Arc<[String]>,
}

impl Ids {
    fn of(args: &LabeArgs) -> Result<Self, BenchError> {
        if let (Some(all), Some(dearest)) = (&args.ids_file, &args.dearest_file) {
            let mut dearest = paths_in(dearest)?;
            dearest.truncate(args.dearest);
            return Ok(Self { all: paths_in(all)?.into(), uncited: Arc::new([]), dearest: dearest.into() });
        }
        let shape = shape_of(args.common.scale);
        let library = Library::new(args.common.seed, shape);
        let path = |n: u64| path_of(&library.local_id(n));
        Ok(Self {
            all: (0..shape.n_ids).map(path).collect(),
            uncited: (library.n_held()..shape.n_ids).map(path).collect(),
            dearest: library.dearest(args.dearest).into_iter().map(path).collect(),
        })
    }
}

fn path_of(id: &str) -> String {
    format!("/id/{}", utf8_percent_encode(id, SEGMENT))
}

fn paths_in(file: &Path) -> Result<Vec<String>, BenchError> {
    let text =
        std::fs::read_to_string(file).map_err(|source| BenchError::Read { path: file.to_owned(), source })?;
    let ids = text.lines().filter_map(|line| line.split('\t').next()).filter(|id| !id.is_empty());
    let paths: Vec<String> = ids.map(path_of).collect();
    if paths.is_empty() {
        return Err(BenchError::BadOption {
            option: "--ids-file / --dearest-file",
            value: file.display().to_string(),
            reason: "there is no id in it".to_owned(),
        });
    }
    Ok(paths)
}

async fn measure(args: &LabeArgs, runner: &mut Runner, ids: &Ids) -> Result<(), BenchError> {
    let settings = &mut runner.result.settings;
    settings.insert("ids".to_owned(), thousands(ids.all.len() as u64));
    settings.insert("institution".to_owned(), args.institution.clone());
    check(runner, ids).await?;
    for connections in connections(args) {
        for filter in ["", &format!("?i={}", args.institution)] {
            for turns in [Turns::Once, Turns::Again] {
                // Anything the server cached in earlier steps must not help the ids that are requested once.
                empty_cache(runner).await?;
                let step = random_ids(runner, ids, filter, turns, connections);
                runner.measure(&step, StepKind::Closed, Some(published::labe_random())).await?;
            }
        }
    }
    if !ids.uncited.is_empty() {
        let source = in_turn(runner, &ids.uncited, "", 1);
        let step = step(runner, "ids without citations", UNCITED_CONNECTIONS, source);
        runner.measure(&step, StepKind::Closed, None).await?;
    }
    for connections in &args.dearest_connections {
        empty_cache(runner).await?;
        let closed = Load::closed(Loops::Together(ids.dearest.len() as u64));
        dearest(runner, ids, *connections, closed).await?;
    }
    empty_cache(runner).await?;
    dearest(runner, ids, DEAREST_CONNECTIONS, Load::Open { rate_per_s: args.dearest_rate }).await?;
    Ok(())
}

fn connections(args: &LabeArgs) -> Vec<usize> {
    match (args.connections.is_empty(), args.common.scale) {
        (false, _) => args.connections.clone(),
        (true, Scale::Quick) => vec![32],
        (true, Scale::Seed | Scale::Full) => vec![8, 16, 32, 48],
    }
}

/// Whether ids are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turns {
    /// Each is requested once before any is repeated.
    Once,
    /// A thousand of them, over and over.
    Again,
}

fn random_ids(runner: &Runner, ids: &Ids, filter: &str, turns: Turns, connections: usize) -> Step {
    let n_ids = match turns {
        Turns::Once => ids.all.len(),
        Turns::Again => ids.all.len().min(N_AGAIN),
    };
    let stride = ids.all.len() / n_ids;
    let paths: Arc<[String]> = match stride {
        1 => Arc::clone(&ids.all),
        _ => ids.all.iter().step_by(stride).take(n_ids).cloned().collect(),
    };
    let who = if filter.is_empty() { "random ids" } else { "random ids of one institution" };
    let again = if turns == Turns::Again { ", again and again" } else { "" };
    step(runner, &format!("{who}{again}"), connections, in_turn(runner, &paths, filter, 0))
}

/// Requests `paths` in a scattered order, all of them before any is repeated.
fn in_turn(runner: &Runner, paths: &Arc<[String]>, filter: &str, offset: u64) -> RequestSource {
    let (paths, filter, headers) = (Arc::clone(paths), filter.to_owned(), Arc::new(HeaderMap::new()));
    let target = Arc::clone(&runner.target);
    let n_paths = paths.len() as u64;
    let stride = coprime(STRIDE % n_paths.max(1), n_paths);
    let offset = offset.wrapping_add(runner.settings.seed);
    Arc::new(move |n| {
        let place =
            ((u128::from(n) + u128::from(offset)) * u128::from(stride) % u128::from(n_paths)) as usize;
        let mut request = Request::get(target.path(&format!("{}{filter}", paths[place])), &headers);
        request.also_fine = Some(NO_CITATIONS);
        request
    })
}

/// Returns the next number from `near` on without a common divisor with `n`.
fn coprime(near: u64, n: u64) -> u64 {
    let divisor = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (near.max(1)..).find(|it| divisor(*it, n) == 1).unwrap_or(1)
}

fn step(runner: &Runner, what: &str, connections: usize, source: RequestSource) -> Step {
    let labels = [("ids", what.to_owned()), ("connections", connections.to_string())];
    let name = format!("{what}, {connections} connections");
    runner.closed_step(name, labels, connections, Flow::only("documents", source))
}

/// Requests each of the most expensive ids once.
async fn dearest(runner: &mut Runner, ids: &Ids, connections: usize, load: Load) -> Result<(), BenchError> {
    let n_ids = ids.dearest.len() as u64;
    let source = in_turn(runner, &ids.dearest, "", 2);
    let what = format!("the dearest {}, each once", thousands(n_ids));
    let mut step = step(runner, &what, connections, source);
    step.groups[0].load = load;
    step.warmup = Duration::ZERO;
    let kind = match load {
        Load::Closed { .. } => {
            // It ends when all are answered.
            step.measured = COUNTED_WORK_MAX;
            StepKind::Closed
        }
        Load::Open { rate_per_s } => {
            step.measured = seconds("--dearest-rate", n_ids as f64 / rate_per_s)?;
            step.name = format!("{}, {}", step.name, rate(rate_per_s));
            step.labels.insert("load".to_owned(), rate(rate_per_s));
            StepKind::Rate
        }
    };
    runner.measure(&step, kind, Some(published::labe_dearest())).await.map(|_| ())
}

async fn single(runner: &Runner, method: Method, path: &str) -> Result<crate::client::Answer, BenchError> {
    let mut connection = Connection::new(Arc::clone(&runner.target), runner.settings.timeout);
    let request = Request { method, ..Request::get(runner.target.path(path), &Arc::new(HeaderMap::new())) };
    connection.exchange(&request, AnswerBody::Keep).await.map_err(|failure| BenchError::CannotConnect {
        address: runner.target.authority.clone(),
        reason: failure.to_string(),
    })
}

/// Requests that the cache be emptied, as `labed` offers.
async fn empty_cache(runner: &mut Runner) -> Result<(), BenchError> {
    let answer = single(runner, Method::DELETE, "/cache").await?;
    if !answer.is_success() {
        runner.note(format!(
            "DELETE /cache was answered with {}: answers may come from a cache",
            answer.status
        ));
    }
    Ok(())
}

/// Checks that the most expensive id has an answer: otherwise the server holds something else.
async fn check(runner: &Runner, ids: &Ids) -> Result<(), BenchError> {
    let Some(path) = ids.dearest.first() else { return Ok(()) };
    let answer = single(runner, Method::GET, path).await?;
    let is_document = answer.status == 200 && answer.body.starts_with(b"{\"id\":");
    if is_document {
        return Ok(());
    }
    Err(BenchError::OtherDialect {
        url: runner.target.url(path),
        expected: "labed, with the data of `labe-data` at this scale and seed,".to_owned(),
        found: answer.excerpt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_comes_once() {
        for n in [1, 2, 7, 1000, 436_000] {
            let stride = coprime(STRIDE % n, n);
            let mut seen = vec![false; n as usize];
            for turn in 0..n {
                seen[(u128::from(turn) * u128::from(stride) % u128::from(n)) as usize] = true;
            }
            assert!(seen.into_iter().all(|it| it), "{n}");
        }
    }

    #[test]
    fn ids_are_one_segment() {
        assert_eq!(path_of("a/b c_é-1"), "/id/a%2Fb%20c_%C3%A9-1");
    }
}
