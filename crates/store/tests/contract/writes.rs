//! Transactions: atomic, concurrent, bounded.

use std::sync::mpsc;
use std::time::Duration;

use pinakes_store::{Expr, Limits, Query, StoreError, Tenant, Value, Weight};
use serde_json::json;

use crate::engines::{engines, on_each, read, refused, write};
use crate::kinds::{ALL, ITEM, PLAIN};

fn n_records(tenant: &Tenant) -> u64 {
    read(tenant, |view| view.count(&PLAIN, &Expr::All))
}

#[test]
fn a_failing_closure_leaves_nothing() {
    on_each(ALL, |tenant| {
        let error = refused(tenant, |txn| {
            txn.insert(&PLAIN, "a", &json!({}))?;
            txn.insert(&ITEM, "i", &json!({"group": "new", "name": "n", "keywords": ["k"], "doi": "d"}))?;
            Err::<(), _>(StoreError::Query("no".into()))
        });
        assert!(matches!(error, StoreError::Query(_)));
        assert_eq!(n_records(tenant), 0);
        assert!(read(tenant, |view| view.changes(0, 10)).is_empty());
        // The class of the refused record was not stored, and can be created.
        write(tenant, |txn| txn.insert(&ITEM, "i", &json!({"group": "new"})));
    });
}

#[test]
fn a_panicking_closure_leaves_nothing() {
    on_each(ALL, |tenant| {
        let error = refused(tenant, |txn| {
            txn.insert(&PLAIN, "a", &json!({}))?;
            let class = txn.get(&PLAIN, "a")?.map(|it| it.version);
            assert_eq!(class, Some(99), "a fault that the test plants");
            Ok(())
        });
        assert!(matches!(error, StoreError::Panicked), "{error}");
        write(tenant, |txn| txn.insert(&PLAIN, "b", &json!({})));
        assert_eq!(n_records(tenant), 1);
    });
}

#[test]
fn a_transaction_reads_its_own_writes() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| {
            txn.insert(
                &ITEM,
                "a",
                &json!({"name": "x", "group": "g1", "keywords": ["k"], "note": "Wagons"}),
            )?;
            txn.insert(&ITEM, "b", &json!({"name": "y", "group": "g2"}))?;
            assert_eq!(txn.count(&ITEM, &Expr::All)?, 2);
            assert_eq!(txn.count(&ITEM, &Expr::Is("group".into(), "g1".into()))?, 1);
            assert_eq!(txn.count(&ITEM, &Expr::Is("keywords".into(), "k".into()))?, 1);
            let facets = txn.facets(&ITEM, &Expr::All, &["name", "group"])?;
            assert_eq!(facets[0].len(), 2);
            assert_eq!(facets[1].len(), 2);
            let text = pinakes_store::TextQuery { words: vec!["wagon".into()], ..Default::default() };
            assert_eq!(txn.find(&ITEM, &Query::filter(Expr::Text(text)))?.len(), 1);
            let class = txn.get(&ITEM, "b")?.expect("b").class;
            assert_eq!(*txn.class(&ITEM, class)?, json!({"group": "g2"}));
            Ok(())
        });
    });
}

#[test]
fn counters_of_many_writers_add_up() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| txn.insert(&PLAIN, "counter", &json!({"n": 0})));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        write(tenant, |txn| {
                            let old = txn.get(&PLAIN, "counter")?.expect("the counter").json()?;
                            let n = old["n"].as_i64().unwrap_or(0);
                            txn.update(&PLAIN, "counter", &json!({"n": n + 1}))
                        });
                    }
                });
            }
        });
        let counter = read(tenant, |view| view.get(&PLAIN, "counter")).expect("the counter");
        assert_eq!(counter.json().expect("JSON"), json!({"n": 100}));
        assert_eq!(counter.version, 101);
    });
}

#[test]
fn a_full_queue_says_so() {
    for place in engines() {
        let limits = Limits { write_queue: 2, tenant_writers: 1, ..Limits::default() };
        let tenant = place.open(ALL, limits).tenant_or_new("t").expect("a tenant");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let n_waiting = runtime.block_on(async {
            let (release, gate) = mpsc::channel::<()>();
            let (started, has_started) = mpsc::channel();
            let holder = tenant.clone();
            let held = std::thread::spawn(move || {
                holder.write_blocking(move |txn| {
                    started.send(()).expect("the test waits");
                    gate.recv_timeout(Duration::from_secs(10)).expect("the test releases");
                    txn.insert(&PLAIN, "held", &json!({})).map(|_| ())
                })
            });
            has_started.recv().expect("the writer runs");
            let mut waiting = Vec::new();
            let mut n_busy = 0;
            for n in 0..6 {
                let mut write = Box::pin(
                    tenant.write(move |txn| txn.insert(&PLAIN, &n.to_string(), &json!({})).map(|_| ())),
                );
                // One poll queues the write, or it is refused.
                match futures_poll(&mut write) {
                    Some(Err(StoreError::Busy { retry_after_s, .. })) => {
                        assert!(0 < retry_after_s);
                        n_busy += 1;
                    }
                    Some(other) => panic!("not so soon: {other:?}"),
                    None => waiting.push(write),
                }
            }
            assert!(0 < n_busy, "{}", place.engine);
            release.send(()).expect("the holder waits");
            held.join().expect("no panic").expect("a write");
            let n_waiting = waiting.len() as u64;
            for write in waiting {
                write.await.expect("a write");
            }
            n_waiting
        });
        assert_eq!(n_records(&tenant), 1 + n_waiting);
    }
}

/// Writes that share a commit: those refused after writing something leave nothing behind; the others are kept, once.
#[test]
fn refused_writes_leave_their_neighbours() {
    for place in engines() {
        let limits = Limits { tenant_writers: 1, ..Limits::default() };
        let tenant = place.open(ALL, limits).tenant_or_new("t").expect("a tenant");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (release, gate) = mpsc::channel::<()>();
            let (started, has_started) = mpsc::channel();
            let mut is_held = true;
            let mut held = Box::pin(tenant.write(move |txn| {
                if std::mem::take(&mut is_held) {
                    started.send(()).expect("the test waits");
                    gate.recv_timeout(Duration::from_secs(10)).expect("the test releases");
                }
                txn.insert(&ITEM, "held", &json!({"group": "g", "keywords": ["k"]})).map(|_| ())
            }));
            assert!(futures_poll(&mut held).is_none());
            has_started.recv().expect("the writer runs");
            let mut writes = Vec::new();
            for n in 0..6 {
                let mut write = Box::pin(tenant.write(move |txn| {
                    let body = json!({"group": format!("g{n}"), "keywords": ["k", n.to_string()]});
                    txn.insert(&ITEM, &n.to_string(), &body)?;
                    match n {
                        1 => Err(StoreError::Query("no".into())),
                        2 => txn.insert(&ITEM, "held", &body).map(|_| ()),
                        3 => panic!("a fault that the test plants"),
                        _ => Ok(()),
                    }
                }));
                assert!(futures_poll(&mut write).is_none());
                writes.push(write);
            }
            release.send(()).expect("the holder waits");
            held.await.expect("a write");
            let mut outcomes = Vec::new();
            for write in writes {
                outcomes.push(write.await.map(|_| ()));
            }
            use StoreError::{Duplicate, Panicked, Query};
            let e = &outcomes;
            assert!(
                matches!(
                    &e[..],
                    [Ok(()), Err(Query(_)), Err(Duplicate { .. }), Err(Panicked), Ok(()), Ok(())]
                ),
                "{}: {e:?}",
                place.engine
            );
        });
        let facets = read(&tenant, |view| view.facets(&ITEM, &Expr::All, &["keywords"]));
        let counts: Vec<_> = facets[0].iter().map(|it| (it.value.as_str(), it.n_records)).collect();
        assert_eq!(counts, [("k", 4), ("5", 1), ("4", 1), ("0", 1)], "{}", place.engine);
        assert_eq!(read(&tenant, |view| view.count(&ITEM, &Expr::All)), 4, "{}", place.engine);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    }
}

fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn a_read_that_runs_too_long_is_stopped() {
    for place in engines() {
        let limits = Limits { read_timeout_ms: 0, ..Limits::default() };
        let tenant = place.open(ALL, limits).tenant_or_new("t").expect("a tenant");
        write(&tenant, |txn| {
            (0..3000).try_for_each(|n| txn.insert(&PLAIN, &n.to_string(), &json!({"n": n})).map(|_| ()))
        });
        let all = Expr::Range(
            "n".into(),
            pinakes_store::End::Included(Value::Integer(1)),
            pinakes_store::End::Open,
        );
        let mut n_stopped = 0;
        for _ in 0..50 {
            match tenant.read_blocking(|view| (0..20).try_for_each(|_| view.count(&PLAIN, &all).map(|_| ())))
            {
                Err(StoreError::TooLong) => n_stopped += 1,
                Ok(()) => {}
                Err(error) => panic!("{}: {error}", place.engine),
            }
        }
        assert!(0 < n_stopped, "{}", place.engine);
        // The check requested by an operator has no time limit.
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    }
}

#[test]
fn reads_in_a_runtime_search_text() {
    on_each(ALL, |tenant| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
        let text = pinakes_store::TextQuery { words: vec!["wagon".into()], ..Default::default() };
        let query = Query::filter(Expr::Text(text));
        runtime.block_on(async {
            tenant
                .write(|txn| txn.insert(&ITEM, "a", &json!({"note": "wagons"})).map(|_| ()))
                .await
                .expect("a write");
            for weight in [Weight::Point, Weight::Scan] {
                let query = query.clone();
                let found = tenant.read(weight, move |view| view.find(&ITEM, &query)).await.expect("a read");
                assert_eq!(found.len(), 1);
            }
        });
    });
}

#[test]
fn readers_keep_their_snapshot() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| txn.insert(&PLAIN, "a", &json!({"n": 1})));
        read(tenant, |view| {
            assert_eq!(view.count(&PLAIN, &Expr::All)?, 1);
            write(tenant, |txn| {
                txn.update(&PLAIN, "a", &json!({"n": 2}))?;
                txn.insert(&PLAIN, "b", &json!({})).map(|_| ())
            });
            assert_eq!(view.count(&PLAIN, &Expr::All)?, 1);
            assert_eq!(view.get(&PLAIN, "a")?.expect("a").json()?, json!({"n": 1}));
            Ok(())
        });
        assert_eq!(n_records(tenant), 2);
    });
}

#[test]
fn many_are_made_together_and_what_is_taken_is_told() {
    on_each(ALL, |tenant| {
        let item = |n: usize| {
            let body = json!({
                "name": format!("n{}", n % 7), "size": n, "mass": n as f64 / 4.0, "keywords": ["k", n.to_string()],
                "group": n % 4, "doi": format!("10.1/{n}"), "parents": ["0"], "note": "Röntgen \\ \t \u{1}"
            });
            pinakes_store::Document::new(&ITEM, n.to_string(), &body).expect("a document")
        };
        let made = write(tenant, move |txn| {
            let first: Vec<_> = (0..40).map(item).collect();
            assert_eq!(txn.insert_missing(&first.iter().collect::<Vec<_>>())?, vec![true; 40]);
            // Some exist, and one occurs twice.
            let rest: Vec<_> = (20..60).chain([59]).map(item).collect();
            txn.insert_missing(&rest.iter().collect::<Vec<_>>())
        });
        let expected: Vec<bool> = (20..60).map(|n| 40 <= n).chain([false]).collect();
        assert_eq!(made, expected);
        let all = read(tenant, |view| view.find(&ITEM, &Query::filter(Expr::All)));
        let ids: Vec<String> = all.into_iter().map(|it| it.id).collect();
        assert_eq!(ids, (0..60).map(|n| n.to_string()).collect::<Vec<_>>(), "in the order they came");
        let linked = read(tenant, |view| view.by_identifier("doi", "10.1/59"));
        assert_eq!(linked.len(), 1);
    });
}

#[test]
fn reads_by_id_in_a_burst_are_all_answered() {
    const READS: usize = 24;
    for place in engines() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .enable_all()
            .build()
            .expect("a runtime");
        // From scratch each time, with nothing prepared yet.
        for round in 0..12 {
            let tenant = place.tenant(ALL);
            let id = round.to_string();
            write(&tenant, move |txn| txn.insert(&PLAIN, &id, &json!({})).map(|_| ()));
            let burst = (0..READS).map(|n| {
                let tenant = tenant.clone();
                let get = async move {
                    tenant.read(Weight::Point, move |view| view.get(&PLAIN, &n.to_string())).await
                };
                // Far longer than a burst takes: only a hang is detected.
                runtime.spawn(async { tokio::time::timeout(Duration::from_secs(20), get).await })
            });
            for (n, read) in burst.collect::<Vec<_>>().into_iter().enumerate() {
                let read = runtime.block_on(read).expect("no panic").expect("an answer");
                assert_eq!(read.expect("a read").is_some(), n <= round, "{}: {n}", place.engine);
            }
        }
    }
}
