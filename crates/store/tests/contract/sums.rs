//! Sums are those of the bodies, whether an index tells them, the engine or neither.

use std::time::Duration;

use pinakes_store::{End, Expr, Kind, Path, Tenant, Word, matches};
use serde_json::{Value as Json, json};

use crate::engines::{engines, read, refused, write};
use crate::kinds::{ALL, ITEM};
use crate::law::world;

fn conditions() -> Vec<Expr> {
    vec![
        Expr::All,
        Expr::Nothing,
        Expr::Is("group".into(), "g3".into()),
        Expr::Range("size".into(), End::Included(100.into()), End::Open),
        Expr::Word("title".into(), Word::whole("vital").expect("a word")),
        Expr::Is("free.a".into(), 2.into()).and(Expr::Is("open".into(), true.into())),
        Expr::Prefix("note".into(), "x".repeat(170)),
    ]
}

fn expected(bodies: &[Json], filter: &Expr) -> i64 {
    bodies.iter().filter(|it| matches(filter, it)).filter_map(|it| it["size"].as_i64()).sum()
}

fn sum(tenant: &Tenant, kind: &'static Kind, filter: &Expr) -> i64 {
    read(tenant, |view| view.sum(kind, filter, &"size".into()))
}

#[test]
fn they_are_those_of_the_bodies() {
    for ((place, tenant), kind) in world().pairs() {
        for filter in conditions() {
            let expected = expected(&world().bodies, &filter);
            assert_eq!(sum(tenant, kind, &filter), expected, "{} {} {filter:?}", place.engine, kind.name);
        }
    }
}

/// What was changed, added and deleted since the index's commit counts as it is, for readers and for the writer itself.
#[test]
fn they_are_up_to_date() {
    let body = |n: u64| json!({"pid": format!("i{n}"), "size": n, "free": {"a": n % 3}});
    for place in engines() {
        let tenant = place.tenant(ALL);
        let mut bodies: Vec<Json> = (0..3_000).map(body).collect();
        let first = bodies.clone();
        write(&tenant, move |txn| {
            let id = |it: &Json| it["pid"].as_str().map(str::to_owned).expect("an id");
            first.iter().try_for_each(|it| txn.insert(&ITEM, &id(it), it).map(|_| ()))
        });
        assert!(tenant.wait_for_indexes(Duration::from_secs(120)).expect("an answer"));
        bodies[5] = json!({"pid": "i5", "free": {"a": 2}});
        bodies[8] = json!({"pid": "i8", "size": -4_000_000, "free": {"a": 2}});
        bodies.push(body(9_002));
        bodies.remove(2_000);
        let changed = [bodies[5].clone(), bodies[8].clone(), bodies[2_999].clone()];
        let filters = [Expr::All, Expr::Is("free.a".into(), 2.into())];
        let sums = filters.each_ref().map(|it| expected(&bodies, it));
        let of_writer = filters.clone();
        let seen = write(&tenant, move |txn| {
            txn.update(&ITEM, "i5", &changed[0])?;
            txn.update(&ITEM, "i8", &changed[1])?;
            txn.insert(&ITEM, "i9002", &changed[2])?;
            txn.delete(&ITEM, "i2000")?;
            Ok([
                txn.sum(&ITEM, &of_writer[0], &"size".into())?,
                txn.sum(&ITEM, &of_writer[1], &"size".into())?,
            ])
        });
        assert_eq!(seen, sums, "{}", place.engine);
        assert_eq!(filters.each_ref().map(|it| sum(&tenant, &ITEM, it)), sums, "{}", place.engine);
    }
}

#[test]
fn a_path_without_a_column_of_whole_numbers_is_refused() {
    let place = engines().into_iter().next().expect("an engine");
    let tenant = place.tenant(ALL);
    for path in ["mass", "keywords", "free.a", "none"] {
        let told = refused(&tenant, |txn| txn.sum(&ITEM, &Expr::All, &Path::dotted(path)));
        assert!(told.to_string().contains("no column of whole numbers"), "{path}: {told}");
    }
}
