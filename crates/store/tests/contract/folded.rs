//! Ranges of folded texts are those of the bodies, in kinds whose index has terms of them and in those where a column
//! has to tell.

use std::time::Duration;

use pinakes_store::{End, Expr, Kind, Query, Tenant, Value, matches};
use serde_json::{Value as Json, json};

use crate::engines::{engines, read, told_with, write};
use crate::kinds::{COMPARED, SLIM};

const TITLES: [&str; 10] =
    ["", "a", "A", "\u{c9}lan", "elan", "elan\u{fffd}", "ELAN vital", "elb", "z\u{fffd}", "\u{10ffff}"];

fn body(n: usize) -> Json {
    let title = match n % (TITLES.len() + 3) {
        at if at < TITLES.len() => json!(TITLES[at]),
        at if at == TITLES.len() => json!(n),
        at if at == TITLES.len() + 1 => Json::Null,
        _ => json!(format!("title {n}")),
    };
    json!({"pid": format!("i{n}"), "title": title})
}

fn found(tenant: &Tenant, kind: &'static Kind, filter: &Expr) -> Vec<String> {
    read(tenant, |view| view.find(kind, &Query::filter(filter.clone()))).into_iter().map(|it| it.id).collect()
}

#[test]
fn ranges_are_those_of_the_bodies() {
    let bodies: Vec<Json> = (0..3_000).map(body).collect();
    let ends = |text: &str| {
        let value = Value::Folded(text.to_owned());
        [End::Included(value.clone()), End::Excluded(value)]
    };
    let mut filters = Vec::new();
    for (n, low) in TITLES.iter().enumerate() {
        filters.push(Expr::Is("title".into(), Value::Folded((*low).to_owned())));
        for high in TITLES.iter().skip(n % 3).step_by(3) {
            for (low, high) in ends(low).into_iter().zip(ends(high).into_iter().rev()) {
                filters.push(Expr::Range("title".into(), low.clone(), high.clone()));
                filters.push(Expr::Range("title".into(), low, End::Open));
                filters.push(Expr::Range("title".into(), End::Open, high));
            }
        }
    }
    for place in engines() {
        let tenant = place.tenant(COMPARED);
        for kind in COMPARED {
            let stored = bodies.clone();
            write(&tenant, move |txn| {
                let id = |it: &Json| it["pid"].as_str().map(str::to_owned).expect("an id");
                stored.iter().try_for_each(|it| txn.insert(kind, &id(it), it).map(|_| ()))
            });
        }
        assert!(tenant.wait_for_indexes(Duration::from_secs(120)).expect("an answer"));
        for kind in COMPARED {
            for filter in &filters {
                let held = bodies.iter().filter(|it| matches(filter, it));
                let expected: Vec<&str> = held.filter_map(|it| it["pid"].as_str()).collect();
                assert_eq!(
                    found(&tenant, kind, filter),
                    expected,
                    "{} {} {filter:?}",
                    place.engine,
                    kind.name
                );
            }
        }
        let plain = Expr::Range("title".into(), ends("title 1")[0].clone(), ends("title 2")[1].clone());
        let (held, told) = told_with(|| found(&tenant, &SLIM, &plain));
        assert!(!held.is_empty(), "{}", place.engine);
        let reads_bodies = told.contains("bod") && !told.contains(" 0 bodies read");
        assert!(!reads_bodies, "{} {told}", place.engine);
    }
}
