//! The different values at a path: those that the bodies have there, whether an index tells them or not.

use std::collections::BTreeSet;

use pinakes_store::{Kind, Path, Tenant};
use serde_json::{Value as Json, json};

use crate::engines::{engines, read, write};
use crate::kinds::{ALL, ITEM};
use crate::law::world;

/// Returns the values at the steps of a path, of lists those of their elements.
fn values_of(at: &Json, steps: &[&str]) -> Vec<String> {
    match (at, steps) {
        (Json::Array(list), []) => {
            list.iter().filter(|it| !it.is_array()).flat_map(|it| values_of(it, &[])).collect()
        }
        (Json::String(text), []) => vec![text.clone()],
        (Json::Bool(_) | Json::Number(_), []) => vec![at.to_string().trim_end_matches(".0").to_owned()],
        (Json::Object(map), [step, rest @ ..]) => map.get(*step).map_or(Vec::new(), |it| values_of(it, rest)),
        (Json::Array(list), _) => {
            list.iter().filter(|it| !it.is_array()).flat_map(|it| values_of(it, steps)).collect()
        }
        _ => Vec::new(),
    }
}

fn distinct(
    tenant: &Tenant,
    kind: &'static Kind,
    path: &str,
    n_most: usize,
    fits: fn(&str) -> bool,
) -> BTreeSet<String> {
    read(tenant, |view| view.distinct_values(kind, &Path::dotted(path), n_most, &fits))
}

#[test]
fn they_are_those_of_the_bodies() {
    let all: fn(&str) -> bool = |_| true;
    let some: fn(&str) -> bool = |it| it.contains('1') || it.ends_with('y');
    for ((place, tenant), kind) in world().pairs() {
        for path in [
            "name",
            "size",
            "mass",
            "open",
            "made",
            "keywords",
            "runs.number",
            "free",
            "free.b",
            "meta.m1",
            "note",
            "none",
        ] {
            let steps: Vec<&str> = path.split('.').collect();
            let expected: BTreeSet<String> =
                world().bodies.iter().flat_map(|it| values_of(it, &steps)).collect();
            for (n_most, fits) in [(1_000, all), (7, all), (1_000, some), (2, some), (0, all)] {
                let expected: BTreeSet<String> =
                    expected.iter().filter(|it| fits(it)).take(n_most).cloned().collect();
                let found = distinct(tenant, kind, path, n_most, fits);
                assert_eq!(found, expected, "{} {} {path} {n_most}", place.engine, kind.name);
            }
        }
    }
}

fn sized(n: u64, name: &str) -> Json {
    json!({"pid": format!("i{n}"), "name": name, "size": n})
}

/// What was changed, added and deleted since the index's commit counts as it is; numbers that a column cannot hold are
/// read from bodies.
#[test]
fn they_are_up_to_date() {
    let all: fn(&str) -> bool = |_| true;
    for place in engines() {
        let tenant = place.tenant(ALL);
        write(&tenant, |txn| {
            (0..3_000_u64).try_for_each(|n| {
                let name = if n == 5 { "five" } else { "many" };
                txn.insert(&ITEM, &format!("i{n}"), &sized(n, name)).map(|_| ())
            })
        });
        assert!(tenant.wait_for_indexes(std::time::Duration::from_secs(120)).expect("an answer"));
        let names = || Vec::from_iter(distinct(&tenant, &ITEM, "name", 10, all));
        assert_eq!(names(), ["five", "many"], "{}", place.engine);
        write(&tenant, |txn| {
            txn.update(&ITEM, "i5", &sized(5, "cinq"))?;
            txn.insert(
                &ITEM,
                "new",
                &json!({"pid": "new", "name": "zwölf", "size": 9_007_199_254_740_993_u64}),
            )
            .map(|_| ())
        });
        assert_eq!(names(), ["cinq", "many", "zwölf"], "{}", place.engine);
        let sizes = distinct(&tenant, &ITEM, "size", 10_000, |it| it.starts_with("900"));
        assert_eq!(Vec::from_iter(sizes), ["900", "9007199254740993"], "{}", place.engine);
        write(&tenant, |txn| txn.delete(&ITEM, "i5").map(|_| ()));
        assert_eq!(names(), ["many", "zwölf"], "{}", place.engine);
    }
}
