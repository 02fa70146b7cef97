//! Many records at once.

use pinakes_store::{Document, Expr, Tenant};
use serde_json::{Value, json};

use crate::engines::{engines, on_each, read, sql, sqlite, write};
use crate::kinds::{ALL, ITEM, PLAIN, USER};

fn insert_missing(tenant: &Tenant, documents: Vec<Document>) -> Vec<bool> {
    write(tenant, move |txn| txn.insert_missing(&documents.iter().collect::<Vec<_>>()))
}

fn plain(ids: impl Iterator<Item = u32>) -> Vec<Document> {
    ids.map(|n| Document::new(&PLAIN, format!("p{n}"), &json!({"n": n})).expect("a document")).collect()
}

#[test]
fn what_is_there_already_is_passed_over_and_told() {
    on_each(ALL, |tenant| {
        assert_eq!(insert_missing(tenant, plain(0..50)), [true; 50]);
        // Some exist; then none; then some again, one of them twice in the list.
        let made = insert_missing(tenant, plain(40..90));
        assert_eq!(made, [[false; 10].as_slice(), &[true; 40]].concat());
        assert_eq!(insert_missing(tenant, plain(90..140)), [true; 50]);
        let made = insert_missing(tenant, plain((130..180).chain([150, 179])));
        assert_eq!(made.iter().filter(|it| **it).count(), 40, "{made:?}");
        assert_eq!(
            insert_missing(tenant, plain((200..230).chain([229]))).iter().filter(|it| **it).count(),
            30
        );
        assert_eq!(read(tenant, |view| view.count(&PLAIN, &Expr::All)), 210);
    });
}

#[test]
fn a_value_that_is_taken_keeps_its_record_out_and_no_other() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| txn.insert(&USER, "first", &json!({"username": "u20", "badge": 1})).map(|_| ()));
        let user = |n: u32| {
            let body = json!({"username": format!("u{n}"), "badge": 100 + n});
            Document::new(&USER, format!("id{n}"), &body).expect("a document")
        };
        let made = insert_missing(tenant, (0..40).map(user).collect());
        assert_eq!(made, (0..40).map(|n| n != 20).collect::<Vec<_>>());
        assert_eq!(insert_missing(tenant, (40..80).map(user).collect()), [true; 40]);
    });
}

#[test]
fn a_list_of_records_is_refused_as_a_whole() {
    on_each(ALL, |tenant| {
        insert_missing(tenant, plain(0..20));
        for ids in [15..60, 60..100] {
            let (documents, is_new) = (plain(ids.clone()), ids.start == 60);
            let made = tenant.write_blocking(move |txn| txn.insert_documents(&documents));
            assert_eq!(made.is_ok(), is_new, "{made:?}");
        }
        assert_eq!(read(tenant, |view| view.count(&PLAIN, &Expr::All)), 60);
    });
}

/// Texts whose words are split, folded, stemmed, repeated or left out.
fn bodies() -> Vec<Value> {
    let texts = [
        "Growing crystals' lattices, quickly relaxed".to_owned(),
        "the same the same THE SAME".to_owned(),
        "run00000017 1e5 1E10 12abc abc12 0x1f 3.5e-7 007 a1b2c3 2022-11-22T10:00:00Z x2y".to_owned(),
        "Größe naïve Ångström ﬁne ½ ²³ straße İstanbul ΣΊΣΥΦΟΣ".to_owned(),
        "結晶 構造解析 ทดสอบ क्रिस्टल кристаллы растут".to_owned(),
        "user@example.org http://example.org/a/b.html?c=d /data/2022/run_1.h5 a.b.c -5 +7 ISO-9001 O'Neill's"
            .to_owned(),
        "again ".repeat(400),
        (0..17_000).map(|n| format!("w{n}x ")).collect(),
        format!("{} short", "long".repeat(700)),
        format!("{} 1", "9".repeat(3_000)),
        "yy yes yoyo say sayyid says dying skies ties generate generated generation generously".to_owned(),
        String::new(),
        "\u{0} nul \u{1f600} smile \u{200b}zero\u{301}".to_owned(),
    ];
    let body = |n: usize, text: &String| {
        json!({
            "note": text, "name": n, "size": n, "mass": n as f64 / 3.0, "open": n.is_multiple_of(2), "group": n % 3,
            "made": "2022-11-22T10:00:00Z", "keywords": ["b", "a", format!("k{n}")], "free": null,
            "runs": [{"number": n}, {"number": 7}], "doi": format!("10.1/{n}"), "parents": ["x", format!("y{n}")],
        })
    };
    (0..40).map(|n| body(n, &texts[n % texts.len()])).collect()
}

#[test]
fn many_at_once_become_what_each_would_become_alone() {
    let Some(place) = engines().into_iter().find(|it| it.engine == "postgresql") else { return };
    let tenant = place.tenant(ALL);
    for (n, body) in bodies().into_iter().enumerate() {
        write(&tenant, move |txn| txn.insert(&ITEM, &format!("alone-{n}"), &body).map(|_| ()));
    }
    // Twice: words are first unknown, then cached.
    for round in ["many1", "many2"] {
        let make = |(n, body): (usize, Value)| {
            Document::new(&ITEM, format!("{round}-{n}"), &body).expect("a document")
        };
        let documents: Vec<_> = bodies().into_iter().enumerate().map(make).collect();
        assert_eq!(insert_missing(&tenant, documents), [true; 40]);
    }
    let columns =
        ["version", "class", "size", "mass", "open", "made", "title", "depth", "keywords", "numbers"];
    let same: Vec<String> = columns
        .iter()
        .chain(&["body", "words"])
        .map(|it| format!("a.\"{it}\" IS NOT DISTINCT FROM m.\"{it}\""))
        .collect();
    let same = same.join(" AND ");
    sql(
        &place,
        &format!(
            "DO $$ DECLARE other text; BEGIN \
             SELECT string_agg(m.id, ' ') INTO other FROM k_item m \
             JOIN k_item a ON a.id = 'alone-' || split_part(m.id, '-', 2) WHERE m.id LIKE 'many%' AND NOT ({same}); \
             IF other IS NOT NULL THEN RAISE EXCEPTION 'not as alone: %', other; END IF; \
             IF (SELECT count(*) FROM k_item WHERE id LIKE 'many%') <> 80 THEN RAISE EXCEPTION 'not all there'; END IF; \
             IF (SELECT count(DISTINCT key) FROM k_item) <> 120 THEN RAISE EXCEPTION 'keys twice'; END IF; END $$"
        ),
    );
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}

/// Children of two parents, alternating and in descending order.
fn children(numbers: std::ops::Range<u64>) -> Vec<Document> {
    let of = |n: u64| json!({"parents": [format!("p{}", n % 2), "p9"]});
    numbers.rev().map(|n| Document::new(&ITEM, format!("c{n}"), &of(n)).expect("a document")).collect()
}

/// Returns the children of a parent.
fn children_of(tenant: &Tenant, parent: &'static str) -> Vec<String> {
    let links = read(tenant, move |view| view.links_to(&ITEM, parent, "parent", ("", ""), 99));
    links.into_iter().map(|it| it.1).collect()
}

#[test]
fn links_of_a_bulk_load_are_there_while_they_wait_for_its_end() {
    on_each(ALL, |tenant| {
        assert!(write(tenant, |txn| txn.defer_indexes(&ITEM)));
        insert_missing(tenant, children(0..5));
        assert_eq!(children_of(tenant, "p0"), ["c0", "c2", "c4"]);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
        write(tenant, |txn| txn.update(&ITEM, "c2", &json!({"parents": ["p1"]})));
        insert_missing(tenant, children(5..8));
        write(tenant, |txn| txn.delete(&ITEM, "c7"));
        assert_eq!(children_of(tenant, "p0"), ["c0", "c4", "c6"]);
        assert_eq!(children_of(tenant, "p1"), ["c1", "c2", "c3", "c5"]);
        insert_missing(tenant, children(8..10));
        assert_eq!(children_of(tenant, "p9"), ["c0", "c1", "c3", "c4", "c5", "c6", "c8", "c9"]);
        tenant.make_indexes(&ITEM).expect("indexes");
        assert_eq!(children_of(tenant, "p9"), ["c0", "c1", "c3", "c4", "c5", "c6", "c8", "c9"]);
    });
}

#[test]
fn links_of_a_bulk_load_that_did_not_end_come_into_order() {
    let place = sqlite();
    let tenant = place.tenant(ALL);
    assert!(write(&tenant, |txn| txn.defer_indexes(&ITEM)));
    insert_missing(&tenant, children(0..9));
    // The file as left by a killed process.
    let other = sqlite();
    std::fs::create_dir_all(other.file("t").parent().expect("a folder")).expect("a folder");
    tenant.backup(&other.file("t")).expect("a copy");
    drop(tenant);
    for place in [place, other] {
        let tenant = place.tenant(ALL);
        assert_eq!(children_of(&tenant, "p0"), ["c0", "c2", "c4", "c6", "c8"]);
        write(&tenant, |txn| txn.delete(&ITEM, "c4"));
        assert_eq!(children_of(&tenant, "p0"), ["c0", "c2", "c6", "c8"]);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    }
}
