//! Names of members that are numbers, as the tags of MARC fields are: the index knows them by their names, and bodies
//! decide only where a list is so long that the number may be a position in it.

use std::time::Duration;

use pinakes_store::{Direction, End, Expr, Kind, Pattern, Query, matches};
use serde_json::{Value as Json, json};

use crate::engines::{engines, read, told_with, write};
use crate::kinds::BOOK;

static BOOKS: &[&Kind] = &[&BOOK];

const WAIT: Duration = Duration::from_secs(120);
const N_RECORDS: u64 = 6_000;
/// Number of records with more than 245 fields and notes.
const N_LONG: u64 = N_RECORDS / 1_000;

fn body(n: u64) -> Json {
    let title = json!({"245": {"ind1": (n % 3).to_string(), "subfields": [{"a": format!("Title {n}")}, {"6": "880-01"}]}});
    let mut fields = vec![json!({"001": format!("in{n}")}), title];
    if n.is_multiple_of(7) {
        fields.push(json!({"010": {"subfields": [{"a": format!("lccn {n}")}]}}));
    }
    let n_notes = if n % 1_000 == 5 { 300 } else { 11 };
    let notes: Vec<String> = (0..n_notes).map(|it| format!("Note {it}")).collect();
    fields.extend((0..n_notes).map(|it| json!({"500": {"subfields": [{"a": format!("Note {it}")}]}})));
    json!({"id": format!("b{n}"), "size": n, "fields": fields, "notes": notes})
}

#[test]
fn names_that_are_numbers_are_read_from_the_index() {
    let is = |path: &str, text: &str| Expr::Is(path.into(), text.into());
    let no = |it| Expr::Not(Box::new(it));
    let below = |text: &str| End::Excluded(text.into());
    for place in engines() {
        let tenant = place.tenant(BOOKS);
        write(&tenant, |txn| {
            (0..N_RECORDS).try_for_each(|n| txn.insert(&BOOK, &format!("b{n}"), &body(n)).map(|_| ()))
        });
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
        for (filter, n_bodies) in [
            // Positions have no zero before them.
            (is("fields.010.subfields.a", "lccn 700"), 0),
            (no(Expr::Exists("fields.010.subfields.a".into())), 0),
            (is("fields.010", "lccn 700"), 0),
            (is("fields.001", "in77"), 0),
            (Expr::Range("fields.001".into(), End::Open, below("in2")), 0),
            (Expr::Regex("fields.001".into(), Pattern::new("^in.7.$", "").expect("a pattern")), 0),
            (is("fields.245.subfields.a", "Title 77"), 0),
            (is("fields.245.subfields.a", "Note 243"), 0),
            (Expr::Prefix("fields.245.subfields.a".into(), "Title 77".into()), 0),
            (is("fields.245.subfields.6", "880-01"), 0),
            (is("fields.245.ind1", "1"), 0),
            (no(Expr::Exists("fields.245.ind1".into())), 0),
            (no(Expr::Exists("fields.245.ind2".into())), 0),
            (is("notes.245", "Note 245"), N_LONG),
            (Expr::Prefix("notes.12".into(), "Note".into()), N_LONG),
            (is("notes.2", "Note 2"), N_RECORDS),
            (no(is("fields.245.subfields.a", "Title 77")), 0),
        ] {
            let held: Vec<u64> = (0..N_RECORDS).filter(|n| matches(&filter, &body(*n))).collect();
            let (n, told) = told_with(|| read(&tenant, |view| view.count(&BOOK, &filter)));
            let what = format!("{}: {filter:?}: {told}", place.engine);
            assert_eq!(n, held.len() as u64, "{what}");
            assert!(told.contains(&format!(" {n_bodies} bodies read to decide")), "{what}");

            let query = Query::filter(filter).sorted("size", Direction::Descending).window(0, 20);
            let page = read(&tenant, |view| view.find(&BOOK, &query));
            let page: Vec<String> = page.into_iter().map(|it| it.id).collect();
            let expected: Vec<String> = held.iter().rev().take(20).map(|n| format!("b{n}")).collect();
            assert_eq!(page, expected, "{what}");
        }
    }
}
