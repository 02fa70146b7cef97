//! Records by id: creating, reading, changing, deleting; versions, sequence numbers, tombstones, changes.

use std::sync::atomic::{AtomicBool, Ordering};

use pinakes_store::{Change, Document, Expr, Query, StoreError, Tenant, Txn};
use serde_json::{Value as Json, json};

use crate::engines::{on_each, read, refused, write};
use crate::kinds::{ALL, ITEM, LOAN, PLAIN, USER};

#[test]
fn a_record_lives_through_its_versions() {
    on_each(ALL, |tenant| {
        let made = write(tenant, |txn| txn.insert(&PLAIN, "a/ü \"1\"", &json!({"n": 1})));
        assert_eq!(made.version, 1);
        let record = read(tenant, |view| view.get(&PLAIN, "a/ü \"1\"")).expect("the record");
        assert_eq!(&record.body[..], br#"{"n":1}"#);
        assert_eq!((record.id.as_str(), record.version), ("a/ü \"1\"", 1));
        assert_eq!(record.sequence, made.sequence);
        assert!(record.list.is_none());

        let changed = write(tenant, |txn| txn.update(&PLAIN, "a/ü \"1\"", &json!({"n": 2})));
        assert_eq!(changed.version, 2);
        assert!(made.sequence < changed.sequence);
        let put = write(tenant, |txn| txn.put(&PLAIN, "a/ü \"1\"", &json!({"n": 3})));
        assert_eq!(put.version, 3);
        assert_eq!(write(tenant, |txn| txn.put(&PLAIN, "b", &json!({}))).version, 1);

        let deleted = write(tenant, |txn| txn.delete(&PLAIN, "a/ü \"1\"")).expect("what it was");
        assert_eq!(deleted.json().expect("JSON"), json!({"n": 3}));
        assert!(write(tenant, |txn| txn.delete(&PLAIN, "a/ü \"1\"")).is_none());
        assert!(read(tenant, |view| view.get(&PLAIN, "a/ü \"1\"")).is_none());
        assert!(!read(tenant, |view| view.has(&PLAIN, "a/ü \"1\"")));
        assert!(read(tenant, |view| view.has(&PLAIN, "b")));
        let again = write(tenant, |txn| txn.insert(&PLAIN, "a/ü \"1\"", &json!({})));
        assert_eq!(again.version, 1);
    });
}

#[test]
fn the_body_comes_back_byte_for_byte() {
    on_each(ALL, |tenant| {
        let body =
            json!({"z": 1, "a": "nul \u{0} tab \t", "big": u64::MAX, "e": 1e300, "n": null, "": {"": []}});
        let document = Document::new(&PLAIN, "x", &body).expect("a document");
        let bytes = document.body().clone();
        write(tenant, move |txn| txn.insert_document(&document));
        assert_eq!(read(tenant, |view| view.get(&PLAIN, "x")).expect("it").body, bytes);
    });
}

#[test]
fn many_are_read_in_the_order_asked() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| {
            (0..300).try_for_each(|n| txn.insert(&PLAIN, &format!("r{n}"), &json!({"n": n})).map(|_| ()))
        });
        let ids: Vec<String> = ["r7", "none", "r299", "r7"].map(str::to_owned).into();
        let found = read(tenant, |view| view.get_many(&PLAIN, &ids));
        let found: Vec<Option<String>> = found.into_iter().map(|it| it.map(|it| it.id)).collect();
        assert_eq!(found, [Some("r7".into()), None, Some("r299".into()), Some("r7".into())]);
    });
}

#[test]
fn what_is_read_ahead_is_what_is_there() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| {
            (0..300).try_for_each(|n| txn.insert(&PLAIN, &format!("r{n}"), &json!({"n": n})).map(|_| ()))
        });
        let wanted = || ["r7", "none", "r299", "r7"].map(str::to_owned);
        let found = read(tenant, |view| {
            view.read_ahead(&PLAIN, wanted())?;
            view.read_ahead(&PLAIN, ["r8".to_owned()])?;
            wanted().iter().chain(&["r8".into(), "r9".into()]).map(|id| view.get(&PLAIN, id)).collect()
        });
        let found: Vec<Option<String>> = Vec::into_iter(found).map(|it| it.map(|it| it.id)).collect();
        let r = |id: &str| Some(id.to_owned());
        assert_eq!(found, [r("r7"), None, r("r299"), r("r7"), r("r8"), r("r9")]);

        write(tenant, |txn| txn.insert(&USER, "r7", &json!({"name": "Ann"})));
        let found = read(tenant, |view| {
            view.read_ahead_of(&[(&PLAIN, vec!["r7", "", "r7", "none"]), (&USER, vec!["r7", "r8"])])?;
            let has = [view.has(&PLAIN, "r7")?, view.has(&PLAIN, "none")?, view.has(&USER, "r8")?];
            assert_eq!(has, [true, false, false]);
            Ok([view.get(&PLAIN, "r7")?, view.get(&USER, "r7")?, view.get(&PLAIN, "none")?])
        });
        let found = found.map(|it| it.map(|it| it.json().expect("JSON")));
        assert_eq!(found, [Some(json!({"n": 7})), Some(json!({"name": "Ann"})), None]);

        let bodies = write(tenant, move |txn| {
            txn.read_ahead(&PLAIN, wanted())?;
            let before = txn.get(&PLAIN, "r7")?;
            txn.update(&PLAIN, "r7", &json!({"n": "new"}))?;
            txn.insert(&PLAIN, "none", &json!({"n": "first"}))?;
            assert!(txn.has(&PLAIN, "none")?);
            assert_eq!(txn.find(&PLAIN, &Query::filter(Expr::All).window(0, 2))?.len(), 2);
            txn.delete(&PLAIN, "r0")?;
            assert!(!txn.has(&PLAIN, "r0")?);
            assert_eq!(txn.first(&PLAIN, Expr::All)?.map(|it| it.id), Some("r1".to_owned()));
            let (after, first) = (txn.get(&PLAIN, "r7")?, txn.get(&PLAIN, "none")?);
            [before, after, first].into_iter().flatten().map(|it| it.json()).collect()
        });
        let bodies: Vec<Json> = bodies;
        assert_eq!(bodies, [json!({"n": 7}), json!({"n": "new"}), json!({"n": "first"})]);
    });
}

#[test]
fn one_open_loan_for_each_book() {
    let loan = |book: &str, state: &str| json!({"book": book, "status": {"name": state}});
    on_each(ALL, |tenant| {
        for (id, state) in [("l1", "Closed"), ("l2", "Closed"), ("l3", "Open")] {
            write(tenant, move |txn| txn.insert(&LOAN, id, &loan("b", state)));
        }
        write(tenant, move |txn| txn.insert(&LOAN, "l4", &loan("c", "Open")));
        let second = refused(tenant, move |txn| txn.insert(&LOAN, "l5", &loan("b", "Open")));
        assert!(
            matches!(&second, StoreError::Duplicate { column: "book", value, .. } if value == "b"),
            "{second}"
        );
        let reopened = refused(tenant, move |txn| txn.update(&LOAN, "l1", &loan("b", "Open")));
        assert!(matches!(&reopened, StoreError::Duplicate { column: "book", .. }), "{reopened}");
        write(tenant, move |txn| txn.update(&LOAN, "l3", &loan("b", "Closed")));
        write(tenant, move |txn| txn.insert(&LOAN, "l5", &loan("b", "Open")));
        let of_book = read(tenant, |view| view.count(&LOAN, &Expr::Is("book".into(), "b".into())));
        assert_eq!(of_book, 4);
    });
}

#[test]
fn what_cannot_be_is_refused() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| txn.insert(&USER, "u1", &json!({"username": "ada", "badge": 7})));
        write(tenant, |txn| txn.insert(&USER, "u2", &json!({"username": "bob"})));
        write(tenant, |txn| txn.insert(&USER, "u3", &json!({})));
        write(tenant, |txn| txn.insert(&USER, "u4", &json!({"username": null})));
        let same_id = refused(tenant, |txn| txn.insert(&USER, "u1", &json!({})));
        assert!(
            matches!(&same_id, StoreError::Duplicate { kind: "user", column: "id", value } if value == "u1"),
            "{same_id}"
        );
        let same_name = refused(tenant, |txn| txn.insert(&USER, "u9", &json!({"username": "ada"})));
        assert!(
            matches!(&same_name, StoreError::Duplicate { column: "username", value, .. } if value == "ada"),
            "{same_name}"
        );
        let same_badge = refused(tenant, |txn| txn.update(&USER, "u2", &json!({"badge": 7})));
        assert!(matches!(&same_badge, StoreError::Duplicate { column: "badge", .. }), "{same_badge}");
        let missing = refused(tenant, |txn| txn.update(&USER, "nobody", &json!({})));
        assert!(matches!(&missing, StoreError::Missing { kind: "user", id } if id == "nobody"), "{missing}");
        assert!(matches!(
            refused(tenant, |txn| txn.insert(&PLAIN, "a\0b", &json!({}))),
            StoreError::Query(_)
        ));
        // A refusal inside a closure that continues keeps the rest of the closure's work.
        let both = write(tenant, |txn| {
            let first = txn.insert(&USER, "u5", &json!({"username": "ada"})).is_err();
            txn.insert(&USER, "u6", &json!({"username": "eve"}))?;
            Ok(first)
        });
        assert!(both);
        assert!(!read(tenant, |view| view.has(&USER, "u5")));
        assert!(read(tenant, |view| view.has(&USER, "u6")));
        // The value is free again once its record is changed or deleted.
        write(tenant, |txn| txn.update(&USER, "u1", &json!({"username": "ann"})));
        write(tenant, |txn| txn.insert(&USER, "u7", &json!({"username": "ada"})));
        write(tenant, |txn| txn.delete(&USER, "u7"));
        write(tenant, |txn| txn.insert(&USER, "u8", &json!({"username": "ada"})));
    });
}

/// Returns the changes after a number, once there are `n`: a database returns them when no older one can appear any
/// more, and other tests write to it too.
pub(crate) fn changes(tenant: &Tenant, after: u64, n: usize) -> Vec<Change> {
    for _ in 0..10_000 {
        let found = read(tenant, |view| view.changes(after, 10_000));
        if found.len() == n {
            return found;
        }
        std::thread::yield_now();
    }
    read(tenant, |view| view.changes(after, 10_000))
}

#[test]
fn changes_are_followed() {
    on_each(ALL, |tenant| {
        let start = read(tenant, |view| view.sequence());
        let fresh = read(tenant, |view| view.kind_sequence(&USER));
        write(tenant, |txn| txn.insert(&PLAIN, "a", &json!({})));
        write(tenant, |txn| txn.insert(&USER, "b", &json!({})));
        write(tenant, |txn| txn.update(&PLAIN, "a", &json!({"n": 1})));
        write(tenant, |txn| txn.delete(&USER, "b"));
        let all = changes(tenant, start, 2);
        let all: Vec<_> = all.iter().map(|it| (it.kind.as_str(), it.id.as_str(), it.deleted)).collect();
        assert_eq!(all, [("plain", "a", false), ("user", "b", true)]);
        let last = read(tenant, |view| view.sequence());
        let seen = read(tenant, |view| view.kind_sequence(&USER));
        assert!(fresh < seen);
        write(tenant, |txn| txn.insert(&PLAIN, "other", &json!({})));
        assert_eq!(read(tenant, |view| view.kind_sequence(&USER)), seen, "another kind's change");
        write(tenant, |txn| txn.delete(&PLAIN, "other"));
        let rest = changes(tenant, last, 1);
        assert_eq!(rest.iter().map(|it| (it.id.as_str(), it.deleted)).collect::<Vec<_>>(), [("other", true)]);
        let last = read(tenant, |view| view.sequence());
        changes(tenant, 0, 3);
        let first = read(tenant, |view| view.changes(0, 1));
        assert_eq!(first.len(), 1);
        let rest = read(tenant, |view| view.changes(first[0].sequence, 100));
        assert_eq!(rest.len(), 2);
        assert!(read(tenant, |view| view.changes(last, 100)).is_empty());
    });
}

#[test]
fn a_long_write_is_kept_beside_short_ones() {
    on_each(ALL, |tenant| {
        // Each reads what the others write, so of two at the same time one must be run again: the one that ends last.
        let add = |txn: &mut Txn<'_>, id: &str, n_counts: usize| {
            (0..n_counts).try_for_each(|_| txn.count(&PLAIN, &Expr::All).map(|_| ()))?;
            txn.insert(&PLAIN, id, &json!({"n": 1}))
        };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let is_over = &is_over;
                scope.spawn(move || {
                    (0..).take_while(|_| !is_over.load(Ordering::Relaxed)).for_each(|n| {
                        write(tenant, move |txn| add(txn, &format!("{writer}-{n}"), 1));
                    });
                });
            }
            let kept = tenant.write_blocking(move |txn| add(txn, "long", 300));
            is_over.store(true, Ordering::Relaxed);
            kept.expect("the long write");
        });
        assert!(read(tenant, |view| view.get(&PLAIN, "long")).is_some());
    });
}

#[test]
fn a_follower_misses_nothing() {
    const WRITERS: usize = 4;
    const WRITES: usize = 40;
    on_each(ALL, |tenant| {
        let mut seen = std::collections::HashSet::new();
        let mut after = 0;
        let mut follow = |limit| {
            let page = read(tenant, |view| view.changes(after, limit));
            if let Some(last) = page.last() {
                assert!(page.iter().all(|it| after < it.sequence));
                after = last.sequence;
            }
            seen.extend(page.into_iter().map(|it| it.id));
            seen.len()
        };
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    scope.spawn(move || {
                        for n in 0..WRITES {
                            let id = format!("{writer}-{n}");
                            // Writes of different length end in another order than they began.
                            write(tenant, move |txn| {
                                txn.insert(&PLAIN, &id, &json!({"n": n}))?;
                                (0..writer).try_for_each(|_| txn.count(&PLAIN, &Expr::All).map(|_| ()))
                            });
                        }
                    })
                })
                .collect();
            while !writers.iter().all(|it| it.is_finished()) {
                follow(7);
            }
        });
        for _ in 0..100_000 {
            if follow(1_000) == WRITERS * WRITES {
                return;
            }
            std::thread::yield_now();
        }
        panic!("the follower missed changes");
    });
}

#[test]
fn identifiers_and_links_lead_to_records() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| {
            txn.insert(&ITEM, "p", &json!({"doi": ["10.1/a", "10.1/A", "10.1/a"]}))?;
            txn.insert(&ITEM, "c1", &json!({"parents": ["p", "q"], "doi": "10.1/a"}))?;
            txn.insert(&ITEM, "c2", &json!({"parents": "p"}))?;
            txn.insert(&ITEM, "c3", &json!({"parents": ["p", "p"]})).map(|_| ())
        });
        let at = |scheme: &'static str, value: &'static str| {
            read(tenant, |view| view.by_identifier(scheme, value))
                .into_iter()
                .map(|it| it.1)
                .collect::<Vec<_>>()
        };
        assert_eq!(at("doi", "10.1/a"), ["c1", "p"]);
        assert_eq!(at("doi", "https://doi.org/10.1/A"), ["c1", "p"]);
        assert!(at("pid", "10.1/a").is_empty());
        let links = |after: &'static str, limit| {
            let page = read(tenant, |view| view.links_to(&ITEM, "p", "parent", ("item", after), limit));
            page.into_iter().map(|it| it.1).collect::<Vec<_>>()
        };
        assert_eq!(links("", 2), ["c1", "c2"]);
        assert_eq!(links("c2", 2), ["c3"]);
        write(tenant, |txn| {
            txn.update(&ITEM, "c1", &json!({"parents": ["q"]}))?;
            txn.delete(&ITEM, "c2").map(|_| ())
        });
        assert_eq!(links("", 9), ["c3"]);
        assert_eq!(at("doi", "10.1/a"), ["p"]);
    });
}

#[test]
fn clear_leaves_tombstones() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| {
            (0..50).try_for_each(|n| {
                let body = json!({"name": "x", "keywords": ["a", n.to_string()], "group": n % 3});
                txn.insert(&ITEM, &n.to_string(), &body).map(|_| ())
            })
        });
        assert_eq!(write(tenant, |txn| txn.clear(&ITEM)), 50);
        assert_eq!(read(tenant, |view| view.count(&ITEM, &Expr::All)), 0);
        assert_eq!(changes(tenant, 0, 50).len(), 50);
        assert!(read(tenant, |view| view.facets(&ITEM, &Expr::All, &["name"]))[0].is_empty());
    });
}

/// An index entry of PostgreSQL holds a third of a page: a longer value is refused with an error that names it, however
/// it is written, and nothing else is affected. The embedded engine accepts it.
#[test]
fn a_text_too_long_for_an_index_is_refused_or_found() {
    let long = "long ".repeat(600);
    on_each(ALL, |tenant| {
        let body = json!({"pid": "long", "name": long});
        let documents: Vec<Document> = (0..40)
            .map(|n| {
                Document::new(&ITEM, format!("d{n}"), &json!({"name": if n == 20 { &long } else { "" }}))
            })
            .collect::<Result<_, _>>()
            .expect("documents");
        let place = json!({"pid": "place", "place": {"depth": 1, "description": long}});
        write(tenant, |txn| txn.insert(&ITEM, "short", &json!({"pid": "short", "name": "n"})));
        write(tenant, move |txn| txn.insert(&ITEM, "place", &place));
        let changed = body.clone();
        let results = [
            tenant.write_blocking(move |txn| txn.insert(&ITEM, "long", &body).map(|_| ())),
            tenant.write_blocking(move |txn| txn.update(&ITEM, "short", &changed).map(|_| ())),
            tenant.write_blocking(move |txn| txn.insert_documents(&documents)),
        ];
        let is = Expr::Is("name".into(), long.as_str().into());
        let n_found = read(tenant, |view| view.count(&ITEM, &is));
        if tenant.is_embedded() {
            assert!(results.iter().all(Result::is_ok), "{results:?}");
            assert_eq!(n_found, 3);
            return;
        }
        for result in results {
            let error = result.expect_err("a refusal").to_string();
            assert!(error.contains("a text in name has 3000 bytes"), "{error}");
        }
        assert_eq!((n_found, read(tenant, |view| view.count(&ITEM, &Expr::All))), (0, 2));
    });
}
