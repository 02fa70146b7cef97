//! Browsing a list gives the same result as counting all records, whether the index has them or not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pinakes_store::{Browsed, Expr, Kind, ListPlace, Listed, Result, Tenant, View, Wanted, matches};
use serde_json::{Value, json};

use crate::engines::{engines, read, write};
use crate::kinds::BOOK;

static BOOKS: &[&Kind] = &[&BOOK];

const WAIT: Duration = Duration::from_secs(120);
const N_BOOKS: u64 = 420;

fn body(n: u64) -> Value {
    let name = |n: u64| {
        format!(
            "{}name {:03}|{}|role {}|[\"type.{}\",null,true]",
            if n.is_multiple_of(3) { "\u{c9}" } else { "e" },
            n % 90,
            n % 2,
            n % 5,
            n % 4
        )
    };
    json!({
        "names": [name(n), name(n * 7), name(n)],
        "subjects": [format!("Subject {}", n % 40)],
        "place": {"shelf": format!("shelf {}", n % 7)},
    })
}

type Books = BTreeMap<String, Value>;

/// Key, distinguishing part and traits of an entry.
type Parts = (String, String, String);

/// An entry of a list, with the records that have it and the gathered values.
type Entry = (Parts, (BTreeSet<String>, BTreeSet<String>));

/// Returns all entries of a list in order.
fn all(books: &Books, list: &str) -> Vec<Entry> {
    let mut found: BTreeMap<Parts, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    for (id, body) in books {
        let entries = BOOK.lists.iter().find(|it| it.name == list).expect("a list").entries;
        entries(body, &mut |entry| {
            let (records, gathered) = found.entry((entry.key, entry.apart, entry.traits)).or_default();
            records.insert(id.clone());
            gathered.extend(Some(entry.gathered).filter(|it| !it.is_empty()));
        });
    }
    found.into_iter().collect()
}

/// The filters that are checked.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Filter {
    Nothing,
    Traits(&'static str),
    Apart(&'static str),
}

impl Filter {
    fn has(self, entry: &Entry) -> bool {
        match self {
            Self::Nothing => true,
            Self::Traits(traits) => entry.0.2 == traits,
            Self::Apart(apart) => entry.0.1 == apart,
        }
    }

    fn asked<T>(self, ask: impl FnOnce(Wanted<'_>) -> T) -> T {
        match self {
            Self::Nothing => ask(Wanted::All),
            Self::Traits(traits) => ask(Wanted::Traits(&mut |it| it == traits)),
            Self::Apart(apart) => {
                let fits = &mut |it: &str, _: &str| it == apart;
                ask(Wanted::Entries { condition: apart, fits })
            }
        }
    }

    fn browse(self, view: &mut View<'_>, list: &str, of: &Expr, place: &ListPlace) -> Result<Browsed> {
        self.asked(|wanted| view.browse(&BOOK, list, of, place, wanted))
    }
}

#[track_caller]
fn check(tenant: &Tenant, books: &Books, engine: &str) {
    let some = (10..25).map(|n| format!("Subject {n}").into()).collect();
    for of in [Expr::All, Expr::In("subjects".into(), some), Expr::Is("subjects".into(), "none".into())] {
        let books: Books =
            books.iter().filter(|it| matches(&of, it.1)).map(|(id, it)| (id.clone(), it.clone())).collect();
        for list in ["names", "subjects"] {
            check_list(tenant, &books, list, &of, engine);
        }
    }
}

/// Compares a list of the records that satisfy `of`, which are `books`.
#[track_caller]
fn check_list(tenant: &Tenant, books: &Books, list: &str, of: &Expr, engine: &str) {
    let all = all(books, list);
    let filters = [
        Filter::Nothing,
        Filter::Traits("[\"type.1\",null,true]"),
        Filter::Traits(""),
        Filter::Traits("none"),
        Filter::Apart("1"),
    ];
    for filter in filters {
        let mut expected = all.clone();
        expected.retain(|it| filter.has(it));
        for key in ["", "ename 045", "ename 045x", "subject 2", "z"] {
            for is_behind in [true, false] {
                check_at(tenant, &expected, (list, of), filter, (key, is_behind), engine);
            }
        }
        check_counts(tenant, books, &expected, (list, of), filter, engine);
    }
}

#[track_caller]
fn check_counts(
    tenant: &Tenant,
    books: &Books,
    expected: &[Entry],
    (list, of): (&str, &Expr),
    filter: Filter,
    engine: &str,
) {
    let what = format!("{engine} {list} {of:?} {filter:?}");
    let mut by_traits: BTreeMap<String, u64> = BTreeMap::new();
    expected.iter().for_each(|it| *by_traits.entry(it.0.2.clone()).or_default() += 1);
    let found = read(tenant, |view| filter.asked(|wanted| view.list_traits(&BOOK, list, of, wanted)));
    assert_eq!(found, by_traits, "{what}");
    for path in ["subjects", "place.shelf", "none"] {
        let texts_of = |id: &String| -> BTreeSet<String> {
            let at = books[id].pointer(&format!("/{}", path.replace('.', "/")));
            let list = at
                .and_then(Value::as_array)
                .map_or_else(|| at.into_iter().collect(), |it| it.iter().collect::<Vec<_>>());
            list.into_iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut by_text: BTreeMap<String, u64> = BTreeMap::new();
        for (_, (records, _)) in expected {
            let texts: BTreeSet<String> = records.iter().flat_map(texts_of).collect();
            texts.into_iter().for_each(|it| *by_text.entry(it).or_default() += 1);
        }
        let found = read(tenant, |view| {
            filter.asked(|wanted| view.count_entries_by(&BOOK, list, of, &path.into(), wanted))
        });
        assert_eq!(found, by_text, "{what} {path}");
    }
}

#[track_caller]
fn check_at(
    tenant: &Tenant,
    expected: &[Entry],
    (list, of): (&str, &Expr),
    filter: Filter,
    (key, is_behind): (&str, bool),
    engine: &str,
) {
    let place = ListPlace { key: key.to_owned(), is_behind, n_before: 3, n_after: 4, n_skipped: 0 };
    let found = read(tenant, |view| filter.browse(view, list, of, &place));
    let split =
        expected.partition_point(|it| if is_behind { it.0.0.as_str() < key } else { it.0.0.as_str() <= key });
    let what = format!("{engine} {list} {of:?} {filter:?} {key:?} {is_behind}");
    let compare = |found: &[Listed], expected: &[Entry]| {
        assert_eq!(found.len(), expected.len(), "{what}");
        for (found, ((key, apart, traits), (records, gathered))) in found.iter().zip(expected) {
            assert_eq!((&found.key, &found.apart, &found.traits), (key, apart, traits), "{what}");
            assert_eq!(found.n_records, records.len() as u64, "{what} {key}");
            assert!(records.contains(&found.record), "{what} {key}: {}", found.record);
            assert_eq!(&found.gathered, gathered, "{what} {key}");
        }
    };
    // One more than was asked for shows that there are more.
    compare(&found.before, &expected[split.saturating_sub(4)..split]);
    compare(&found.after, &expected[split..(split + 5).min(expected.len())]);
    assert_eq!(found.n_entries, expected.len() as u64, "{what}");
    let place = ListPlace { n_before: 0, n_skipped: 9, ..place };
    let found = read(tenant, |view| filter.browse(view, list, of, &place));
    let from = (split + 9).min(expected.len());
    compare(&found.after, &expected[from..(from + 5).min(expected.len())]);
}

#[test]
fn lists_are_browsed() {
    for place in engines() {
        let tenant = place.tenant(BOOKS);
        let mut books: Books = (0..N_BOOKS).map(|n| (n.to_string(), body(n))).collect();
        let few: Books = books.iter().take(20).map(|(id, body)| (id.clone(), body.clone())).collect();
        let (first, rest) = (few.clone(), books.clone());
        write(&tenant, move |txn| {
            first.iter().try_for_each(|(id, body)| txn.insert(&BOOK, id, body).map(|_| ()))
        });
        check(&tenant, &few, place.engine);
        write(&tenant, move |txn| {
            let mut new = rest.iter().skip(20);
            new.try_for_each(|(id, body)| txn.insert(&BOOK, id, body).map(|_| ()))
        });
        check(&tenant, &books, place.engine);
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
        check(&tenant, &books, place.engine);
        check(&tenant, &books, place.engine);
        // Changed and deleted since, including the only records of some entries.
        let long = "x".repeat(9_000);
        let changed = json!({"names": ["ename 045|1|new|other/type", format!("f{long}|0|")], "subjects": ["Subject 2|new"]});
        books.remove("11");
        books.insert("12".to_owned(), json!({"names": []}));
        books.insert("13".to_owned(), changed.clone());
        write(&tenant, move |txn| {
            txn.delete(&BOOK, "11")?;
            txn.update(&BOOK, "12", &json!({"names": []}))?;
            txn.update(&BOOK, "13", &changed).map(|_| ())
        });
        check(&tenant, &books, place.engine);
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
        check(&tenant, &books, place.engine);
        // Few changes at a time, after which the entries are counted from those of the commit before.
        for (n, subject) in [("14", "Subject 5"), ("15", "Subject 77"), ("15", "Subject 5")] {
            let changed = json!({"subjects": [subject]});
            books.insert(n.to_owned(), changed.clone());
            write(&tenant, move |txn| txn.update(&BOOK, n, &changed).map(|_| ()));
            assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
            check(&tenant, &books, place.engine);
        }
    }
}
