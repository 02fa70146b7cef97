//! Servers that rebuild a kind, in processes of their own that write meanwhile and are killed: everything they
//! acknowledged is there, and everything follows the declaration of the last one to start.
//!
//! The test starts itself again as the servers, like that of `crash.rs`.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use pinakes_store::{Catalogue, Expr, Kind, Limits, Location, Result, StoreError, Tenant, Txn};
use serde_json::json;

use crate::engines::{engines, read};
use crate::redeclare::{AFTER, BEFORE, FIRST, N, SECOND, body, fill};

const ROUNDS: usize = 12;
const WRITERS: usize = 3;
/// Number of acknowledgements after which the servers of a round are killed; another number each round.
const FEWEST_ACKNOWLEDGED: usize = 5;
const PLACE: &str = "PINAKES_TEST_REMADE_PLACE";
/// The number of the declaration: 1 or 2.
const DECLARED: &str = "PINAKES_TEST_REMADE_DECLARED";
const NAME: &str = "PINAKES_TEST_REMADE_NAME";
/// The declarations of the two servers of a round: the same or different, in either order.
const PAIRS: [[u8; 2]; 4] = [[2, 2], [1, 2], [2, 1], [1, 1]];

#[test]
fn servers_that_make_a_kind_anew_can_be_killed() {
    for place in engines() {
        fill(&place);
        let mut acknowledged = HashSet::new();
        for round in 0..ROUNDS {
            let (said, heard) = mpsc::channel();
            let pair = PAIRS[round % PAIRS.len()].into_iter().enumerate();
            let children = pair.map(|(number, declared)| {
                let mut child = start(&place.location, declared, &format!("{round}-{number}"));
                let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
                let said = said.clone();
                let reader = std::thread::spawn(move || {
                    // The test harness writes lines of its own, and our first line may follow one of them without a
                    // line break.
                    let lines = lines.map_while(std::io::Result::ok);
                    let names = lines.filter_map(|it| Some(it.split_once("ack ")?.1.to_owned()));
                    names.map(|it| said.send(it)).take_while(std::result::Result::is_ok).count()
                });
                (child, reader)
            });
            let children: Vec<_> = children.collect();
            drop(said);
            let enough = FEWEST_ACKNOWLEDGED + round * 29 % 90;
            let first: Vec<String> = heard.iter().take(enough).collect();
            assert_eq!(
                first.len(),
                enough,
                "{}, round {round}: the servers stopped by themselves",
                place.engine
            );
            acknowledged.extend(first);
            for (mut child, reader) in children {
                child.kill().expect("a kill");
                // A server ends by itself only when another has changed the declarations to its own.
                let ended = child.wait().expect("an end");
                assert!(ended.code().is_none_or(|it| it == 0), "{}, round {round}: {ended}", place.engine);
                acknowledged.extend(heard.try_iter());
                reader.join().expect("no panic");
            }
            acknowledged.extend(heard.try_iter());
            if round % 5 == 4 {
                look(&place.tenant(SECOND), &AFTER, &acknowledged, place.engine);
            }
        }
        look(&place.tenant(FIRST), &BEFORE, &acknowledged, place.engine);
        look(&place.tenant(SECOND), &AFTER, &acknowledged, place.engine);
    }
}

/// Checks that everything acknowledged is there and is found as the declaration requires.
fn look(tenant: &Tenant, kind: &'static Kind, acknowledged: &HashSet<String>, engine: &str) {
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{engine}");
    for name in acknowledged {
        assert!(
            read(tenant, |view| view.has(kind, name)),
            "{engine}: {name} was acknowledged and is not there"
        );
    }
    let n = read(tenant, |view| view.count(kind, &Expr::All));
    assert!((N + acknowledged.len()) as u64 <= n, "{engine}: {n} records");
    let in_facet = |value: &str| {
        let lists = read(tenant, |view| view.facets(kind, &Expr::All, &[kind.facets[0].name]));
        lists[0].iter().find(|it| it.value == value).map_or(0, |it| it.n_records)
    };
    let (field, value, text) = if std::ptr::eq(kind, &AFTER) {
        ("size", 2_i64.into(), "2")
    } else {
        ("name", "beam 2".into(), "beam 2")
    };
    let filter = Expr::Is(field.into(), value);
    let found = read(tenant, |view| view.count(kind, &filter));
    assert_eq!(found, in_facet(text), "{engine}: {field}");
}

fn start(location: &Location, declared: u8, name: &str) -> Child {
    let place = match location {
        Location::Folder(folder) => folder.display().to_string(),
        Location::Postgres(url) => url.clone(),
    };
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "remade::server", "--nocapture", "--test-threads=1"])
        .env(PLACE, place)
        .env(DECLARED, declared.to_string())
        .env(NAME, name)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a child")
}

/// Not a test of its own: a server of the test above. It ends when another has changed the declarations to its own.
#[test]
fn server() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let location = if place.starts_with("postgres") {
        Location::Postgres(place)
    } else {
        Location::Folder(place.into())
    };
    let is_first = std::env::var(DECLARED).is_ok_and(|it| it == "1");
    let (kinds, kind): (_, &Kind) = if is_first { (FIRST, &BEFORE) } else { (SECOND, &AFTER) };
    let name = std::env::var(NAME).expect("a name");
    // Everything is rebuilt during the writes.
    let limits = Limits { remake_records_first: 0, remake_pause_ms: 1, ..Limits::default() };
    let catalogue = Catalogue::open(location, kinds, limits).expect("a catalogue");
    let tenant = catalogue.tenant("t").expect("a tenant");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (tenant, name) = (&tenant, &name);
            scope.spawn(move || {
                for n in 0.. {
                    let own = format!("{name}-{writer}-{n}");
                    let id = own.clone();
                    match tenant.write_blocking(move |txn| write_some(txn, kind, &id, n)) {
                        Ok(()) => {
                            let mut out = std::io::stdout().lock();
                            let said = writeln!(out, "\nack {own}").and_then(|()| out.flush());
                            said.expect("the parent reads");
                        }
                        Err(StoreError::Unavailable(_)) => return,
                        Err(error) => {
                            eprintln!("{own}: {error}");
                            std::process::exit(1)
                        }
                    }
                }
            });
        }
    });
}

/// Adds a record, changes one of the first ones, and sometimes deletes one.
fn write_some(txn: &mut Txn<'_>, kind: &'static Kind, name: &str, n: usize) -> Result<()> {
    txn.insert(kind, name, &body(n))?;
    let (of_all, other) = (n * 97 % N, n * 31 % N);
    let mut changed = body(n + 1);
    changed["by"] = json!(name);
    txn.put(kind, &of_all.to_string(), &changed)?;
    if n % 4 == 3 && other != of_all {
        txn.delete(kind, &other.to_string())?;
        txn.put(kind, &format!("{name} instead"), &body(other))?;
    }
    Ok(())
}
