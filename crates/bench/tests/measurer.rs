//! Tests of the load generator: servers with known behaviour, and the results it must report. Only counts,
//! and bounds that hold by construction however slow the machine is.

mod servers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use pinakes_bench::client::Request;
use pinakes_bench::load::record::CutShort;
use pinakes_bench::load::run::{Live, run_step};
use pinakes_bench::load::{ClientSettings, Flow, Group, Load, Loops, Script, Step, StepRecord, Work};
use pinakes_bench::stop::Stop;
use servers::TestServer;

const MS: Duration = Duration::from_millis(1);

fn flow(name: &str, share: u32, path: &str) -> Flow {
    let request = Request::get(path.to_owned(), &Arc::new(HeaderMap::new()));
    Flow { share, ..Flow::only(name, Arc::new(move |_| request.clone())) }
}

fn group(load: Load, connections: usize) -> Group {
    Group { name: String::new(), load, connections, work: Work::Mix(vec![flow("f", 1, "/f")]) }
}

fn closed(loops: Loops) -> Load {
    Load::Closed { ramp_up: Duration::ZERO, loops, think: Duration::ZERO }
}

fn step(measured: Duration, groups: Vec<Group>) -> Step {
    Step { name: "test".to_owned(), labels: BTreeMap::new(), warmup: Duration::ZERO, measured, groups }
}

async fn run(server: &TestServer, step: &Step, settings: ClientSettings) -> StepRecord {
    run_step(&server.target(), step, &settings, &Stop::default(), &Arc::new(Live::default())).await.unwrap()
}

fn ok() -> Response {
    "ok".into_response()
}

#[tokio::test]
async fn a_fixed_delay_is_never_undercut() {
    let server = TestServer::answering(|_, _| async {
        tokio::time::sleep(20 * MS).await;
        ok()
    });
    let record = run(
        &server,
        &step(60_000 * MS, vec![group(closed(Loops::PerUser(10)), 5)]),
        ClientSettings::default(),
    )
    .await;
    let flow = &record.flows[0];
    assert_eq!((flow.n_ok, flow.n_errors(), flow.n_unsent), (50, 0, 0));
    assert!(flow.latency_us.min() >= 19_900, "{}", flow.latency_us.min());
    // Five users cannot have more answers than the delay allows.
    assert!(record.throughput_per_s() <= 5.0 / 0.0199, "{}", record.throughput_per_s());
}

#[tokio::test]
async fn one_long_stall_shows_for_all_that_were_due_in_it() {
    let gate = Arc::new(tokio::sync::Mutex::new(()));
    let server = TestServer::answering(move |n, _| {
        let gate = Arc::clone(&gate);
        async move {
            let _turn = gate.lock().await;
            if n == 100 {
                tokio::time::sleep(600 * MS).await;
            }
            ok()
        }
    });
    let load = Load::Open { rate_per_s: 200.0 };
    let record = run(&server, &step(2_000 * MS, vec![group(load, 4)]), ClientSettings::default()).await;
    let flow = &record.flows[0];
    assert!(
        flow.latency_us.value_at_quantile(0.999) >= 500_000,
        "p99.9 {}",
        flow.latency_us.value_at_quantile(0.999)
    );
    // 200/s were due during the stall: those of its first half waited for the other half. A client that waits
    // for answers before it sends again would have seen four.
    let n_stalled = flow.latency_us.count_between(290_000, 3_600_000_000);
    assert!(n_stalled >= 40, "{n_stalled} saw the stall");
    assert!(flow.n_late >= 40, "{} were late", flow.n_late);
    assert_eq!(flow.n_errors(), 0);
}

#[tokio::test]
async fn one_error_in_a_thousand_is_counted() {
    let server = TestServer::answering(|n, _| async move {
        if n % 1000 == 999 { StatusCode::INTERNAL_SERVER_ERROR.into_response() } else { ok() }
    });
    let record = run(
        &server,
        &step(60_000 * MS, vec![group(closed(Loops::Together(3000)), 8)]),
        ClientSettings::default(),
    )
    .await;
    let flow = &record.flows[0];
    assert_eq!((flow.n_ok, flow.n_errors()), (2997, 3));
    assert_eq!(flow.n_status, BTreeMap::from([(500, 3)]));
    assert_eq!(flow.messages.values().sum::<u64>(), 3);
    assert_eq!(flow.latency_us.len(), 2997);
}

#[tokio::test]
async fn a_rate_that_cannot_be_kept_is_told() {
    let gate = Arc::new(tokio::sync::Mutex::new(()));
    let server = TestServer::answering(move |_, _| {
        let gate = Arc::clone(&gate);
        async move {
            let _turn = gate.lock().await; // One after the other, 5 ms each: 200/s at most.
            tokio::time::sleep(5 * MS).await;
            ok()
        }
    });
    let load = Load::Open { rate_per_s: 1000.0 };
    let record = run(&server, &step(1_000 * MS, vec![group(load, 8)]), ClientSettings::default()).await;
    let flow = &record.flows[0];
    assert!(record.throughput_per_s() <= 205.0, "{}", record.throughput_per_s());
    assert!(flow.n_unsent >= 700, "{} unsent", flow.n_unsent);
    // Unsent requests count with their age: no request that was due is missing.
    assert_eq!(flow.latency_us.len(), flow.n_ok + flow.n_unsent);
    assert!(flow.latency_us.value_at_quantile(0.5) >= 200_000, "{}", flow.latency_us.value_at_quantile(0.5));
}

#[tokio::test]
async fn every_due_request_is_accounted_for() {
    let server = TestServer::answering(|_, _| async { ok() });
    let load = Load::Open { rate_per_s: 500.0 };
    let settings = ClientSettings { threads: 2, ..ClientSettings::default() };
    let mut step = step(1_000 * MS, vec![group(load, 10)]);
    step.warmup = 500 * MS;
    let record = run(&server, &step, settings).await;
    let flow = &record.flows[0];
    let n = flow.n_ok + flow.n_errors() + flow.n_unsent;
    // If the machine stalls for a moment, the last due requests may not be released any more.
    assert!((450..=501).contains(&n), "{n} measured");
    assert!((230..=251).contains(&flow.n_warmup), "{} warm-up", flow.n_warmup);
    assert_eq!(flow.seconds.values().map(|second| second.n_ok).sum::<u64>(), flow.n_ok);
}

#[tokio::test]
async fn connections_that_the_server_closes_are_no_errors() {
    let server = TestServer::answering(|_, _| async { ([("connection", "close")], "ok").into_response() });
    let record = run(
        &server,
        &step(60_000 * MS, vec![group(closed(Loops::Together(200)), 4)]),
        ClientSettings::default(),
    )
    .await;
    assert_eq!((record.flows[0].n_ok, record.flows[0].n_errors()), (200, 0));
}

#[tokio::test]
async fn time_outs_are_counted_with_the_time_they_took() {
    let server = TestServer::answering(|_, _| async {
        tokio::time::sleep(60_000 * MS).await;
        ok()
    });
    let settings = ClientSettings { timeout: 100 * MS, ..ClientSettings::default() };
    let record = run(&server, &step(60_000 * MS, vec![group(closed(Loops::Together(6)), 3)]), settings).await;
    let flow = &record.flows[0];
    assert_eq!((flow.n_ok, flow.n_timeouts), (0, 6));
    assert!(flow.latency_us.min() >= 99_000, "{}", flow.latency_us.min());
}

#[tokio::test]
async fn an_interruption_keeps_what_was_measured() {
    let server = TestServer::answering(|_, _| async { ok() });
    let stop = Stop::default();
    let live = Arc::new(Live::default());
    let asker = {
        let (stop, live) = (stop.clone(), Arc::clone(&live));
        tokio::spawn(async move {
            while live.n_answers.load(Ordering::Relaxed) < 10 {
                tokio::time::sleep(5 * MS).await;
            }
            stop.ask();
        })
    };
    let long = step(600_000 * MS, vec![group(Load::Open { rate_per_s: 100.0 }, 2)]);
    let record = run_step(&server.target(), &long, &ClientSettings::default(), &stop, &live).await.unwrap();
    asker.await.unwrap();
    assert_eq!(record.cut_short, Some(CutShort::Interrupted));
    assert!(record.flows[0].n_ok >= 10);
    assert!(record.measured_s() < 60.0, "the window ends where the run did: {}", record.measured_s());
}

#[tokio::test]
async fn a_server_that_dies_ends_the_step() {
    let mut server = TestServer::answering(|_, _| async { ok() });
    let live = Arc::new(Live::default());
    let long = step(600_000 * MS, vec![group(Load::Open { rate_per_s: 100.0 }, 2)]);
    let (target, stop, settings) = (server.target(), Stop::default(), ClientSettings::default());
    let running = run_step(&target, &long, &settings, &stop, &live);
    let ending = async {
        while live.n_answers.load(Ordering::Relaxed) < 10 {
            tokio::time::sleep(5 * MS).await;
        }
        server.end();
    };
    let (record, ()) = tokio::join!(running, ending);
    let record = record.unwrap();
    assert_eq!(record.cut_short, Some(CutShort::ServerGone));
    assert!(record.flows[0].n_ok >= 10 && record.flows[0].n_connect_errors > 0);
}

#[tokio::test]
async fn no_server_is_an_error_before_anything_is_measured() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut server = TestServer::answering(|_, _| async { ok() });
    server.address = listener.local_addr().unwrap();
    drop(listener);
    let error = run_step(
        &server.target(),
        &step(100 * MS, vec![group(Load::Open { rate_per_s: 1.0 }, 1)]),
        &ClientSettings::default(),
        &Stop::default(),
        &Arc::new(Live::default()),
    )
    .await
    .unwrap_err();
    assert!(error.to_string().contains("no server accepts connections"), "{error}");
}

#[tokio::test]
async fn groups_and_mixes_are_told_apart() {
    let server = TestServer::answering(|_, request| async move {
        if request.uri().path() == "/bulk" { "x".repeat(5000).into_response() } else { ok() }
    });
    let groups = vec![
        Group {
            name: "interactive".to_owned(),
            load: closed(Loops::Together(400)),
            connections: 4,
            work: Work::Mix(vec![flow("often", 3, "/a"), flow("seldom", 1, "/b")]),
        },
        Group {
            name: "bulk".to_owned(),
            load: closed(Loops::PerUser(20)),
            connections: 2,
            work: Work::Mix(vec![flow("load", 1, "/bulk")]),
        },
    ];
    let record = run(&server, &step(60_000 * MS, groups), ClientSettings::default()).await;
    let names: Vec<&str> = record.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["interactive: often", "interactive: seldom", "bulk: load"]);
    assert_eq!(record.flows[0].n_ok + record.flows[1].n_ok, 400);
    assert!(record.flows[0].n_ok > record.flows[1].n_ok);
    assert_eq!((record.flows[2].n_ok, record.flows[2].answer_bytes), (40, 200_000));
}

#[tokio::test]
async fn a_script_passes_on_what_it_got() {
    let created = Arc::new(AtomicU64::new(0));
    let strayed = Arc::new(AtomicBool::new(false));
    let server = TestServer::answering({
        let (created, strayed) = (Arc::clone(&created), Arc::clone(&strayed));
        move |n, request| {
            let (created, strayed) = (Arc::clone(&created), Arc::clone(&strayed));
            async move {
                if request.uri().path() == "/create" {
                    created.fetch_add(1, Ordering::SeqCst);
                    return format!("/made/{n}").into_response();
                }
                strayed.fetch_or(!request.uri().path().starts_with("/made/"), Ordering::SeqCst);
                ok()
            }
        }
    });
    let headers = Arc::new(HeaderMap::new());
    let script = Script {
        flows: vec!["create".to_owned(), "read".to_owned()],
        body: Arc::new(move |user, _pass| {
            let headers = Arc::clone(&headers);
            Box::pin(async move {
                let made = user.send(0, Request::get("/create".to_owned(), &headers)).await?;
                let path = String::from_utf8_lossy(&made.body).into_owned();
                user.send(1, Request::get(path, &headers)).await?;
                Ok(())
            })
        }),
    };
    let users = Group {
        name: String::new(),
        load: Load::Closed { ramp_up: 50 * MS, loops: Loops::PerUser(4), think: MS },
        connections: 5,
        work: Work::Script(script),
    };
    let record = run(&server, &step(60_000 * MS, vec![users]), ClientSettings::default()).await;
    assert_eq!((record.flows[0].n_ok, record.flows[1].n_ok), (20, 20));
    assert_eq!(created.load(Ordering::SeqCst), 20);
    assert!(!strayed.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_thousand_connections_work_together() {
    let server = TestServer::answering(|_, _| async { ok() });
    let settings = ClientSettings { threads: 2, ..ClientSettings::default() };
    let record =
        run(&server, &step(60_000 * MS, vec![group(closed(Loops::PerUser(2)), 1000)]), settings).await;
    assert_eq!((record.flows[0].n_ok, record.flows[0].n_errors()), (2000, 0));
}

#[tokio::test]
async fn the_slowest_are_kept_with_the_servers_timing() {
    let server = TestServer::answering(|n, _| async move {
        if n == 150 {
            tokio::time::sleep(200 * MS).await;
        }
        ([("server-timing", format!("store;dur={n}"))], "ok").into_response()
    });
    let record = run(
        &server,
        &step(60_000 * MS, vec![group(closed(Loops::Together(300)), 1)]),
        ClientSettings::default(),
    )
    .await;
    let slowest = record.flows[0].slowest();
    assert_eq!(slowest.len(), 100);
    assert!(slowest.iter().any(|slow| slow.server_timing == "store;dur=150" && slow.latency_us >= 199_000));
    assert!(slowest.is_sorted_by(|a, b| a.latency_us >= b.latency_us));
}
