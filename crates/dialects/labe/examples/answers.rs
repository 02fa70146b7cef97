//! Measures the CPU time of `labed`'s answers, without a network: `cargo run --release -p pinakes-labe --example
//! answers [DOIS CITATIONS]`.
//!
//! Creates a synthetic graph (hubs have their real size) and a document of 0.45 KB for each id, then requests random
//! ids with and without a filter, and the most expensive ones, sequentially on one thread.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use pinakes_accounts::{Accounts, Clock, Entropy, Secret};
use pinakes_citations::synthetic::{Format, Shape, Synthetic};
use pinakes_citations::{BuildOptions, Graph, Leftover, Observer, Problem, Progress, build};
use pinakes_http::{Context, TenantChoice};
use pinakes_labe::import::{self, Existing};
use pinakes_labe::{CatalogueIds, KINDS, Settings};
use pinakes_store::{Catalogue, Limits, Location};
use tower::ServiceExt as _;

type Failure = Box<dyn Error + Send + Sync>;

const N_RANDOM: usize = 5_000;
const N_DEAREST: usize = 30;
const DOCUMENT_BYTES: usize = 450;
const ISILS: [&str; 4] = ["DE-14", "DE-15", "DE-Gla1", "DE-82"];

#[expect(clippy::print_stdout, reason = "an example that reports")]
fn main() -> Result<(), Failure> {
    let figure =
        |place: usize, otherwise: u64| std::env::args().nth(place).map_or(Ok(otherwise), |text| text.parse());
    let shape =
        Shape { n_dois: u32::try_from(figure(1, 60_000)?)?, n_citations: figure(2, 1_500_000)?, seed: 7 };
    let folder = tempfile::tempdir()?;
    let ids = content(folder.path(), shape)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let catalogue = Catalogue::open(Location::Folder(folder.path().join("data")), KINDS, Limits::default())?;
    let tenant = catalogue.create_tenant("default", "")?;
    let begun = Instant::now();
    let loaded = import::load(&tenant, &folder.path().join("documents"), Existing::Replace, &mut |_| {})?;
    println!("documents loaded: {:.0}/s", loaded.n_made as f64 / begun.elapsed().as_secs_f64());
    let random: Vec<String> = (0..N_RANDOM).map(|it| ids[it * 7_919 % ids.len()].clone()).collect();
    let dearest = dearest(&folder.path().join("graph"))?;
    for catalogue_ids in [CatalogueIds::Ignore, CatalogueIds::Use] {
        let graph = folder.path().join("graph");
        let settings = Settings { graph, catalogue_ids, ..Settings::default() };
        let router = pinakes_labe::mount(context(&catalogue)?, settings)?.0.router;
        for (what, ids, query) in
            [("random", &random, ""), ("random, filtered", &random, "?i=DE-14"), ("dearest", &dearest, "")]
        {
            let begun = Instant::now();
            let n_bytes = runtime.block_on(ask(&router, ids, query))?;
            let rate = ids.len() as f64 / begun.elapsed().as_secs_f64();
            println!("{catalogue_ids:?}, {what}: {rate:.0}/s, {} bytes each", n_bytes / ids.len());
        }
    }
    Ok(())
}

/// Writes the graph and the documents; returns the ids.
fn content(folder: &Path, shape: Shape) -> Result<Vec<String>, Failure> {
    let (edges, ids) = (folder.join("edges.tsv"), folder.join("ids.tsv"));
    let synthetic = Synthetic::new(shape);
    synthetic.write_edges(Format::Pairs, &mut BufWriter::new(File::create(&edges)?))?;
    synthetic.write_ids(&mut BufWriter::new(File::create(&ids)?))?;
    let table = fs::read_to_string(&ids)?;
    let options = BuildOptions {
        edges: vec![edges],
        works: Vec::new(),
        ids: vec![ids],
        out: folder.join("graph"),
        n_threads: 2,
        checkpoint_rows: BuildOptions::CHECKPOINT_ROWS,
        keys_at_once: BuildOptions::KEYS_AT_ONCE,
        leftover: Leftover::Refuse,
    };
    build(&options, &mut Silent)?;
    let list: Vec<String> = table.lines().filter_map(|it| Some(it.split_once('\t')?.0.to_owned())).collect();
    let mut documents = BufWriter::new(File::create(folder.join("documents"))?);
    let title = "t".repeat(DOCUMENT_BYTES - 100);
    for (number, id) in list.iter().enumerate() {
        let isil = ISILS[number % ISILS.len()];
        writeln!(documents, "{{\"id\":\"{id}\",\"title\":\"{title}\",\"institution\":[\"{isil}\"]}}")?;
    }
    documents.flush()?;
    Ok(list)
}

/// Returns the ids with the most neighbours.
fn dearest(path: &Path) -> Result<Vec<String>, Failure> {
    let graph = Graph::open(path)?;
    let n_dois = u32::try_from(graph.n_dois())?;
    let mapped = (0..n_dois).filter_map(|number| Some((number, graph.local_ids(number).next()?)));
    let degree = |number| graph.references(number).len() + graph.citations(number).len();
    let mut all: Vec<(usize, u32)> = mapped.map(|(number, local)| (degree(number), local)).collect();
    all.sort_unstable_by_key(|it| std::cmp::Reverse(it.0));
    let text = |local| {
        let mut id = Vec::new();
        graph.local_id_into(local, &mut id)?;
        String::from_utf8(id).ok()
    };
    Ok(all.into_iter().take(N_DEAREST).filter_map(|(_, local)| text(local)).collect())
}

fn context(catalogue: &Catalogue) -> Result<Context, Failure> {
    let settings = pinakes_accounts::Settings {
        secret: Secret::from_text("a secret of the measurement")?,
        everyone: Vec::new(),
        clock: Clock::System,
        entropy: Entropy::seeded(1),
    };
    let limits = Limits::default();
    let accounts = Accounts::new(settings, &limits);
    Ok(Context::new(catalogue.clone(), accounts, limits, TenantChoice::default()))
}

/// Sends requests and returns the total size of the answers in bytes.
async fn ask(router: &Router, ids: &[String], query: &str) -> Result<usize, Failure> {
    let mut n_bytes = 0;
    for id in ids {
        let request = Request::get(format!("/id/{id}{query}")).body(Body::empty())?;
        let mut body = router.clone().oneshot(request).await?.into_body();
        while let Some(frame) = body.frame().await {
            n_bytes += frame?.data_ref().map_or(0, |it| it.len());
        }
    }
    Ok(n_bytes)
}

struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: Progress) {}

    fn problem(&mut self, _: &Problem) {}
}
