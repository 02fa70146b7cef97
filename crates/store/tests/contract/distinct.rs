//! The different values at a path, and how often each occurs: as in the bodies, whether an index tells them or not.

use std::collections::{BTreeMap, BTreeSet};

use pinakes_store::{Expr, Field, Kind, Limits, Path, Pattern, Tenant, ValueCounts, matches, number_text};
use serde_json::{Value as Json, json};

use crate::engines::{engines, read, told_with, write};
use crate::kinds::{ALL, ITEM};
use crate::law::{number_before, world};

/// Returns the values at the steps of a path, of lists those of their elements.
fn values_of(at: &Json, steps: &[&str]) -> Vec<String> {
    match (at, steps) {
        (Json::Array(list), []) => {
            list.iter().filter(|it| !it.is_array()).flat_map(|it| values_of(it, &[])).collect()
        }
        (Json::String(text), []) => vec![text.clone()],
        (Json::Number(number), []) => vec![number_text(number)],
        (Json::Bool(it), []) => vec![it.to_string()],
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

/// Returns the values at a path, in lists as well, and whether one of them is a list; lists in lists do not count.
fn values_at<'b>(body: &'b Json, steps: &[String]) -> (Vec<&'b Json>, bool) {
    match (body, steps) {
        (Json::Array(list), []) => (list.iter().collect(), true),
        (one, []) => (vec![one], false),
        (Json::Object(map), [step, rest @ ..]) => {
            map.get(step).map_or((Vec::new(), false), |it| values_at(it, rest))
        }
        (Json::Array(list), _) => {
            list.iter().filter(|it| !it.is_array()).fold((Vec::new(), false), |(mut all, has_list), it| {
                let (values, is_list) = values_at(it, steps);
                all.extend(values);
                (all, has_list || is_list)
            })
        }
        _ => (Vec::new(), false),
    }
}

/// Counts the values of a field in bodies; by day, of texts alone.
fn counted(bodies: &[&Json], field: &Field) -> (BTreeMap<String, u64>, u64) {
    let (mut counts, mut n_without) = (BTreeMap::new(), 0);
    for body in bodies {
        let (values, has_list) = values_at(body, field.path.as_steps());
        let texts = values.into_iter().filter(|it| !it.is_null()).map(|it| match it {
            Json::Number(number) => number_text(number),
            Json::String(text) if field.by_day => text[..text.len().min(10)].to_owned(),
            other => other.to_string(),
        });
        let texts: BTreeSet<String> = texts.collect();
        n_without += u64::from(texts.is_empty() && !has_list);
        texts.into_iter().for_each(|it| *counts.entry(it).or_default() += 1);
    }
    (counts, n_without)
}

/// Returns what is counted of a field, and the number of bodies that are read if the index counts the others.
fn asked(
    tenant: &Tenant,
    kind: &'static Kind,
    filter: &Expr,
    field: &Field,
) -> (BTreeMap<String, u64>, u64, Option<u64>) {
    let fields = std::slice::from_ref(field);
    let (found, told) = told_with(|| read(tenant, |view| view.count_values(kind, filter, fields)));
    let [found] = <[ValueCounts; 1]>::try_from(found).expect("one field");
    let n_read = number_before(&told, " bodies counted");
    (found.n_records.into_iter().collect(), found.n_without, n_read)
}

#[test]
fn values_are_counted_as_in_the_bodies() {
    let field = |path: &str, by_day| Field { path: Path::dotted(path), by_day };
    let not = |it| Expr::Not(Box::new(it));
    let pattern = Pattern::new("x+yy", "").expect("a pattern");
    let filters = [
        Expr::All,
        not(Expr::Is("group".into(), "g3".into())),
        not(Expr::Regex("note".into(), pattern)),
        Expr::Is("group".into(), "g3".into()),
    ];
    let fields = [
        "name",
        "size",
        "mass",
        "open",
        "title",
        "keywords",
        "shared",
        "meta.m1",
        "meta.common",
        "note",
        "runs.number",
        "none",
    ];
    let of_terms: Vec<Field> =
        fields.iter().map(|it| field(it, false)).chain([field("made", true)]).collect();
    // Some or all of the values are objects.
    let of_bodies = ["free", "free.b", "runs", "place", "steps.at", "steps.in.at"].map(|it| field(it, false));
    for ((place, tenant), kind) in world().pairs() {
        for (n, filter) in filters.iter().enumerate() {
            let bodies: Vec<&Json> = world().bodies.iter().filter(|it| matches(filter, it)).collect();
            for field in of_terms.iter().chain(&of_bodies) {
                let told = format!("{} {} {filter:?} {field:?}", place.engine, kind.name);
                let (counts, n_without, n_read) = asked(tenant, kind, filter, field);
                assert_eq!((counts, n_without), counted(&bodies, field), "{told}");
                let is_of_terms =
                    kind.search == pinakes_store::Search::Folded && of_terms.contains(field) && n < 3;
                assert!(!is_of_terms || n_read == Some(0), "{told}: {n_read:?} bodies read");
                if kind.search == pinakes_store::Search::Folded && field.path.is_dotted("steps.at") && n < 3 {
                    assert!(n_read.is_some_and(|it| 0 < it && it < 1_000), "{told}: {n_read:?} bodies read");
                }
            }
        }
    }
}

#[test]
fn texts_are_counted_as_in_the_bodies() {
    for ((place, tenant), kind) in world().pairs() {
        for filter in [Expr::All, Expr::Is("group".into(), "g3".into()), Expr::Nothing] {
            let bodies: Vec<&Json> = world().bodies.iter().filter(|it| matches(&filter, it)).collect();
            for path in
                ["name", "size", "keywords", "shared", "title", "note", "meta.m1", "steps.in.at", "none"]
            {
                let path = Path::dotted(path);
                let (counts, n_without) = counted(&bodies, &Field { path: path.clone(), by_day: false });
                let text = |(value, n): (String, u64)| Some((serde_json::from_str(&value).ok()?, n));
                let expected: BTreeMap<String, u64> = counts.into_iter().filter_map(text).collect();
                let found = read(tenant, |view| view.count_texts(kind, &filter, &path));
                let told = format!("{} {} {filter:?} {path:?}", place.engine, kind.name);
                assert_eq!((found.n_records, found.n_without), (expected, n_without), "{told}");
            }
        }
    }
}

/// Records that changed since the index's commit count as they are now.
#[test]
fn changed_records_are_counted() {
    for place in engines() {
        let tenant = place.tenant(ALL);
        write(&tenant, |txn| {
            (0..3_000_u64)
                .try_for_each(|n| txn.insert(&ITEM, &format!("i{n}"), &sized(n, "many")).map(|_| ()))
        });
        assert!(tenant.wait_for_indexes(std::time::Duration::from_secs(120)).expect("an answer"));
        write(&tenant, |txn| txn.update(&ITEM, "i5", &sized(5, "cinq")).map(|_| ()));
        let name = Field { path: "name".into(), by_day: false };
        let (counts, _, n_read) = asked(&tenant, &ITEM, &Expr::All, &name);
        let expected = [("\"cinq\"".to_owned(), 1), ("\"many\"".to_owned(), 2_999)];
        assert_eq!(counts, BTreeMap::from(expected), "{}", place.engine);
        assert_eq!(n_read, Some(0), "{}", place.engine);
    }
}

/// A facet, or a count of values, that has too many or too long ones is refused, whatever counts them.
#[test]
fn values_are_bounded() {
    const N: u64 = 3_000;
    // As JSON it has two bytes more.
    let long = |n: u64| format!("{n:0>100}");
    let all = [Expr::All, Expr::Is("size".into(), 1.into()), Expr::Is("free".into(), "x".into())];
    for place in engines() {
        for (page_rows, facet_bytes, is_kept) in
            [(N, 1 << 20, true), (N - 1, 1 << 20, false), (N, 102 * N, true), (N, 100 * N - 1, false)]
        {
            let limits = Limits { page_rows, facet_bytes, index_pause_ms: 1_000, ..Limits::default() };
            let tenant = place.open(ALL, limits).tenant_or_new(&format!("t{page_rows}-{facet_bytes}"));
            let tenant = tenant.expect("a tenant");
            write(&tenant, move |txn| {
                (0..N).try_for_each(|n| {
                    let body = json!({"name": long(n), "size": 1, "free": "x", "meta": {"m1": long(n)}});
                    txn.insert(&ITEM, &n.to_string(), &body).map(drop)
                })
            });
            let check = |told_by: &str| {
                for filter in &all {
                    let facets = tenant.read_blocking(|view| view.facets(&ITEM, filter, &["name"]));
                    assert_eq!(facets.is_ok(), is_kept, "{} {told_by} {filter:?}: {facets:?}", place.engine);
                    let field = Field { path: "meta.m1".into(), by_day: false };
                    let counts = tenant
                        .read_blocking(|view| view.count_values(&ITEM, filter, std::slice::from_ref(&field)));
                    assert_eq!(counts.is_ok(), is_kept, "{} {told_by} {filter:?}", place.engine);
                    if let Ok([counts]) = counts.as_deref() {
                        assert_eq!(counts.n_records.len() as u64, N);
                    }
                }
            };
            check("bodies and columns");
            assert!(tenant.wait_for_indexes(std::time::Duration::from_secs(120)).expect("an answer"));
            check("the index");
        }
    }
}
