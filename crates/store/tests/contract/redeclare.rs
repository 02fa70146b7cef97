//! A kind's declaration changes: what it governs is made anew from the bodies.

use pinakes_store::{
    Arity, Column, Document, Expr, Facet, Identifier, Index, Kind, Limits, Link, Query, Tenant, Text,
    TextQuery, Type,
};
use serde_json::json;

use crate::engines::{Held, engines, read, write};

static BEFORE: Kind = Kind {
    columns: &[Column::one("name", Type::Text), Column::many("tags", Type::Text)],
    indexes: &[Index::on(&["name"])],
    facets: &[Facet::values("name")],
    class_fields: &["group"],
    members: Some("files"),
    ..Kind::named("thing")
};

static AFTER: Kind = Kind {
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

static FIRST: &[&Kind] = &[&BEFORE];
static SECOND: &[&Kind] = &[&AFTER];
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

        // Back again, without members: their rows are no record's any more, the rest is as it was.
        let tenant = place.tenant(THIRD);
        assert_eq!(ids(&tenant, &WITHOUT_MEMBERS, Expr::All).len(), 2_100);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
    }
}

/// In the embedded engine `tests/power.rs` holds this, step by step. In a database it is one transaction, which is cut off here at each
/// of the tables that it comes to.
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
            // Whoever waits for the table is ended.
            held.wait_until(&format!(
                "SELECT coalesce(bool_and(pg_terminate_backend(pid)), false) FROM pg_locks \
                 WHERE NOT granted AND relation = '{table}'::regclass"
            ));
            held.release();
            // It may have tried again by itself.
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
    // A transaction that has the table locked for writing holds the index up, and nothing else.
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
