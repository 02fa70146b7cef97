//! Writers during long reads, and files that other users must not read.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pinakes_store::{Limits, StoreError, Weight};
use serde_json::json;

use crate::engines::{sqlite, write};
use crate::kinds::{ALL, PLAIN};

/// Longer than a writer may wait for a read, shorter than the engine waits for a lock.
const LONG: Duration = Duration::from_secs(5);

#[test]
fn a_long_read_does_not_hold_writers_up() {
    let place = sqlite();
    let catalogue = place.open(ALL, Limits { log_bytes: 64 << 10, ..Limits::default() });
    let tenant = catalogue.tenant_or_new("t").expect("a tenant");
    write(&tenant, |txn| txn.insert(&PLAIN, "0", &json!({})));
    let (began, is_reading) = mpsc::channel();
    let (release, is_released) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let tenant = &tenant;
        let reader = scope.spawn(move || {
            tenant.read_blocking(|view| {
                view.get(&PLAIN, "0")?;
                began.send(()).expect("the test waits");
                is_released.recv().ok();
                Ok::<_, StoreError>(())
            })
        });
        is_reading.recv().expect("a read");
        // The log exceeds sixteen times its limit: from there on writers once waited for the read.
        let mut longest = Duration::ZERO;
        let until = Instant::now() + Duration::from_secs(3);
        for n in 1.. {
            let started = Instant::now();
            let body = json!({"text": "x".repeat(40_000)});
            write(tenant, move |txn| txn.insert(&PLAIN, &n.to_string(), &body).map(|_| ()));
            longest = longest.max(started.elapsed());
            if until < Instant::now() && 100 < n {
                break;
            }
        }
        assert!(longest < LONG, "a write took {longest:?}");
        let statistics = tenant.statistics();
        assert!(16 * (64 << 10) < statistics.log_left_bytes, "{statistics:?}");
        assert!(2_000 < statistics.oldest_read_ms, "{statistics:?}");
        release.send(()).expect("a reader");
        reader.join().expect("a reader").expect("a read");
    });
    assert_eq!(tenant.statistics().oldest_read_ms, 0);
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}

#[test]
fn files_are_their_owners_whatever_folder_they_lie_in() {
    let place = sqlite();
    let folder = place.folder.path().join("tenants");
    std::fs::create_dir(&folder).expect("a folder");
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
    };
    set(&folder, 0o755);
    let open_to_others = || -> Vec<String> {
        let entries = std::fs::read_dir(&folder).expect("a folder").map(|it| it.expect("an entry"));
        let of_others =
            |it: &std::fs::DirEntry| it.metadata().expect("a file").permissions().mode() & 0o077 != 0;
        entries.filter(of_others).map(|it| it.file_name().to_string_lossy().into_owned()).collect()
    };
    let tenant = place.tenant(ALL);
    write(&tenant, |txn| txn.insert(&PLAIN, "0", &json!({})));
    assert_eq!(open_to_others(), Vec::<String>::new());
    let copy = folder.join("copy.sqlite");
    tenant.backup(&copy).expect("a copy");
    assert_eq!(open_to_others(), Vec::<String>::new());
    drop(tenant);
    // The permissions that a former version left.
    set(&place.file("t"), 0o644);
    assert_eq!(open_to_others(), ["t.sqlite"]);
    let tenant = place.tenant(ALL);
    write(&tenant, |txn| txn.insert(&PLAIN, "1", &json!({})));
    assert_eq!(open_to_others(), Vec::<String>::new());
}

/// A read by id runs on the calling thread, but on another one after a read that had to wait; after many quick ones it
/// runs in place again.
#[test]
fn reads_behind_a_slow_one_hold_up_nobody() {
    let place = sqlite();
    let tenant = place.tenant(ALL);
    let quick = Duration::ZERO;
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let is_here = |runtime: &tokio::runtime::Runtime, took: Duration| {
        let here = std::thread::current().id();
        let read = tenant.read(Weight::Point, move |view| {
            view.has(&PLAIN, "x")?;
            let began = Instant::now();
            while began.elapsed() < took {}
            Ok::<_, StoreError>(std::thread::current().id() == here)
        });
        runtime.block_on(read).expect("a read")
    };
    // Returns whether a read behind a slow one runs aside. The first slow read of a thread counts. On a busy machine the
    // read before it may happen to be slow: then this thread cannot tell.
    let slow_is_known = || {
        let runtime = runtime();
        assert!((0..100_000).any(|_| is_here(&runtime, quick)), "reads return to the calling thread");
        is_here(&runtime, Duration::from_millis(2)).then(|| !is_here(&runtime, quick))
    };
    let on_a_thread = || std::thread::scope(|scope| scope.spawn(slow_is_known).join().expect("a thread"));
    assert_eq!((0..100).find_map(|_| on_a_thread()), Some(true));
    // Counting starts again whenever one is slow.
    let runtime = runtime();
    let n_aside = (0..100_000).position(|_| is_here(&runtime, quick));
    assert!(n_aside.is_some_and(|it| 900 <= it), "{n_aside:?}");
}
