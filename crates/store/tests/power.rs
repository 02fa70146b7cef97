//! Power failures: everything acknowledged is there, and nothing is torn, whatever the disk kept of the unflushed data.
//!
//! Writers, loads and backups run, the log is checkpointed and restarted, the store is closed and reopened. Every flush
//! of the process is recorded (`pinakes_test_support::power`), including the engine's own. The power fails at random
//! flushes; a disk as it may be found after the failure is opened.
//!
//! The same is done with a kind that is rebuilt after its declaration has changed: it is killed, and loses its power,
//! at every step.
//!
//! `PINAKES_POWER_CUTS` is the number of failures tried, `PINAKES_POWER_SEED` selects another series; both are printed
//! on failure.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pinakes_store::{
    Catalogue, Column, Document, Expr, Facet, Identifier, Index, Kind, Limits, Link, Location, StoreError,
    Tenant, Text, Txn, Type,
};
use pinakes_test_support::power::{Dice, Flush, Moment, Recording, number};
use serde_json::json;

pinakes_test_support::record_flushes!();

static THING: Kind = Kind {
    columns: &[Column::one("name", Type::Text), Column::many("tags", Type::Text)],
    indexes: &[Index::unique(&["name"])],
    facets: &[Facet::values("tags")],
    class_fields: &["group"],
    text: Text::AllStrings,
    ..Kind::named("thing")
};
static KINDS: &[&Kind] = &[&THING];

const TENANT: &str = "t";
/// Each has a range of numbers; the last one loads, the others write pairs.
const N_WRITERS: usize = 4;
const LOADER: usize = N_WRITERS - 1;
/// Records of a load.
const N_LOADED: usize = 40;
/// Number of failures per run.
const CUTS_OF_LIFE: usize = 20;
/// One in so many moments around a flush is a failure.
const ONE_OF: usize = 12;
/// Number of times that the store is opened in a run.
const N_OPENINGS: usize = 2;

/// Which flushes the simulated disk ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overlooked {
    Nothing,
    /// Those of the log.
    Log,
    /// Those of the file, which the engine requests after a checkpoint of the log.
    File,
    /// Those of directory entries.
    Folders,
    /// Those of backups.
    Backups,
}

impl Overlooked {
    fn takes_in(self, flush: &Flush) -> bool {
        let ends_with = |end: &str| flush.path.to_string_lossy().ends_with(end);
        let is_backup = flush.path.to_string_lossy().contains("/backups");
        match self {
            Self::Nothing => false,
            Self::Log => !is_backup && ends_with("-wal"),
            Self::File => !is_backup && ends_with(".sqlite"),
            Self::Folders => flush.is_folder && !is_backup,
            Self::Backups => is_backup,
        }
    }
}

/// A write, of this writer and number.
type Write = (usize, usize);

fn id((writer, n): Write, part: usize) -> String {
    format!("{writer}-{n}-{part}")
}

/// Returns how many records a write consists of.
fn n_parts((writer, _): Write) -> usize {
    if writer == LOADER { N_LOADED } else { 2 }
}

fn body(write: Write, part: usize) -> serde_json::Value {
    let (id, n) = (id(write, part), write.1);
    json!({"name": id, "tags": [n % 7, part], "group": n % 3, "text": "x".repeat(n * 37 % 900)})
}

/// What was acknowledged.
#[derive(Debug, Clone, Default)]
struct Acknowledged {
    /// Whether the tenant exists.
    tenant: bool,
    writes: BTreeSet<Write>,
    /// Backups by number, with what was acknowledged before each began.
    backups: Vec<(usize, BTreeSet<Write>)>,
}

fn open(data: &Path) -> Result<Catalogue, StoreError> {
    // A small log is checkpointed and restarted often.
    let limits = Limits { log_bytes: 32 << 10, index_pause_ms: 20, ..Limits::default() };
    Catalogue::open(Location::Folder(data.to_owned()), KINDS, limits)
}

fn write(tenant: &Tenant, write: Write) {
    let insert = move |txn: &mut Txn<'_>| {
        (0..n_parts(write))
            .try_for_each(|part| txn.insert(&THING, &id(write, part), &body(write, part)).map(drop))
    };
    tenant.write_blocking(insert).unwrap();
}

/// A load is answered before it is on disk; the write after it is not.
fn load(tenant: &Tenant, load: Write) {
    let documents: Vec<Document> = (1..n_parts(load))
        .map(|part| Document::new(&THING, id(load, part), &body(load, part)).unwrap())
        .collect();
    let documents = Arc::new(documents);
    tenant
        .load_blocking(move |txn| documents.iter().try_for_each(|it| txn.insert_document(it).map(drop)))
        .unwrap();
    tenant.write_blocking(move |txn| txn.insert(&THING, &id(load, 0), &body(load, 0))).unwrap();
}

/// Runs a store in a folder until the power has failed so often; returns what was acknowledged at each failure.
fn moments(overlooked: Overlooked, dice: &mut Dice) -> Vec<(Acknowledged, Moment)> {
    let root = tempfile::tempdir().unwrap();
    let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (now, seen_then) = (acknowledged.clone(), seen.clone());
    let mut own_dice = Dice::new(dice.below(usize::MAX) as u64);
    let fails_at = move |_: &Flush| {
        let mut seen = seen_then.lock().unwrap();
        let fails = seen.len() < CUTS_OF_LIFE && own_dice.below(ONE_OF) == 0;
        if fails {
            seen.push(now.lock().unwrap().clone());
        }
        fails
    };
    let recording = Recording::begin(root.path(), move |it| overlooked.takes_in(it), fails_at).unwrap();
    let data = root.path().join("data");
    fs::create_dir(root.path().join("backups")).unwrap();
    fs::File::open(root.path()).unwrap().sync_all().unwrap();
    let mut first = [0; N_WRITERS];
    for opening in 1..=N_OPENINGS {
        let catalogue = open(&data).unwrap();
        let tenant = catalogue.tenant_or_new(TENANT).unwrap();
        acknowledged.lock().unwrap().tenant = true;
        let is_over = AtomicBool::new(false);
        let enough = CUTS_OF_LIFE * opening / N_OPENINGS;
        std::thread::scope(|scope| {
            for (writer, first) in first.iter_mut().enumerate() {
                let (tenant, acknowledged, is_over) = (&tenant, &acknowledged, &is_over);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let next = (writer, *first);
                        *first += 1;
                        if writer == LOADER {
                            load(tenant, next)
                        } else {
                            write(tenant, next)
                        }
                        acknowledged.lock().unwrap().writes.insert(next);
                    }
                });
            }
            let mut n_backups = opening * 1000;
            while seen.lock().unwrap().len() < enough {
                n_backups += 1;
                let before = acknowledged.lock().unwrap().writes.clone();
                tenant.backup(&root.path().join(format!("backups/{n_backups}.sqlite"))).unwrap();
                acknowledged.lock().unwrap().backups.push((n_backups, before));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        drop(tenant);
        catalogue.close();
    }
    let moments = recording.moments();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(seen.len(), moments.len());
    seen.into_iter().zip(moments).collect()
}

/// Returns the faults of a tenant that must contain these writes.
fn faults_of(data: &Path, must: &BTreeSet<Write>) -> Vec<String> {
    let opened = open(data).and_then(|it| it.tenant(TENANT));
    let tenant = match opened {
        Ok(tenant) => tenant,
        Err(error) => return vec![format!("it does not open: {error}")],
    };
    let mut faults = tenant.check().unwrap_or_else(|error| vec![error.to_string()]);
    let looked = tenant.read_blocking(|view| {
        let mut has = |write: Write, part: usize| view.has(&THING, &id(write, part));
        for write in must {
            for part in 0..n_parts(*write) {
                if !has(*write, part)? {
                    faults.push(format!("{write:?} was acknowledged and is lost"));
                    break;
                }
            }
        }
        for writer in (0..N_WRITERS).filter(|it| *it != LOADER) {
            let next = must.range((writer, 0)..(writer + 1, 0)).next_back().map_or(0, |it| it.1 + 1);
            for n in next..next + 3 {
                if has((writer, n), 0)? != has((writer, n), 1)? {
                    faults.push(format!("{:?} is half there", (writer, n)));
                }
            }
        }
        Ok::<_, StoreError>(())
    });
    faults.extend(looked.err().map(|error| error.to_string()));
    faults
}

/// Returns the faults of a disk after a power failure.
fn faults(acknowledged: &Acknowledged, moment: &Moment, dice: &mut Dice) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    moment.disk(root.path(), dice).unwrap();
    let data = root.path().join("data");
    let is_there = data.join(format!("tenants/{TENANT}.sqlite")).exists();
    let mut faults = match (acknowledged.tenant, is_there) {
        (true, false) => vec!["the tenant is lost".to_owned()],
        (false, false) => Vec::new(),
        (_, true) => faults_of(&data, &acknowledged.writes),
    };
    // Checking the last one is enough.
    for (n, must) in acknowledged.backups.iter().rev().take(1) {
        let copy = root.path().join("copy");
        fs::create_dir_all(copy.join("tenants")).unwrap();
        let to = copy.join(format!("tenants/{TENANT}.sqlite"));
        match fs::copy(root.path().join(format!("backups/{n}.sqlite")), to) {
            Ok(_) => faults.extend(faults_of(&copy, must).into_iter().map(|it| format!("backup {n}: {it}"))),
            Err(error) => faults.push(format!("backup {n}: {error}")),
        }
    }
    faults
}

/// Returns the first fault found in a series of failures.
fn first_fault(overlooked: Overlooked, n_cuts: usize) -> Option<String> {
    let seed = number("PINAKES_POWER_SEED", 20_261_122);
    let mut dice = Dice::new(seed);
    let (mut n_writes, mut n_backups) = (0, 0);
    for life in 0..n_cuts.div_ceil(CUTS_OF_LIFE) {
        for (cut, (acknowledged, moment)) in moments(overlooked, &mut dice).iter().enumerate() {
            let faults = faults(acknowledged, moment, &mut dice);
            n_writes += acknowledged.writes.len();
            n_backups += acknowledged.backups.len();
            if !faults.is_empty() {
                return Some(format!("seed {seed}, life {life}, cut {cut}: {faults:?}"));
            }
        }
    }
    assert!(0 < n_writes && 0 < n_backups, "nothing was acknowledged before any cut");
    None
}

#[test]
fn what_was_acknowledged_survives_a_power_failure() {
    let n_cuts = usize::try_from(number("PINAKES_POWER_CUTS", 120)).unwrap();
    assert_eq!(first_fault(Overlooked::Nothing, n_cuts), None);
}

/// Shows that the test above would notice if any sort of flush were forgotten.
#[test]
fn without_flushes_of_one_sort_something_is_lost() {
    for overlooked in [Overlooked::Log, Overlooked::File, Overlooked::Folders, Overlooked::Backups] {
        assert!(first_fault(overlooked, 400).is_some(), "nobody misses the flushes of {overlooked:?}");
    }
}

/// A kind before and after a change of its declaration.
static BEFORE: Kind = Kind {
    columns: &[Column::one("name", Type::Text), Column::many("tags", Type::Text)],
    indexes: &[Index::on(&["name"])],
    facets: &[Facet::values("name")],
    class_fields: &["group"],
    members: Some("files"),
    ..Kind::named("thing")
};
static AFTER: Kind = Kind {
    columns: &[Column::one("size", Type::Integer), Column::many("tags", Type::Text)],
    indexes: &[Index::unique(&["size"])],
    facets: &[Facet::values("tags")],
    class_fields: &["group", "owner"],
    identifiers: &[Identifier { scheme: "doi", path: "doi" }],
    links: &[Link { relation: "of", path: "of", to: "thing" }],
    members: Some("files"),
    ..Kind::named("thing")
};
static ALL_BEFORE: &[&Kind] = &[&BEFORE];
static ALL_AFTER: &[&Kind] = &[&AFTER];

/// Most records of a step.
const STEP_RECORDS: usize = 500;
/// Several steps, and a rest.
const N_REMADE: usize = 3_100;
/// Further steps: one each that removes counts, identifiers and links, and one that builds the index.
const OTHER_STEPS: usize = 4;

fn open_as(data: &Path, kinds: &'static [&'static Kind]) -> Result<(Catalogue, Tenant), StoreError> {
    let catalogue = Catalogue::open(Location::Folder(data.to_owned()), kinds, Limits::default())?;
    let tenant = catalogue.tenant_or_new(TENANT)?;
    Ok((catalogue, tenant))
}

/// Returns what the file says about the kind, as read by the given program.
fn said(data: &Path, kinds: &'static [&'static Kind]) -> Result<Vec<String>, StoreError> {
    let (_catalogue, tenant) = open_as(data, kinds)?;
    let mut said = tenant.check()?;
    let (kind, facet) = (kinds[0], kinds[0].facets[0].name);
    tenant.read_blocking(|view| {
        said.push(format!("{} records", view.count(kind, &Expr::All)?));
        said.push(format!("{:?}", view.facets(kind, &Expr::All, &[facet])?));
        for (field, value) in [("tags", "t2".into()), ("size", 7_i64.into()), ("owner", 3_i64.into())] {
            said.push(format!("{field}: {}", view.count(kind, &Expr::Is(field.into(), value))?));
        }
        said.push(format!("{:?}", view.by_identifier("doi", "10.1/9")?));
        said.push(format!("{} links", view.links_to(kind, "0", "of", ("", ""), 9_999)?.len()));
        said.push(format!("{:?}", view.get(kind, "9")?.map(|it| (it.version, it.sequence, it.n_members))));
        Ok::<_, StoreError>(())
    })?;
    Ok(said)
}

#[test]
fn a_kind_is_made_anew_whatever_cuts_it_off() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let (catalogue, tenant) = open_as(&data, ALL_BEFORE).unwrap();
    let fill = |txn: &mut Txn<'_>| {
        (0..N_REMADE).try_for_each(|n| {
            let body = json!({
                "name": format!("beam {}", n % 7), "size": n, "tags": ["a", format!("t{}", n % 3)], "group": n % 2,
                "owner": n % 4, "doi": format!("10.1/{n}"), "of": "0"
            });
            txn.insert(&BEFORE, &n.to_string(), &body).map(drop)
        })
    };
    tenant.write_blocking(fill).unwrap();
    drop(tenant);
    catalogue.close();
    let copy = |name: &str| {
        let to = root.path().join(name);
        fs::create_dir_all(to.join("tenants")).unwrap();
        let file = format!("tenants/{TENANT}.sqlite");
        fs::copy(data.join(&file), to.join(&file)).unwrap();
        to
    };
    let before = said(&copy("before"), ALL_BEFORE).unwrap();
    let after = said(&copy("after"), ALL_AFTER).unwrap();
    assert_ne!(before, after);

    let is_of_file = |flush: &Flush| flush.path.to_string_lossy().ends_with(".sqlite-wal");
    let recording = Recording::begin(&data, |_| false, is_of_file).unwrap();
    assert_eq!(said(&data, ALL_AFTER).unwrap(), after);
    let moments = recording.moments();
    drop(recording);
    // Before and after the flush of each step.
    let n_steps = N_REMADE.div_ceil(STEP_RECORDS) + OTHER_STEPS;
    assert!(2 * n_steps <= moments.len(), "{} moments of {n_steps} steps", moments.len());
    let mut dice = Dice::new(number("PINAKES_POWER_SEED", 20_261_125));
    for (n, moment) in moments.iter().enumerate() {
        for is_killed in [true, false] {
            let disk = root.path().join(format!("{n} {is_killed}"));
            if is_killed { moment.left(&disk) } else { moment.disk(&disk, &mut dice) }.unwrap();
            // A program of the previous version finds its own state, before or after this version has continued the
            // rebuild.
            if n % 3 == 0 {
                assert_eq!(said(&disk, ALL_BEFORE).unwrap(), before, "moment {n}, killed: {is_killed}");
            }
            assert_eq!(said(&disk, ALL_AFTER).unwrap(), after, "moment {n}, killed: {is_killed}");
            fs::remove_dir_all(&disk).unwrap();
        }
    }
}
