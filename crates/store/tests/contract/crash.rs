//! A server killed in the middle of its writes: everything acknowledged is there, and nothing is there in part.
//!
//! The test starts itself again as the server: many threads write and report on standard output each `write` that has
//! returned; the parent kills it, opens what is left and compares.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use pinakes_store::{Catalogue, Document, Expr, Limits, Location, Query, Result, StoreError, Tenant, Txn};
use serde_json::{Value as Json, json};

use crate::engines::{Place, engines, eventually, read, sqlite};
use crate::kinds::{ALL, ITEM, PLAIN};

const ROUNDS: u64 = 20;
const WRITERS: u64 = 6;
/// Number of acknowledgements after which the server is killed; another number each round.
const FEWEST_ACKNOWLEDGED: u64 = 40;
/// Number of rounds after which the search indexes are rebuilt.
const REBUILT: u64 = 4;
const PLACE: &str = "PINAKES_TEST_CRASH_PLACE";
const ROUND: &str = "PINAKES_TEST_CRASH_ROUND";

#[test]
fn acknowledged_writes_survive_a_kill() {
    for place in engines() {
        let mut acknowledged = HashSet::new();
        for round in 0..ROUNDS {
            if round % REBUILT == 0 {
                // The server rebuilds its indexes while it is killed.
                std::fs::remove_dir_all(search_folder(&place)).ok();
            }
            acknowledged.extend(write_and_kill(&place, round));
            look(&place.tenant(ALL), &acknowledged, place.engine);
        }
        if place.engine == "sqlite" {
            assert!(search_folder(&place).join("item/meta.json").exists(), "no index was killed");
        }
    }
}

#[test]
fn what_a_kill_leaves_in_the_log_is_moved_to_the_file_without_another_write() {
    let place = sqlite();
    let acknowledged = write_and_kill(&place, 0);
    let file = || std::fs::read(place.file("t")).expect("the file");
    let before = file();
    let tenant = place.tenant(ALL);
    eventually(|| file() != before);
    look(&tenant, &acknowledged, place.engine);
}

/// Starts a server and kills it while it writes; returns what it has acknowledged.
fn write_and_kill(place: &Place, round: u64) -> HashSet<String> {
    let mut child = start(&place.location, round);
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let enough = FEWEST_ACKNOWLEDGED + round * 13 % 60;
    let mut acknowledged = HashSet::new();
    let mut n = 0;
    for line in lines.map_while(std::io::Result::ok) {
        // The test harness writes lines of its own, and our first line may follow one of them without a line break.
        let Some((_, name)) = line.split_once("ack ") else { continue };
        acknowledged.insert(name.to_owned());
        n += 1;
        if n == enough {
            child.kill().expect("a kill");
        }
    }
    child.wait().expect("an end");
    assert!(enough <= n, "{}: the server stopped by itself after {n}", place.engine);
    acknowledged
}

fn search_folder(place: &Place) -> PathBuf {
    PathBuf::from(format!("{}-search", place.file("t").display()))
}

fn start(location: &Location, round: u64) -> Child {
    let place = match location {
        Location::Folder(folder) => folder.display().to_string(),
        Location::Postgres(url) => url.clone(),
    };
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "crash::server", "--nocapture", "--test-threads=1"])
        .env(PLACE, place)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a child")
}

/// Not a test of its own: the server of the test above.
#[test]
fn server() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let location = if place.starts_with("postgres") {
        Location::Postgres(place)
    } else {
        Location::Folder(place.into())
    };
    let round: u64 = std::env::var(ROUND).ok().and_then(|it| it.parse().ok()).expect("a round");
    // Search indexes are committed all the time, so that kills hit commits.
    let limits = Limits { log_bytes: 256 << 10, index_pause_ms: 1, ..Limits::default() };
    let catalogue = Catalogue::open(location, ALL, limits).expect("a catalogue");
    let tenant = catalogue.tenant_or_new("t").expect("a tenant");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let tenant = &tenant;
            scope.spawn(move || {
                (0..u64::MAX).for_each(|n| write_some(tenant, &format!("{round}-{writer}-{n}"), n))
            });
        }
    });
}

/// Does one of three kinds of write, which is acknowledged when it returns.
fn write_some(tenant: &Tenant, name: &str, n: u64) {
    let own = name.to_owned();
    let result = match n % 3 {
        0 => tenant.write_blocking(move |txn| pair(txn, &own)),
        1 => tenant.write_blocking(move |txn| child_and_counter(txn, &own)),
        _ => with_members(tenant, name, n),
    };
    match result {
        Ok(()) => {
            let mut out = std::io::stdout().lock();
            writeln!(out, "\nack {name}").and_then(|()| out.flush()).expect("the parent reads");
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Writes two records that must both exist or both not.
fn pair(txn: &mut Txn<'_>, name: &str) -> Result<()> {
    let body = json!({"name": name, "pad": "x".repeat(2_000), "group": "g", "keywords": ["k", name]});
    txn.insert(&ITEM, &format!("{name}/a"), &body)?;
    txn.insert(&ITEM, &format!("{name}/b"), &body)?;
    Ok(())
}

/// Writes a child and updates its parent's count of children.
fn child_and_counter(txn: &mut Txn<'_>, name: &str) -> Result<()> {
    txn.insert(&PLAIN, name, &json!({"parent": "counter"}))?;
    let n = match txn.get(&PLAIN, "counter")? {
        Some(record) => record.json()?["n"].as_u64().unwrap_or(0),
        None => 0,
    };
    txn.put(&PLAIN, "counter", &json!({"n": n + 1}))?;
    Ok(())
}

/// Writes a list of members in chunks, then the record that takes it over.
fn with_members(tenant: &Tenant, name: &str, n: u64) -> Result<()> {
    let list = tenant.write_blocking(|txn| txn.new_list(&ITEM))?;
    for chunk in 0..3_u64 {
        let bytes = bytes::Bytes::from(format!("{n},{n}"));
        tenant.write_blocking(move |txn| txn.append_members(&ITEM, list, chunk * 2, 2, bytes.clone()))?;
    }
    let document = Document::new(&ITEM, name, &json!({"name": "with members"}))?.with_list(list, 6);
    tenant.write_blocking(move |txn| {
        txn.insert_document(&document)?;
        Ok::<(), StoreError>(())
    })
}

fn look(tenant: &Tenant, acknowledged: &HashSet<String>, engine: &str) {
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{engine}");
    let items = read(tenant, |view| view.find(&ITEM, &Query::filter(Expr::All)));
    let plain = read(tenant, |view| view.find(&PLAIN, &Query::filter(Expr::All)));
    let mut parts: HashMap<String, u32> = HashMap::new();
    for record in &items {
        let name = record.id.split('/').next().unwrap_or_default().to_owned();
        *parts.entry(name).or_default() += if record.list.is_some() { 2 } else { 1 };
    }
    let mut n_children = 0;
    for record in plain.iter().filter(|it| it.id != "counter") {
        n_children += 1;
        parts.insert(record.id.clone(), 2);
    }
    assert!(parts.values().all(|it| *it == 2), "{engine}: half a pair");
    let counter = plain.iter().find(|it| it.id == "counter").map(|it| it.json().expect("JSON"));
    assert_eq!(
        counter.map_or(0, |it: Json| it["n"].as_u64().unwrap_or(0)),
        n_children,
        "{engine}: the counter"
    );
    let lost: Vec<_> = acknowledged.iter().filter(|it| !parts.contains_key(*it)).collect();
    assert!(lost.is_empty(), "{engine}: acknowledged and lost: {lost:?}");
}
