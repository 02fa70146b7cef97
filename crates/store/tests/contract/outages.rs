//! PostgreSQL becomes unreachable: during a commit, between reads, permanently.

use std::time::{Duration, Instant};

use pinakes_store::{Catalogue, Expr, Limits, Location, Query, StoreError, Tenant, Weight};
use serde_json::json;

use crate::engines::{Place, engines, read, write};
use crate::kinds::{ALL, PLAIN};
use crate::wire::{Cut, Wire};

/// Returns a fresh place in the database, reached over a wire that can be cut.
fn over_a_wire() -> Option<(Place, Wire)> {
    let place = engines().into_iter().find(|it| it.engine == "postgresql")?;
    let Location::Postgres(url) = &place.location else { return None };
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let (who, rest) = rest.rsplit_once('@').expect("a user");
    let (database, path) = rest.split_once('/').expect("a database");
    let wire = Wire::to(database);
    let url = format!("{scheme}://{who}@{}/{path}", wire.address());
    Some((Place { location: Location::Postgres(url), ..place }, wire))
}

fn count_up(tenant: &Tenant) {
    write(tenant, |txn| {
        let n = txn
            .get(&PLAIN, "counter")?
            .map_or(Ok(0), |it| it.json().map(|it| it["n"].as_u64().unwrap_or(0)))?;
        txn.put(&PLAIN, "counter", &json!({"n": n + 1}))
    });
}

fn counted(tenant: &Tenant) -> u64 {
    let counter = read(tenant, |view| view.get(&PLAIN, "counter")).expect("the counter");
    counter.json().expect("JSON")["n"].as_u64().expect("a number")
}

#[test]
fn a_commit_that_is_not_answered_is_done_once() {
    let Some((place, wire)) = over_a_wire() else { return };
    let tenant = place.tenant(ALL);
    let mut n = 0;
    for round in 0..6 {
        count_up(&tenant);
        wire.cut_at("COMMIT", if round % 2 == 0 { Cut::After } else { Cut::Before });
        count_up(&tenant);
        n += 2;
        assert_eq!(wire.n_cut(), round + 1, "the commit was cut");
        assert_eq!(counted(&tenant), n, "round {round}");
    }
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}

#[test]
fn writes_that_share_a_commit_share_its_fate() {
    let Some((place, wire)) = over_a_wire() else { return };
    let limits = Limits { tenant_writers: 1, ..Limits::default() };
    let tenant = place.open(ALL, limits).tenant_or_new("t").expect("a tenant");
    for (round, cut) in [Cut::After, Cut::Before].into_iter().enumerate() {
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let (started, has_started) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let tenant = &tenant;
            scope.spawn(move || {
                write(tenant, move |txn| {
                    started.send(()).ok();
                    gate.recv_timeout(Duration::from_secs(60)).ok();
                    txn.put(&PLAIN, "first", &json!({})).map(|_| ())
                });
            });
            has_started.recv().expect("the first runs");
            for n in 0..10 {
                let wire = wire.clone();
                scope.spawn(move || {
                    let mut is_armed = n != 0;
                    write(tenant, move |txn| {
                        if !is_armed {
                            wire.cut_at("COMMIT", cut);
                            is_armed = true;
                        }
                        txn.insert(&PLAIN, &format!("{round}-{n}"), &json!({})).map(|_| ())
                    });
                });
            }
            while tenant.statistics().queue_depth < 10 {
                std::thread::yield_now();
            }
            release.send(()).expect("the first waits");
        });
        assert_eq!(wire.n_cut(), round + 1);
        assert_eq!(read(&tenant, |view| view.count(&PLAIN, &Expr::All)), 1 + 10 * (round as u64 + 1));
    }
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}

#[test]
fn reads_go_on_when_their_connection_is_cut() {
    let Some((place, wire)) = over_a_wire() else { return };
    let tenant = place.tenant(ALL);
    write(&tenant, |txn| txn.insert(&PLAIN, "a", &json!({"n": 1})));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for round in 0..3 {
        wire.cut_at("ISOLATION LEVEL REPEATABLE READ", Cut::Before);
        assert_eq!(read(&tenant, |view| view.find(&PLAIN, &Query::filter(Expr::All))).len(), 1);
        assert_eq!(wire.n_cut(), 2 * round + 1);
        // This id is read over the lane for reads by id.
        let id = format!("an id that is looked for {round}");
        let by_id = tenant.read(Weight::Point, |view| view.get(&PLAIN, "a"));
        assert!(runtime.block_on(by_id).expect("a read").is_some());
        wire.cut_at("an id that is looked for", Cut::After);
        let by_id = tenant.read(Weight::Point, move |view| view.get(&PLAIN, &id));
        assert!(runtime.block_on(by_id).expect("a read").is_none());
        assert_eq!(wire.n_cut(), 2 * round + 2);
    }
}

#[test]
fn a_database_that_is_silent_is_not_waited_for_long() {
    let Some((place, wire)) = over_a_wire() else { return };
    let limits = Limits { read_timeout_ms: 1_000, database_wait_ms: 500, ..Limits::default() };
    let tenant = place.open(ALL, limits).tenant_or_new("t").expect("a tenant");
    write(&tenant, |txn| txn.insert(&PLAIN, "a", &json!({})));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let by_id = || runtime.block_on(tenant.read(Weight::Point, |view| view.get(&PLAIN, "a")));
    assert!(by_id().expect("a read").is_some());
    wire.be_silent(true);
    let begun = Instant::now();
    let error = by_id().expect_err("a refusal");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    // Far above the limits, but finite.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    wire.be_silent(false);
    assert!(by_id().expect("a read").is_some(), "it comes back by itself");
}

#[test]
fn nobody_there_is_said_soon() {
    if engines().len() < 2 {
        return;
    }
    // A port that was free a moment ago.
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    let limits = Limits { database_wait_ms: 300, ..Limits::default() };
    let catalogue = Catalogue::open(Location::Postgres(url), ALL, limits).expect("nobody is asked yet");
    for _ in 0..3 {
        let error = catalogue.tenant("t").map(|_| ()).expect_err("a refusal");
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    }
}

#[test]
fn a_copy_that_is_cut_leaves_nothing_half_done() {
    let Some((place, wire)) = over_a_wire() else { return };
    let tenant = place.tenant(ALL);
    for (round, word) in ["of round 0, record 150", "of round 1, record 3", "PGCOPY"].into_iter().enumerate()
    {
        let documents: Vec<_> = (0..200)
            .map(|n| {
                let body = json!({"what": format!("of round {round}, record {n}"), "pad": "x".repeat(900)});
                pinakes_store::Document::new(&PLAIN, format!("{round}-{n}"), &body).expect("a document")
            })
            .collect();
        wire.cut_at(word, Cut::Before);
        // The transaction is lost with its connection and repeated on another.
        write(&tenant, move |txn| txn.insert_missing(&documents.iter().collect::<Vec<_>>()).map(|_| ()));
        assert_eq!(wire.n_cut(), round + 1, "{word}");
        assert_eq!(read(&tenant, |view| view.count(&PLAIN, &Expr::All)), 200 * (round as u64 + 1));
    }
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}
