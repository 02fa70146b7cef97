//! Searches among the members of all records.

use std::cmp::Ordering;
use std::time::Duration;

use bytes::Bytes;
use pinakes_store::{
    Direction, Document, End, Expr, Limits, MemberQuery, Order, Path, Pattern, Query, StoreError, Tenant,
    Value as Wanted, matches,
};
use serde_json::{Value, json};

use crate::engines::{engines, on_each, read, told_with, write};
use crate::kinds::{ALL, ITEM};
use crate::law::number_before;
use crate::members::{N_INDEXED, stage_all};

/// Members of records: of record `n` those at place `n`.
type Lists = Vec<Vec<Value>>;

fn document(n: usize) -> Document {
    let body = json!({"name": format!("i{n:03}"), "size": n % 5, "free": (n * 7) % 11});
    Document::new(&ITEM, format!("i{n:03}"), &body).expect("a document")
}

/// The members of record `n`: no more than three, whose sizes, times and paths lie close to each other.
fn some(n: usize) -> Vec<Value> {
    let member = |it: usize| {
        let mut member = json!({
            "path": format!("/data/P{}/Scan_{n:03}/Élan_{it}.h5", n % 10),
            "size": 1_000 * ((n * 37) % 101) + it,
            "time": format!("2024-{:02}-{:02}T0{it}:00:00.000Z", n % 12 + 1, (n * 5) % 28 + 1),
            "more": n * it,
        });
        let mixed = [
            json!(n % 7),
            json!(format!("a text that is longer than what an index holds {}", n % 9)),
            Value::Null,
            json!(true),
            json!({"a": n}),
            json!([n % 3, "b"]),
            json!(0.5),
            json!(-0.0),
        ];
        if let Some(value) = mixed.get((n + it) % 9) {
            member["mixed"] = value.clone();
        }
        member
    };
    (0..n % 4).map(member).collect()
}

/// Writes records, makes an index, then changes some of them, which it lacks.
fn fill(tenant: &Tenant) -> Lists {
    let mut lists: Lists = (0..N_INDEXED as usize).map(some).collect();
    for (n, members) in lists.iter().enumerate() {
        let document = document(n).with_list(stage_all(tenant, members), members.len() as u64);
        write(tenant, move |txn| txn.insert_document(&document));
    }
    assert!(tenant.wait_for_indexes(Duration::from_secs(120)).expect("an index"));
    for (n, size, path) in [(250, 55_500, "/data/P7/Scan_017/x.h5"), (12, 3, "/last")] {
        lists[n] = vec![json!({"path": path, "size": size}), json!({"size": "none"}), json!("no object")];
        let changed = document(n).with_list(stage_all(tenant, &lists[n]), 3);
        write(tenant, move |txn| txn.update_document(&changed));
    }
    write(tenant, |txn| txn.delete(&ITEM, "i019").map(drop));
    lists[19].clear();
    lists
}

/// Compares as an order does: absent and null, numbers, texts, objects, lists by their first element, booleans.
fn compare(a: &Value, b: &Value) -> Ordering {
    let rank = |it: &Value| match it {
        Value::Null => 0,
        Value::Number(_) => 1,
        Value::String(_) => 2,
        Value::Object(_) => 3,
        Value::Array(_) => 4,
        Value::Bool(_) => 5,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()).expect("numbers"),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => compare(&a[0], &b[0]),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Returns the members that satisfy a query: the ids of their records, and their positions.
fn expected(lists: &Lists, query: &MemberQuery) -> Vec<(String, u64)> {
    let mut places: Vec<usize> = (0..lists.len()).collect();
    if !query.records.order.is_empty() {
        places.sort_by_key(|n| (n * 7) % 11);
    }
    let of_record = |n: usize| (0..).zip(&lists[n]).map(move |(position, it)| (n, position, it));
    let mut found: Vec<(usize, u64, &Value)> = places
        .into_iter()
        .filter(|n| matches(&query.records.filter, &json!({"size": n % 5})))
        .flat_map(of_record)
        .filter(|it| matches(&query.of_member, it.2))
        .collect();
    found.sort_by(|a, b| {
        query.order.iter().fold(Ordering::Equal, |so_far, order| {
            let name = &order.path.as_steps()[0];
            let compared = compare(&a.2[name], &b.2[name]);
            so_far.then(match order.direction {
                Direction::Ascending => compared,
                Direction::Descending => compared.reverse(),
            })
        })
    });
    let page = found.into_iter().skip(query.skip as usize).take(query.limit as usize);
    page.map(|(n, position, _)| (format!("i{n:03}"), position)).collect()
}

/// Compares the answer to a query with what it should be, and the number of records that were taken into account with
/// `most`.
fn check(tenant: &Tenant, lists: &Lists, query: &MemberQuery, most: Option<usize>) {
    let (found, told) = told_with(|| read(tenant, |view| view.find_members(&ITEM, query)));
    let found: Vec<(String, u64)> = found.into_iter().map(|it| (it.0.id.clone(), it.1)).collect();
    assert_eq!(found, expected(lists, query), "{query:?}: {told}");
    if let Some(most) = most {
        let told_of = told.lines().find_map(|it| it.strip_prefix("item members: "));
        let n: usize =
            told_of.and_then(|it| it.split(' ').next()).expect("a number").parse().expect("digits");
        assert!(n <= most, "{query:?}: {told}");
    }
}

fn of(of_member: Expr) -> MemberQuery {
    MemberQuery { records: Query::filter(Expr::All), of_member, order: Vec::new(), skip: 0, limit: 1_000 }
}

fn range(path: &str, low: End, high: End) -> Expr {
    Expr::Range(path.into(), low, high)
}

fn instant(text: &str) -> Wanted {
    let time = time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339);
    Wanted::Instant(time.expect("a time").unix_timestamp() * 1_000)
}

#[test]
fn members_are_found_by_what_they_have() {
    on_each(ALL, |tenant| {
        let lists = fill(tenant);
        let regex = |path: &str, text: &str, flags: &str| {
            Expr::Regex(path.into(), Pattern::new(text, flags).expect("a pattern"))
        };
        let is = |path: &str, value: Wanted| Expr::Is(path.into(), value);
        let included = |value: Wanted| End::Included(value);
        let excluded = |value: Wanted| End::Excluded(value);
        let scans = regex("path", "scan_01[0-9]/", "i");
        let exactly = is("path", "/data/P7/Scan_017/Élan_0.h5".into());
        let text = |n: u32| format!("a text that is longer than what an index holds {n}");
        // Conditions, and how many records may have such members.
        let cases = [
            (scans.clone(), Some(12)),
            (exactly.clone(), Some(4)),
            (Expr::Prefix("path".into(), "/data/P7/Scan_2".into()), Some(24)),
            (Expr::Prefix("path".into(), "/data/P7/Scan_217/Élan_0.h5, and more".into()), Some(4)),
            (regex("path", "elan_2", "f"), Some(127)),
            (regex("path", "1.*2", ""), None),
            (is("size", 55_001.into()), Some(6)),
            (is("size", Wanted::Real(55_001.0)), Some(6)),
            (is("size", Wanted::Real(0.5)), Some(4)),
            (is("size", "none".into()), Some(4)),
            (is("size", Wanted::Null), None),
            (Expr::In("size".into(), (55_000..55_040).map(Wanted::from).collect()), Some(8)),
            (range("size", included(98_000.into()), End::Open), Some(20)),
            (range("size", excluded(2.into()), excluded(1_000.into())), Some(6)),
            (range("size", End::Open, End::Open), None),
            (range("size", included(5.into()), included("x".into())), None),
            (range("time", included("2024-12-20".into()), End::Open), Some(20)),
            (
                range(
                    "time",
                    included(instant("2024-05-01T00:00:00Z")),
                    excluded(instant("2024-06-01T00:00:00Z")),
                ),
                Some(30),
            ),
            (is("time", instant("2024-02-06T01:00:00Z")), Some(4)),
            (range("time", included("2024-01-01".into()), excluded("2025".into())), None),
            (range("time", included(instant("2024-01-01T00:00:00Z")), End::Open), None),
            (range("time", End::Open, excluded(instant("2024-07-01T00:00:00Z"))), None),
            (Expr::Prefix("time".into(), "2024-".into()), None),
            (Expr::Not(Box::new(Expr::Prefix("time".into(), "2024-".into()))), Some(2)),
            (
                Expr::Not(Box::new(range("path", End::Open, included("/data/P4/Scan_104/Élan_1.h5".into())))),
                None,
            ),
            (Expr::Not(Box::new(is("mixed", 3.into()))), None),
            (is("mixed", 3.into()), Some(40)),
            (is("mixed", Wanted::Integer(0)), Some(70)),
            (is("mixed", text(3).into()), Some(30)),
            (is("mixed", Wanted::Boolean(true)), None),
            (is("mixed", "b".into()), Some(60)),
            (range("mixed", included(text(7).into()), End::Open), Some(110)),
            (Expr::Prefix("mixed".into(), "a text".into()), Some(110)),
            (Expr::Not(Box::new(exactly.clone())), None),
            (Expr::Not(Box::new(range("size", included(0.into()), End::Open))), Some(12)),
            (Expr::Not(Box::new(range("size", excluded((-1).into()), excluded(200_000.into())))), Some(12)),
            (Expr::Or(vec![scans.clone(), is("size", 55_001.into())]), Some(16)),
            (Expr::Or(vec![scans.clone(), is("more", 0.into())]), None),
            (scans.clone().and(is("size", 55_001.into())), Some(4)),
            (scans.clone().and(is("more", 0.into())), Some(12)),
            (regex("path", "nothing like this", ""), Some(2)),
            (Expr::Nothing, Some(2)),
        ];
        for _ in 0..2 {
            for (condition, most) in &cases {
                check(tenant, &lists, &of(condition.clone()), *most);
                let count = || read(tenant, |view| view.count_such_members(&ITEM, &Expr::All, condition));
                let (n, told) = told_with(count);
                let n_expected = expected(&lists, &of(condition.clone())).len() as u64;
                assert_eq!(n, n_expected, "{condition:?}: {told}");
                let mut query = of(condition.clone());
                (query.skip, query.limit) = (2, 3);
                check(tenant, &lists, &query, *most);
                query.records = Query::filter(Expr::Is("size".into(), 3.into()));
                check(tenant, &lists, &query, *most);
                query.records.order.push(Order { path: "free".into(), direction: Direction::Ascending });
                check(tenant, &lists, &query, *most);
                let mut records = expected(&lists, &MemberQuery { skip: 0, limit: 1_000, ..query.clone() });
                records.dedup_by(|a, b| a.0 == b.0);
                let window = query.records.clone().window(1, 4);
                let with = read(tenant, |view| view.find_with_member(&ITEM, &window, condition));
                let ids: Vec<String> = records.into_iter().map(|it| it.0).skip(1).take(4).collect();
                assert_eq!(with, ids, "{condition:?}");
            }
            assert!(tenant.wait_for_indexes(Duration::from_secs(120)).expect("an index"));
        }
        // Of records whose members are all such, none is read to count them.
        let common = range("size", included(1.into()), End::Open);
        let (_, told) =
            told_with(|| read(tenant, |view| view.count_such_members(&ITEM, &Expr::All, &common)));
        assert!(number_before(&told, " records by the search index") <= Some(8), "{told}");
    });
}

#[test]
fn members_are_sorted_by_what_they_have() {
    on_each(ALL, |tenant| {
        let lists = fill(tenant);
        let order = |path: &str, direction| Order { path: path.into(), direction };
        let (up, down) = (Direction::Ascending, Direction::Descending);
        for _ in 0..2 {
            for direction in [up, down] {
                for path in ["path", "size", "time", "mixed", "more"] {
                    for (skip, limit) in [(0, 5), (40, 25), (430, 50), (0, 1_000)] {
                        let mut query = of(Expr::All);
                        (query.order, query.skip, query.limit) = (vec![order(path, direction)], skip, limit);
                        check(tenant, &lists, &query, None);
                        query.order.push(order("size", down));
                        check(tenant, &lists, &query, None);
                        query.of_member =
                            Expr::Regex("path".into(), Pattern::new("scan_1", "i").expect("a pattern"));
                        check(tenant, &lists, &query, None);
                        query.records.order.push(order("free", up));
                        check(tenant, &lists, &query, None);
                    }
                }
            }
            assert!(tenant.wait_for_indexes(Duration::from_secs(120)).expect("an index"));
        }
        // A page near the beginning reads the members of few records.
        let mut query = of(Expr::All);
        (query.order, query.limit) = (vec![order("size", down)], 3);
        let (_, told) = told_with(|| read(tenant, |view| view.find_members(&ITEM, &query)));
        assert!(told.contains("in the order of what members begin with"), "{told}");
    });
}

#[test]
fn pages_far_from_the_beginning() {
    on_each(ALL, |tenant| {
        let lists: Lists = (0..N_INDEXED as usize).map(|n| vec![json!({"size": n}); n % 9]).collect();
        for (n, members) in lists.iter().enumerate() {
            let document = document(n).with_list(stage_all(tenant, members), members.len() as u64);
            write(tenant, move |txn| txn.insert_document(&document));
        }
        assert!(tenant.wait_for_indexes(Duration::from_secs(120)).expect("an index"));
        let n: usize = lists.iter().map(Vec::len).sum();
        for skip in [999, 1_000, 1_001, n - 3, n - 1, n, n + 5] {
            let mut query = of(Expr::All);
            (query.skip, query.limit) = (skip as u64, 7);
            check(tenant, &lists, &query, None);
            query.records.order.push(Order { path: "free".into(), direction: Direction::Ascending });
            check(tenant, &lists, &query, None);
        }
    });
}

/// However many members a record has, no more are held than up to the end of a page; a page too far behind is refused.
#[test]
fn what_is_held_of_an_order_is_bounded() {
    const N: u64 = 5_000;
    for place in engines() {
        let limits = Limits { page_bytes: 200_000, page_rows: 2_000, ..Limits::default() };
        let tenant = place.open(ALL, limits).tenant_or_new("t").expect("a tenant");
        let members: Vec<Value> = (0..N).map(|n| json!({"size": n * 7_919 % N})).collect();
        let document = document(0).with_list(stage_all(&tenant, &members), N);
        write(&tenant, move |txn| txn.insert_document(&document));
        let lists = vec![members];
        let page = |skip, limit| {
            let order = vec![Order { path: "size".into(), direction: Direction::Descending }];
            MemberQuery { order, skip, limit, ..of(Expr::All) }
        };
        check(&tenant, &lists, &page(0, 5), None);
        check(&tenant, &lists, &page(1_000, 5), None);
        for (skip, limit) in [(4_000, 5), (0, 4_000), (1_990, 20)] {
            let found = tenant.read_blocking(|view| view.find_members(&ITEM, &page(skip, limit)));
            assert!(matches!(found, Err(StoreError::Query(_))), "{} {skip} {limit}: {found:?}", place.engine);
        }
        let in_turn = MemberQuery { limit: 2_001, ..of(Expr::All) };
        let found = tenant.read_blocking(|view| view.find_members(&ITEM, &in_turn));
        assert!(matches!(found, Err(StoreError::Query(_))), "{}: {found:?}", place.engine);
        check(&tenant, &lists, &MemberQuery { skip: 3_000, limit: 2_000, ..of(Expr::All) }, None);
    }
}

/// Members that the index cannot tell are read, and who reads them is told of those that cannot be read.
#[test]
fn many_values_and_broken_members() {
    on_each(ALL, |tenant| {
        let mut lists: Lists = (0..N_INDEXED as usize).map(some).collect();
        let letters = || (b'a'..=b'z').map(char::from);
        let paths = letters().flat_map(|a| letters().map(move |b| format!("{a}{b}")));
        lists[251] = paths
            .flat_map(|begin| letters().map(move |c| format!("{begin}{c}")))
            .zip(0..)
            .map(|(path, n)| json!({"path": path, "size": 500_000 + n}))
            .collect();
        for (n, members) in lists.iter().enumerate() {
            let document = document(n).with_list(stage_all(tenant, members), members.len() as u64);
            write(tenant, move |txn| txn.insert_document(&document));
        }
        assert!(tenant.wait_for_indexes(Duration::from_secs(120)).expect("an index"));
        let path = |text: &str| Expr::Is("path".into(), text.into());
        for condition in [
            path("zzz"),
            path("aaa"),
            path("/data/P7/Scan_017/Élan_0.h5"),
            Expr::Is("size".into(), 501_234.into()),
            Expr::Is("size".into(), 55_001.into()),
            Expr::Is("size".into(), 900_000.into()),
        ] {
            check(tenant, &lists, &of(condition), Some(6));
        }
        let broken = write(tenant, |txn| txn.new_list(&ITEM));
        let torn = document(252).with_list(broken, 1);
        write(tenant, move |txn| {
            txn.append_members(&ITEM, broken, 0, 1, Bytes::from_static(b"{\"path\":"))?;
            txn.update_document(&torn)
        });
        assert!(tenant.wait_for_indexes(Duration::from_secs(120)).expect("an index"));
        for query in [
            of(path("/data/P7/Scan_017/Élan_0.h5")),
            of(Expr::Is("size".into(), 501_234.into())),
            MemberQuery {
                order: vec![Order { path: Path::from("size"), direction: Direction::Descending }],
                ..of(Expr::All)
            },
        ] {
            let read = tenant.read_blocking(|view| view.find_members(&ITEM, &query));
            assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
        }
    });
}
