//! `check` finds inconsistencies: damage is planted in the file.

use pinakes_store::{Document, Kind};
use serde_json::json;

use crate::engines::{sqlite, write};
use crate::kinds::{ALL, ITEM};

/// Damages a sound tenant by `sql`; returns the findings of the check.
fn findings(sql: &str) -> Vec<String> {
    let place = sqlite();
    let tenant = place.tenant(ALL);
    let list = write(&tenant, |txn| txn.new_list(&ITEM));
    write(&tenant, move |txn| txn.append_members(&ITEM, list, 0, 1, bytes::Bytes::from_static(b"1")));
    write(&tenant, move |txn| {
        for n in 0..30 {
            let body = json!({
                "name": "x", "size": n, "keywords": ["k", n.to_string()], "group": n % 2, "doi": n.to_string(),
                "parents": ["p"]
            });
            let document = Document::new(&ITEM, n.to_string(), &body)?;
            txn.insert_document(&if n == 0 { document.with_list(list, 1) } else { document })?;
        }
        Ok(())
    });
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    drop(tenant);
    let file = rusqlite::Connection::open(place.file("t")).expect("the file");
    let n = file.execute(sql, []).expect(sql);
    assert!(0 < n, "{sql} changed nothing");
    drop(file);
    place.tenant(ALL).check().expect("a check")
}

#[track_caller]
fn check(sql: &str, expected: &str) {
    let found = findings(sql);
    assert!(found.iter().any(|it| it.contains(expected)), "{sql}: {found:?} does not say {expected:?}");
}

#[test]
fn planted_damage_is_found() {
    let kind: &Kind = &ITEM;
    assert_eq!(kind.name, "item");
    check("UPDATE k_item SET size = 99 WHERE id = '3'", "\"3\": column size");
    check("UPDATE k_item SET class = 5 WHERE id = '3'", "\"3\": class is 5");
    check("UPDATE b_item SET body = x'7b' WHERE key = 1", "body is not JSON");
    check("DELETE FROM b_item WHERE key = 1", "has no body");
    check("INSERT INTO b_item (key, body) VALUES (999, x'7b7d')", "bodies without a record");
    check("UPDATE facet SET n = n + 1 WHERE facet = 'name'", "count of \"name\"");
    check("DELETE FROM facet WHERE facet = 'keywords' AND value = '3'", "is missing");
    check("DELETE FROM x_item_keywords WHERE value = '3'", "keywords");
    check("UPDATE x_item_keywords SET value = 'wrong' WHERE value = '3'", "keywords");
    check("DELETE FROM identifier WHERE value = '3'", "identifier");
    check("UPDATE identifier SET value = 'wrong' WHERE value = '3'", "identifier");
    check("UPDATE link SET target = 'wrong' WHERE id = '3'", "link");
    check("DELETE FROM m_item", "number of members");
    check("INSERT INTO m_item (list, position, n, body) VALUES (77, 0, 1, x'31')", "lists without a record");
    check("DELETE FROM class WHERE fields LIKE '%0%'", "class");
}
