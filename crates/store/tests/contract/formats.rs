//! Files of former formats are migrated to the current one, and a class is identified by more than its number.
//!
//! `tests/data/format-<n>.sqlite.gz` was written by the last program of that format: 59 items in groups, with members,
//! words, counts of values and of whole lists, and five users. The one of format 3 was migrated by that format's
//! program, which then added one item.

use std::io::Read as _;

use pinakes_store::{Catalogue, Class, Expr, Limits, StoreError, Tenant, TextQuery};
use serde_json::json;

use crate::engines::{Place, engines, read, refused, sqlite, write};
use crate::kinds::{ALL, ITEM};

/// The kept files.
const FORMAT_2: &[u8] = include_bytes!("../data/format-2.sqlite.gz");
const FORMAT_3: &[u8] = include_bytes!("../data/format-3.sqlite.gz");

/// Returns a place whose tenant `t` is the kept file of format 2, changed by `sql` before it is opened.
fn kept(sql: &str) -> (Place, Tenant) {
    let place = kept_file(FORMAT_2, sql);
    let tenant = place.tenant(ALL);
    (place, tenant)
}

/// Returns a place whose tenant `t` is a kept file, changed by `sql`.
fn kept_file(packed: &[u8], sql: &str) -> Place {
    let place = sqlite();
    let file = place.file("t");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).expect("a packed file");
    std::fs::write(&file, bytes).expect("a file");
    rusqlite::Connection::open(&file).and_then(|it| it.execute_batch(sql)).expect(sql);
    place
}

fn group(tenant: &Tenant, id: &'static str) -> serde_json::Value {
    read(tenant, |view| {
        let record = view.get(&ITEM, id)?.expect("the item");
        view.class(&ITEM, record.class).map(|it| it["group"].clone())
    })
}

fn n_of_group(tenant: &Tenant, group: &str) -> u64 {
    read(tenant, |view| view.count(&ITEM, &Expr::Is("group".into(), group.into())))
}

fn is_sound(tenant: &Tenant, n_of_groups: [u64; 4]) {
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    let groups = ["group 0", "group 1", "group 2", "group 9"];
    assert_eq!(groups.map(|it| n_of_group(tenant, it)), n_of_groups);
    assert_eq!(group(tenant, "8"), "group 2");
    write(tenant, |txn| {
        txn.insert(&ITEM, "another", &json!({"group": "group 2", "shared": ["team 0", "a", "b"]}))
    });
    assert_eq!(n_of_group(tenant, "group 2"), n_of_groups[2] + 1);
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}

#[test]
fn format_2_is_brought_to_the_present_one() {
    let (_place, tenant) = kept("");
    is_sound(&tenant, [20, 19, 19, 1]);
}

/// The text index of format 3 was in the file. Its matches are found without it, and its tables are gone.
#[test]
fn format_3_is_brought_to_the_present_one() {
    let place = kept_file(FORMAT_3, "");
    let tables = || {
        let file = rusqlite::Connection::open(place.file("t")).expect("the file");
        let sql =
            "SELECT count(*) FROM sqlite_master WHERE name LIKE 't\\_%' ESCAPE '\\' OR name = 'text_mark'";
        file.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a count")
    };
    assert_eq!(tables(), 6);
    let tenant = place.tenant(ALL);
    is_sound(&tenant, [20, 19, 20, 1]);
    let words = TextQuery { words: vec!["BEAMS".into()], ..TextQuery::default() };
    assert_eq!(read(&tenant, |view| view.count(&ITEM, &Expr::Text(words.clone()))), 58);
    drop(tenant);
    assert_eq!(tables(), 0);
    is_format(&place, 4);
}

/// A program of format 3 that has the file open would miss its tables.
#[test]
fn a_tenant_of_format_3_in_use_is_left_as_it_is() {
    let place = kept_file(FORMAT_3, "");
    let path = format!("{}-open", place.file("t").display());
    let presence = std::fs::File::create(path).expect("a file");
    presence.lock_shared().expect("a lock");
    let catalogue = Catalogue::open(place.location.clone(), ALL, Limits::default()).expect("a catalogue");
    let refused = catalogue.tenant("t").err().expect("a refusal");
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    is_format(&place, 3);
    drop(presence);
    is_sound(&catalogue.tenant("t").expect("a tenant"), [20, 19, 20, 1]);
}

#[track_caller]
fn is_format(place: &Place, expected: i64) {
    let file = rusqlite::Connection::open(place.file("t")).expect("the file");
    let sql = "SELECT value FROM meta WHERE name = 'format'";
    assert_eq!(file.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a format"), expected);
}

/// Format 2 took any record whose class had a known number for a member of that class.
#[test]
fn a_record_with_a_false_class_gets_its_own() {
    let forge = "UPDATE k_item SET class = (SELECT class FROM k_item WHERE id = '3') WHERE id = '8'";
    let (_place, tenant) = kept(forge);
    is_sound(&tenant, [20, 19, 19, 1]);
}

#[test]
fn a_kind_that_changes_with_the_format_is_made_anew() {
    let (_place, tenant) = kept("UPDATE kind SET declaration = 'other' WHERE name = 'item'");
    is_sound(&tenant, [20, 19, 19, 1]);
}

/// A program of the previous version may have the file open: its numbers would be wrong from then on.
#[test]
fn a_tenant_in_use_is_not_brought_to_a_new_format() {
    let (place, tenant) = kept("");
    drop(tenant);
    let set = "UPDATE meta SET value = 2 WHERE name = 'format'";
    rusqlite::Connection::open(place.file("t")).and_then(|it| it.execute_batch(set)).expect(set);
    let presence = std::fs::File::open(format!("{}-open", place.file("t").display())).expect("a file");
    presence.lock_shared().expect("a lock");
    let catalogue = Catalogue::open(place.location.clone(), ALL, Limits::default()).expect("a catalogue");
    let refused = catalogue.tenant("t").err().expect("a refusal");
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    drop(presence);
    is_sound(&catalogue.tenant("t").expect("a tenant"), [20, 19, 19, 1]);
}

/// In format 2 the database's tables had other class numbers, too: in this test, arbitrary numbers that are no hash at
/// all.
#[test]
fn classes_in_a_database_are_numbered_anew() {
    for place in engines().into_iter().filter(|it| it.engine == "postgresql") {
        let tenant = place.tenant(ALL);
        write(&tenant, |txn| {
            for n in 0..30 {
                let body = json!({"group": format!("group {}", n % 3), "keywords": ["k"], "shared": [n % 2]});
                txn.insert(&ITEM, &n.to_string(), &body)?;
            }
            Ok(())
        });
        drop(tenant);
        crate::engines::sql(
            &place,
            "UPDATE k_item SET class = class / 2 + 1; UPDATE class SET class = class / 2 + 1; \
             UPDATE facet SET class = class / 2 + 1 WHERE class <> 0; UPDATE meta SET value = 2 WHERE name = 'format'",
        );
        let tenant = place.tenant(ALL);
        is_sound(&tenant, [10, 10, 10, 0]);
    }
}

/// Two class texts with the same number cannot be constructed in a test; a class whose stored text differs is
/// equivalent.
#[test]
fn a_known_number_is_no_proof_of_a_class() {
    for place in engines() {
        let tenant = place.tenant(ALL);
        let body = json!({"group": "mine", "shared": ["a"]});
        let theirs: Class = {
            let body = body.clone();
            write(&tenant, move |txn| txn.insert(&ITEM, "1", &body)).class
        };
        drop(tenant);
        let forge = r#"UPDATE class SET fields = '{"group":"theirs"}' WHERE kind = 'item'"#;
        if place.engine == "sqlite" {
            rusqlite::Connection::open(place.file("t")).and_then(|it| it.execute_batch(forge)).expect(forge);
        } else {
            crate::engines::sql(&place, forge);
        }
        let tenant = place.tenant(ALL);
        // By now it is known and committed.
        assert_eq!(read(&tenant, |view| view.class(&ITEM, theirs))["group"], "theirs");
        for id in ["2", "3"] {
            let body = body.clone();
            let error = refused(&tenant, move |txn| txn.insert(&ITEM, id, &body));
            assert!(matches!(error, StoreError::Query(_)), "{}: {error}", place.engine);
            assert!(!error.to_string().contains("theirs"), "{error}");
        }
        assert_eq!(read(&tenant, |view| view.count(&ITEM, &Expr::All)), 1);
        write(&tenant, |txn| txn.insert(&ITEM, "4", &json!({"group": "other"})));
    }
}
