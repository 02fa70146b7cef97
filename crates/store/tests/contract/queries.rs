//! Conditions, order and windows on chosen records; `law.rs` tests the same on arbitrary ones.

use std::ops::ControlFlow;

use pinakes_store::{Direction, End, Expr, Order, Path, Pattern, Query, Tenant, Value};
use serde_json::{Value as Json, json};

use crate::engines::{on_each, read, sqlite, write};
use crate::kinds::{ALL, ITEM};

fn bodies() -> Vec<Json> {
    vec![
        json!({"pid": "0", "name": "ann", "size": 3, "mass": 1.5, "open": true, "made": "2020-01-01T10:00:00.000Z",
               "keywords": ["red", "blue"], "group": "g1", "shared": ["g2", "g3"], "place": {"depth": 7},
               "free": {"list": [{"a": 1, "b": 2}, {"a": 3, "b": 4}], "n": null}}),
        json!({"pid": "1", "name": "Bob", "size": 10, "mass": -2, "open": false, "made": "2020-01-02T00:00:00+02:00",
               "keywords": [], "group": "g2", "free": "text", "runs": [{"number": 5}, {"number": 6}]}),
        json!({"pid": "2", "name": null, "size": 3, "group": "g1", "shared": ["g3", "g2"], "free": [1, 2, 3]}),
        json!({"pid": "3"}),
        json!({"pid": "4", "name": "anna", "mass": 1e300, "keywords": ["red"], "group": "g3", "free": [[1], [2]]}),
    ]
}

fn fill(tenant: &Tenant) {
    write(tenant, |txn| {
        for (index, body) in bodies().iter().enumerate() {
            txn.insert(&ITEM, &index.to_string(), body)?;
        }
        Ok(())
    });
}

fn ids(tenant: &Tenant, query: &Query) -> String {
    read(tenant, |view| view.find(&ITEM, query)).into_iter().map(|it| it.id).collect()
}

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

fn is(path: &str, value: impl Into<Value>) -> Expr {
    Expr::Is(path.into(), value.into())
}

fn range(path: &str, low: End, high: End) -> Expr {
    Expr::Range(path.into(), low, high)
}

fn conditions() -> Vec<(Expr, &'static str)> {
    let incl = |value: Value| End::Included(value);
    let excl = |value: Value| End::Excluded(value);
    let regex = |path: &str, text: &str, flags: &str| {
        Expr::Regex(path.into(), Pattern::new(text, flags).expect("a pattern"))
    };
    vec![
        (Expr::All, "01234"),
        (Expr::Nothing, ""),
        (not(Expr::Nothing), "01234"),
        (Expr::And(vec![]), "01234"),
        (Expr::Or(vec![]), ""),
        // Columns.
        (is("name", "ann"), "0"),
        (not(is("name", "ann")), "1234"),
        (is("name", Value::Null), "23"),
        (not(is("name", Value::Null)), "014"),
        (is("size", 3_i64), "02"),
        (is("size", 3.0), "02"),
        (is("size", "3"), ""),
        (is("mass", -2_i64), "1"),
        (is("mass", 1.5), "0"),
        (is("open", true), "0"),
        (is("open", false), "1"),
        (not(is("open", false)), "0234"),
        (is("made", Value::Instant(1_577_872_800_000)), "0"),
        (is("made", "2020-01-01T22:00:00Z"), "1"),
        (is("place.depth", 7_i64), "0"),
        (Expr::In("name".into(), vec!["ann".into(), "Bob".into(), "x".into()]), "01"),
        (Expr::In("name".into(), vec!["ann".into(), Value::Null]), "023"),
        (Expr::In("name".into(), vec![]), ""),
        (not(Expr::In("size".into(), vec![3_i64.into(), 9_i64.into()])), "134"),
        (range("size", incl(3_i64.into()), excl(10_i64.into())), "02"),
        (range("size", excl(3_i64.into()), End::Open), "1"),
        (not(range("size", excl(3_i64.into()), End::Open)), "0234"),
        (range("size", incl("a".into()), End::Open), ""),
        (range("made", incl("2020-01-01T12:00:00Z".into()), End::Open), "1"),
        (range("name", End::Open, End::Open), "0124"),
        (Expr::Exists("name".into()), "0124"),
        (Expr::Prefix("name".into(), "ann".into()), "04"),
        (not(Expr::Prefix("name".into(), "ann".into())), "123"),
        (Expr::Prefix("size".into(), "3".into()), ""),
        (Expr::Prefix("made".into(), "2020-01-02".into()), "1"),
        (regex("name", "^a", ""), "04"),
        (regex("name", "BOB", "i"), "1"),
        (regex("made", "\\+02:00$", ""), "1"),
        (not(regex("name", "^a", "")), "123"),
        // The id.
        (is("pid", "3"), "3"),
        (Expr::Ids(vec!["4".into(), "1".into(), "x".into()]), "14"),
        (not(Expr::Ids(vec!["4".into()])), "0123"),
        (range("pid", incl("1".into()), excl("3".into())), "12"),
        // Many values.
        (is("keywords", "red"), "04"),
        (not(is("keywords", "red")), "123"),
        (Expr::In("keywords".into(), vec!["blue".into(), "green".into()]), "0"),
        (Expr::And(vec![is("keywords", "red"), is("keywords", "blue")]), "0"),
        (is("keywords", Value::Null), "23"),
        (is("keywords", Value::Json(json!(["red"]))), "4"),
        (is("keywords", Value::Json(json!([]))), "1"),
        (Expr::Size("keywords".into(), 2), "0"),
        (is("keywords.0", "red"), "04"),
        (is("runs.number", 6_i64), "1"),
        (range("runs.number", incl(5_i64.into()), excl(6_i64.into())), "1"),
        // Classes.
        (is("group", "g1"), "02"),
        (not(is("group", "g1")), "134"),
        (is("group", Value::Null), "3"),
        (is("shared", "g2"), "02"),
        (is("shared.0", "g2"), "0"),
        (is("shared", Value::Json(json!(["g2", "g3"]))), "0"),
        (Expr::Or(vec![is("group", "g2"), is("shared", "g3")]), "012"),
        (Expr::Or(vec![is("group", "g2"), is("name", "anna")]), "14"),
        (Expr::And(vec![is("group", "g1"), is("size", 3_i64), not(is("name", "ann"))]), "2"),
        (Expr::Exists("group".into()), "0124"),
        (
            Expr::And(vec![
                Expr::Prefix("name".into(), "ann".into()),
                Expr::Or(vec![is("size", 10_i64), is("mass", 1.5)]),
            ]),
            "0",
        ),
        // Any path.
        (is("free.list.a", 3_i64), "0"),
        (Expr::And(vec![is("free.list.a", 1_i64), is("free.list.b", 4_i64)]), "0"),
        (Expr::Element("free.list".into(), Box::new(Expr::And(vec![is("a", 1_i64), is("b", 4_i64)]))), ""),
        (Expr::Element("free.list".into(), Box::new(Expr::And(vec![is("a", 1_i64), is("b", 2_i64)]))), "0"),
        (is("free.n", Value::Null), "01234"),
        (Expr::Exists("free.n".into()), "0"),
        (is("free", 2_i64), "2"),
        (is("free", Value::Json(json!([1, 2, 3]))), "2"),
        (is("free", Value::Json(json!([1]))), "4"),
        (Expr::Size("free".into(), 3), "2"),
        (Expr::Prefix("free".into(), "te".into()), "1"),
        (Expr::Is(Path::steps(["free", "list", "1", "a"]), 3_i64.into()), "0"),
    ]
}

#[test]
fn conditions_mean_what_they_say() {
    on_each(ALL, |tenant| {
        fill(tenant);
        for (filter, expected) in conditions() {
            let found = ids(tenant, &Query::filter(filter.clone()));
            assert_eq!(found, expected, "{filter:?}");
            let n = read(tenant, |view| view.count(&ITEM, &filter));
            assert_eq!(n, expected.len() as u64, "count of {filter:?}");
        }
    });
}

#[test]
fn answers_are_sorted() {
    on_each(ALL, |tenant| {
        fill(tenant);
        use Direction::{Ascending, Descending};
        let all = || Query::filter(Expr::All);
        let cases = [
            (all().sorted("name", Ascending), "23104"),
            (all().sorted("name", Descending), "40132"),
            (all().sorted("size", Ascending), "34021"),
            (all().sorted("size", Descending), "12043"),
            (all().sorted("size", Ascending).sorted("name", Descending), "43021"),
            (all().sorted("mass", Ascending), "23104"),
            (all().sorted("made", Descending), "10432"),
            (all().sorted("pid", Descending), "43210"),
            (all().sorted("free", Ascending), "31024"),
            (all().sorted("free", Descending).window(1, 2), "20"),
            (all().sorted("name", Ascending).window(1, 2), "31"),
            (all().sorted("name", Ascending).window(9, 2), ""),
            (all().window(0, 0), ""),
            (Query { skip: 3, ..all() }, "34"),
            (Query { skip: 3, limit: Some(u64::MAX), ..all() }, "34"),
            (Query { skip: u64::MAX, limit: Some(u64::MAX), ..all() }, ""),
            (Query { limit: Some(u64::MAX), ..all().sorted("pid", Descending) }, "43210"),
            (Query { skip: 3, ..all().sorted("pid", Descending) }, "10"),
        ];
        for (query, expected) in cases {
            assert_eq!(ids(tenant, &query), expected, "{query:?}");
        }
    });
}

#[test]
fn pages_follow_each_other() {
    on_each(ALL, |tenant| {
        fill(tenant);
        for filter in [Expr::All, not(is("name", "Bob")), Expr::Exists("pid".into())] {
            let whole = ids(tenant, &Query::filter(filter.clone()));
            let (mut pages, mut after) = (String::new(), None);
            loop {
                let query = Query { after, ..Query::filter(filter.clone()).window(0, 2) };
                let page = read(tenant, |view| view.find(&ITEM, &query));
                let Some(last) = page.last() else { break };
                after = Some(last.cursor());
                pages.extend(page.iter().map(|it| it.id.as_str()));
            }
            assert_eq!(pages, whole);
        }
        let sorted =
            Query { after: Some(1), ..Query::filter(Expr::All).sorted("name", Direction::Ascending) };
        assert!(tenant.read_blocking(|view| view.find(&ITEM, &sorted)).is_err());
    });
}

#[test]
fn all_records_come_once_and_in_order() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| {
            (0..600).try_for_each(|n| {
                txn.insert(&ITEM, &format!("i{n:03}"), &json!({"size": n % 2, "name": "n"})).map(|_| ())
            })
        });
        let of = |query: Query, n_wanted: usize| {
            read(tenant, |view| {
                let mut ids = Vec::new();
                view.for_each(&ITEM, &query, |record| {
                    ids.push(record.id);
                    if ids.len() == n_wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
                Ok(ids)
            })
        };
        let expected =
            |range: std::ops::Range<usize>| -> Vec<String> { range.map(|n| format!("i{n:03}")).collect() };
        let named = || Query::filter(is("name", "n"));
        assert_eq!(of(named(), usize::MAX), expected(0..600));
        for (skip, n_wanted) in [(0, 1), (0, 255), (0, 256), (0, 257), (10, 256), (300, 299), (599, 1)] {
            let query = Query { skip: skip as u64, ..named() };
            assert_eq!(of(query, n_wanted), expected(skip..skip + n_wanted), "{skip}, {n_wanted}");
        }
        assert!(of(Query { skip: 600, ..named() }, usize::MAX).is_empty());
        let last = Query { skip: 10, ..named().sorted("pid", Direction::Descending) };
        let expected: Vec<String> = expected(0..590).into_iter().rev().collect();
        assert_eq!(of(last.clone(), usize::MAX), expected);
        assert_eq!(of(last, 300), expected[..300]);
        let odd: Vec<String> = (0..600).filter(|n| n % 2 == 1).map(|n| format!("i{n:03}")).collect();
        assert_eq!(of(Query::filter(is("size", 1)), usize::MAX), odd);
    });
}

#[test]
fn pages_are_bounded() {
    for place in crate::engines::engines() {
        let limits = pinakes_store::Limits { page_rows: 3, ..Default::default() };
        let tenant = place.open(ALL, limits).tenant_or_new("t").expect("a tenant");
        fill(&tenant);
        assert!(tenant.read_blocking(|view| view.find(&ITEM, &Query::filter(Expr::All))).is_err());
        assert_eq!(ids(&tenant, &Query::filter(Expr::All).window(0, 3)), "012");
        let mut n = 0;
        read(&tenant, |view| {
            view.for_each(&ITEM, &Query::filter(Expr::All), |_| {
                n += 1;
                ControlFlow::Continue(())
            })
        });
        assert_eq!(n, 5);
    }
}

/// Loads 2,500 records of three groups.
fn load(tenant: &Tenant) {
    assert!(write(tenant, |txn| txn.defer_indexes(&ITEM)));
    write(tenant, |txn| {
        (0..2_500).try_for_each(|n| {
            let body = json!({"name": format!("n{}", n % 50), "size": n, "group": n % 3});
            txn.insert(&ITEM, &n.to_string(), &body).map(|_| ())
        })
    });
}

/// Returns the number of records in each group.
fn groups(tenant: &Tenant) -> Vec<(String, u64)> {
    let facets = read(tenant, |view| view.facets(&ITEM, &Expr::All, &["group"]));
    facets.into_iter().flatten().map(|it| (it.value, it.n_records)).collect()
}

#[test]
fn a_bulk_load_puts_indexes_and_counts_off() {
    let all = [("2", 833), ("1", 833), ("0", 834)].map(|(value, n)| (value.to_owned(), n));
    on_each(ALL, |tenant| {
        load(tenant);
        let query = Query::filter(is("name", "n7")).sorted("size", Direction::Descending).window(0, 2);
        let found = read(tenant, |view| view.find(&ITEM, &query));
        assert_eq!(found.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["2457", "2407"]);
        assert_eq!(groups(tenant), all);
        write(tenant, |txn| txn.delete(&ITEM, "2499"));
        assert_eq!(groups(tenant)[2].1, 833, "a change while the load goes on");
        assert!(!write(tenant, |txn| txn.defer_indexes(&ITEM)), "the kind is not empty");
        tenant.make_indexes(&ITEM).expect("indexes");
        assert_eq!(read(tenant, |view| view.find(&ITEM, &query)).len(), 2);
        assert_eq!(groups(tenant)[2].1, 833);
    });
}

#[test]
fn counts_of_a_bulk_load_that_did_not_end_come_back() {
    let place = sqlite();
    let tenant = place.tenant(ALL);
    load(&tenant);
    let expected = groups(&tenant);
    // The file as left by a killed process.
    let other = sqlite();
    std::fs::create_dir_all(other.file("t").parent().expect("a folder")).expect("a folder");
    tenant.backup(&other.file("t")).expect("a copy");
    drop(tenant);
    for place in [place, other] {
        let tenant = place.tenant(ALL);
        assert_eq!(groups(&tenant), expected);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    }
}

/// Half of the records have the name and half the time, but only the two smallest have both: the descending order,
/// which the counts of names and times suggest, would pass over all the others.
#[test]
fn what_counts_promise_may_not_be_there() {
    const N_RECORDS: u64 = 10_000;
    on_each(ALL, |tenant| {
        write(tenant, |txn| {
            for n in 0..N_RECORDS {
                let (name, day) = if n % 2 == 0 && n != 4 && n != 2 { ("even", 1) } else { ("odd", 2) };
                let name = if n < 5 { "even" } else { name };
                let body = json!({"pid": n.to_string(), "name": name, "size": n, "group": "g1",
                                  "made": format!("2020-01-0{day}T10:00:00.000Z")});
                txn.insert(&ITEM, &n.to_string(), &body)?;
            }
            Ok(())
        });
        let late = End::Included(Value::Instant(1_577_923_200_000));
        for filter in [
            Expr::And(vec![is("name", "even"), range("made", late.clone(), End::Open)]),
            Expr::And(vec![is("name", "even"), is("group", "g1"), range("made", late.clone(), End::Open)]),
        ] {
            let order = vec![Order { path: "size".into(), direction: Direction::Descending }];
            let query = Query { order, limit: Some(5), ..Query::filter(filter) };
            assert_eq!(ids(tenant, &query), "4321");
        }
    });
}
