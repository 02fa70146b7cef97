//! Lists of counted values that occur repeatedly.

use pinakes_store::{Expr, Tenant};
use serde_json::{Value as Json, json};

use crate::engines::{Place, on_each, read, sqlite, write};
use crate::kinds::{ALL, ITEM};

/// Returns a body with ten counted keys, and one more.
fn body(group: &str, last: &str) -> Json {
    let keys = (0..10).map(|n| (format!("key{n}"), json!(n)));
    let meta: serde_json::Map<String, Json> = keys.chain([(last.to_owned(), Json::Null)]).collect();
    json!({"group": group, "meta": meta})
}

fn insert(tenant: &Tenant, id: &str, group: &'static str, last: &'static str) {
    let id = id.to_owned();
    write(tenant, move |txn| txn.insert(&ITEM, &id, &body(group, last)).map(|_| ()));
}

/// Returns how often a key is counted, over all groups.
fn n_with(tenant: &Tenant, key: &str) -> u64 {
    let facets = read(tenant, |view| view.facets(&ITEM, &Expr::All, &["keys"]));
    let values: Vec<&str> = facets[0].iter().map(|it| it.value.as_str()).collect();
    assert!(values.is_sorted_by(|a, b| a > b), "{values:?}");
    facets[0].iter().find(|it| it.value == key).map_or(0, |it| it.n_records)
}

/// Writes eight records of two groups, each in a write of its own.
fn fill(tenant: &Tenant) {
    for n in 0..8 {
        insert(tenant, &n.to_string(), if n % 2 == 0 { "g1" } else { "g2" }, if n < 6 { "x" } else { "y" });
    }
}

#[test]
fn every_value_of_a_list_is_counted() {
    on_each(ALL, |tenant| {
        fill(tenant);
        assert_eq!(["key0", "x", "y", "z"].map(|it| n_with(tenant, it)), [8, 6, 2, 0]);
        write(tenant, |txn| txn.delete(&ITEM, "0"));
        write(tenant, |txn| txn.update(&ITEM, "1", &body("g2", "y")).map(|_| ()));
        write(tenant, |txn| txn.update(&ITEM, "2", &body("g2", "x")).map(|_| ()));
        write(tenant, |txn| txn.update(&ITEM, "3", &json!({"group": "g2"})).map(|_| ()));
        assert_eq!(["key0", "x", "y"].map(|it| n_with(tenant, it)), [6, 3, 3]);
    });
}

/// Returns the number of rows in which lists are counted.
fn n_rows(place: &Place) -> i64 {
    let file = rusqlite::Connection::open(place.file("t")).expect("the file");
    file.query_row("SELECT count(*) FROM facet_list WHERE n <> 0", [], |row| row.get(0)).expect("a count")
}

#[test]
fn lists_are_counted_once_and_added_up_when_a_file_is_opened() {
    let place = sqlite();
    let tenant = place.tenant(ALL);
    fill(&tenant);
    assert_eq!(n_rows(&place), 2, "x in both groups; y came once in each");
    drop(tenant);
    let tenant = place.tenant(ALL);
    assert_eq!(n_rows(&place), 0);
    assert_eq!(["key0", "x", "y"].map(|it| n_with(&tenant, it)), [8, 6, 2]);
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}

/// Two programs on one file: each counts in rows of its own, and may delete rows that the other created.
#[test]
fn two_writers_count_in_one_file() {
    let place = sqlite();
    let one = place.tenant(ALL);
    let other = place.tenant(ALL);
    fill(&one);
    for id in ["a", "b", "c"] {
        insert(&other, id, "g1", "x");
    }
    write(&other, |txn| txn.delete(&ITEM, "2"));
    // As done by a third program that opens the file alone.
    let file = rusqlite::Connection::open(place.file("t")).expect("the file");
    let add = |class: &str| {
        format!(
            "INSERT INTO facet (kind, facet, class, value, n)
             SELECT kind, facet, {class}, v.value, sum(n) FROM facet_list, json_each(list) v WHERE true GROUP BY 1, 2, 3, 4
             ON CONFLICT DO UPDATE SET n = facet.n + excluded.n;"
        )
    };
    let statements = format!("BEGIN IMMEDIATE; {} {} DELETE FROM facet_list; COMMIT", add("0"), add("class"));
    file.execute_batch(&statements).expect("rows added up");
    insert(&one, "d", "g2", "x");
    assert_eq!(["key0", "x"].map(|it| n_with(&one, it)), [11, 9]);
    assert_eq!(one.check().expect("a check"), Vec::<String>::new());
}
