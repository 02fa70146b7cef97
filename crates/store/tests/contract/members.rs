//! Lists of members stored as child rows.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use pinakes_store::{Document, Expr, ListId, MemberFilter, Path, Record, StoreError, Tenant};
use serde_json::{Value, json};

use crate::engines::{engines, on_each, read, refused, told_with, write};
use crate::kinds::{ALL, ITEM};

/// More than kinds without an index have.
pub(crate) const N_INDEXED: u64 = 300;

/// Writes the members 0, 1, … in chunks of 10.
fn stage(tenant: &Tenant, n: u64) -> ListId {
    stage_all(tenant, &(0..n).map(Value::from).collect::<Vec<_>>())
}

/// Writes members in chunks of 10.
pub(crate) fn stage_all(tenant: &Tenant, members: &[Value]) -> ListId {
    let list = write(tenant, |txn| txn.new_list(&ITEM));
    for (position, members) in (0..).step_by(10).zip(members.chunks(10)) {
        let count = u32::try_from(members.len()).expect("ten");
        let texts: Vec<String> = members.iter().map(Value::to_string).collect();
        let chunk = Bytes::from(texts.join(","));
        write(tenant, move |txn| txn.append_members(&ITEM, list, position, count, chunk.clone()));
    }
    list
}

fn item(id: &str) -> Document {
    Document::new(&ITEM, id, &json!({"name": id})).expect("a document")
}

fn record(tenant: &Tenant, id: &str) -> Record {
    read(tenant, |view| view.get(&ITEM, id)).expect("the record")
}

/// Returns the members from `from` on, and the position at which the first chunk begins.
fn members(tenant: &Tenant, id: &str, from: u64) -> (Option<u64>, String) {
    let record = record(tenant, id);
    read(tenant, |view| {
        let (mut start, mut text) = (None, Vec::new());
        view.members(&ITEM, &record, from, |position, _, chunk| {
            start.get_or_insert(position);
            text.push(String::from_utf8_lossy(chunk).into_owned());
            ControlFlow::Continue(())
        })?;
        Ok((start, text.join(",")))
    })
}

#[test]
fn lists_are_staged_and_taken_over() {
    on_each(ALL, |tenant| {
        let list = stage(tenant, 35);
        let document = item("a").with_list(list, 35);
        write(tenant, move |txn| txn.insert_document(&document));
        assert_eq!(record(tenant, "a").n_members, 35);
        let all = (0..35).map(|it: u64| it.to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(members(tenant, "a", 0), (Some(0), all));
        assert_eq!(members(tenant, "a", 34), (Some(30), "30,31,32,33,34".into()));
        assert_eq!(members(tenant, "a", 19).0, Some(10));
        assert_eq!(members(tenant, "a", 35), (None, String::new()));
        // A change without a list keeps it, one with a list replaces it, a deletion removes it.
        write(tenant, |txn| txn.update(&ITEM, "a", &json!({"name": "b"})));
        assert_eq!(record(tenant, "a").n_members, 35);
        let other = stage(tenant, 3);
        let document = item("a").with_list(other, 3);
        let again = document.clone();
        write(tenant, move |txn| txn.update_document(&document));
        assert_eq!(members(tenant, "a", 0).1, "0,1,2");
        write(tenant, move |txn| txn.update_document(&again));
        assert_eq!(members(tenant, "a", 0).1, "0,1,2");
        write(tenant, |txn| txn.delete(&ITEM, "a"));
    });
}

#[test]
fn a_chunk_is_read_until_the_reader_breaks() {
    on_each(ALL, |tenant| {
        let list = stage(tenant, 35);
        let document = item("a").with_list(list, 35);
        write(tenant, move |txn| txn.insert_document(&document));
        let record = record(tenant, "a");
        let mut n = 0;
        read(tenant, |view| {
            view.members(&ITEM, &record, 0, |_, _, _| {
                n += 1;
                ControlFlow::Break(())
            })
        });
        assert_eq!(n, 1);
    });
}

#[test]
fn a_discarded_list_is_nobodys() {
    on_each(ALL, |tenant| {
        let list = stage(tenant, 5);
        write(tenant, move |txn| txn.discard_list(&ITEM, list));
        let document = item("a").with_list(list, 5);
        let error = refused(tenant, move |txn| txn.insert_document(&document));
        assert!(matches!(error, StoreError::Query(_)), "{error}");
        let taken = stage(tenant, 5);
        let (first, second) = (item("a").with_list(taken, 5), item("b").with_list(taken, 5));
        write(tenant, move |txn| txn.insert_document(&first));
        assert!(matches!(refused(tenant, move |txn| txn.insert_document(&second)), StoreError::Query(_)));
    });
}

#[test]
fn what_no_record_took_over_is_swept() {
    for place in engines() {
        let catalogue = place.open(ALL, pinakes_store::Limits::default());
        let tenant = catalogue.tenant_or_new("t").expect("a tenant");
        let (left, taken) = (stage(&tenant, 20), stage(&tenant, 20));
        let document = item("a").with_list(taken, 20);
        write(&tenant, move |txn| txn.insert_document(&document));
        // Another process that opens the tenant does not touch the lists that this one has staged.
        let beside = place.open(ALL, pinakes_store::Limits::default());
        drop(beside.tenant("t").expect("the tenant"));
        drop(beside);
        let document = item("b").with_list(left, 20);
        write(&tenant, move |txn| txn.insert_document(&document));
        let left = stage(&tenant, 20);
        drop((tenant, catalogue));
        let tenant = place.tenant(ALL);
        let document = item("c").with_list(left, 20);
        let error = refused(&tenant, move |txn| txn.insert_document(&document));
        assert!(matches!(error, StoreError::Query(_)), "{}: {error}", place.engine);
        assert_eq!(record(&tenant, "a").n_members, 20);
        assert_eq!(members(&tenant, "b", 0).0, Some(0));
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    }
}

#[test]
fn a_tenant_opened_again_at_once_is_swept() {
    for place in engines() {
        for _ in 0..20 {
            let tenant = place.tenant(ALL);
            let left = stage(&tenant, 1);
            drop(tenant);
            let tenant = place.tenant(ALL);
            let document = item("a").with_list(left, 1);
            let error = refused(&tenant, move |txn| txn.insert_document(&document));
            assert!(matches!(error, StoreError::Query(_)), "{}: {error}", place.engine);
        }
    }
}

/// The members of records that satisfy a condition are counted as they are: by the index, and beside it.
#[test]
fn members_are_counted() {
    on_each(ALL, |tenant| {
        let n_of = |n: u64| n % 7 * 3;
        for n in 0..N_INDEXED {
            let list = stage(tenant, n_of(n));
            let body = json!({"name": format!("i{n}"), "size": n % 5, "group": format!("g{}", n % 2)});
            let document =
                Document::new(&ITEM, format!("i{n}"), &body).expect("a document").with_list(list, n_of(n));
            write(tenant, move |txn| txn.insert_document(&document));
        }
        let check = |counted: &dyn Fn(u64) -> u64| {
            for (expr, holds) in [
                (Expr::All, (|_| true) as fn(u64) -> bool),
                (Expr::Is("size".into(), 3.into()), |n| n % 5 == 3),
                (Expr::Is("group".into(), "g1".into()), |n| n % 2 == 1),
                (Expr::Is("size".into(), 9.into()), |_| false),
            ] {
                let expected: u64 = (0..N_INDEXED).filter(|n| holds(*n)).map(counted).sum();
                let found = read(tenant, |view| view.count_members(&ITEM, &expr));
                assert_eq!(found, expected, "{expr:?}");
            }
        };
        check(&n_of);
        assert!(tenant.wait_for_indexes(Duration::from_secs(120)).expect("an index"));
        let (_, told) = told_with(|| read(tenant, |view| view.count_members(&ITEM, &Expr::All)));
        assert!(told.contains("search index"), "{told}");
        check(&n_of);
        // What changes after the commit of the index counts at once.
        let list = stage(tenant, 50);
        let longer = item("i4").with_list(list, 50);
        write(tenant, move |txn| {
            txn.delete(&ITEM, "i3")?;
            txn.update_document(&longer)
        });
        read(tenant, |view| {
            let all = view.count_members(&ITEM, &Expr::All)?;
            assert_eq!(all, (0..N_INDEXED).map(n_of).sum::<u64>() - n_of(3) - n_of(4) + 50);
            Ok(())
        });
    });
}

#[test]
fn members_are_found_by_a_condition_and_read_by_position() {
    on_each(ALL, |tenant| {
        let all: Vec<Value> =
            (0..35).map(|n| json!({"path": format!("/a/{n}"), "size": n % 4, "more": {"n": [n]}})).collect();
        let document = item("a").with_list(stage_all(tenant, &all), 35);
        write(tenant, move |txn| txn.insert_document(&document));
        let empty = item("b");
        write(tenant, move |txn| txn.insert_document(&empty));
        let record = |id: &str| record(tenant, id);
        let found = |id: &str, condition: &Expr, paths: &[Path], most: usize| {
            let filter = MemberFilter::new(condition.clone(), paths);
            read(tenant, |view| {
                let mut found: Vec<(u64, Value)> = Vec::new();
                let flow = view.each_member(&ITEM, &record(id), &filter, |position, member| {
                    found.push((position, member.clone()));
                    if found.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
                assert_eq!(flow.is_break(), found.len() == most);
                Ok(found)
            })
        };
        let twos = Expr::Is("size".into(), 2.into());
        let expected: Vec<(u64, Value)> =
            (2..35).step_by(4).map(|n| (n, json!({"size": 2, "more": {"n": [n]}}))).collect();
        assert_eq!(found("a", &twos, &["more.n".into()], usize::MAX), expected);
        assert_eq!(found("a", &Expr::All, &[], 12).last(), Some(&(11, json!({}))));
        assert_eq!(found("b", &Expr::All, &[], usize::MAX), []);
        let at =
            |id: &str, positions: &[u64]| read(tenant, |view| view.members_at(&ITEM, &record(id), positions));
        for positions in [&[][..], &[0], &[9, 10], &[3, 4, 19, 20, 34], &[12, 34, 35, 99]] {
            let expected: Vec<&Value> = positions.iter().filter_map(|it| all.get(*it as usize)).collect();
            assert_eq!(at("a", positions).iter().collect::<Vec<_>>(), expected, "{positions:?}");
        }
        assert_eq!(at("b", &[0]), Vec::<Value>::new());
    });
}
