//! Power failures: what was acknowledged is there, and nothing is torn, whatever the disk kept of what was not flushed.
//!
//! A disk is taken for sectors. Those of the log as they were when a flush began are kept once it has ended; of what was
//! written since, any sectors are kept, and the file ends anywhere. Writers run, the power fails at random moments, and the
//! disk as it may be then is opened. A reader that began first keeps the engine from beginning the log anew, so that only
//! our own flushes decide what is kept; when the log is written back, the order of that is the engine's.
//!
//! `PINAKES_POWER_CUTS` is how many moments are tried, `PINAKES_POWER_SEED` begins another series; both are told on failure.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;

use super::flush::Flusher;
use super::{Sqlite, create};
use crate::budget::Budget;
use crate::classes::Classes;
use crate::session::Flavour;
use crate::statements::Statements;
use crate::tenant::{Engine, Inner};
use crate::view::Shared;
use crate::{Column, Facet, Index, Kind, Limits, StoreError, Tenant, Text, Type};

static THING: Kind = Kind {
    columns: &[Column::one("name", Type::Text), Column::many("tags", Type::Text)],
    indexes: &[Index::unique(&["name"])],
    facets: &[Facet::values("tags")],
    class_fields: &["group"],
    text: Text::AllStrings,
    ..Kind::named("thing")
};
static KINDS: &[&Kind] = &[&THING];

/// Smallest part of a disk that is written whole, in bytes.
const SECTOR_BYTES: usize = 512;
const N_WRITERS: usize = 4;
/// Moments tried in one run of the writers.
const CUTS_OF_RUN: usize = 20;

/// Whether the flusher does its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flushes {
    Done,
    /// The call that has the log on disk is left out.
    LeftOut,
}

/// A small generator of numbers that look random (xorshift).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        // Seeds that are near each other begin far from each other.
        Self((seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() >> 11).unwrap_or(0) % n.max(1)
    }
}

fn tenant(path: &Path, flushes: Flushes, kept: &Arc<Mutex<Vec<u8>>>) -> Result<Tenant, StoreError> {
    let shared = Arc::new(Shared {
        kinds: KINDS,
        statements: Statements::of(Flavour::Sqlite, KINDS),
        classes: Classes::new(),
        side: None,
        indexes: std::sync::OnceLock::new(),
        limits: Limits { log_bytes: 1 << 40, ..Limits::default() },
        budget: Budget::new(1 << 30),
    });
    let kept = kept.clone();
    let engine = Sqlite::open_with(path, shared, move |path, queue, statistics| {
        let log = format!("{}-wal", path.display());
        let failed = |source| StoreError::Io { path: log.clone(), source };
        // What the opening wrote was flushed by the engine.
        *kept.lock().unwrap() = fs::read(&log).map_err(failed)?;
        let file = fs::File::options().write(true).open(&log).map_err(failed)?;
        let sync = move || -> io::Result<()> {
            let written = fs::read(&log)?;
            if flushes == Flushes::Done {
                file.sync_data()?;
                *kept.lock().unwrap() = written;
            }
            Ok(())
        };
        Ok(Flusher::with(sync, queue, statistics))
    })?;
    let places = || Arc::new(Semaphore::new(4));
    Ok(Tenant(Arc::new(Inner {
        name: "t".into(),
        engine: Engine::Sqlite(engine),
        scans: places(),
        points: places(),
        parking: places(),
        read_timeout_ms: 60_000,
    })))
}

/// A write is a pair of records, of this writer and number.
type Pair = (usize, usize);

fn id((writer, n): Pair, half: char) -> String {
    format!("{writer}-{n}-{half}")
}

/// The disk at a moment: what was acknowledged before, what is kept for sure, and what was written.
struct Moment {
    acknowledged: BTreeSet<Pair>,
    file: Vec<u8>,
    kept: Vec<u8>,
    written: Vec<u8>,
}

/// Lets writers run and looks at the disk at random moments.
fn moments(flushes: Flushes, n_cuts: usize, dice: &mut Dice) -> Vec<Moment> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.sqlite");
    create(&path).unwrap();
    let kept = Arc::default();
    let tenant = tenant(&path, flushes, &kept).unwrap();
    let pin = rusqlite::Connection::open(&path).unwrap();
    pin.execute_batch("BEGIN; SELECT * FROM meta").unwrap();
    let (acknowledged, is_over) = (Mutex::new(BTreeSet::new()), AtomicBool::new(false));
    let mut moments = Vec::new();
    std::thread::scope(|scope| {
        for writer in 0..N_WRITERS {
            let (tenant, acknowledged, is_over) = (&tenant, &acknowledged, &is_over);
            scope.spawn(move || {
                for n in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let write = move |txn: &mut crate::Txn<'_>| {
                        for half in ['a', 'b'] {
                            let id = id((writer, n), half);
                            let body = json!({"name": id, "tags": [n % 7, half], "group": n % 3, "text": "x".repeat(n % 900)});
                            txn.insert(&THING, &id, &body)?;
                        }
                        Ok::<_, StoreError>(())
                    };
                    tenant.write_blocking(write).unwrap();
                    acknowledged.lock().unwrap().insert((writer, n));
                }
            });
        }
        for _ in 0..n_cuts {
            std::thread::sleep(Duration::from_micros(200 + dice.roll() % 8_000));
            let acknowledged = acknowledged.lock().unwrap().clone();
            let kept = kept.lock().unwrap().clone();
            let log = format!("{}-wal", path.display());
            moments.push(Moment {
                acknowledged,
                file: fs::read(&path).unwrap(),
                kept,
                written: fs::read(log).unwrap(),
            });
        }
        is_over.store(true, Ordering::Relaxed);
    });
    drop(pin);
    moments
}

/// The log as it may be found: sectors that were flushed, and of the others those that the dice choose.
pub(super) fn found(kept: &[u8], written: &[u8], dice: &mut Dice) -> Vec<u8> {
    let n_more = written.len().saturating_sub(kept.len());
    let mut log = kept.to_vec();
    log.resize(kept.len() + dice.below(n_more + 1), 0);
    // Of ten sectors so many are kept: mostly none, mostly all, or some.
    let n_of_ten = dice.below(11);
    for at in (0..log.len().min(written.len())).step_by(SECTOR_BYTES) {
        if dice.below(10) < n_of_ten {
            let end = (at + SECTOR_BYTES).min(log.len()).min(written.len());
            log[at..end].copy_from_slice(&written[at..end]);
        }
    }
    log
}

/// What is wrong on a disk after a power failure.
fn faults(moment: &Moment, log: &[u8]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.sqlite");
    fs::write(&path, &moment.file).unwrap();
    fs::write(format!("{}-wal", path.display()), log).unwrap();
    let tenant = match tenant(&path, Flushes::Done, &Arc::default()) {
        Ok(tenant) => tenant,
        Err(error) => return vec![format!("it does not open: {error}")],
    };
    let mut faults = tenant.check().unwrap_or_else(|error| vec![error.to_string()]);
    let looked = tenant.read_blocking(|view| {
        for pair in &moment.acknowledged {
            if !view.has(&THING, &id(*pair, 'a'))? || !view.has(&THING, &id(*pair, 'b'))? {
                faults.push(format!("{pair:?} was acknowledged and is lost"));
            }
        }
        for writer in 0..N_WRITERS {
            let next = moment.acknowledged.range((writer, 0)..(writer + 1, 0)).count();
            for n in next..next + 3 {
                if view.has(&THING, &id((writer, n), 'a'))? != view.has(&THING, &id((writer, n), 'b'))? {
                    faults.push(format!("{:?} is half there", (writer, n)));
                }
            }
        }
        Ok::<_, StoreError>(())
    });
    faults.extend(looked.err().map(|error| error.to_string()));
    faults
}

pub(super) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |it| it.parse().expect(name))
}

/// The first disk of a series that is not as it should be.
fn first_fault(flushes: Flushes, n_cuts: usize) -> Option<String> {
    let seed = number("PINAKES_POWER_SEED", 20_261_122);
    let mut dice = Dice(seed | 1);
    let mut n_acknowledged = 0;
    for run in 0..n_cuts.div_ceil(CUTS_OF_RUN) {
        for (cut, moment) in moments(flushes, CUTS_OF_RUN, &mut dice).iter().enumerate() {
            let faults = faults(moment, &found(&moment.kept, &moment.written, &mut dice));
            n_acknowledged += moment.acknowledged.len();
            if !faults.is_empty() {
                return Some(format!("seed {seed}, run {run}, cut {cut}: {faults:?}"));
            }
        }
    }
    assert!(0 < n_acknowledged, "nothing was written before any cut");
    None
}

#[test]
fn what_was_acknowledged_survives_a_power_failure() {
    let n_cuts = usize::try_from(number("PINAKES_POWER_CUTS", 200)).unwrap();
    assert_eq!(first_fault(Flushes::Done, n_cuts), None);
}

/// The test above would notice.
#[test]
fn without_the_flush_something_is_lost() {
    let fault = first_fault(Flushes::LeftOut, 200).expect("a loss");
    assert!(fault.contains("lost"), "{fault}");
}

/// After a flush that failed nothing is written: not by writers, the text index, the keeper of the log, or on closing.
#[test]
fn a_flush_that_failed_ends_all_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.sqlite");
    create(&path).unwrap();
    let tenant = tenant(&path, Flushes::Done, &Arc::default()).unwrap();
    let write = |n: usize| {
        tenant.write_blocking(move |txn| txn.insert(&THING, &n.to_string(), &json!({"name": n.to_string()})))
    };
    write(1).unwrap();
    let Engine::Sqlite(engine) = &tenant.0.engine else { panic!("no file") };
    engine.queue.flushed(0, Some("the disk is gone"));
    assert_eq!(tenant.failure().as_deref(), Some("the disk is gone"));
    let held = engine.queue.hold();
    let log = format!("{}-wal", path.display());
    let before = (fs::read(&path).unwrap(), fs::read(&log).unwrap());
    drop(held);
    for n in 2..5 {
        let refused = write(n).unwrap_err();
        assert!(matches!(&refused, StoreError::Halted(it) if it == "the disk is gone"), "{refused}");
    }
    // Reads go on; those that need the text index to follow do not.
    assert!(tenant.read_blocking(|view| view.has(&THING, "1")).unwrap());
    drop(tenant);
    assert_eq!((fs::read(&path).unwrap(), fs::read(&log).unwrap()), before);
}
