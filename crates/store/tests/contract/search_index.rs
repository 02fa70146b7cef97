//! The search index is disposable: if damaged, of another store or ahead of its store, it is rebuilt, and no answer is
//! ever wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pinakes_store::{
    Catalogue, Direction, End, Expr, Limits, Location, Pattern, Query, StoreError, Tenant, TextQuery, Value,
    matches,
};
use serde_json::{Value as Json, json};

use crate::engines::{Place, engines, read, sqlite, told_with, write};
use crate::kinds::{ALL, ITEM};

const WAIT: Duration = Duration::from_secs(120);
const N_RECORDS: u64 = 400;

/// Creates records `from` to `to`, each with a word of its own.
fn fill(tenant: &Tenant, from: u64, to: u64) {
    write(tenant, move |txn| {
        (from..to).try_for_each(|n| {
            let body = json!({"name": format!("beam w{n}"), "size": n, "free": {"depth": n % 7}});
            txn.insert(&ITEM, &n.to_string(), &body).map(|_| ())
        })
    });
}

fn filled() -> Place {
    let place = sqlite();
    let tenant = place.tenant(ALL);
    fill(&tenant, 0, N_RECORDS);
    assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
    place
}

/// Checks that searches answered by the index find records `0..n`.
#[track_caller]
fn check(tenant: &Tenant, n: u64) {
    let text = |word: String| Expr::Text(TextQuery { words: vec![word], ..TextQuery::default() });
    let count = |filter: Expr| read(tenant, |view| view.count(&ITEM, &filter));
    assert_eq!(count(text("beams".to_owned())), n);
    assert_eq!(count(text(format!("w{}", n - 1))), 1);
    assert_eq!(count(text(format!("w{n}"))), 0);
    assert_eq!(
        count(Expr::Is("free.depth".into(), 3_i64.into())),
        (0..n).filter(|it| it % 7 == 3).count() as u64
    );
    let newest = Query::filter(text("beam".to_owned())).sorted("size", Direction::Descending).window(0, 2);
    let found: Vec<String> =
        read(tenant, |view| view.find(&ITEM, &newest)).into_iter().map(|it| it.id).collect();
    assert_eq!(found, [(n - 1).to_string(), (n - 2).to_string()]);
}

fn index_folder(place: &Place) -> PathBuf {
    PathBuf::from(format!("{}-search", place.file("t").display())).join("item")
}

/// Opens the tenant, and checks before and after the index is available.
#[track_caller]
fn check_opened(place: &Place, n: u64) {
    let tenant = place.tenant(ALL);
    check(&tenant, n);
    assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index is made");
    check(&tenant, n);
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    assert!(index_folder(place).join("meta.json").exists());
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the index");
    let mut files: Vec<PathBuf> = entries.map(|it| it.expect("a file").path()).collect();
    files.sort();
    files
}

/// One segment holds all texts whole, another only the beginnings of long ones.
#[test]
fn short_and_long_texts_of_two_segments_are_one_order() {
    const N: u64 = 2_400;
    let place = sqlite();
    let tenant = place.tenant(ALL);
    let text = |n: u64| {
        let short = format!("{}{:04}", "x".repeat(40), n * 7_919 % N);
        if n < N / 2 { short } else { format!("{short}{}", "y".repeat(200)) }
    };
    for (from, to) in [(0, N / 2), (N / 2, N)] {
        write(&tenant, move |txn| {
            (from..to)
                .try_for_each(|n| txn.insert(&ITEM, &n.to_string(), &json!({"note": text(n)})).map(|_| ()))
        });
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
    }
    let mut expected: Vec<u64> = (0..N).collect();
    expected.sort_by_key(|n| text(*n));
    for direction in [Direction::Ascending, Direction::Descending] {
        for skip in [0, 700, 2_390] {
            let query = Query::filter(Expr::All).sorted("note", direction).window(skip, 20);
            let found = read(&tenant, |view| view.find(&ITEM, &query));
            let found: Vec<String> = found.into_iter().map(|it| it.id).collect();
            let page: Vec<String> =
                expected.iter().skip(skip as usize).take(20).map(ToString::to_string).collect();
            assert_eq!(found, page, "{direction:?} from {skip}");
        }
        expected.reverse();
    }
}

/// A page whose records lie far down its order is not walked to: after some looks in vain, the condition is evaluated
/// whole, and its period with it.
#[test]
fn a_walk_in_vain_is_given_up() {
    const N: u64 = 3_000;
    let instant = |n: u64| Value::Instant(1_577_836_800_000 + n.cast_signed() * 60_000);
    let place = sqlite();
    let tenant = place.tenant(ALL);
    write(&tenant, |txn| {
        (0..N).try_for_each(|n| {
            let made = format!("2020-01-{:02}T{:02}:{:02}:00.000Z", 1 + n / 1440, n / 60 % 24, n % 60);
            let era = if n < N / 2 { "old" } else { "new" };
            txn.insert(&ITEM, &n.to_string(), &json!({"made": made, "free": era})).map(|_| ())
        })
    });
    assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
    let of_era = |era: &str| Expr::Is("free".into(), era.into());
    let period = || Expr::Range("made".into(), End::Included(instant(10)), End::Excluded(instant(N - 10)));
    for (era, direction, last, is_walked) in [
        ("new", Direction::Descending, N - 10, true),
        ("old", Direction::Descending, N / 2, false),
        ("old", Direction::Ascending, 10, true),
        ("new", Direction::Ascending, N / 2, false),
    ] {
        let in_order = |from: u64| -> Vec<String> {
            let of = |it: u64| if direction == Direction::Descending { from - 1 - it } else { from + it };
            (1..6).map(|it| of(it).to_string()).collect()
        };
        let query = Query::filter(of_era(era).and(period())).sorted("made", direction).window(1, 5);
        let (found, told) = told_with(|| read(&tenant, |view| view.find(&ITEM, &query)));
        let found: Vec<String> = found.into_iter().map(|it| it.id).collect();
        assert_eq!(found, in_order(last), "{era}, {direction:?}");
        assert_eq!(told.contains("walked along the order"), is_walked, "{era}, {direction:?}: {told}");
        // Without a period, a walk in vain is not told of, but found out by its answer.
        let query = Query::filter(of_era(era)).sorted("made", direction).window(1, 5);
        let found = read(&tenant, |view| view.find(&ITEM, &query));
        let found: Vec<String> = found.into_iter().map(|it| it.id).collect();
        let first = match last {
            10 => 0,
            it if it == N - 10 => N,
            it => it,
        };
        assert_eq!(found, in_order(first), "{era}, {direction:?}");
    }
}

#[test]
fn an_index_that_is_gone_is_made_anew() {
    let place = filled();
    std::fs::remove_dir_all(index_folder(&place)).expect("the index");
    check_opened(&place, N_RECORDS);
}

/// Returns what the commit of an index says.
fn meta(folder: &Path) -> Json {
    serde_json::from_slice(&std::fs::read(folder.join("meta.json")).expect("a commit")).expect("JSON")
}

fn segments(meta: &mut Json) -> &mut Vec<Json> {
    meta["segments"].as_array_mut().expect("segments")
}

/// A server that is killed while it merges segments leaves them all. The next one merges them, though nothing changes.
#[test]
fn merges_that_were_broken_off_are_made_up_for() {
    /// Number of segments below which none are merged.
    const N_SEGMENTS: u64 = 8;
    let place = sqlite();
    let fill_one = |n: u64| {
        let tenant = place.tenant(ALL);
        fill(&tenant, n * N_RECORDS, (n + 1) * N_RECORDS);
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
    };
    (0..N_SEGMENTS - 1).for_each(fill_one);
    let folder = index_folder(&place);
    // One of them is put aside, so that there are too few to be merged when the last comes.
    let kept: Vec<(PathBuf, Vec<u8>)> =
        files(&folder).into_iter().map(|it| (it.clone(), std::fs::read(it).expect("a file"))).collect();
    let mut all = meta(&folder);
    assert_eq!(segments(&mut all).len() as u64, N_SEGMENTS - 1);
    let aside = segments(&mut all).remove(0);
    std::fs::write(folder.join("meta.json"), all.to_string()).expect("a commit");
    fill_one(N_SEGMENTS - 1);
    let mut all = meta(&folder);
    segments(&mut all).push(aside);
    assert_eq!(segments(&mut all).len() as u64, N_SEGMENTS);
    for (file, bytes) in kept {
        if !file.exists() {
            std::fs::write(file, bytes).expect("a file");
        }
    }
    std::fs::write(folder.join("meta.json"), all.to_string()).expect("a commit");

    let tenant = place.tenant(ALL);
    check(&tenant, N_SEGMENTS * N_RECORDS);
    let begun = Instant::now();
    while segments(&mut meta(&folder)).len() as u64 == N_SEGMENTS {
        assert!(begun.elapsed() < WAIT, "the segments are merged");
        std::thread::sleep(Duration::from_millis(100));
    }
    check(&tenant, N_SEGMENTS * N_RECORDS);
    assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
}

#[test]
fn an_index_that_is_torn_is_made_anew() {
    for ending in ["meta.json", ".term", ".idx", ".fast", ".pos"] {
        let place = filled();
        let torn: Vec<PathBuf> = files(&index_folder(&place))
            .into_iter()
            .filter(|it| it.display().to_string().ends_with(ending))
            .collect();
        assert!(!torn.is_empty(), "no file {ending}");
        for file in torn {
            let bytes = std::fs::read(&file).expect("a file");
            std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("half a file");
        }
        let tenant = place.tenant(ALL);
        check(&tenant, N_RECORDS);
        // An index that cannot be opened waits before it is rebuilt.
        drop(tenant);
    }
}

#[test]
fn an_index_ahead_of_its_store_is_made_anew() {
    let place = filled();
    let kept = std::fs::read(place.file("t")).expect("the file");
    let tenant = place.tenant(ALL);
    fill(&tenant, N_RECORDS, N_RECORDS + 100);
    assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
    drop(tenant);
    for end in ["-wal", "-shm"] {
        std::fs::remove_file(format!("{}{end}", place.file("t").display())).ok();
    }
    std::fs::write(place.file("t"), kept).expect("the older file");
    check_opened(&place, N_RECORDS);
}

#[test]
fn columns_say_what_evaluation_says() {
    let place = filled();
    let tenant = place.tenant(ALL);
    let long = format!("{}Tail", "x".repeat(300));
    let bodies = [
        json!({"name": "with\u{0}nul", "mass": -0.0, "free": 0}),
        json!({"name": "with\u{fffd}sign", "mass": -3.25, "free": 0.5}),
        json!({"name": long, "mass": 0, "free": [1, 2.5, "Tail"]}),
        json!({"name": "Émile", "mass": 9_007_199_254_740_993_i64, "free": -1e300}),
        json!({"name": null, "mass": null, "free": {"name": "tail"}}),
    ];
    let rows = bodies.clone();
    write(&tenant, move |txn| {
        rows.iter().enumerate().try_for_each(|(n, it)| txn.insert(&ITEM, &format!("e{n}"), it).map(|_| ()))
    });
    assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
    let pattern = |path: &str, text: &str, flags: &str| {
        Expr::Regex(path.into(), Pattern::new(text, flags).expect("a pattern"))
    };
    let real = |path: &str, number: f64| Expr::Is(path.into(), Value::Real(number));
    let among =
        |path: &str, list: &[f64]| Expr::In(path.into(), list.iter().map(|it| Value::Real(*it)).collect());
    let upto =
        |path: &str, number: f64| Expr::Range(path.into(), End::Open, End::Included(Value::Real(number)));
    for expr in [
        pattern("name", "h\u{0}n", ""),
        pattern("name", "h\u{fffd}", ""),
        pattern("name", "tail$", "i"),
        pattern("name", "emile", "f"),
        pattern("name", "w3.?$", ""),
        pattern("free", "Tail", ""),
        real("mass", -0.0),
        real("mass", 0.0),
        real("mass", -4.0),
        real("free", 2.5),
        among("mass", &[-3.25, -0.0, 7.0]),
        among("mass", &[-0.0]),
        among("free", &[0.5, 1.0, -1e300, f64::NAN]),
        upto("mass", -0.0),
        upto("mass", -3.5),
        upto("free", -1e299),
        Expr::Is("mass".into(), 9_007_199_254_740_992_i64.into()),
        Expr::Is("mass".into(), 9_007_199_254_740_993_i64.into()),
    ] {
        let found: Vec<String> = read(&tenant, |view| view.find(&ITEM, &Query::filter(expr.clone())))
            .into_iter()
            .map(|it| it.id)
            .filter(|it| it.starts_with('e'))
            .collect();
        let fits = |it: &(usize, &serde_json::Value)| matches(&expr, it.1);
        let expected: Vec<String> =
            bodies.iter().enumerate().filter(fits).map(|(n, _)| format!("e{n}")).collect();
        assert_eq!(found, expected, "{expr:?}");
    }
}

#[test]
fn a_check_compares_the_index_with_the_records() {
    let damaged = |sql: &str| {
        let place = filled();
        let file = rusqlite::Connection::open(place.file("t")).expect("the file");
        assert_eq!(file.execute(sql, []).expect(sql), 1);
        drop(file);
        place.tenant(ALL).check().expect("a check").join("; ")
    };
    let found = damaged("UPDATE k_item SET sequence = 0 WHERE id = '5'");
    assert!(found.contains("1 records are in the search index as they were"), "{found}");
    let found = damaged("UPDATE k_item SET key = 9999 WHERE id = '5'");
    assert!(found.contains("1 records are not in the search index"), "{found}");
}

#[test]
fn a_deleted_tenant_takes_its_index_along() {
    let place = filled();
    let catalogue = place.open(ALL, pinakes_store::Limits::default());
    catalogue.delete_tenant("t").expect("a deletion");
    assert!(!index_folder(&place).exists());
}

/// A server's copy may lag: each server finds at once what the other wrote.
#[test]
fn servers_over_a_database_have_copies_of_their_own() {
    for place in engines() {
        if !matches!(place.location, Location::Postgres(_)) {
            continue;
        }
        let first = place.tenant(ALL);
        fill(&first, 0, N_RECORDS);
        let folder = tempfile::tempdir().expect("a folder");
        let join = || {
            let (search, own) = (Some(folder.path().to_owned()), BTreeMap::new());
            Catalogue::open_spread(place.location.clone(), &own, search, ALL, Limits::default())
                .and_then(|it| it.tenant("t"))
                .expect("a tenant")
        };
        let second = join();
        check(&second, N_RECORDS);
        for tenant in [&first, &second] {
            assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
            check(tenant, N_RECORDS);
        }
        fill(&first, N_RECORDS, N_RECORDS + 51);
        write(&second, |txn| txn.delete(&ITEM, &(N_RECORDS + 50).to_string()).map(|_| ()));
        for tenant in [&first, &second] {
            check(tenant, N_RECORDS + 50);
            assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
            check(tenant, N_RECORDS + 50);
            assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
        }
        assert!(folder.path().join("t/item/meta.json").exists());
        // A server that was away continues from where its copy ends.
        drop(second);
        fill(&first, N_RECORDS + 50, N_RECORDS + 80);
        let second = join();
        check(&second, N_RECORDS + 80);
        assert!(second.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
        check(&second, N_RECORDS + 80);
    }
}

/// An index built under another primary may hold what this one has lost.
#[test]
fn a_copy_of_another_history_is_made_anew() {
    for place in engines() {
        if !matches!(place.location, Location::Postgres(_)) {
            continue;
        }
        let tenant = place.tenant(ALL);
        fill(&tenant, 0, N_RECORDS);
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
        drop(tenant);
        let meta = place.folder.path().join("search/t/item/meta.json");
        let text = std::fs::read_to_string(&meta).expect("the copy");
        let at = text.find("-00000").expect("a timeline");
        let other = format!("{}-0000FFFF{}", &text[..at], &text[at + 9..]);
        std::fs::write(&meta, other).expect("the copy");
        let tenant = place.tenant(ALL);
        check(&tenant, N_RECORDS);
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index is made");
        check(&tenant, N_RECORDS);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    }
}

/// A command that serves no requests completes the indexes before it ends: new, changed and deleted records.
#[test]
fn a_command_completes_the_indexes() {
    const N_LOADED: u64 = 3_000;
    for place in engines() {
        let tenant = place.tenant(ALL);
        fill(&tenant, 0, N_LOADED + 10);
        write(&tenant, |txn| {
            (N_LOADED..N_LOADED + 10).try_for_each(|n| txn.delete(&ITEM, &n.to_string()).map(|_| ()))?;
            (0..50).try_for_each(|n| {
                let body =
                    json!({"name": format!("beam w{n}"), "size": n, "free": {"depth": n % 7, "new": true}});
                txn.update(&ITEM, &n.to_string(), &body).map(|_| ())
            })
        });
        tenant.complete_indexes(&mut |_| {}).expect("complete");
        assert!(
            tenant.wait_for_indexes(Duration::ZERO).expect("an answer"),
            "{}: not complete",
            place.engine
        );
        check(&tenant, N_LOADED);
        let n_changed = read(&tenant, |view| view.count(&ITEM, &Expr::Is("free.new".into(), true.into())));
        assert_eq!(n_changed, 50);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    }
}

/// An index that another process maintains is left to it; searches find what it lacks.
#[test]
fn an_index_that_another_process_keeps_is_left_to_it() {
    let place = filled();
    let index = tantivy::Index::open_in_dir(index_folder(&place)).expect("the index");
    let keeper: tantivy::IndexWriter = index.writer(50 << 20).expect("its writer");
    let tenant = place.tenant(ALL);
    fill(&tenant, N_RECORDS, N_RECORDS + 60);
    let refused = tenant.complete_indexes(&mut |_| {});
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(it)) if it.contains("another process")),
        "{refused:?}"
    );
    check(&tenant, N_RECORDS + 60);
    drop(keeper);
    tenant.complete_indexes(&mut |_| {}).expect("complete");
    check(&tenant, N_RECORDS + 60);
}
