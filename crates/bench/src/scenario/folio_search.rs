//! `folio-search`: what readers and cataloguers ask of a library's search: words, people, subjects, facets, lists by
//! title, and windows of the lists of people and subjects. One caller at a time and several together; the conditions
//! differ from request to request.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::folio::{FolioArgs, Session};
use super::scicat::{counted_step, escaped, most_frequent};
use super::{CommonArgs, Scale};
use crate::client::Request;
use crate::error::BenchError;
use crate::generate::instances::{LOCATIONS, holdings, instance, item, person, subject};
use crate::generate::random::Random;
use crate::generate::words::{FAMILY_NAMES, WORDS};
use crate::load::{Flow, RequestSource, Step};
use crate::result::StepKind;
use crate::runner::{Finished, Runner};
use crate::stop::Stop;
use crate::verdict::thousands;

/// Distinct requests of a case that are sent in turn.
const N_REQUESTS: u64 = 512;
/// Records created by one request.
const BATCH: u64 = 500;
/// How long the server may take to find the last instance created, and the pause between two looks.
const INDEX_LOOKS: u32 = 600;
const INDEX_PAUSE: Duration = Duration::from_secs(1);
/// Results of a page.
const PAGE: u64 = 100;

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct FolioSearchArgs {
    /// Server, scale and report.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Tenant and account.
    #[command(flatten)]
    pub folio: FolioArgs,
    /// Number of instances. Default: by scale, 10,000 or 1,000,000.
    #[arg(long)]
    pub instances: Option<u64>,
    /// Create no instances: the catalogue already holds that many, left by an earlier run with `--keep-data`.
    #[arg(long, value_name = "N", conflicts_with = "instances")]
    pub filled: Option<u64>,
    /// Create a holdings record and an item for each instance, too, and ask by them. With --filled: they are there. The
    /// server must have FOLIO's sample locations.
    #[arg(long)]
    pub items: bool,
    /// Connections of the steps with many.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// Leave the data in the server afterwards.
    #[arg(long)]
    pub keep_data: bool,
}

impl FolioSearchArgs {
    fn n_instances(&self) -> u64 {
        self.filled.or(self.instances).unwrap_or(match self.common.scale {
            Scale::Quick => 10_000,
            Scale::Seed | Scale::Full => 1_000_000,
        })
    }
}

/// Runs the scenario and writes its report.
pub async fn run(args: &FolioSearchArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let title = "FOLIO: words, people, subjects, facets and windows of lists over instances";
    let mut runner = args.common.begin("folio-search", title, stop).await?;
    let outcome = run_on(args, &mut runner).await;
    Ok(runner.finish(outcome))
}

async fn run_on(args: &FolioSearchArgs, runner: &mut Runner) -> Result<(), BenchError> {
    let session = Session::begin(&runner.target, &args.folio).await?;
    runner.result.settings.insert("instances".to_owned(), thousands(args.n_instances()));
    if args.filled.is_some() {
        runner.result.settings.insert("filled".to_owned(), "before the run".to_owned());
        return measure(args, runner, &session).await;
    }
    if args.items {
        require_locations(args, &session).await?;
    }
    let tag = format!("bench{:x}", time::OffsetDateTime::now_utc().unix_timestamp());
    let outcome = match fill(args, runner, &session, &tag).await {
        Ok(()) => measure(args, runner, &session).await,
        Err(error) => Err(error),
    };
    let is_gone = matches!(&outcome, Err(BenchError::ServerGone { .. } | BenchError::CannotConnect { .. }));
    if is_gone || args.keep_data {
        runner.note(format!("the data was left in the server; its human-readable ids begin with {tag}"));
        return outcome;
    }
    if empty(args, &session, &tag).await? {
        runner.note(format!("the data could not be deleted; its human-readable ids begin with {tag}"));
    }
    outcome
}

fn of_tag(tag: &str) -> String {
    escaped(&format!("hrid==\"{tag}-*\""))
}

/// Records that are created: what they are, where, the name of their list, and the `n`-th of them.
type Made = (&'static str, &'static str, &'static str, fn(&str, u64, u64) -> Value);

const INSTANCES: Made = ("instances", "/instance-storage/batch/synchronous", "instances", instance);
const HOLDINGS: Made = ("holdings", "/holdings-storage/batch/synchronous", "holdingsRecords", holdings);
const ITEMS: Made = ("items", "/item-storage/batch/synchronous", "items", item);

/// Creates the records and waits until the last one is found: the original's index lags.
async fn fill(
    args: &FolioSearchArgs,
    runner: &mut Runner,
    session: &Session,
    tag: &str,
) -> Result<(), BenchError> {
    let wanted = args.n_instances();
    let all: &[Made] = if args.items { &[INSTANCES, HOLDINGS, ITEMS] } else { &[INSTANCES] };
    for (what, path, list, make) in all.iter().copied() {
        let (seed, headers, made) = (args.common.seed, session.headers(), tag.to_owned());
        let path = session.path(&format!("{path}?upsert=true"));
        let source: RequestSource = Arc::new(move |n| {
            let records: Vec<Value> =
                (n * BATCH..((n + 1) * BATCH).min(wanted)).map(|n| make(&made, seed, n)).collect();
            Request::post(path.clone(), &headers, json!({list: records}).to_string().into())
        });
        let n_requests = wanted.div_ceil(BATCH);
        let name = format!("preparing {wanted} {what}");
        let flow = Flow::only("create records", source);
        let record =
            runner.work(&counted_step(&name, flow, args.connections, n_requests), n_requests).await?;
        let flow = &record.flows[0];
        if flow.n_errors() != 0 {
            let done = (n_requests - flow.n_errors().min(n_requests)) * BATCH;
            return Err(failed(what, done.min(wanted), wanted, most_frequent(&flow.messages)));
        }
    }
    let last = wanted.saturating_sub(1);
    let last = if args.items {
        format!("items.barcode==\"{tag}-{last}\"")
    } else {
        format!("hrid==\"{tag}-{last}\"")
    };
    let last = escaped(&last);
    for _ in 0..INDEX_LOOKS {
        let found = session.get(&format!("/search/instances?query={last}&limit=1")).await?;
        if found["totalRecords"].as_u64() == Some(1) {
            return Ok(());
        }
        tokio::time::sleep(INDEX_PAUSE).await;
    }
    let reason = "the search did not find the last one within ten minutes".to_owned();
    Err(failed("instances", wanted, wanted, reason))
}

/// Checks that the server has the locations that holdings name.
async fn require_locations(args: &FolioSearchArgs, session: &Session) -> Result<(), BenchError> {
    for id in LOCATIONS {
        let found = session.get(&format!("/locations/{id}")).await?;
        if found["id"].as_str() != Some(id) {
            let reason = format!("the server lacks {id}, one of FOLIO's sample locations: create it first");
            return Err(failed("holdings", 0, args.n_instances(), reason));
        }
    }
    Ok(())
}

fn failed(what: &str, done: u64, wanted: u64, reason: String) -> BenchError {
    BenchError::Preparation { what: what.to_owned(), done, wanted, reason }
}

/// Deletes the records of a tag; returns whether any is left.
async fn empty(args: &FolioSearchArgs, session: &Session, tag: &str) -> Result<bool, BenchError> {
    let mut n_left = 0;
    let above: &[&str] = if args.items {
        &["/item-storage/items", "/holdings-storage/holdings", "/instance-storage/instances"]
    } else {
        &["/instance-storage/instances"]
    };
    for path in above {
        n_left += session.delete(&format!("{path}?query={}", of_tag(tag))).await?;
    }
    Ok(n_left != 0)
}

async fn measure(args: &FolioSearchArgs, runner: &mut Runner, session: &Session) -> Result<(), BenchError> {
    let of_items: &[Case] = if args.items { CASES_OF_ITEMS } else { &[] };
    for case in CASES.iter().chain(of_items) {
        let connections = if case.is_crowded { args.connections } else { 1 };
        let step = step(runner, session, case, args, connections);
        runner.measure(&step, StepKind::Closed, None).await?;
    }
    Ok(())
}

/// A query.
struct Case {
    name: &'static str,
    /// Sent by many at once.
    is_crowded: bool,
    /// Path and query.
    path: fn(&mut Random) -> String,
}

const fn alone(name: &'static str, path: fn(&mut Random) -> String) -> Case {
    Case { name, is_crowded: false, path }
}

const CASES: &[Case] = &[
    alone("two keywords", |random| found(&two_keywords(random), 0)),
    alone("a word of the title", |random| found(&format!("title all \"{}\"", word(random)), 0)),
    alone("a title that begins with two words", |random| {
        found(&format!("title all \"{} {}*\"", word(random), beginning(random)), 0)
    }),
    alone("a contributor", |random| found(&format!("contributors all \"{}\"", person(random)), 0)),
    alone("a family name among contributors", |random| {
        found(&format!("contributors all \"{}\"", random.pick(&FAMILY_NAMES)), 0)
    }),
    alone("a subject", |random| found(&format!("subjects all \"{}\"", subject(random)), 0)),
    alone("a word of subjects and a language", |random| {
        found(&format!("(subjects all \"{}\") and languages==\"ger\"", word(random)), 0)
    }),
    alone("two keywords by title, a page far behind", |random| {
        found(&format!("({}) sortby title", two_keywords(random)), 9_000)
    }),
    alone("everything by title", |random| found("cql.allRecords=1 sortby title", PAGE * random.below(50))),
    alone("facets under two keywords", |random| facets(&two_keywords(random))),
    alone("facets under a word of the title", |random| facets(&format!("title all \"{}\"", word(random)))),
    alone("facets of everything", |_| facets("cql.allRecords=1")),
    alone("a window of contributors", |random| window("contributors", "name", &person(random))),
    alone("a window of subjects", |random| window("subjects", "value", &subject(random))),
    alone("an inventory list by title", |random| {
        let query = format!("title all \"{}\" sortby title", word(random));
        format!("/instance-storage/instances?query={}&limit={PAGE}", escaped(&query))
    }),
    Case { name: "two keywords", is_crowded: true, path: |random| found(&two_keywords(random), 0) },
    Case {
        name: "facets under two keywords",
        is_crowded: true,
        path: |random| facets(&two_keywords(random)),
    },
    Case {
        name: "a window of contributors",
        is_crowded: true,
        path: |random| window("contributors", "name", &person(random)),
    },
];

/// Queries by holdings and items.
const CASES_OF_ITEMS: &[Case] = &[
    alone("instances at a location", |random| found(&at_location(random), 0)),
    alone("a word of the title at a location", |random| {
        found(&format!("(title all \"{}\") and {}", word(random), at_location(random)), 0)
    }),
    alone("what is lent, by title", |_| found("items.status.name==\"Checked out\" sortby title", 0)),
    alone("facets of items under two keywords", |random| facets_below(&two_keywords(random))),
    alone("facets of items under a word of the title", |random| {
        facets_below(&format!("title all \"{}\"", word(random)))
    }),
    alone("facets of items of everything", |_| facets_below("cql.allRecords=1")),
    alone("facets of items at a location", |random| facets_below(&at_location(random))),
    Case {
        name: "facets of items under two keywords",
        is_crowded: true,
        path: |random| facets_below(&two_keywords(random)),
    },
];

fn at_location(random: &mut Random) -> String {
    format!("items.effectiveLocationId==\"{}\"", random.pick(&LOCATIONS))
}

fn word(random: &mut Random) -> &'static str {
    random.pick(&WORDS)
}

/// Returns the first letters of a word.
fn beginning(random: &mut Random) -> String {
    word(random).chars().take(3).collect()
}

fn two_keywords(random: &mut Random) -> String {
    format!("keyword all \"{} {}\"", word(random), word(random))
}

fn found(query: &str, offset: u64) -> String {
    format!("/search/instances?query={}&limit={PAGE}&offset={offset}", escaped(query))
}

fn facets(query: &str) -> String {
    let asked = "facet=languages:10&facet=source:5&facet=instanceTypeId:5&facet=discoverySuppress:2";
    format!("/search/instances/facets?query={}&{asked}", escaped(query))
}

fn facets_below(query: &str) -> String {
    let asked =
        "facet=items.effectiveLocationId:10&facet=items.status.name:5&facet=holdings.permanentLocationId:10";
    format!("/search/instances/facets?query={}&{asked}", escaped(query))
}

/// Asks for the entries around a place of a list, as the page for browsing does.
fn window(list: &str, field: &str, at: &str) -> String {
    let query = format!("{field}>=\"{at}\" or {field}<\"{at}\"");
    format!("/browse/{list}/instances?query={}&limit=100&precedingRecordsCount=5", escaped(&query))
}

fn step(runner: &Runner, session: &Session, case: &Case, args: &FolioSearchArgs, connections: usize) -> Step {
    let seed = args.common.seed;
    let paths: Vec<String> =
        (0..N_REQUESTS).map(|n| session.path(&(case.path)(&mut Random::new(seed ^ 0xf0, n)))).collect();
    let headers = session.headers();
    let source: RequestSource =
        Arc::new(move |n| Request::get(paths[(n % N_REQUESTS) as usize].clone(), &headers));
    let n_instances = args.n_instances();
    let labels = [
        ("instances", n_instances.to_string()),
        ("case", case.name.to_owned()),
        ("connections", connections.to_string()),
    ];
    let name = format!("{}, {} instances, {connections} connections", case.name, thousands(n_instances));
    runner.closed_step(name, labels, connections, Flow::only(case.name, source))
}
