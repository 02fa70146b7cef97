//! A kind's declaration changes: everything it governs is rebuilt from the bodies.

use pinakes_store::{
    Arity, Column, Direction, Document, Expr, Facet, Identifier, Index, Kind, Limits, Link, Query,
    StoreError, Tenant, Text, TextQuery, Type, Weight,
};
use serde_json::{Value as Json, json};

use crate::engines::{Held, Place, engines, read, refused, told_with, write};

pub(crate) static BEFORE: Kind = Kind {
    columns: &[Column::one("name", Type::Text), Column::many("tags", Type::Text)],
    indexes: &[Index::on(&["name"])],
    facets: &[Facet::values("name")],
    class_fields: &["group"],
    members: Some("files"),
    ..Kind::named("thing")
};

pub(crate) static AFTER: Kind = Kind {
    columns: &[
        Column::one("size", Type::Integer),
        Column::one("name", Type::Text),
        Column { name: "labels", path: "tags", ty: Type::Text, arity: Arity::Many },
    ],
    indexes: &[Index::on(&["size"]), Index::on(&["class", "size"])],
    facets: &[Facet::values("size"), Facet::values("tags")],
    class_fields: &["group", "owner"],
    text: Text::At(&["name"]),
    identifiers: &[Identifier { scheme: "doi", path: "doi" }],
    links: &[Link { relation: "of", path: "of", to: "thing" }],
    members: Some("files"),
    ..Kind::named("thing")
};

/// The same kind before members were declared.
static WITHOUT_MEMBERS: Kind = Kind { columns: &[Column::one("name", Type::Text)], ..Kind::named("thing") };

pub(crate) static FIRST: &[&Kind] = &[&BEFORE];
pub(crate) static SECOND: &[&Kind] = &[&AFTER];
static THIRD: &[&Kind] = &[&WITHOUT_MEMBERS];

fn ids(tenant: &Tenant, kind: &'static Kind, filter: Expr) -> Vec<String> {
    let query = Query::filter(filter);
    read(tenant, |view| view.find(kind, &query)).into_iter().map(|it| it.id).collect()
}

#[test]
fn everything_follows_the_declaration() {
    for place in engines() {
        let tenant = place.tenant(FIRST);
        let list = write(&tenant, |txn| txn.new_list(&BEFORE));
        write(&tenant, move |txn| txn.append_members(&BEFORE, list, 0, 2, bytes::Bytes::from_static(b"1,2")));
        write(&tenant, move |txn| {
            for n in 0..2_100 {
                let body = json!({
                    "name": format!("beam {}", n % 7), "size": n % 5, "tags": ["a", format!("t{}", n % 3)],
                    "group": n % 2, "owner": n % 4, "doi": format!("10.1/{n}"), "of": "0"
                });
                let mut document = Document::new(&BEFORE, n.to_string(), &body)?;
                if n == 0 {
                    document = document.with_list(list, 2);
                }
                txn.insert_document(&document)?;
            }
            txn.delete(&BEFORE, "7").map(|_| ())
        });
        assert_eq!(ids(&tenant, &BEFORE, Expr::Is("tags".into(), "t1".into())).len(), 699);
        let sequence = read(&tenant, |view| view.get(&BEFORE, "9")).expect("it").sequence;
        let seen = read(&tenant, |view| view.kind_sequence(&BEFORE));
        drop(tenant);

        let tenant = place.tenant(SECOND);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
        assert_eq!(read(&tenant, |view| view.get(&AFTER, "9")).expect("it").sequence, sequence);
        assert!(seen <= read(&tenant, |view| view.kind_sequence(&AFTER)));
        assert_eq!(ids(&tenant, &AFTER, Expr::Is("size".into(), 2_i64.into())).len(), 419);
        assert_eq!(ids(&tenant, &AFTER, Expr::Is("tags".into(), "t1".into())).len(), 699);
        assert_eq!(ids(&tenant, &AFTER, Expr::Is("owner".into(), 3_i64.into())).len(), 524);
        let text = TextQuery { words: vec!["beams".into()], ..TextQuery::default() };
        assert_eq!(ids(&tenant, &AFTER, Expr::Text(text)).len(), 2_099);
        assert_eq!(read(&tenant, |view| view.by_identifier("doi", "10.1/9")).len(), 1);
        assert_eq!(read(&tenant, |view| view.links_to(&AFTER, "0", "of", ("", ""), 9_999)).len(), 2_099);
        let facets = read(&tenant, |view| view.facets(&AFTER, &Expr::All, &["size", "tags", "name"]));
        assert_eq!(facets.iter().map(Vec::len).collect::<Vec<_>>(), [5, 4, 0]);
        assert_eq!(read(&tenant, |view| view.get(&AFTER, "0")).expect("it").n_members, 2);
        write(&tenant, |txn| txn.insert(&AFTER, "new", &json!({"size": 9, "owner": 1, "tags": ["z"]})));
        drop(tenant);

        // Back to no members: their rows belong to no record any more, the rest is as it was.
        let tenant = place.tenant(THIRD);
        assert_eq!(ids(&tenant, &WITHOUT_MEMBERS, Expr::All).len(), 2_100);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
    }
}

/// For the embedded engine, `tests/power.rs` tests this step by step. In a database, this test aborts the transactions
/// at each of the tables that they reach.
#[test]
fn what_is_cut_off_while_it_is_made_anew_begins_again() {
    for table in ["facet", "identifier", "link", "class"] {
        let Some(place) = engines().into_iter().find(|it| it.engine == "postgresql") else { return };
        let tenant = place.tenant(FIRST);
        write(&tenant, |txn| {
            (0..1_200).try_for_each(|n| {
                let body = json!({
                    "name": format!("beam {}", n % 7), "size": n % 5, "tags": ["a"], "group": n % 2, "owner": n % 4,
                    "doi": format!("10.1/{n}"), "of": "0"
                });
                txn.insert(&BEFORE, &n.to_string(), &body).map(drop)
            })
        });
        drop(tenant);
        let held = Held::lock(&place, &format!("LOCK TABLE {table} IN SHARE MODE"));
        std::thread::scope(|scope| {
            let opened = scope.spawn(|| place.open(SECOND, Limits::default()).tenant("t").map(drop));
            // Terminates the session that waits for the table.
            held.wait_until(&format!(
                "SELECT coalesce(bool_and(pg_terminate_backend(pid)), false) FROM pg_locks \
                 WHERE NOT granted AND relation = '{table}'::regclass"
            ));
            held.release();
            // It may have retried by itself.
            let _ended = opened.join().expect("no panic");
        });
        let tenant = place.tenant(SECOND);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{table}");
        assert_eq!(ids(&tenant, &AFTER, Expr::Is("owner".into(), 3_i64.into())).len(), 300, "{table}");
        assert_eq!(read(&tenant, |view| view.by_identifier("doi", "10.1/9")).len(), 1, "{table}");
        assert_eq!(
            read(&tenant, |view| view.links_to(&AFTER, "0", "of", ("", ""), 9_999)).len(),
            1_200,
            "{table}"
        );
    }
}

/// The first declaration with other indexes, one of them unique.
static OTHER_INDEXES: Kind = Kind {
    columns: BEFORE.columns,
    indexes: &[Index::unique(&["name"]), Index::on(&["class", "name"])],
    facets: BEFORE.facets,
    class_fields: BEFORE.class_fields,
    members: BEFORE.members,
    ..Kind::named("thing")
};
static FOURTH: &[&Kind] = &[&OTHER_INDEXES];

#[test]
fn indexes_alone_can_change() {
    for place in engines() {
        let tenant = place.tenant(FIRST);
        write(&tenant, |txn| {
            (0..100).try_for_each(|n| {
                let body = json!({"name": n.to_string(), "group": n % 3, "tags": ["a"]});
                txn.insert(&BEFORE, &n.to_string(), &body).map(|_| ())
            })
        });
        for (kinds, kind) in [(FOURTH, &OTHER_INDEXES), (FIRST, &BEFORE), (FOURTH, &OTHER_INDEXES)] {
            let tenant = place.tenant(kinds);
            assert_eq!(ids(&tenant, kind, Expr::Is("name".into(), "7".into())), ["7"], "{}", place.engine);
            assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
        }
        let tenant = place.tenant(FOURTH);
        let twice =
            crate::engines::refused(&tenant, |txn| txn.insert(&OTHER_INDEXES, "x", &json!({"name": "7"})));
        assert!(matches!(twice, pinakes_store::StoreError::Duplicate { column: "name", .. }), "{twice}");
    }
}

#[test]
fn members_can_be_declared_later() {
    for place in engines() {
        let tenant = place.tenant(THIRD);
        write(&tenant, |txn| txn.insert(&WITHOUT_MEMBERS, "a", &json!({"name": "x"})));
        drop(tenant);
        let tenant = place.tenant(FIRST);
        let list = write(&tenant, |txn| txn.new_list(&BEFORE));
        write(&tenant, move |txn| txn.append_members(&BEFORE, list, 0, 1, bytes::Bytes::from_static(b"1")));
        let document =
            Document::new(&BEFORE, "a", &json!({"name": "x"})).expect("a document").with_list(list, 1);
        write(&tenant, move |txn| txn.update_document(&document));
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
    }
}

/// The first declaration with one more index.
static ONE_MORE_INDEX: Kind = Kind {
    columns: BEFORE.columns,
    indexes: &[Index::on(&["name"]), Index::on(&["class", "name"])],
    facets: BEFORE.facets,
    class_fields: BEFORE.class_fields,
    members: BEFORE.members,
    ..Kind::named("thing")
};
static FIFTH: &[&Kind] = &[&ONE_MORE_INDEX];

#[test]
fn indexes_are_made_while_writes_go_on() {
    let Some(place) = engines().into_iter().find(|it| it.engine == "postgresql") else { return };
    let tenant = place.tenant(FIRST);
    let insert = |n: usize| {
        write(&tenant, move |txn| {
            let body = json!({"name": n.to_string(), "group": n % 3, "tags": ["a"]});
            txn.insert(&BEFORE, &n.to_string(), &body).map(|_| ())
        });
    };
    (0..20).for_each(insert);
    // A transaction that holds a write lock on the table delays the index, and nothing else.
    let held = Held::lock(&place, "LOCK TABLE k_thing IN ROW EXCLUSIVE MODE");
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| place.tenant(FIFTH));
        held.wait_until(
            "SELECT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = 'k_thing'::regclass AND NOT indisvalid)",
        );
        (20..40).for_each(insert);
        assert!(!opened.is_finished(), "the index is not waited for");
        held.release();
        let opened = opened.join().expect("a tenant");
        assert_eq!(ids(&opened, &ONE_MORE_INDEX, Expr::Is("name".into(), "39".into())), ["39"]);
        assert_eq!(read(&opened, |view| view.count(&ONE_MORE_INDEX, &Expr::All)), 40);
        assert_eq!(opened.check().expect("a check"), Vec::<String>::new());
    });
    let invalid = "DO $$ BEGIN IF EXISTS (SELECT 1 FROM pg_index WHERE indrelid = 'k_thing'::regclass AND NOT indisvalid) \
                   THEN RAISE EXCEPTION 'an index is not valid'; END IF; END $$";
    crate::engines::sql(&place, invalid);
}

/// For a kind with more records than are rebuilt before a tenant is served, indexes are built while serving.
#[test]
fn indexes_of_a_large_kind_are_not_waited_for() {
    let Some(place) = engines().into_iter().find(|it| it.engine == "postgresql") else { return };
    fill(&place);
    let held = Held::lock(&place, "LOCK TABLE k_thing IN ROW EXCLUSIVE MODE");
    let limits = Limits { remake_records_first: 500, remake_pause_ms: 1, ..Limits::default() };
    let tenant = place.open(FIFTH, limits).tenant("t").expect("a tenant");
    held.wait_until(
        "SELECT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = 'k_thing'::regclass AND NOT indisvalid)",
    );
    let kind = &ONE_MORE_INDEX;
    write(&tenant, |txn| txn.insert(kind, "new", &body(3)).map(drop));
    assert_eq!(ids(&tenant, kind, Expr::Is("name".into(), "beam 3".into())).len(), 301);
    held.release();
    held.wait_until("SELECT NOT EXISTS (SELECT 1 FROM meta WHERE name LIKE 'remake:%')");
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}

/// Returns limits under which the rebuild of a kind stops after so many records.
fn held_after(n_records: u64) -> Limits {
    Limits { remake_records_first: n_records, remake_pause_ms: 3_600_000, ..Limits::default() }
}

/// Number of records in the tests below.
pub(crate) const N: usize = 2_100;

pub(crate) fn body(n: usize) -> Json {
    json!({
        "name": format!("beam {}", n % 7), "size": n % 5, "tags": ["a", format!("t{}", n % 3)],
        "group": n % 2, "owner": n % 4, "doi": format!("10.1/{n}"), "of": "0"
    })
}

pub(crate) fn fill(place: &Place) {
    let tenant = place.tenant(FIRST);
    write(&tenant, |txn| (0..N).try_for_each(|n| txn.insert(&BEFORE, &n.to_string(), &body(n)).map(drop)));
}

/// Returns what searches find under the second declaration by columns, classes, counts or bodies.
fn found(tenant: &Tenant) -> Vec<String> {
    let mut said = Vec::new();
    for (field, value) in
        [("size", 2_i64.into()), ("tags", "t1".into()), ("owner", 3_i64.into()), ("name", "beam 3".into())]
    {
        let filter = Expr::Is(field.into(), value);
        said.push(format!("{field}: {} of them", read(tenant, |view| view.count(&AFTER, &filter))));
        let facets = read(tenant, |view| view.facets(&AFTER, &filter, &["size", "tags"]));
        said.push(format!("{field}: {facets:?}"));
        let query = Query::filter(filter).sorted("size", Direction::Descending).window(3, 5);
        let list = read(tenant, |view| view.find(&AFTER, &query));
        said.push(format!("{:?}", list.iter().map(|it| it.id.as_str()).collect::<Vec<_>>()));
    }
    said.push(format!("{} in all", read(tenant, |view| view.count(&AFTER, &Expr::All))));
    said.push(format!(
        "{:?}",
        read(tenant, |view| view.facets(&AFTER, &Expr::All, &["size", "tags", "name"]))
    ));
    for id in ["3", "1999", "2", "2000", "new", "5", "2001"] {
        let fields = read(tenant, |view| match view.get(&AFTER, id)? {
            Some(it) => view.class(&AFTER, it.class).map(|fields| format!("{fields} {}", it.version)),
            None => Ok("gone".to_owned()),
        });
        said.push(format!("{id}: {fields}"));
    }
    said
}

/// Writes some records that may or may not be rebuilt yet.
fn change(tenant: &Tenant) {
    write(tenant, |txn| {
        for n in [3, 1_999] {
            let changed = json!({"name": "moved", "size": 2, "tags": ["a", "t1"], "owner": 3, "group": 7, "doi": "10.1/m", "of": "3"});
            txn.update(&AFTER, &n.to_string(), &changed)?;
        }
        // The same record again, changed to something else.
        txn.update(
            &AFTER,
            "1999",
            &json!({"size": 4, "tags": ["t2"], "owner": 1, "doi": "10.1/1999", "of": "3"}),
        )?;
        txn.insert(
            &AFTER,
            "new",
            &json!({"size": 2, "tags": ["t1", "z"], "owner": 3, "doi": "10.1/new", "of": "new"}),
        )?;
        txn.delete(&AFTER, "5")?;
        txn.delete(&AFTER, "2001").map(drop)
    });
}

fn is_remaking<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Remaking { kind: "thing", .. })), "{answer:?}");
}

#[test]
fn reads_and_writes_go_on_while_a_kind_is_made_anew() {
    for (n_made, n_places) in [(0, engines().len()), (1_000, engines().len())] {
        for number in 0..n_places {
            let [place, plain] = [0, 1].map(|_| engines().remove(number));
            fill(&place);
            fill(&plain);
            // The result when everything is rebuilt at once.
            let expected = plain.tenant(SECOND);
            let before = found(&expected);
            change(&expected);
            let after = found(&expected);
            assert_eq!(expected.check().expect("a check"), Vec::<String>::new());

            let catalogue = place.open(SECOND, held_after(n_made));
            let tenant = catalogue.tenant("t").expect("a tenant");
            let engine = place.engine;
            assert_eq!(found(&tenant), before, "{engine} {n_made}");
            let text = TextQuery { words: vec!["beams".into()], ..TextQuery::default() };
            let by_words = tenant.read_blocking(|view| view.count(&AFTER, &Expr::Text(text.clone())));
            if engine == "postgresql" {
                is_remaking(by_words)
            } else {
                assert_eq!(by_words.expect("a count"), 2_100)
            }
            is_remaking(tenant.read_blocking(|view| view.by_identifier("doi", "10.1/9")));
            is_remaking(tenant.read_blocking(|view| view.links_to(&AFTER, "0", "of", ("", ""), 9)));
            // A writer does not read all bodies for a condition that a column will answer later.
            let by_size = Expr::Is("size".into(), 2_i64.into());
            is_remaking(tenant.write_blocking(move |txn| txn.count(&AFTER, &by_size)));
            change(&tenant);
            assert_eq!(found(&tenant), after, "{engine} {n_made}");
            is_remaking(tenant.read_blocking(|view| view.identifiers("doi", "", 9)));

            // Another server takes the remaining steps; the first finds everything rebuilt.
            let other = place.open(SECOND, Limits::default()).tenant("t").expect("a tenant");
            for it in [&other, &tenant] {
                assert_eq!(found(it), after, "{engine} {n_made}");
                assert_eq!(read(it, |view| view.by_identifier("doi", "10.1/m")).len(), 1);
                assert_eq!(read(it, |view| view.links_to(&AFTER, "0", "of", ("", ""), 9_999)).len(), N - 4);
                assert_eq!(read(it, |view| view.count(&AFTER, &Expr::Text(text.clone()))), 2_096);
                assert_eq!(it.check().expect("a check"), Vec::<String>::new(), "{engine} {n_made}");
            }
        }
    }
}

#[test]
fn what_was_begun_is_gone_on_with() {
    for place in engines() {
        fill(&place);
        for _ in 0..3 {
            // Five hundred more each time, without starting over.
            let tenant = place.open(SECOND, held_after(500)).tenant("t").expect("a tenant");
            let by_size = Expr::Is("size".into(), 2_i64.into());
            assert_eq!(read(&tenant, |view| view.count(&AFTER, &by_size)), 420);
            is_remaking(tenant.read_blocking(|view| view.by_identifier("doi", "10.1/9")));
        }
        // The last six hundred, a check that there are no more, and the indexes.
        let tenant = place.open(SECOND, held_after(3_000)).tenant("t").expect("a tenant");
        assert_eq!(read(&tenant, |view| view.by_identifier("doi", "10.1/2099")).len(), 1, "{}", place.engine);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
        drop(tenant);
        // Aborted halfway back to the first declaration, and there again.
        drop(place.open(FIRST, held_after(500)).tenant("t").expect("a tenant"));
        drop(place.open(SECOND, held_after(500)).tenant("t").expect("a tenant"));
        let tenant = place.tenant(FIRST);
        assert_eq!(ids(&tenant, &BEFORE, Expr::Is("tags".into(), "t1".into())).len(), 700);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
    }
}

/// The first declaration with one more column, which is counted.
static ONE_MORE_COLUMN: Kind = Kind {
    columns: &[
        Column::one("name", Type::Text),
        Column::many("tags", Type::Text),
        Column::one("size", Type::Integer),
    ],
    indexes: &[Index::on(&["name"]), Index::on(&["size"])],
    facets: &[Facet::values("name"), Facet::values("size")],
    class_fields: &["group"],
    members: Some("files"),
    ..Kind::named("thing")
};
static SIXTH: &[&Kind] = &[&ONE_MORE_COLUMN];

#[test]
fn what_declarations_have_alike_serves_on() {
    for place in engines() {
        fill(&place);
        let tenant = place.open(SIXTH, held_after(0)).tenant("t").expect("a tenant");
        let kind = &ONE_MORE_COLUMN;
        let by_name = Expr::Is("name".into(), "beam 3".into());
        let how = |filter: &Expr, facets: &[&str]| {
            told_with(|| read(&tenant, |view| view.facets(kind, filter, facets))).1
        };
        assert!(
            how(&Expr::All, &["name"]).contains("counts that are kept"),
            "{}",
            how(&Expr::All, &["name"])
        );
        assert!(!how(&Expr::All, &["name", "size"]).contains("counts that are kept"));
        assert_eq!(ids(&tenant, kind, by_name.clone()).len(), 300);
        write(&tenant, |txn| txn.update(kind, "3", &json!({"name": "other", "size": 9})).map(drop));
        assert_eq!(ids(&tenant, kind, by_name).len(), 299);
        assert_eq!(ids(&tenant, kind, Expr::Is("size".into(), 9_i64.into())), ["3"]);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
        assert!(how(&Expr::All, &["name", "size"]).contains("counts that are kept"));
    }
}

/// The first declaration with a unique index on a new column.
static UNIQUE_LATER: Kind = Kind {
    columns: &[Column::one("name", Type::Text), Column::one("doi", Type::Text)],
    indexes: &[Index::unique(&["doi"])],
    ..Kind::named("thing")
};
static SEVENTH: &[&Kind] = &[&UNIQUE_LATER];

#[test]
fn a_value_is_not_taken_before_it_is_known_to_be_free() {
    for place in engines() {
        fill(&place);
        let tenant = place.open(SEVENTH, held_after(500)).tenant("t").expect("a tenant");
        assert_eq!(ids(&tenant, &UNIQUE_LATER, Expr::Is("doi".into(), "10.1/2000".into())), ["2000"]);
        let insert = |id: &'static str, n: usize| {
            move |txn: &mut pinakes_store::Txn<'_>| txn.insert(&UNIQUE_LATER, id, &body(n)).map(drop)
        };
        is_remaking(tenant.write_blocking(insert("x", 2_000)));
        is_remaking(tenant.write_blocking(|txn| txn.update(&UNIQUE_LATER, "7", &body(2_000)).map(drop)));
        write(&tenant, |txn| txn.delete(&UNIQUE_LATER, "8").map(drop));
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
        let twice = refused(&tenant, insert("x", 2_000));
        assert!(matches!(twice, StoreError::Duplicate { column: "doi", .. }), "{twice}");
        write(&tenant, insert("8", 8));
    }
}

#[test]
fn who_opened_a_tenant_with_the_former_declaration_writes_no_more() {
    for place in engines() {
        fill(&place);
        let old = place.tenant(FIRST);
        let new = place.open(SECOND, held_after(500)).tenant("t").expect("a tenant");
        let is_outdated = |error: StoreError| {
            let is_it =
                matches!(&error, StoreError::Unavailable(reason) if reason.contains("another version"));
            assert!(is_it, "{}: {error}", place.engine);
        };
        is_outdated(refused(&old, |txn| txn.insert(&BEFORE, "x", &body(1)).map(drop)));
        is_outdated(refused(&old, |txn| txn.delete(&BEFORE, "9").map(drop)));
        let by_name = || Expr::Is("name".into(), "beam 1".into());
        is_outdated(old.read_blocking(|view| view.count(&BEFORE, &by_name())).expect_err("a refusal"));
        is_outdated(old.read_blocking(|view| view.count(&BEFORE, &Expr::All)).expect_err("a refusal"));
        // The same for single-statement reads, which take another path.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let by_identifier = old.read(Weight::Point, |view| view.by_identifier("doi", "10.1/9"));
        is_outdated(runtime.block_on(by_identifier).expect_err("a refusal"));
        let count = old.read(Weight::Point, move |view| view.count(&BEFORE, &Expr::All));
        is_outdated(runtime.block_on(count).expect_err("a refusal"));
        let by_id = old.read(Weight::Point, |view| view.get(&BEFORE, "9"));
        assert_eq!(runtime.block_on(by_id).expect("a read").expect("it").id, "9");
        assert_eq!(read(&old, |view| view.get(&BEFORE, "9")).expect("it").id, "9");
        write(&new, |txn| txn.insert(&AFTER, "x", &body(1)).map(drop));
        assert_eq!(new.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
        assert!(read(&new, |view| view.get(&AFTER, "x")).is_some());
    }
}
