//! Copying a catalogue to another place, between all engines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use bytes::Bytes;
use pinakes_store::{Catalogue, Document, Limits, Location, Query, Tenant, copy_catalogue, copy_tenant};
use serde_json::json;

use crate::engines::{Place, engines, read, write};
use crate::kinds::{ALL, ITEM, PLAIN, USER};

fn fill(tenant: &Tenant) {
    let list = write(tenant, |txn| txn.new_list(&ITEM));
    for position in 0..3_u64 {
        write(tenant, move |txn| {
            txn.append_members(&ITEM, list, position * 2, 2, Bytes::from_static(b"1,2"))
        });
    }
    write(tenant, move |txn| {
        for n in 0..1_200 {
            let body = json!({
                "name": format!("n{}", n % 9), "size": n, "mass": f64::from(n) / 4.0, "keywords": ["k", n.to_string()],
                "group": n % 4, "doi": format!("10.1/{n}"), "parents": ["0"], "note": "Röntgen"
            });
            let document = Document::new(&ITEM, n.to_string(), &body)?;
            txn.insert_document(&if n == 3 { document.with_list(list, 6) } else { document })?;
        }
        txn.insert(&USER, "u", &json!({"username": "ada"}))?;
        txn.update(&ITEM, "5", &json!({"name": "changed"}))?;
        txn.delete(&ITEM, "7")?;
        Ok(())
    });
}

fn look(source: &Tenant, target: &Tenant) {
    assert_eq!(target.check().expect("a check"), Vec::<String>::new());
    let all = Query::filter(pinakes_store::Expr::All);
    for kind in ALL {
        let (from, to) =
            (read(source, |view| view.find(kind, &all)), read(target, |view| view.find(kind, &all)));
        let head = |it: &pinakes_store::Record| (it.id.clone(), it.version, it.body.clone(), it.n_members);
        assert_eq!(from.iter().map(head).collect::<Vec<_>>(), to.iter().map(head).collect::<Vec<_>>());
    }
    let changes = crate::records::changes(target, 0, 1_201);
    let deleted = changes.into_iter().filter(|it| it.deleted);
    assert_eq!(deleted.map(|it| it.id).collect::<Vec<_>>(), ["7"]);
}

fn pairs() -> Vec<(Place, Place)> {
    let n = engines().len();
    (0..n).flat_map(|from| (0..n).map(move |to| (engines().remove(from), engines().remove(to)))).collect()
}

#[test]
fn a_copy_is_the_same_and_goes_on() {
    for (from, to) in pairs() {
        let (source, target) = (from.open(ALL, Limits::default()), to.open(ALL, Limits::default()));
        let tenant = source.create_tenant("t", "described").expect("a tenant");
        fill(&tenant);
        // The first run stops in the middle, because its caller does.
        let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            copy_catalogue(&source, &target, &mut |progress| {
                assert!(progress.n_done < 1_000, "the planned stop at {}", progress.kind);
            })
        }));
        assert!(stopped.is_err(), "it was stopped");
        write(&tenant, |txn| txn.queue_job("imports", "1"));
        let rest = copy_catalogue(&source, &target, &mut |_| {}).expect("a copy");
        assert!(rest.n_records < 1_200, "{}: only what was missing: {}", to.engine, rest.n_records);
        let of_items = rest.kinds.iter().find(|it| it.kind == ITEM.name).expect("items");
        assert_eq!((of_items.tenant.as_str(), of_items.n_records), ("t", 1_199));
        let copy = target.tenant("t").expect("the copy");
        assert_eq!(read(&copy, |view| view.jobs("imports", 9)).len(), 1, "the job came along");
        let again = copy_catalogue(&source, &target, &mut |_| {}).expect("a comparison");
        assert_eq!((again.n_records, again.kinds), (0, rest.kinds), "nothing is copied twice");
        look(&tenant, &target.tenant("t").expect("the copy"));
        assert_eq!(target.tenants().expect("a list")[0].description, "described");
    }
}

#[test]
fn a_target_with_records_is_refused() {
    for (from, to) in pairs() {
        let (source, target) = (from.tenant(ALL), to.tenant(ALL));
        write(&target, |txn| txn.insert(&PLAIN, "own", &json!({})));
        fill(&source);
        let refused = copy_tenant(&source, &target, &mut |_| {}).expect_err("a refusal");
        assert!(refused.to_string().contains("already"), "{refused}");
    }
}

#[test]
fn a_target_that_differs_is_found_although_it_has_as_many() {
    for (from, to) in pairs() {
        let (source, target) = (from.tenant(ALL), to.tenant(ALL));
        write(&source, |txn| txn.insert(&PLAIN, "a", &json!({"n": 1})));
        write(&target, |txn| txn.insert(&PLAIN, "a", &json!({"n": 2})));
        let refused = copy_tenant(&source, &target, &mut |_| {}).expect_err("a refusal");
        assert!(refused.to_string().contains("differs"), "{refused}");
    }
}

const PLACES: &str = "PINAKES_TEST_COPY_PLACES";

/// The copier is killed between two pages, and between two tenants; the next run resumes from there.
#[test]
fn a_killed_copy_goes_on() {
    for (from, to) in pairs() {
        let (source, target) = (from.open(ALL, Limits::default()), to.open(ALL, Limits::default()));
        for name in ["a", "b"] {
            fill(&source.create_tenant(name, "").expect("a tenant"));
        }
        for stop_at in ["a/item/500", "b/item/0", "b/item/1000"] {
            let places = format!("{} {} {stop_at}", place_of(&from), place_of(&to));
            let mut child = Command::new(std::env::current_exe().expect("this program"))
                .args(["--exact", "copies::copier", "--nocapture", "--test-threads=1"])
                .env(PLACES, places)
                .stdout(Stdio::piped())
                .spawn()
                .expect("a child");
            let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
            let reached = lines.map_while(Result::ok).any(|line| line.contains("reached"));
            child.kill().expect("a kill");
            child.wait().expect("an end");
            assert!(reached, "{} to {}: {stop_at} was not reached", from.engine, to.engine);
        }
        let rest = copy_catalogue(&source, &target, &mut |_| {}).expect("a copy");
        assert!(rest.n_records < 1_200, "{}: only what was missing: {}", to.engine, rest.n_records);
        for name in ["a", "b"] {
            look(&source.tenant(name).expect("the source"), &target.tenant(name).expect("the copy"));
        }
    }
}

fn place_of(place: &Place) -> String {
    match &place.location {
        Location::Folder(folder) => format!("sqlite:{}", folder.display()),
        Location::Postgres(url) => url.clone(),
    }
}

/// Not a test of its own: the copier of the test above. It stops where it is told to, in order to be killed there.
#[test]
fn copier() {
    let Ok(places) = std::env::var(PLACES) else { return };
    let [from, to, stop_at] = places.split(' ').collect::<Vec<_>>()[..] else { panic!("{places}") };
    let open = |place: &str| {
        Catalogue::open(place.parse().expect("a place"), ALL, Limits::default()).expect("a catalogue")
    };
    let [tenant, kind, n] = stop_at.split('/').collect::<Vec<_>>()[..] else { panic!("{stop_at}") };
    let n: u64 = n.parse().expect("a number");
    let copied = copy_catalogue(&open(from), &open(to), &mut |progress| {
        if (progress.tenant, progress.kind) == (tenant, kind) && n <= progress.n_done {
            let mut out = std::io::stdout().lock();
            writeln!(out, "\nreached {stop_at}").and_then(|()| out.flush()).expect("the parent reads");
            loop {
                std::thread::park();
            }
        }
    });
    panic!("it was not stopped: {copied:?}");
}
