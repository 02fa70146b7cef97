//! Whole scenarios from the command line's options to the files of the report, against servers on this
//! machine; and the messages for what can be wrong.

mod servers;

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::response::IntoResponse;
use clap::Parser;
use flate2::read::GzDecoder;
use pinakes_bench::BenchError;
use pinakes_bench::cli::{BenchArgs, Command};
use pinakes_bench::compare::compare;
use pinakes_bench::result::{Ended, RunResult, StepKind};
use pinakes_bench::runner::Finished;
use pinakes_bench::scenario::{
    conclave_load, dataverse_deposit, folio_desk, folio_import, folio_search, http, labe, labe_data,
    scicat_ingest, scicat_origdatablocks, scicat_reads, search,
};
use pinakes_bench::stop::Stop;
use servers::TestServer;
use servers::dataverse::{self, Repository};
use servers::folio::{self, Library};
use servers::scicat::{Datasets, PASSWORD, router};

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    args: BenchArgs,
}

/// Runs a scenario as the command line would.
async fn run(words: &[&str], stop: &Stop) -> Result<Finished, BenchError> {
    let cli = Cli::try_parse_from(["bench"].iter().chain(words)).unwrap();
    match cli.args.command {
        Command::Http(args) => http::run(&args, stop).await,
        Command::Labe(args) => labe::run(&args, stop).await,
        Command::ConclaveLoad(args) => conclave_load::run(&args, stop).await,
        Command::DataverseDeposit(args) => dataverse_deposit::run(&args, stop).await,
        Command::FolioDesk(args) => folio_desk::run(&args, stop).await,
        Command::FolioImport(args) => folio_import::run(&args, stop).await,
        Command::FolioSearch(args) => folio_search::run(&args, stop).await,
        Command::ScicatReads(args) => scicat_reads::run(&args, stop).await,
        Command::Search(args) => search::run(&args, stop).await,
        Command::ScicatIngest(args) => scicat_ingest::run(&args, stop).await,
        Command::ScicatOrigdatablocks(args) => scicat_origdatablocks::run(&args, stop).await,
        other => panic!("not a scenario: {other:?}"),
    }
}

/// Checks that the files of a report exist, and that `result.json` holds the returned result.
fn check_report(out: &Path, result: &RunResult) {
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let parsed: RunResult = serde_json::from_str(&read("result.json")).unwrap();
    assert_eq!(parsed.steps.len(), result.steps.len());
    assert_eq!(parsed.ended, result.ended);
    let (markdown, html) = (read("report.md"), read("report.html"));
    let mut raw = String::new();
    GzDecoder::new(std::fs::File::open(out.join("raw.csv.gz")).unwrap()).read_to_string(&mut raw).unwrap();
    for step in result.steps.iter().filter(|step| step.kind != StepKind::Trial) {
        assert!(markdown.contains(&step.name), "{}", step.name);
        assert!(html.contains(&step.name.replace('&', "&amp;")), "{}", step.name);
        assert!(!step.verdict.evidence.is_empty());
    }
    assert!(html.contains("<svg") && !html.contains("<script") && !html.contains("src=\"http"));
    assert!(raw.starts_with("step,repeat,flow,record,at,name,value\n"));
    let counted: f64 = raw
        .lines()
        .filter(|line| line.contains(",bucket,"))
        .filter_map(|line| line.rsplit_once(',')?.1.parse::<f64>().ok())
        .sum();
    let recorded: u64 = result.steps.iter().flat_map(|step| &step.flows).map(|flow| flow.latency.n).sum();
    assert!(
        (counted - recorded as f64).abs() < 0.5,
        "raw.csv.gz holds {counted} latencies, result.json {recorded}"
    );
}

/// Returns the arguments for a scenario on SciCat, without a measurement of what the client can send.
fn on_scicat<'w>(scenario: &'w str, url: &'w str, folder: &'w str, more: &[&'w str]) -> Vec<&'w str> {
    let begin = [scenario, "--url", url, "--out", folder, "--username", "ingestor", "--password", PASSWORD];
    [&begin, more, &["--no-ceiling"]].concat()
}

/// Number of connections, and duration.
const SHORT_STEPS: [&str; 6] = ["--connections", "4", "--step-s", "0.3", "--warmup-s", "0.1"];

#[tokio::test]
async fn reads_prepare_measure_and_clean_up() {
    let datasets = Datasets::default();
    let server = TestServer::start(router(&datasets));
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let words = on_scicat(
        "scicat-reads",
        &url,
        folder,
        // A busy machine may let nobody in for a third of a second: each of these steps must see an answer.
        &[
            &["--connections", "4", "--step-s", "1", "--warmup-s", "0.1"][..],
            &["--datasets", "30,60", "--rates", "100,1000", "--no-saturation"],
        ]
        .concat(),
    );
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    outcome.unwrap();
    check_report(out.path(), &result);
    assert_eq!(result.steps.len(), 2 * 2 * 2);
    for step in &result.steps {
        assert_eq!(step.total.n_errors, 0, "{:?}", step.total.messages);
        assert!(step.total.n_ok > 0);
        assert_eq!(step.published.is_some(), step.labels["load"] == "1,000/s", "{}", step.name);
    }
    assert_eq!(result.steps[0].labels["datasets"], "30");
    assert!(datasets.lock().unwrap().is_empty(), "the data was left behind");
    let report = std::fs::read_to_string(out.path().join("report.md")).unwrap();
    assert!(report.contains("160 ms to 23.8 s"), "{report}");
    assert!(!report.contains(PASSWORD));
}

/// However short a step is asked for, all topics are sent.
#[tokio::test]
async fn all_topics_are_loaded() {
    let topics = Arc::new(AtomicU64::new(0));
    let counted = topics.clone();
    let import = axum::routing::post(|body: String| async move {
        counted.fetch_add(body.matches("<Topic ").count() as u64, Ordering::Relaxed);
        axum::Json(serde_json::json!({}))
    });
    let server = TestServer::start(axum::Router::new().route("/topics/v1/load/import", import));
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    // Cargo sets this variable; the stand-in takes any token.
    let words = ["conclave-load", "--url", &url, "--out", folder, "--token-env", "CARGO_PKG_NAME"];
    let short = ["--topics", "12345", "--batch", "100", "--step-s", "0.001", "--no-ceiling"];
    let Finished { result, outcome } = run(&[&words[..], &short].concat(), &Stop::default()).await.unwrap();
    outcome.unwrap();
    check_report(out.path(), &result);
    assert_eq!(topics.load(Ordering::Relaxed), 12_345);
    assert_eq!(result.steps[0].total.n_ok, 124);
    assert!(result.tables[0].summary.starts_with("12,345 topics were loaded in "), "{:?}", result.tables);
}

#[tokio::test]
async fn ingest_saturates_and_cleans_up() {
    let datasets = Datasets::default();
    let server = TestServer::start(router(&datasets));
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let words = on_scicat(
        "scicat-ingest",
        &url,
        folder,
        &[&SHORT_STEPS[..], &["--fields", "100", "--rates", "50", "--p99-ms", "60000"]].concat(),
    );
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    outcome.unwrap();
    check_report(out.path(), &result);
    assert_eq!(result.steps[0].kind, StepKind::Rate);
    assert!(result.steps.iter().any(|step| step.kind == StepKind::Closed));
    assert!(result.steps.iter().all(|step| step.total.n_errors == 0), "{result:?}");
    assert!(datasets.lock().unwrap().is_empty(), "the data was left behind");
}

#[tokio::test]
async fn desks_lend_and_take_back_and_leave_nothing() {
    let library = Library::default();
    let server = TestServer::start(folio::router(&library));
    for bare in [false, true] {
        let out = tempfile::tempdir().unwrap();
        let (url, folder) = (server.url(), out.path().to_str().unwrap());
        let mut words =
            vec!["folio-desk", "--url", &url, "--out", folder, "--tenant", "diku", "--username", "ann"];
        words.extend(["--password", PASSWORD, "--desks", "1,5", "--items", "2", "--step-s", "0.3"]);
        words.extend(["--warmup-s", "0.1", "--no-ceiling"]);
        words.extend(bare.then_some("--bare"));
        let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
        outcome.unwrap();
        check_report(out.path(), &result);
        assert_eq!(result.steps.len(), 2);
        for step in &result.steps {
            assert_eq!(step.total.n_errors, 0, "{:?}", step.total.messages);
            assert!(step.total.n_ok > 0);
            assert_eq!(step.labels["import"], "no import");
        }
        let rows = &result.tables[0].rows[1..];
        let n_published = rows.iter().filter(|row| row[5] == "1100 ms").count();
        assert_eq!(n_published, usize::from(!bare), "{rows:?}");
        let n_whole = rows.iter().filter(|row| row[1].ends_with("with its reads")).count();
        assert_eq!(n_whole, if bare { 0 } else { 4 }, "{rows:?}");
        assert!(rows.iter().any(|row| row[1] == "the request of a check-out"), "{rows:?}");
    }
    let shelf = library.lock().unwrap();
    assert!(0 < shelf.n_loans);
    assert!(shelf.records.is_empty(), "left behind: {:?}", shelf.records.keys().take(3).collect::<Vec<_>>());
}

/// Returns the arguments of `dataverse-deposit`: this crate's name, which cargo puts into the environment, is
/// the token.
fn deposit<'w>(url: &'w str, folder: &'w str, token_env: &'w str) -> Vec<&'w str> {
    let mut words = vec!["dataverse-deposit", "--url", url, "--out", folder, "--token-env", token_env];
    words.extend(["--users", "3", "--loops", "4", "--ramp-up-s", "0.05", "--file-bytes", "5,1000"]);
    words.extend(["--step-s", "0.3", "--warmup-s", "0.1", "--no-ceiling"]);
    words
}

#[tokio::test]
async fn deposits_are_made_and_deleted() {
    const N_REFUSED: u64 = 2;
    for n_refused in [0, N_REFUSED] {
        let repository = Arc::new(Mutex::new(Repository::refusing(n_refused)));
        let server = TestServer::start(dataverse::router(&repository));
        let (url, out) = (server.url(), tempfile::tempdir().unwrap());
        let words = deposit(&url, out.path().to_str().unwrap(), "CARGO_PKG_NAME");
        let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
        outcome.unwrap();
        check_report(out.path(), &result);
        let plans: Vec<_> = result.steps.iter().filter(|it| it.labels["how"] == "plan").collect();
        assert_eq!((plans.len(), result.steps.len()), (2, 4));
        for plan in &plans {
            let passes: Vec<u64> = plan.flows.iter().map(|it| it.n_ok + it.n_errors).collect();
            assert_eq!(passes[..4], [12; 4], "users who make four deposits each");
        }
        let n_errors: u64 = result.steps.iter().map(|it| it.total.n_errors).sum();
        assert_eq!(n_errors, n_refused, "{:?}", result.steps[0].total.messages);
        let repository = repository.lock().unwrap();
        assert!(repository.collections.is_empty(), "left behind: {:?}", repository.collections);
        assert!(24 < repository.n_uploads);
        assert!(repository.files.iter().all(|it| [5, 1000].contains(&it.len())));
        let n_long = repository.files.iter().filter(|it| it.len() == 1000).count();
        assert!(12 < n_long, "each file differs from the others");
    }
}

#[tokio::test]
async fn a_deposit_that_cannot_be_made_ends_the_run() {
    let repository = Arc::new(Mutex::new(Repository::default()));
    let server = TestServer::start(dataverse::router(&repository));
    let (url, out) = (server.url(), tempfile::tempdir().unwrap());
    let folder = out.path().to_str().unwrap();
    for (token_env, said) in [
        ("CARGO_PKG_VERSION", "Bad API key"),
        ("PINAKES_BENCH_NO_SUCH_VARIABLE", "this environment variable is not set"),
        // Cargo sets it; this crate names no homepage.
        ("CARGO_PKG_HOMEPAGE", "this environment variable is empty"),
    ] {
        let ended = match run(&deposit(&url, folder, token_env), &Stop::default()).await {
            Ok(finished) => finished.outcome.unwrap_err(),
            Err(error) => error,
        };
        assert!(ended.to_string().contains(said), "{ended}");
    }
    assert_eq!(repository.lock().unwrap().n_uploads, 0);
}

/// Runs `folio-import` on a fake library and returns its result.
async fn import(library: &Library, rest: &[&str]) -> RunResult {
    let server = TestServer::start(folio::router(library));
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let mut words =
        vec!["folio-import", "--url", &url, "--out", folder, "--tenant", "diku", "--username", "ann"];
    words.extend(["--password", PASSWORD, "--tenant-records", "40", "--poll-ms", "1"]);
    words.extend([
        "--beside-records",
        "20",
        "--think-ms",
        "0",
        "--first-record",
        "7",
        "--items",
        "2",
        "--step-s",
        "0.3",
        "--warmup-s",
        "0.1",
    ]);
    words.extend(rest);
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    outcome.unwrap();
    check_report(out.path(), &result);
    result
}

#[tokio::test]
async fn imports_are_counted_beside_desks_and_tenants_and_leave_nothing() {
    let library = Library::default();
    let rest = ["--more-tenants", "second,third", "--records", "30,50", "--repeats", "2", "--no-ceiling"];
    let result = import(&library, &rest).await;
    assert!(result.notes.is_empty(), "{:?}", result.notes);
    let names: Vec<&str> =
        result.steps.iter().filter(|it| it.repeat == 0).map(|it| it.name.as_str()).collect();
    let expected = [
        "30 records",
        "50 records",
        "50 records, matched on 010 $a",
        "1 tenant, 40 records each",
        "2 tenants, 40 records each",
        "3 tenants, 40 records each",
        "5 desks, no import",
        "5 desks, beside an import",
    ];
    assert_eq!(names, expected);
    assert_eq!(result.steps.len(), 2 * names.len());
    for step in &result.steps {
        assert_eq!(step.total.n_errors, 0, "{}: {:?}", step.name, step.total.messages);
        let n_imported = step.work.as_ref().map(|it| it.n);
        match &step.labels.get("tenants") {
            Some(n) => {
                let each: u64 = step.labels["records"].parse().unwrap();
                assert_eq!(n_imported, Some(each * n.parse::<u64>().unwrap()), "{}", step.name);
            }
            None => assert_eq!(n_imported, None),
        }
    }
    let rows = &result.tables[0].rows[1..];
    assert_eq!(rows.len(), 2 * 6 + 1, "{rows:?}");
    assert!(rows.iter().all(|row| row[8] == "0" && row[4] == "1000 ms"), "{rows:?}");
    assert!(result.tables[0].summary.contains("3 tenants together"), "{}", result.tables[0].summary);
    assert_eq!(result.series[0].points.len(), 2 * 3);
    assert_eq!(result.tables[1].rows.len(), 5, "{:?}", result.tables[1]);
    assert_eq!(result.tables[1].rows[1][8], "+39 % to +59 %");
    let shelf = library.lock().unwrap();
    assert_eq!(shelf.n_matched_jobs, 2);
    assert!(2 * (30 + 50 + 50 + 6 * 40) < shelf.n_imported && 0 < shelf.n_loans);
    assert!(shelf.records.is_empty(), "left behind: {:?}", shelf.records.keys().take(3).collect::<Vec<_>>());
}

/// An import that loses records is reported, however fast it was.
#[tokio::test]
async fn imports_that_lose_records_are_told() {
    let library = Library::default();
    library.lock().unwrap().n_lost = 3;
    let result = import(&library, &["--no-match", "--desks", "0", "--records", "30"]).await;
    let notes = result.notes.join("; ");
    assert!(notes.contains("30 records: 3 records were not created"), "{notes}");
    assert!(notes.contains("name them with --more-tenants"), "{notes}");
    assert_eq!(result.tables[0].rows[1][8], "3");
    assert_eq!((result.tables.len(), result.steps.len()), (1, 1));
    let bare = result.steps[0].bare.as_ref().unwrap();
    // The bare server takes the whole file in one request.
    assert!(10_000 < bare.request_bytes && bare.share.is_some_and(|it| 0.0 < it), "{bare:?}");
}

#[tokio::test]
async fn blocks_are_counted_and_timed() {
    let datasets = Datasets::default();
    let server = TestServer::start(router(&datasets));
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let words = on_scicat(
        "scicat-origdatablocks",
        &url,
        folder,
        &["--files", "100,2000", "--blocks", "20", "--files-per-block", "50", "--keep-data"],
    );
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    outcome.unwrap();
    check_report(out.path(), &result);
    assert_eq!(result.series[0].points.len(), 20);
    assert_eq!(result.notes.len(), 1, "{:?}", result.notes); // That the data was kept; no miscount.
    let mut counts: Vec<u64> =
        datasets.lock().unwrap().values().map(|dataset| dataset["numberOfFiles"].as_u64().unwrap()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [100, 1000, 2000]);
}

/// The data is written, and a server of it queried: an answer without citations is correct, a long one has a
/// beginning.
#[tokio::test]
async fn labe_asks_for_what_was_written() {
    const LONG_BYTES: usize = 200_000;
    let data = tempfile::tempdir().unwrap();
    let written =
        Cli::try_parse_from(["bench", "labe-data", "--out", data.path().to_str().unwrap()]).unwrap();
    let Command::LabeData(args) = written.args.command else { panic!("another command") };
    let told = labe_data::run(&args).unwrap();
    assert!(told.starts_with("20,000 ids, 400,000 citations in "), "{told}");
    let read = |name: &str| std::fs::read_to_string(data.path().join(name)).unwrap();
    let rows = read("ids.tsv");
    let ids: Arc<Vec<String>> =
        Arc::new(rows.lines().map(|it| it.split('\t').next().unwrap().to_owned()).collect());
    assert_eq!((ids.len(), read("documents.jsonl").lines().count()), (20_000, 20_000));
    assert_eq!(read("citations.csv").lines().count(), 400_001);
    let known = Arc::clone(&ids);
    let server = TestServer::answering(move |_, request| {
        let asked = request.uri().path().strip_prefix("/id/");
        let place = known.iter().position(|id| asked == Some(id.as_str()));
        async move {
            match place {
                _ if request.method() == axum::http::Method::DELETE => ().into_response(),
                Some(place) if place < 12_000 => {
                    format!("{{\"id\":{}}}", "x".repeat(LONG_BYTES)).into_response()
                }
                Some(_) => axum::http::StatusCode::NOT_FOUND.into_response(),
                None => axum::http::StatusCode::BAD_REQUEST.into_response(),
            }
        }
    });
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let words = [
        "labe",
        "--url",
        &url,
        "--out",
        folder,
        "--connections",
        "3",
        "--dearest",
        "30",
        "--dearest-connections",
        "2",
        "--step-s",
        "0.3",
        "--warmup-s",
        "0",
        "--no-ceiling",
    ];
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    outcome.unwrap();
    check_report(out.path(), &result);
    assert_eq!(result.steps.len(), 4 + 1 + 1 + 1);
    for step in &result.steps {
        assert_eq!(step.total.n_errors, 0, "{:?}", step.total.messages);
        assert!(step.total.n_ok > 0 && step.total.head.n == step.total.n_ok, "{}", step.name);
    }
    assert!(result.steps[4].total.answer_bytes_mean < 1.0, "ids without citations had some");
    assert_eq!(result.steps[5].total.n_ok, 30);
    let report = std::fs::read_to_string(out.path().join("report.md")).unwrap();
    assert!(report.contains("## Long answers") && report.contains("330 ms to 1080 ms"), "{report}");
}

#[tokio::test]
async fn http_closed_load_has_a_bare_server_beside_it_and_compares_with_itself() {
    let server = TestServer::answering(|_, _| async { "x".repeat(2000).into_response() });
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let words = [
        "http",
        "--url",
        &url,
        "--out",
        folder,
        "--mode",
        "closed",
        "--path",
        "/a",
        "--connections",
        "4",
        "--step-s",
        "0.5",
        "--warmup-s",
        "0",
        "--repeats",
        "3",
    ];
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    outcome.unwrap();
    check_report(out.path(), &result);
    assert_eq!(result.steps.len(), 3);
    assert!(result.client_ceiling.as_ref().unwrap().rate_per_core_s > 0.0);
    let bare = result.steps[0].bare.as_ref().unwrap();
    assert!(bare.rate_per_s > 0.0 && bare.share.unwrap() > 0.0);
    assert!((2000..=2048).contains(&bare.answer_bytes), "{}", bare.answer_bytes);
    let table = compare(out.path(), &out.path().join("result.json")).unwrap();
    assert!(table.contains("within noise") && table.contains("| 1.00 ["), "{table}");
}

#[tokio::test]
async fn a_run_that_is_interrupted_leaves_its_report() {
    let stop = Stop::default();
    let n_seen = Arc::new(AtomicU64::new(0));
    let server = TestServer::answering({
        let (stop, n_seen) = (stop.clone(), Arc::clone(&n_seen));
        move |_, request| {
            // As if Ctrl-C came after a while; the check for a metrics page is not load.
            if request.uri().path() == "/a" && n_seen.fetch_add(1, Ordering::SeqCst) == 100 {
                stop.ask();
            }
            async { "ok".into_response() }
        }
    });
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let words = [
        "http",
        "--url",
        &url,
        "--out",
        folder,
        "--rates",
        "200,400",
        "--path",
        "/a",
        "--step-s",
        "600",
        "--warmup-s",
        "0",
        "--no-ceiling",
    ];
    let Finished { result, outcome } = run(&words, &stop).await.unwrap();
    assert!(matches!(outcome, Err(BenchError::Interrupted)));
    check_report(out.path(), &result);
    assert_eq!((result.ended.clone(), result.steps.len()), (Ended::Interrupted, 1));
    assert_eq!(result.steps[0].cut_short.as_deref(), Some("interrupted"));
    assert!(result.steps[0].total.n_ok >= 50);
}

#[tokio::test]
async fn a_bulk_flow_beside_does_not_hide_the_interactive_one() {
    let server = TestServer::answering(|_, request| async move {
        if request.uri().path() == "/slow" {
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
        "ok".into_response()
    });
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let words = [
        "http",
        "--url",
        &url,
        "--out",
        folder,
        "--rates",
        "50",
        "--flow",
        "a,3,GET,/slow",
        "--flow",
        "b,1,GET,/slow",
        "--beside",
        "bulk,GET,/fast",
        "--step-s",
        "0.6",
        "--warmup-s",
        "0",
        "--no-ceiling",
    ];
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    outcome.unwrap();
    let step = &result.steps[0];
    assert_eq!(step.flows.len(), 3);
    assert_eq!(step.total.n_ok, step.flows[0].n_ok + step.flows[1].n_ok);
    assert!(step.flows[2].name == "beside: bulk" && step.flows[2].n_ok > 0);
    assert!(step.total.latency.p50_ms >= 29.9, "{}", step.total.latency.p50_ms);
    assert_eq!(step.offered_per_s, Some(50.0));
}

/// A folder that can no longer be written stands for a full disk: the result can still be printed.
#[tokio::test]
async fn reports_that_cannot_be_written_do_not_lose_the_result() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("report");
    let server = TestServer::answering({
        let folder = folder.clone();
        move |_, request| {
            if request.uri().path() == "/a" && folder.is_dir() {
                std::fs::remove_dir_all(&folder).unwrap();
                std::fs::write(&folder, "in the way").unwrap();
            }
            async { "ok".into_response() }
        }
    });
    let url = server.url();
    let words = [
        "http",
        "--url",
        &url,
        "--out",
        folder.to_str().unwrap(),
        "--path",
        "/a",
        "--step-s",
        "0.3",
        "--warmup-s",
        "0",
        "--no-ceiling",
    ];
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    assert!(matches!(outcome, Err(BenchError::Write { .. })), "{outcome:?}");
    assert_eq!(result.steps.len(), 1);
    assert!(result.steps[0].total.n_ok > 0);
}

/// Checks that a run with `words` ends with a message that contains `expected`.
async fn check_message(words: &[&str], expected: &str) {
    let message = match run(words, &Stop::default()).await {
        Err(error) | Ok(Finished { outcome: Err(error), .. }) => error.to_string(),
        Ok(Finished { result, outcome: Ok(()) }) => format!("no error but {} steps", result.steps.len()),
    };
    assert!(message.contains(expected), "{words:?}: found {message:?}, expected {expected:?}");
    assert!(!message.contains(PASSWORD) && !message.contains("wrong password"), "{message}");
}

#[tokio::test]
async fn messages_say_what_is_wrong() {
    let datasets = Datasets::default();
    let scicat = TestServer::start(router(&datasets)).keep();
    let other = TestServer::answering(|_, _| async { "<html>It works!</html>".into_response() }).keep();
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let reads = |url: &'static str, password: &'static str| {
        [
            "scicat-reads",
            "--url",
            url,
            "--out",
            folder,
            "--no-ceiling",
            "--username",
            "ingestor",
            "--password",
            password,
        ]
    };
    check_message(
        &reads(scicat, "wrong password"),
        "refused the login of \"ingestor\" with status 401: Unauthorized",
    )
    .await;
    check_message(&reads(other, PASSWORD), "does not answer as SciCat").await;
    check_message(&reads("http://127.0.0.1:1", PASSWORD), "no server accepts connections at 127.0.0.1:1")
        .await;
    check_message(&reads("http://192.0.2.1:1", PASSWORD), "only with --allow-remote").await;
    check_message(&["http", "--url", other, "--out", "/proc/nowhere"], "writing /proc/nowhere").await;
    check_message(&["http", "--url", other, "--out", folder, "--pid", "4294967295"], "no such process").await;
    check_message(&["http", "--url", other, "--out", folder, "--flow", "a,b,GET,/"], "--flow \"a,b,GET,/\"")
        .await;
    let metrics = format!("{other}/metrics");
    check_message(
        &["http", "--url", other, "--out", folder, "--metrics-url", &metrics],
        "Prometheus text format",
    )
    .await;
    let rest = ["http", "--url", other, "--out", folder, "--no-ceiling", "--connections", "1000000"];
    check_message(&rest, "raise it with `ulimit -n").await;
}

#[tokio::test]
async fn searches_are_asked_one_by_one_and_together() {
    let datasets = Datasets::default();
    let server = TestServer::start(router(&datasets));
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let words = on_scicat(
        "search",
        &url,
        folder,
        &["--datasets", "40", "--connections", "4", "--step-s", "0.1", "--warmup-s", "0.05"],
    );
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    outcome.unwrap();
    check_report(out.path(), &result);
    let of = |connections: &str| {
        result.steps.iter().filter(|step| step.labels["connections"] == connections).count()
    };
    assert!(of("4") == 3 && of("1") + of("4") == result.steps.len(), "{} steps", result.steps.len());
    for step in &result.steps {
        assert_eq!(step.total.n_errors, 0, "{:?}", step.total.messages);
        assert!(step.total.n_ok > 0, "{}", step.name);
    }
    assert!(datasets.lock().unwrap().is_empty(), "the data was left behind");
}

#[tokio::test]
async fn a_library_is_searched_and_left_as_it_was() {
    let library = Library::default();
    let server = TestServer::start(folio::router(&library));
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let mut words =
        vec!["folio-search", "--url", &url, "--out", folder, "--tenant", "diku", "--username", "ann"];
    words.extend(["--password", PASSWORD, "--instances", "1200", "--connections", "4", "--step-s", "0.1"]);
    words.extend(["--warmup-s", "0.05", "--no-ceiling"]);
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    outcome.unwrap();
    check_report(out.path(), &result);
    let n_crowded = result.steps.iter().filter(|step| step.labels["connections"] == "4").count();
    assert_eq!((n_crowded, result.steps.len()), (3, 18));
    for step in &result.steps {
        assert_eq!(step.total.n_errors, 0, "{:?}", step.total.messages);
        assert!(step.total.n_ok > 0, "{}", step.name);
    }
    let shelf = library.lock().unwrap();
    assert_eq!(shelf.n_batched, 1_200);
    assert!(shelf.records.is_empty(), "the data was left behind");
}

#[tokio::test]
async fn the_servers_own_numbers_are_used() {
    let n = Arc::new(AtomicU64::new(0));
    let server = TestServer::answering({
        let n = Arc::clone(&n);
        move |_, request| {
            let n = Arc::clone(&n);
            async move {
                if request.uri().path() != "/metrics" {
                    n.fetch_add(1, Ordering::SeqCst);
                    return "ok".into_response();
                }
                let n = n.load(Ordering::SeqCst);
                format!(
                    "pinakes_stage_seconds_sum{{stage=\"commit\"}} {}\npinakes_stage_seconds_count{{stage=\"commit\"}} {n}\n\
                     pinakes_stage_seconds_sum{{stage=\"store\"}} {}\npinakes_stage_seconds_count{{stage=\"store\"}} {n}\n\
                     pinakes_writer_queue_depth 3\n",
                    n as f64 * 0.003,
                    n as f64 * 0.001
                )
                .into_response()
            }
        }
    });
    let out = tempfile::tempdir().unwrap();
    let (url, folder) = (server.url(), out.path().to_str().unwrap());
    let words = [
        "http",
        "--url",
        &url,
        "--out",
        folder,
        "--rates",
        "200",
        "--path",
        "/a",
        "--step-s",
        "1.2",
        "--warmup-s",
        "0",
        "--no-ceiling",
    ];
    let Finished { result, outcome } = run(&words, &Stop::default()).await.unwrap();
    outcome.unwrap();
    let step = &result.steps[0];
    let commit = step.stages.iter().find(|stage| stage.stage == "commit").unwrap();
    assert_eq!(commit.n, step.total.n_ok);
    assert!((commit.mean_ms() - 3.0).abs() < 0.01);
    assert!(step.samples.iter().any(|sample| sample.writer_queue_depth == Some(3.0)));
    if cfg!(target_os = "linux") {
        assert!(step.samples.iter().all(|sample| sample.server_memory_bytes.is_some()), "found by its port");
    }
}
