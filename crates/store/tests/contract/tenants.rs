//! Tenants: created, listed, deleted, closed when too many are open; backups; files of newer programs.

use pinakes_store::{Catalogue, Expr, Limits, StoreError};
use serde_json::json;

use crate::engines::{engines, read, sqlite, write};
use crate::kinds::{ALL, PLAIN};

#[test]
fn tenants_come_and_go() {
    for place in engines() {
        let catalogue = place.open(ALL, Limits::default());
        assert!(catalogue.tenants().expect("a list").is_empty());
        assert!(matches!(catalogue.tenant("rcp1"), Err(StoreError::UnknownTenant(_))));
        let tenant = catalogue.create_tenant("rcp1", "an institute's \"own\"").expect("a tenant");
        assert_eq!(tenant.name(), "rcp1");
        assert!(matches!(catalogue.create_tenant("rcp1", ""), Err(StoreError::TenantExists(_))));
        catalogue.tenant_or_new("b-2").expect("another");
        let list = catalogue.tenants().expect("a list");
        let list: Vec<_> = list.iter().map(|it| (it.name.as_str(), it.description.as_str())).collect();
        assert_eq!(list, [("b-2", ""), ("rcp1", "an institute's \"own\"")]);
        assert!(matches!(catalogue.delete_tenant("rcp1"), Err(StoreError::Query(_))), "it is in use");
        drop(tenant);
        catalogue.delete_tenant("rcp1").expect("a deletion");
        assert!(matches!(catalogue.tenant("rcp1"), Err(StoreError::UnknownTenant(_))));
        assert!(matches!(catalogue.delete_tenant("rcp1"), Err(StoreError::UnknownTenant(_))));
        catalogue.create_tenant("rcp1", "").expect("the name is free");
        for name in ["", "A", "../x", "a/b", "-a", "é", &"a".repeat(64)] {
            assert!(matches!(catalogue.create_tenant(name, ""), Err(StoreError::TenantName(_))), "{name:?}");
        }
    }
}

/// Listing tenants that nobody has open leaves no traces, and sees data that is only in a log.
#[test]
fn a_list_makes_no_file() {
    let place = sqlite();
    let catalogue = place.open(ALL, Limits::default());
    catalogue.create_tenant("t", "an institute").expect("a tenant");
    catalogue.close();
    let names = || {
        let files = std::fs::read_dir(place.folder.path().join("tenants")).expect("a folder");
        let mut names: Vec<_> = files.map(|it| it.expect("a file").file_name()).collect();
        names.sort();
        names
    };
    let described = |catalogue: &Catalogue, name: &str| {
        let list = catalogue.tenants().expect("a list");
        list.into_iter().find(|it| it.name == name).expect("it").description
    };
    let before = names();
    assert_eq!(described(&place.open(ALL, Limits::default()), "t"), "an institute");
    assert_eq!(names(), before);
    let catalogue = place.open(ALL, Limits::default());
    let _open = catalogue.create_tenant("v", "another").expect("a tenant");
    for end in ["", "-wal"] {
        let file = |name: &str| std::path::PathBuf::from(format!("{}{end}", place.file(name).display()));
        std::fs::copy(file("v"), file("u")).expect("a copy");
    }
    assert_eq!(described(&place.open(ALL, Limits::default()), "u"), "another");
    assert_eq!(described(&place.open(ALL, Limits::default()), "v"), "another");
}

/// A power failure may bring back the name of a log that was deleted with its tenant.
#[test]
fn the_log_of_a_deleted_tenant_is_nobodys() {
    let place = sqlite();
    let catalogue = place.open(ALL, Limits::default());
    let tenant = catalogue.create_tenant("t", "").expect("a tenant");
    write(&tenant, |txn| txn.insert(&PLAIN, "secret", &json!({})));
    let file = |end: &str| place.folder.path().join(format!("tenants/t.sqlite{end}"));
    let log = std::fs::read(file("-wal")).expect("a log");
    drop(tenant);
    catalogue.delete_tenant("t").expect("a deletion");
    std::fs::write(file("-wal"), log).expect("a log");
    let tenant = catalogue.create_tenant("t", "").expect("a tenant");
    assert_eq!(read(&tenant, |view| view.count(&PLAIN, &Expr::All)), 0);
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}

/// A tenant whose creation was interrupted does not exist, and can be created.
#[test]
fn a_tenant_that_was_half_made_can_be_made() {
    let place = sqlite();
    let catalogue = place.open(ALL, Limits::default());
    let file = place.folder.path().join("tenants/t.sqlite.making");
    for bytes in [&b""[..], &[0; 8192], b"SQLite format 3"] {
        std::fs::write(&file, bytes).expect("a file");
        assert!(catalogue.tenants().expect("a list").is_empty());
        let tenant = catalogue.create_tenant("t", "").expect("a tenant");
        write(&tenant, |txn| txn.insert(&PLAIN, "x", &json!({})));
        drop(tenant);
        catalogue.delete_tenant("t").expect("a deletion");
        assert!(!file.exists());
    }
}

#[test]
fn tenants_do_not_see_each_other() {
    for place in engines() {
        let catalogue = place.open(ALL, Limits::default());
        let (a, b) = (catalogue.tenant_or_new("a").expect("a"), catalogue.tenant_or_new("b").expect("b"));
        write(&a, |txn| txn.insert(&PLAIN, "x", &json!({})));
        assert!(read(&b, |view| view.get(&PLAIN, "x")).is_none());
        write(&b, |txn| txn.insert(&PLAIN, "x", &json!({"b": 1})));
        assert_eq!(read(&a, |view| view.get(&PLAIN, "x")).expect("x").json().expect("JSON"), json!({}));
    }
}

#[test]
fn the_least_recently_used_is_closed() {
    for place in engines() {
        let catalogue = place.open(ALL, Limits { open_tenants: 3, ..Limits::default() });
        let kept = catalogue.tenant_or_new("kept").expect("a tenant");
        for n in 0..8 {
            let tenant = catalogue.tenant_or_new(&format!("t{n}")).expect("a tenant");
            write(&tenant, |txn| txn.insert(&PLAIN, "x", &json!({})));
        }
        let mut open: Vec<String> = catalogue.statistics().into_iter().map(|it| it.name).collect();
        open.sort();
        assert_eq!(open, ["kept", "t6", "t7"], "{}", place.engine);
        for n in 0..8 {
            let tenant = catalogue.tenant(&format!("t{n}")).expect("a tenant");
            assert_eq!(read(&tenant, |view| view.count(&PLAIN, &Expr::All)), 1);
        }
        write(&kept, |txn| txn.insert(&PLAIN, "x", &json!({})));
        catalogue.close();
        assert!(catalogue.statistics().is_empty());
    }
}

#[test]
fn what_is_held_of_a_closed_catalogue_writes_nothing() {
    for place in engines() {
        let catalogue = place.open(ALL, Limits::default());
        let held = catalogue.tenant_or_new("held").expect("a tenant");
        write(&held, |txn| txn.insert(&PLAIN, "before", &json!({})));
        catalogue.close();
        let refused = held.write_blocking(|txn| txn.insert(&PLAIN, "after", &json!({})));
        assert!(matches!(refused, Err(StoreError::Closed)), "{}: {refused:?}", place.engine);
        assert!(matches!(catalogue.tenant("held"), Err(StoreError::Closed)), "{}", place.engine);
        assert!(matches!(catalogue.create_tenant("late", ""), Err(StoreError::Closed)), "{}", place.engine);
        drop(held);
        let after = place.open(ALL, Limits::default());
        assert_eq!(after.tenants().expect("a list").len(), 1, "{}", place.engine);
        let again = after.tenant("held").expect("the tenant");
        assert_eq!(read(&again, |view| view.count(&PLAIN, &Expr::All)), 1, "{}", place.engine);
    }
}

#[test]
fn many_threads_open_one_tenant_once() {
    for place in engines() {
        let catalogue = place.open(ALL, Limits::default());
        std::thread::scope(|scope| {
            for n in 0..8 {
                let catalogue = catalogue.clone();
                scope.spawn(move || {
                    let tenant = catalogue.tenant_or_new("t").expect("a tenant");
                    write(&tenant, move |txn| txn.insert(&PLAIN, &n.to_string(), &json!({})));
                });
            }
        });
        let tenant = catalogue.tenant("t").expect("the tenant");
        assert_eq!(read(&tenant, |view| view.count(&PLAIN, &Expr::All)), 8);
    }
}

#[test]
fn servers_that_start_at_once_make_the_tables_once() {
    for place in engines().into_iter().filter(|it| it.engine == "postgresql") {
        std::thread::scope(|scope| {
            for n in 0..10 {
                let place = &place;
                scope.spawn(move || {
                    let tenant = place.tenant(ALL);
                    write(&tenant, move |txn| txn.insert(&PLAIN, &n.to_string(), &json!({})));
                });
            }
        });
        let tenant = place.tenant(ALL);
        assert_eq!(read(&tenant, |view| view.count(&PLAIN, &Expr::All)), 10);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    }
}

#[test]
fn what_is_no_database_is_named() {
    let open = |url: &str| {
        let limits = Limits::default();
        let place = url.parse::<pinakes_store::Location>()?;
        Catalogue::open(place, ALL, limits)?.tenant("t").map(|_| ())
    };
    assert!(matches!(open("mysql://x"), Err(StoreError::Query(_))));
    assert!(matches!(open("postgres://x:notaport/"), Err(StoreError::Query(_))));
    if let Ok(url) = std::env::var("PINAKES_TEST_POSTGRES") {
        let other = url.rsplit_once('/').map_or(url.clone(), |it| format!("{}/no_such_database", it.0));
        let error = open(&other).expect_err("a refusal");
        assert!(matches!(&error, StoreError::Unavailable(_) | StoreError::Postgres { .. }), "{error}");
    }
}

#[test]
fn two_processes_share_a_tenant() {
    for place in engines() {
        let (server, command) = (place.tenant(ALL), place.tenant(ALL));
        std::thread::scope(|scope| {
            for (name, tenant) in [("s", &server), ("c", &command)] {
                scope.spawn(move || {
                    for n in 0..50 {
                        let id = format!("{name}{n}");
                        write(tenant, move |txn| txn.insert(&PLAIN, &id, &json!({"class": name})));
                    }
                });
            }
        });
        for tenant in [&server, &command] {
            assert_eq!(read(tenant, |view| view.count(&PLAIN, &Expr::All)), 100);
            assert_eq!(crate::records::changes(tenant, 0, 100).len(), 100);
            assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
        }
    }
}

#[test]
fn a_backup_is_a_whole_state() {
    let place = sqlite();
    let tenant = place.tenant(ALL);
    let (to, stop) = (place.folder.path().join("copy"), std::sync::atomic::AtomicBool::new(false));
    std::fs::create_dir_all(to.join("tenants")).expect("a folder");
    std::thread::scope(|scope| {
        let (tenant, stop) = (&tenant, &stop);
        scope.spawn(move || {
            let mut n = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                write(tenant, move |txn| {
                    txn.insert(&PLAIN, &format!("a{n}"), &json!({}))?;
                    txn.insert(&PLAIN, &format!("b{n}"), &json!({}))
                });
                n += 1;
            }
        });
        while read(tenant, |view| view.count(&PLAIN, &Expr::All)) < 20 {}
        let result = tenant.backup(&to.join("tenants/t.sqlite"));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        result.expect("a backup");
    });
    assert!(matches!(tenant.backup(&to.join("tenants/t.sqlite")), Err(StoreError::Io { .. })), "it is there");
    let copies =
        Catalogue::open(pinakes_store::Location::Folder(to), ALL, Limits::default()).expect("copies");
    let copy = copies.tenant("t").expect("the copy");
    let n = read(&copy, |view| view.count(&PLAIN, &Expr::All));
    assert!(20 <= n && n % 2 == 0, "{n}");
    assert_eq!(copy.check().expect("a check"), Vec::<String>::new());
}

#[test]
fn a_file_of_an_older_layout_gets_the_number_of_this_one() {
    let place = sqlite();
    drop(place.tenant(ALL));
    let format = || -> i64 {
        let file = rusqlite::Connection::open(place.file("t")).expect("the file");
        let sql = "SELECT value FROM meta WHERE name = 'format'";
        file.query_row(sql, [], |row| row.get(0)).expect("a number")
    };
    let newest = format();
    let file = rusqlite::Connection::open(place.file("t")).expect("the file");
    file.execute("UPDATE meta SET value = 1 WHERE name = 'format'", []).expect("an update");
    drop(file);
    assert_eq!(format(), 1);
    drop(place.tenant(ALL));
    assert_eq!(format(), newest);
    assert!(1 < newest);
}

#[test]
fn a_newer_format_is_refused() {
    let place = sqlite();
    drop(place.tenant(ALL));
    let file = rusqlite::Connection::open(place.file("t")).expect("the file");
    file.execute("UPDATE meta SET value = 99 WHERE name = 'format'", []).expect("an update");
    drop(file);
    let error = place.open(ALL, Limits::default()).tenant("t").err().expect("a refusal");
    assert!(matches!(&error, StoreError::Newer { found: 99, .. }), "{error}");
}

#[test]
fn a_file_that_is_none_of_ours_is_refused() {
    let place = sqlite();
    drop(place.tenant(ALL));
    std::fs::write(place.file("t"), b"this is not a database, but long enough to look at".repeat(100))
        .expect("a file");
    for end in ["-wal", "-shm"] {
        std::fs::remove_file(format!("{}{end}", place.file("t").display())).ok();
    }
    let error = place.open(ALL, Limits::default()).tenant("t").err().expect("a refusal");
    assert!(matches!(&error, StoreError::Damaged(_)), "{error}");
}

#[test]
fn a_tenant_that_another_server_has_open_stays() {
    for place in engines().into_iter().filter(|it| it.engine == "postgresql") {
        let (server, other) = (place.open(ALL, Limits::default()), place.open(ALL, Limits::default()));
        let tenant = server.create_tenant("t", "").expect("a tenant");
        write(&tenant, |txn| txn.insert(&PLAIN, "x", &json!({})));
        let error = other.delete_tenant("t").expect_err("a refusal");
        assert!(error.to_string().contains("in use by another server"), "{error}");
        write(&tenant, |txn| txn.insert(&PLAIN, "y", &json!({})));
        drop((tenant, server));
        other.delete_tenant("t").expect("nobody has it open any more");
        assert!(other.tenants().expect("a list").is_empty());
    }
}

#[test]
fn tenants_may_lie_in_places_of_their_own() {
    for (common, apart) in engines().into_iter().zip(engines().into_iter().rev()) {
        let own = [("apart", apart.location.clone()), ("beside", apart.location.clone())];
        let own = own.map(|(name, location)| (name.to_owned(), location)).into();
        let open = || {
            Catalogue::open_spread(common.location.clone(), &own, None, ALL, Limits::default())
                .expect("a catalogue")
        };
        let catalogue = open();
        for name in ["apart", "here"] {
            let tenant = catalogue.create_tenant(name, &format!("is {name}")).expect("a tenant");
            write(&tenant, move |txn| txn.insert(&PLAIN, name, &json!({})));
        }
        let names = |catalogue: &Catalogue| -> Vec<String> {
            let list = catalogue.tenants().expect("a list");
            list.into_iter().map(|it| format!("{}: {}", it.name, it.description)).collect()
        };
        assert_eq!(names(&catalogue), ["apart: is apart", "here: is here"]);
        assert_eq!(names(&common.open(ALL, Limits::default())), ["here: is here"]);
        assert_eq!(names(&apart.open(ALL, Limits::default())), ["apart: is apart"]);
        drop(catalogue);
        let catalogue = open();
        for name in ["apart", "here"] {
            let tenant = catalogue.tenant(name).expect("the tenant");
            assert!(read(&tenant, |view| view.get(&PLAIN, name)).is_some(), "{name}");
        }
        catalogue.delete_tenant("apart").expect("a deletion");
        assert_eq!(names(&catalogue), ["here: is here"]);
    }
}

#[test]
fn a_newer_schema_is_refused() {
    for place in engines().into_iter().filter(|it| it.engine == "postgresql") {
        drop(place.tenant(ALL));
        crate::engines::sql(&place, "UPDATE meta SET value = 99 WHERE name = 'format'");
        let error = place.open(ALL, Limits::default()).tenant("t").err().expect("a refusal");
        assert!(matches!(&error, StoreError::Newer { found: 99, .. }), "{error}");
    }
}

#[test]
fn missing_rights_are_named() {
    for place in engines().into_iter().filter(|it| it.engine == "postgresql") {
        drop(place.tenant(ALL));
        let role = format!("pinakes_test_{}", std::process::id());
        crate::engines::sql(&place, &format!("CREATE ROLE {role} LOGIN"));
        let pinakes_store::Location::Postgres(url) = &place.location else { continue };
        let (_, rest) = url.rsplit_once('@').expect("a user");
        let location = pinakes_store::Location::Postgres(format!("postgres://{role}@{rest}"));
        let catalogue = Catalogue::open(location, ALL, Limits::default()).expect("a catalogue");
        for error in [catalogue.create_tenant("u", "").err(), catalogue.tenant("t").err()] {
            let error = error.expect("a refusal");
            assert!(matches!(&error, StoreError::Unavailable(_)), "{error}");
            assert!(error.to_string().contains("needs CREATE on the database"), "{error}");
        }
        crate::engines::sql(&place, &format!("DROP ROLE {role}"));
    }
}

#[test]
fn a_bad_url_is_named_without_its_password() {
    for url in [
        "postgres:/user:secret@host/db",
        "postgres://user:secret@host:port/db",
        "postgres://user:secret@host/db?sslmode=perhaps",
        "postgres://user:secret@host/db?sslmode=verify-full",
        "postgres://user:secret@host/db?sslmode=verify-ca&sslrootcert=/no/such/file",
        "postgres://user:secret@host/db?sslcert=/no/such/file",
    ] {
        let opened = url
            .parse::<pinakes_store::Location>()
            .and_then(|location| Catalogue::open(location, ALL, Limits::default()).map(|_| ()));
        let error = opened.expect_err("a refusal");
        assert!(matches!(&error, StoreError::Query(_)), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

/// Runs work on one thread, where anything that blocks would stop everything.
fn on_one_thread(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work);
}

#[test]
fn a_tenant_that_takes_long_to_open_holds_up_nobody() {
    let place = sqlite();
    let making = place.open(ALL, Limits::default());
    making.create_tenant("slow", "").expect("a tenant");
    making.create_tenant("quick", "").expect("a tenant");
    drop(making);
    let catalogue = place.open(ALL, Limits { openings: 2, ..Limits::default() });
    // Opening the file waits for this lock, as for a migration.
    let lock = rusqlite::Connection::open(place.file("slow")).expect("the file");
    lock.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    on_one_thread(async {
        let waiting: Vec<_> = (0..20)
            .map(|_| {
                let catalogue = catalogue.clone();
                tokio::spawn(
                    async move { catalogue.tenant_aside("slow").await.map(|it| it.name().to_owned()) },
                )
            })
            .collect();
        // All of them are waiting by now.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            let quick = catalogue.tenant_aside("quick").await.expect("the tenant");
            let n = quick.read(pinakes_store::Weight::Point, |view| view.count(&PLAIN, &Expr::All)).await;
            assert_eq!(n.expect("a count"), 0);
        }
        let unknown = catalogue.tenant_aside("nosuch").await.err();
        assert!(matches!(unknown, Some(StoreError::UnknownTenant(_))));
        assert!(waiting.iter().all(|it| !it.is_finished()));
        let open: Vec<String> = catalogue.statistics().into_iter().map(|it| it.name).collect();
        assert_eq!(open, ["quick"], "what is being opened holds up no figures");
        lock.execute_batch("COMMIT").expect("the end of the lock");
        for it in waiting {
            assert_eq!(it.await.expect("no panic").expect("the tenant"), "slow");
        }
    });
}

#[test]
fn many_tasks_open_one_tenant_once() {
    for place in engines() {
        drop(place.tenant(ALL));
        let catalogue = place.open(ALL, Limits::default());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let tasks = (0..8).map(|n| {
                let catalogue = catalogue.clone();
                tokio::spawn(async move {
                    let tenant = catalogue.tenant_aside("t").await.expect("the tenant");
                    let put = tenant.write(move |txn| txn.insert(&PLAIN, &n.to_string(), &json!({}))).await;
                    put.map(drop)
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.expect("no panic").expect("a write");
            }
        });
        let tenant = catalogue.tenant("t").expect("the tenant");
        assert_eq!(read(&tenant, |view| view.count(&PLAIN, &Expr::All)), 8, "{}", place.engine);
        assert_eq!(catalogue.statistics().len(), 1, "{}", place.engine);
    }
}

#[test]
fn a_list_of_tenants_opens_none() {
    for place in engines() {
        let making = place.open(ALL, Limits::default());
        for n in 0..5 {
            making.create_tenant(&format!("t{n}"), &format!("number {n}")).expect("a tenant");
        }
        let listed = |catalogue: &Catalogue| {
            let list = catalogue.tenants().expect("a list");
            list.into_iter().map(|it| format!("{}: {}", it.name, it.description)).collect::<Vec<_>>()
        };
        let expected: Vec<String> = (0..5).map(|n| format!("t{n}: number {n}")).collect();
        let other = place.open(ALL, Limits::default());
        // While a server has them open, and alone.
        assert_eq!(listed(&other), expected, "{}", place.engine);
        assert!(other.statistics().is_empty(), "{}", place.engine);
        drop((making, other));
        let alone = place.open(ALL, Limits::default());
        assert_eq!(listed(&alone), expected, "{}", place.engine);
        assert!(alone.statistics().is_empty(), "{}", place.engine);
        alone.delete_tenant("t2").expect("a deletion");
        alone.create_tenant("t2", "another").expect("a tenant");
        assert_eq!(listed(&alone)[2], "t2: another", "{}", place.engine);
    }
}

/// Of connections that close at the same time none may leave the log to another.
#[test]
fn a_closed_tenant_leaves_no_log() {
    let place = sqlite();
    let log = place.folder.path().join("tenants/t.sqlite-wal");
    for round in 0..60 {
        let catalogue = place.open(ALL, Limits::default());
        let tenant = catalogue.tenant_or_new("t").expect("a tenant");
        write(&tenant, move |txn| txn.insert(&PLAIN, &round.to_string(), &json!({"round": round})).map(drop));
        assert!(log.exists(), "an open tenant has a log");
        if round % 2 == 0 {
            catalogue.close();
        }
        // The last handle closes the tenant where nobody has closed it.
        drop((tenant, catalogue));
        assert!(!log.exists(), "round {round}");
    }
    assert_eq!(read(&place.tenant(ALL), |view| view.count(&PLAIN, &Expr::All)), 60);
}
