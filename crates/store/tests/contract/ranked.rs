//! Ranked records are those that a look at all bodies puts first, whether an index tells or not.

use std::cmp::Reverse;

use pinakes_store::{Expr, Kind, Tenant, TextPart, Weighted, Word, matches};
use serde_json::{Value as Json, json};

use crate::engines::{engines, read, write};
use crate::kinds::{ALL, ITEM};
use crate::law::world;

fn weighted() -> Vec<Weighted> {
    let word = |path: &str, text: &str| Expr::Word(path.into(), Word::whole(text).expect("a word"));
    let pattern = pinakes_store::Pattern::new("z", "").expect("a pattern").on(TextPart::All);
    [
        (word("title", "elan"), 400),
        (word("title", "vital"), 30),
        (word("keywords", "k7"), 120),
        (word("note", "x"), 7),
        (Expr::Regex("note".into(), pattern), 5),
        (Expr::Is("open".into(), true.into()).and(Expr::Is("free.a".into(), 2.into())), 110),
        (Expr::Is("group".into(), "g3".into()), 110),
        (Expr::Nothing, 1),
    ]
    .map(|(expr, weight)| Weighted { expr, weight })
    .to_vec()
}

/// Returns the rank and position of the bodies that satisfy a condition, in the order that is asked for.
fn expected(bodies: &[Json], filter: &Expr, weighted: &[Weighted]) -> Vec<(u64, usize)> {
    let rank = |body: &Json| -> u64 {
        weighted.iter().filter(|it| matches(&it.expr, body)).map(|it| u64::from(it.weight)).sum()
    };
    let held = bodies.iter().enumerate().filter(|it| matches(filter, it.1));
    let mut all: Vec<(u64, usize)> = held.map(|(at, body)| (rank(body), at)).collect();
    all.sort_by_key(|it| Reverse(it.0));
    all
}

#[track_caller]
fn check(
    tenant: &Tenant,
    kind: &'static Kind,
    bodies: &[Json],
    filter: &Expr,
    weighted: &[Weighted],
    what: &str,
) {
    let expected = expected(bodies, filter, weighted);
    for (skip, limit) in [(0, 10), (3, 25), (0, 5_000), (200, 1), (5_000, 10), (0, 0)] {
        let found = read(tenant, |view| view.ranked(kind, filter, weighted, skip, limit));
        let found: Vec<(u64, Json)> =
            found.iter().map(|it| (it.rank, it.record.json().expect("a body"))).collect();
        let expected = expected.iter().skip(skip as usize).take(limit as usize);
        let expected: Vec<(u64, Json)> = expected.map(|it| (it.0, bodies[it.1].clone())).collect();
        assert_eq!(found, expected, "{what} {} {filter:?} {skip} {limit}", kind.name);
    }
}

#[test]
fn they_are_in_the_order_of_the_bodies() {
    for ((place, tenant), kind) in world().pairs() {
        for filter in [
            Expr::All,
            Expr::Is("group".into(), "g3".into()),
            Expr::Prefix("note".into(), "x".repeat(170)),
            Expr::Nothing,
        ] {
            check(tenant, kind, &world().bodies, &filter, &weighted(), place.engine);
            check(tenant, kind, &world().bodies, &filter, &[], place.engine);
        }
    }
}

/// What was changed, added and deleted since the index's commit has the rank of what it is now.
#[test]
fn they_are_up_to_date() {
    let body = |n: u64, title: &str| json!({"pid": format!("i{n}"), "title": title, "size": n});
    for place in engines() {
        let tenant = place.tenant(ALL);
        let mut bodies: Vec<Json> =
            (0..3_000).map(|n| body(n, if n % 1_000 == 5 { "elan vital" } else { "elan" })).collect();
        let first = bodies.clone();
        write(&tenant, move |txn| {
            first
                .iter()
                .try_for_each(|it| txn.insert(&ITEM, it["pid"].as_str().expect("an id"), it).map(|_| ()))
        });
        assert!(tenant.wait_for_indexes(std::time::Duration::from_secs(120)).expect("an answer"));
        check(&tenant, &ITEM, &bodies, &Expr::All, &weighted(), place.engine);
        bodies[5] = body(5, "other");
        bodies[77] = body(77, "vital elan");
        bodies.push(body(4_000, "elan, vital"));
        let removed = bodies.remove(1_005);
        let changed = [bodies[5].clone(), bodies[77].clone(), bodies[2_999].clone()];
        write(&tenant, move |txn| {
            txn.update(&ITEM, "i5", &changed[0])?;
            txn.update(&ITEM, "i77", &changed[1])?;
            txn.insert(&ITEM, "i4000", &changed[2])?;
            txn.delete(&ITEM, removed["pid"].as_str().expect("an id")).map(|_| ())
        });
        check(&tenant, &ITEM, &bodies, &Expr::All, &weighted(), place.engine);
    }
}
