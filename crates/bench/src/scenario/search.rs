//! `search`: what people ask a catalogue all day, one caller at a time and sixteen together: facets, words, quantities,
//! patterns of names, pages far behind, orders that nobody declared. The conditions differ from request to request, so
//! that no answer is one that was given before.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::scicat::{ScicatArgs, Site, clean_after, escaped};
use super::{CommonArgs, Scale};
use crate::client::Request;
use crate::error::BenchError;
use crate::generate::datasets::{BASE_FIELDS, N_PROPOSALS, period, proposal_id};
use crate::generate::random::Random;
use crate::generate::words::WORDS;
use crate::load::{Flow, RequestSource, Step};
use crate::result::StepKind;
use crate::runner::{Finished, Runner};
use crate::stop::Stop;
use crate::verdict::thousands;

/// Distinct requests of a case that are sent in turn.
const N_REQUESTS: u64 = 512;
/// Months of the longest period that is asked for.
const TWO_YEARS: u64 = 24;
/// The facets that the web frontend shows.
const FACETS: &str = r#"["type","creationLocation","ownerGroup","keywords","creationTime"]"#;

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct SearchArgs {
    /// Server, scale and report.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Accounts.
    #[command(flatten)]
    pub scicat: ScicatArgs,
    /// Number of datasets. Default: by scale, 10,000 or 1,000,000.
    #[arg(long)]
    pub datasets: Option<u64>,
    /// Make no datasets: the catalogue holds that many already, written by `bench generate scicat-datasets` and imported.
    /// What an import takes is not measured here.
    #[arg(long, value_name = "N", conflicts_with = "datasets")]
    pub filled: Option<u64>,
    /// Connections of the steps with many.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
}

impl SearchArgs {
    fn n_datasets(&self) -> u64 {
        self.filled.or(self.datasets).unwrap_or(match self.common.scale {
            Scale::Quick => 10_000,
            Scale::Seed | Scale::Full => 1_000_000,
        })
    }
}

/// Runs the scenario and writes its report.
pub async fn run(args: &SearchArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let title = "Search: facets, words, quantities, patterns and pages over datasets";
    let mut runner = args.common.begin("search", title, stop).await?;
    let outcome = run_on(args, &mut runner).await;
    Ok(runner.finish(outcome))
}

async fn run_on(args: &SearchArgs, runner: &mut Runner) -> Result<(), BenchError> {
    let mut site = Site::begin(runner, &args.scicat, BASE_FIELDS).await?;
    let outcome = measure(args, runner, &mut site).await;
    clean_after(runner, &mut site, outcome).await
}

async fn measure(args: &SearchArgs, runner: &mut Runner, site: &mut Site) -> Result<(), BenchError> {
    let n_datasets = args.n_datasets();
    runner.result.settings.insert("datasets".to_owned(), thousands(n_datasets));
    if args.filled.is_some() {
        runner.result.settings.insert("filled".to_owned(), "before the run".to_owned());
    } else {
        site.grow(runner, n_datasets).await?;
        site.check_queries(runner).await?;
    }
    for case in CASES {
        let connections = if case.is_crowded { args.connections } else { 1 };
        site.session.refresh().await?;
        let step = step(runner, site, case, n_datasets, connections);
        runner.measure(&step, StepKind::Closed, None).await?;
    }
    Ok(())
}

/// A question.
struct Case {
    name: &'static str,
    /// Asked by many at once.
    is_crowded: bool,
    /// Path and query, of this many datasets.
    path: fn(&mut Random, u64) -> String,
}

const fn alone(name: &'static str, path: fn(&mut Random, u64) -> String) -> Case {
    Case { name, is_crowded: false, path }
}

const CASES: &[Case] = &[
    alone("facets, a period of two years", |random, _| {
        facets(&json!({"creationTime": span(random, TWO_YEARS)}))
    }),
    alone("facets, a word", |random, _| facets(&json!({"text": random.pick(&WORDS)}))),
    alone("facets, a keyword", |random, _| facets(&json!({"keywords": [random.pick(&WORDS)]}))),
    alone("facets, a proposal", |random, _| facets(&json!({"proposalId": proposal(random)}))),
    alone("facets, a quantity with a unit", |random, _| facets(&json!({"scientific": [quantity(random)]}))),
    alone("metadata keys, a period of two years", |random, _| {
        let fields = json!({"creationTime": span(random, TWO_YEARS)}).to_string();
        format!("/api/v3/datasets/metadataKeys?fields={}", escaped(&fields))
    }),
    alone("a word, newest 25", |random, _| newest(&json!({"text": random.pick(&WORDS)}), 0)),
    alone("a word, count", |random, _| counted(&json!({"text": random.pick(&WORDS)}))),
    alone("a quantity with a unit, newest 25", |random, _| {
        newest(&json!({"scientific": [quantity(random)]}), 0)
    }),
    alone("a quantity with a unit, count", |random, _| counted(&json!({"scientific": [quantity(random)]}))),
    alone("a quantity, a word and two years, newest 25", |random, _| newest(&combined(random), 0)),
    alone("a quantity, a word and two years, count", |random, _| counted(&combined(random))),
    alone("a regular expression on names", |random, _| {
        named(&format!("^{}.*{}$", random.pick(&WORDS), random.pick(&WORDS)))
    }),
    alone("a substring of names", |random, _| {
        named(&format!("{} {}", random.pick(&WORDS), random.pick(&WORDS)))
    }),
    alone("a page far behind", |random, n_datasets| {
        newest(&json!({"type": ["raw"]}), n_datasets / 10 * 9 - random.below(1 + n_datasets / 100))
    }),
    alone("by a number of the metadata, 25", |random, _| {
        sorted(&json!({"creationTime": span(random, TWO_YEARS)}), 0, "scientificMetadata.beam_0008:desc")
    }),
    Case {
        name: "a type, a month and a keyword, newest 25",
        is_crowded: true,
        path: |random, _| {
            let fields =
                json!({"type": ["raw"], "creationTime": span(random, 1), "keywords": [random.pick(&WORDS)]});
            newest(&fields, 0)
        },
    },
    Case {
        name: "a type, a month and a proposal, newest 25",
        is_crowded: true,
        path: |random, _| {
            let fields =
                json!({"type": ["raw"], "creationTime": span(random, 1), "proposalId": proposal(random)});
            newest(&fields, 0)
        },
    },
    Case {
        name: "a type, two years and a place, newest 25",
        is_crowded: true,
        path: |random, _| {
            let fields = json!({
                "type": ["raw"], "creationTime": span(random, TWO_YEARS), "creationLocation": ["/ESS/LOKI"],
            });
            newest(&fields, 0)
        },
    },
];

fn span(random: &mut Random, n_months: u64) -> Value {
    let (begin, end) = period(random, n_months);
    json!({"begin": begin, "end": end})
}

fn proposal(random: &mut Random) -> String {
    proposal_id(random.below(N_PROPOSALS))
}

/// One of a hundred datasets has such a value.
fn quantity(random: &mut Random) -> Value {
    let from = random.unit() * 396.0;
    json!({"lhs": "sensor_0001", "relation": "RANGE", "rhs": [from, from + 4.0], "unit": "K"})
}

fn combined(random: &mut Random) -> Value {
    json!({
        "scientific": [quantity(random)], "text": random.pick(&WORDS), "creationTime": span(random, TWO_YEARS),
    })
}

fn facets(fields: &Value) -> String {
    format!("/api/v3/datasets/fullfacet?fields={}&facets={}", escaped(&fields.to_string()), escaped(FACETS))
}

fn counted(fields: &Value) -> String {
    format!("/api/v3/datasets/fullfacet?fields={}&facets={}", escaped(&fields.to_string()), escaped("[]"))
}

fn newest(fields: &Value, skip: u64) -> String {
    sorted(fields, skip, "creationTime:desc")
}

fn sorted(fields: &Value, skip: u64, order: &str) -> String {
    let limits = json!({"skip": skip, "limit": 25, "order": order}).to_string();
    format!("/api/v3/datasets/fullquery?fields={}&limits={}", escaped(&fields.to_string()), escaped(&limits))
}

fn named(pattern: &str) -> String {
    let filter = json!({
        "where": {"datasetName": {"ilike": pattern}},
        "limits": {"skip": 0, "limit": 25, "order": "creationTime:desc"},
    });
    format!("/api/v3/datasets?filter={}", escaped(&filter.to_string()))
}

fn step(runner: &Runner, site: &Site, case: &Case, n_datasets: u64, connections: usize) -> Step {
    let paths: Vec<String> = (0..N_REQUESTS)
        .map(|n| site.session.path(&(case.path)(&mut Random::new(site.seed ^ 0x5e, n), n_datasets)))
        .collect();
    let headers = site.session.headers();
    let source: RequestSource =
        Arc::new(move |n| Request::get(paths[(n % N_REQUESTS) as usize].clone(), &headers));
    let labels = [
        ("datasets", n_datasets.to_string()),
        ("case", case.name.to_owned()),
        ("connections", connections.to_string()),
    ];
    let name = format!("{}, {} datasets, {connections} connections", case.name, thousands(n_datasets));
    runner.closed_step(name, labels, connections, Flow::only(case.name, source))
}
