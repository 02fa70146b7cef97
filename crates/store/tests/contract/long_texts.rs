//! Patterns on texts that are longer than the terms of an index: it stores them, so few bodies have to be read.

use std::collections::BTreeMap;
use std::time::Duration;

use pinakes_store::{Direction, Expr, Pattern, Query, Tenant, matches};
use serde_json::{Value as Json, json};

use crate::engines::{engines, read, told_with, write};
use crate::kinds::{ALL, ITEM};

const WAIT: Duration = Duration::from_secs(120);
/// More than are decided by bodies.
const N_RECORDS: u64 = 4_800;
/// Number of records that are added once the others are in the index.
const N_LATER: u64 = 200;
/// Number of records with a text that is too long to be stored.
const N_BEYOND: u64 = N_RECORDS / 600;
fn body(n: u64) -> Json {
    let long = |end: &str| format!("{}{end}", "A beam of soft X-rays. ".repeat(20));
    let note = if n % 600 == 5 { "y".repeat(70_000) + "tail 5" } else { long(&format!("Tail {n}")) };
    let free = match n % 4 {
        0 => json!([long("left"), "short", long("right")]),
        1 => json!([[long("nested")], long("beside")]),
        2 => json!({"a": long("below")}),
        _ => json!("short"),
    };
    json!({"pid": format!("i{n}"), "size": n, "group": format!("g{}", n % 10), "note": note, "free": free})
}

/// Fills an index in two parts, of which the second is small.
fn fill(tenant: &Tenant) {
    for part in [0..N_RECORDS - N_LATER, N_RECORDS - N_LATER..N_RECORDS] {
        write(tenant, move |txn| {
            part.clone().try_for_each(|n| txn.insert(&ITEM, &format!("i{n}"), &body(n)).map(|_| ()))
        });
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
    }
}

#[test]
fn a_pattern_on_long_texts_reads_few_bodies() {
    let like = |path: &str, text: &str| Expr::Regex(path.into(), Pattern::new(text, "").expect(text));
    let in_group = |it| Expr::And(vec![Expr::Not(Box::new(Expr::Is("group".into(), "g9".into()))), it]);
    for place in engines() {
        let tenant = place.tenant(ALL);
        fill(&tenant);
        for (filter, n_bodies) in [
            (like("note", "soft X-rays"), N_BEYOND),
            (like("note", "hard X-rays"), N_BEYOND),
            (like("note", "Tail .*7$"), N_BEYOND),
            (like("note", "^y.*tail"), N_BEYOND),
            (in_group(like("note", "[Tt]ail 2")), N_BEYOND),
            (Expr::Not(Box::new(like("note", "Tail 1"))), N_BEYOND),
            (Expr::Or(vec![like("note", "Tail 1"), like("free", "below")]), N_BEYOND),
            (Expr::Prefix("note".into(), "A beam of soft X-rays. A beam of soft".into()), 0),
            (Expr::Prefix("note".into(), "A beam of soft X-rays. A beam of hard".into()), 0),
            (like("free", "right$"), 0),
            (like("free", "^short$"), 0),
            (like("free", "nested"), 0),
            (like("free", "beside"), 0),
            (like("free.a", "soft.*below"), 0),
        ] {
            let held: Vec<u64> = (0..N_RECORDS).filter(|n| matches(&filter, &body(*n))).collect();
            let (n, told) = told_with(|| read(&tenant, |view| view.count(&ITEM, &filter)));
            let told_of = format!("{}: {filter:?}: {told}", place.engine);
            assert_eq!(n, held.len() as u64, "{told_of}");
            assert!(told.contains(&format!(" {n_bodies} bodies read to decide")), "{told_of}");

            let query = Query::filter(filter).sorted("size", Direction::Descending).window(0, 20);
            let page = read(&tenant, |view| view.find(&ITEM, &query));
            let page: Vec<String> = page.into_iter().map(|it| it.id).collect();
            let expected: Vec<String> = held.iter().rev().take(20).map(|n| format!("i{n}")).collect();
            assert_eq!(page, expected, "{told_of}");
        }
    }
}

#[test]
fn bodies_that_decided_one_question_are_not_read_for_the_next() {
    let filter = Expr::Regex("note".into(), Pattern::new("tail.*5$|Changed", "").expect("a pattern"));
    let changed = json!({"pid": "i7", "size": 7, "group": "g7", "note": "Changed", "free": "short"});
    let body_of = |n| if n == 7 { changed.clone() } else { body(n) };
    let held: Vec<u64> = (0..N_RECORDS).filter(|n| matches(&filter, &body_of(*n))).collect();
    let mut by_group: BTreeMap<String, u64> = BTreeMap::new();
    held.iter().for_each(|n| *by_group.entry(format!("g{}", n % 10)).or_default() += 1);
    for place in engines() {
        let tenant = place.tenant(ALL);
        fill(&tenant);
        let body = changed.clone();
        write(&tenant, move |txn| txn.update(&ITEM, "i7", &body).map(|_| ()));
        let query = Query::filter(filter.clone()).sorted("size", Direction::Ascending).window(0, 1_000);
        let ((counts, groups, page, others), told) = told_with(|| {
            read(&tenant, |view| {
                let groups = view.facets(&ITEM, &filter, &["group"])?.remove(0);
                let counts = [view.count(&ITEM, &filter)?, view.count(&ITEM, &filter)?];
                let page = view.find(&ITEM, &query)?;
                Ok((counts, groups, page, view.count(&ITEM, &Expr::Not(Box::new(filter.clone())))?))
            })
        });
        let what = format!("{}: {told}", place.engine);
        let groups: BTreeMap<String, u64> = groups.into_iter().map(|it| (it.value, it.n_records)).collect();
        assert_eq!(groups, by_group, "{what}");
        assert_eq!(counts, [held.len() as u64; 2], "{what}");
        assert_eq!(others, N_RECORDS - held.len() as u64, "{what}");
        let page: Vec<String> = page.into_iter().map(|it| it.id).collect();
        assert_eq!(page, held.iter().map(|n| format!("i{n}")).collect::<Vec<_>>(), "{what}");
        let n_bodies =
            |n: u64| told.lines().filter(|it| it.contains(&format!(" {n} bodies read to"))).count();
        // Facets and the other condition read bodies.
        assert_eq!((n_bodies(N_BEYOND), n_bodies(0)), (2, 3), "{what}");
    }
}
