//! Searches that nobody should send, and records that nobody should write: exact answers or clear refusals, in bounded
//! time.

use std::time::{Duration, Instant};

use pinakes_store::{Direction, Expr, Path, Pattern, Query, Tenant, Value};
use serde_json::{Map, Value as Json, json};

use crate::engines::{engines, read, sqlite, write};
use crate::kinds::{ALL, ITEM};

const WAIT: Duration = Duration::from_secs(120);
/// A debug build on a busy machine answers each of these within this time; full scans or exponential blow-ups take
/// minutes.
const LONGEST: Duration = Duration::from_secs(60);
const N_RECORDS: u64 = 600;

fn body(n: u64) -> Json {
    // One key, values of every type.
    let mixed = match n % 7 {
        0 => json!(n),
        1 => json!(n as f64 + 0.5),
        2 => json!(n.to_string()),
        3 => json!(n.is_multiple_of(2)),
        4 => Json::Null,
        5 => json!([n, n.to_string(), null]),
        _ => json!({"n": n}),
    };
    json!({"name": format!("run {n:04} aaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "size": n, "free": {
        "a.b": n % 10, "a": {"b": n % 3}, "": n % 5, "a/b": n % 4, "%2e": n % 6, "mixed": mixed,
    }})
}

fn fill(tenant: &Tenant) {
    write(tenant, |txn| {
        (0..N_RECORDS).try_for_each(|n| txn.insert(&ITEM, &n.to_string(), &body(n)).map(|_| ()))
    });
    assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
}

/// Runs `test` on both engines, and checks that it does not take too long.
fn check(test: impl Fn(&Tenant)) {
    for place in engines() {
        let tenant = place.tenant(ALL);
        fill(&tenant);
        let began = Instant::now();
        test(&tenant);
        assert!(began.elapsed() < LONGEST, "{}: {:?}", place.engine, began.elapsed());
    }
}

fn count(tenant: &Tenant, filter: &Expr) -> u64 {
    read(tenant, |view| view.count(&ITEM, filter))
}

#[test]
fn a_million_values() {
    check(|tenant| {
        let names = (0..1_000_000).map(|n| Value::Text(format!("run {n:04} aaaaaaaaaaaaaaaaaaaaaaaaaaaa")));
        let filter = Expr::In("name".into(), names.collect());
        // A clear refusal is as good as an exact answer.
        match tenant.read_blocking(|view| view.count(&ITEM, &filter)) {
            Ok(n) => assert_eq!(n, N_RECORDS),
            Err(error) => assert!(error.to_string().starts_with("query: "), "{error}"),
        }
    });
}

#[test]
fn patterns_that_lead_with_anything_or_explode() {
    let found = |text: &str| Pattern::new(text, "i").map(|it| Expr::Regex("name".into(), it));
    check(|tenant| {
        for (text, n) in [
            (".*7 a", N_RECORDS / 10),
            ("(a+)+$", N_RECORDS),
            ("(a+)+b", 0),
            ("(a|a)*(a|a)*(a|a)*b", 0),
            ("^(.*)*x$", 0),
        ] {
            assert_eq!(count(tenant, &found(text).expect(text)), n, "{text}");
        }
    });
    let refused = found("(((a{200}){200}){200})").expect_err("a refusal").to_string();
    assert!(refused.contains("regular expression"), "{refused}");
}

#[test]
fn keys_with_dots_slashes_and_nothing() {
    let is = |steps: &[&str], n: i64| {
        Expr::Is(Path::steps(steps.iter().map(|it| (*it).to_owned())), Value::Integer(n))
    };
    check(|tenant| {
        for (steps, every) in [
            (&["free", "a.b"][..], 10),
            (&["free", "a", "b"][..], 3),
            (&["free", ""][..], 5),
            (&["free", "a/b"][..], 4),
            (&["free", "%2e"][..], 6),
        ] {
            assert_eq!(count(tenant, &is(steps, 1)), N_RECORDS / every, "{steps:?}");
            assert_eq!(count(tenant, &is(steps, 11)), 0, "{steps:?}");
        }
        assert_eq!(count(tenant, &is(&["free", "a", "b", "c"], 1)), 0);
    });
}

#[test]
fn values_of_all_types_under_one_key() {
    let at = || Path::dotted("free.mixed");
    check(|tenant| {
        let of = |from: u64| (0..N_RECORDS).filter(move |n| n % 7 == from);
        // A number, and the list that has it among its elements.
        assert_eq!(count(tenant, &Expr::Is(at(), 7_i64.into())), 1);
        assert_eq!(count(tenant, &Expr::Is(at(), 5_i64.into())), 1);
        assert_eq!(count(tenant, &Expr::Is(at(), "2".into())), 1);
        let evens = of(3).filter(|n| n % 2 == 0).count() as u64;
        assert_eq!(count(tenant, &Expr::Is(at(), Value::Boolean(true))), evens);
        let none = (of(4).count() + of(5).count()) as u64;
        assert_eq!(count(tenant, &Expr::Is(at(), Value::Null)), none);
        let sorted = Query::filter(Expr::All).sorted("free.mixed", Direction::Ascending);
        assert_eq!(read(tenant, |view| view.find(&ITEM, &sorted)).len() as u64, N_RECORDS);
    });
}

#[test]
fn pages_far_behind() {
    check(|tenant| {
        let page = |skip: u64, limit: u64| {
            let query = Query::filter(Expr::Exists("free".into()))
                .sorted("size", Direction::Descending)
                .window(skip, limit);
            let found = read(tenant, |view| view.find(&ITEM, &query));
            found.into_iter().map(|it| it.id).collect::<Vec<_>>()
        };
        assert_eq!(page(N_RECORDS - 3, 25), ["2", "1", "0"]);
        assert_eq!(page(N_RECORDS, 25), Vec::<String>::new());
        assert_eq!(page(u64::MAX - 10, 25), Vec::<String>::new());
    });
}

/// A deep page equals that part of the whole answer, in any order, with many equal and absent values, and with records
/// changed since the index's commit.
#[test]
fn pages_far_behind_are_parts_of_the_whole() {
    const N: u64 = 1_300;
    let body = |n: u64, round: u64| {
        let mixed = match n % 9 {
            0 => Json::Null,
            1 => json!(n.is_multiple_of(2)),
            2 => json!({"n": n}),
            it => json!((n * 7 % 50) as f64 / it as f64),
        };
        let mut body = json!({
            "name": format!("run {}", (n * 31 + round) % 700), "mass": (n % 40) as f64 / 8.0,
            "free": {"mixed": mixed, "number": (n * 13 + round) % 1_000, "text": format!("t{}", n % 300)},
        });
        if !n.is_multiple_of(3) {
            body["size"] = json!((n + round) % 5);
        }
        body
    };
    for place in engines() {
        let tenant = place.tenant(ALL);
        write(&tenant, move |txn| {
            (0..N).try_for_each(|n| txn.insert(&ITEM, &n.to_string(), &body(n, 0)).map(|_| ()))
        });
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
        for round in 0..2 {
            for path in ["size", "mass", "name", "free.mixed", "free.number", "free.text", "nowhere"] {
                for direction in [Direction::Ascending, Direction::Descending] {
                    let query = Query::filter(Expr::Exists("free".into())).sorted(path, direction);
                    let ids = |query: &Query| {
                        let found = read(&tenant, |view| view.find(&ITEM, query));
                        found.into_iter().map(|it| it.id).collect::<Vec<_>>()
                    };
                    let whole = ids(&query);
                    assert_eq!(whole.len() as u64, N);
                    for skip in (501..N + 50).step_by(197) {
                        let page = ids(&query.clone().window(skip, 25));
                        let behind = whole.iter().skip(skip as usize).take(25);
                        assert!(page.iter().eq(behind), "{} {path} {direction:?} {skip}", place.engine);
                    }
                }
            }
            // Changed now, and perhaps not in the index yet when the second round queries.
            write(&tenant, move |txn| {
                (0..N).step_by(29).try_for_each(|n| {
                    let id = n.to_string();
                    txn.update(&ITEM, &id, &body(n, round + 1)).map(|_| ())
                })
            });
        }
    }
}

/// Each record has keys of its own: 100,000 in all, and one record has more than are indexed.
#[test]
fn a_hundred_thousand_keys() {
    const KEYS: u64 = 250;
    const N_MANY: u64 = 25_000;
    let place = sqlite();
    let tenant = place.tenant(ALL);
    let free = |keys: std::ops::Range<u64>| {
        let map: Map<String, Json> = keys.map(|key| (format!("key {key}"), json!(key))).collect();
        json!({"free": map})
    };
    write(&tenant, move |txn| {
        txn.insert(&ITEM, "many", &free(0..N_MANY))?;
        (0..400_u64)
            .try_for_each(|n| txn.insert(&ITEM, &n.to_string(), &free(n * KEYS..(n + 1) * KEYS)).map(|_| ()))
    });
    assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
    let began = Instant::now();
    let at = |key: u64| Path::steps(["free".to_owned(), format!("key {key}")]);
    for key in [0, 777, N_MANY - 1, N_MANY, 99_999, 100_000] {
        let n = u64::from(key < N_MANY) + u64::from(key < 100_000);
        let number = i64::try_from(key).expect("a number");
        assert_eq!(count(&tenant, &Expr::Is(at(key), number.into())), n, "key {key}");
        assert_eq!(count(&tenant, &Expr::Exists(at(key))), n, "key {key}");
    }
    assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}
