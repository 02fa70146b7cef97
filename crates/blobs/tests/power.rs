//! Power failures: an acknowledged file exists and is complete, and none exists partially, whichever unflushed data the
//! disk kept. Every flush of the process is recorded (`pinakes_test_support::power`).
//!
//! `PINAKES_POWER_CUTS` is the number of failures, `PINAKES_POWER_SEED` selects another series; both are printed on
//! failure.

use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pinakes_blobs::{Blob, Blobs, Settings};
use pinakes_test_support::power::{Dice, Flush, Moment, Recording, number};

pinakes_test_support::record_flushes!();

const N_WRITERS: usize = 3;
/// Larger files are written in several parts.
const PART_BYTES: usize = 3_000;
/// Number of failures in one run.
const CUTS_OF_LIFE: usize = 40;
/// One of this many moments around flushes is a failure.
const ONE_OF: usize = 6;
const TENANTS: [&str; 2] = ["library", "museum"];
/// Where files are written, and where they are copied to.
const PLACES: [&str; 2] = ["data", "elsewhere"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overlooked {
    Nothing,
    Files,
    Folders,
}

impl Overlooked {
    fn takes_in(self, flush: &Flush) -> bool {
        match self {
            Self::Nothing => false,
            Self::Files => !flush.is_folder,
            Self::Folders => flush.is_folder,
        }
    }
}

/// A file with its place and tenant.
type Written = (&'static str, &'static str, Blob);

fn open(root: &Path, place: &str) -> Blobs {
    let settings = Settings { part_bytes: PART_BYTES, ..Settings::default() };
    Blobs::open(&settings, &root.join(place)).unwrap()
}

/// Returns bytes that start with their length and do not repeat.
fn content(n_bytes: usize) -> Vec<u8> {
    let mut dice = Dice::new(n_bytes as u64);
    let mut bytes = (n_bytes as u64).to_be_bytes().to_vec();
    bytes.resize_with(8 + n_bytes, || u8::try_from(dice.below(256)).unwrap_or(0));
    bytes
}

fn is_whole(bytes: &[u8]) -> bool {
    let n_bytes = bytes.first_chunk().map(|it| u64::from_be_bytes(*it));
    n_bytes.is_some_and(|it| it < 1 << 20 && content(usize::try_from(it).unwrap()) == bytes)
}

/// Writes and copies files in a folder until the number of power failures is reached; returns for each failure what was
/// acknowledged by then.
fn moments(overlooked: Overlooked, dice: &mut Dice) -> Vec<(Vec<Written>, Moment)> {
    let root = tempfile::tempdir().unwrap();
    let written = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (now, seen_then) = (written.clone(), seen.clone());
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
    let [data, elsewhere] = PLACES.map(|it| open(root.path(), it));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..N_WRITERS {
            let (data, elsewhere, written, seen, is_over) = (&data, &elsewhere, &written, &seen, &is_over);
            scope.spawn(move || {
                let mut dice = Dice::new(writer as u64);
                while !is_over.load(Ordering::Relaxed) {
                    let tenant = TENANTS[dice.below(TENANTS.len())];
                    let bytes = content(dice.below(4 * PART_BYTES));
                    let blob = data.put_blocking(tenant, &bytes[..]).unwrap();
                    written.lock().unwrap().push((PLACES[0], tenant, blob.clone()));
                    if dice.below(4) == 0 {
                        data.block_on(data.copy(elsewhere, tenant, &blob)).unwrap();
                        written.lock().unwrap().push((PLACES[1], tenant, blob));
                    }
                    if CUTS_OF_LIFE <= seen.lock().unwrap().len() {
                        is_over.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let moments = recording.moments();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(seen.len(), moments.len());
    seen.into_iter().zip(moments).collect()
}

/// Collects incomplete files that have the name of a key.
fn halves(folder: &Path, out: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            halves(&path, out);
        } else if !entry.file_name().to_string_lossy().contains('#')
            && !is_whole(&std::fs::read(&path).unwrap())
        {
            out.push(format!("{} is half there", path.display()));
        }
    }
}

/// Returns what is wrong on a disk after a power failure.
fn faults(written: &[Written], moment: &Moment, dice: &mut Dice) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    moment.disk(root.path(), dice).unwrap();
    let mut faults = Vec::new();
    PLACES.iter().for_each(|it| halves(&root.path().join(it), &mut faults));
    let stores = PLACES.map(|it| open(root.path(), it));
    for (place, tenant, blob) in written {
        let blobs = &stores[usize::from(*place == PLACES[1])];
        let mut bytes = Vec::new();
        let read = blobs.reader(tenant, blob, None).map_err(std::io::Error::other);
        if let Err(error) = read.and_then(|mut it| it.read_to_end(&mut bytes)) {
            faults.push(format!("{place}, {tenant}: {error}"));
        }
    }
    faults
}

/// Returns the first fault in a series of disks.
fn first_fault(overlooked: Overlooked, n_cuts: usize) -> Option<String> {
    let seed = number("PINAKES_POWER_SEED", 20_261_125);
    let mut dice = Dice::new(seed);
    let mut n_written = 0;
    for life in 0..n_cuts.div_ceil(CUTS_OF_LIFE) {
        for (cut, (written, moment)) in moments(overlooked, &mut dice).iter().enumerate() {
            let faults = faults(written, moment, &mut dice);
            n_written += written.len();
            if !faults.is_empty() {
                return Some(format!("seed {seed}, life {life}, cut {cut}: {faults:?}"));
            }
        }
    }
    assert!(0 < n_written, "nothing was written before any cut");
    None
}

#[test]
fn a_file_that_was_acknowledged_survives_a_power_failure() {
    let n_cuts = usize::try_from(number("PINAKES_POWER_CUTS", 200)).unwrap();
    assert_eq!(first_fault(Overlooked::Nothing, n_cuts), None);
}

/// The test above would detect if a type of flush were omitted.
#[test]
fn without_flushes_of_one_sort_something_is_lost() {
    for overlooked in [Overlooked::Files, Overlooked::Folders] {
        assert!(first_fault(overlooked, 200).is_some(), "nobody misses the flushes of {overlooked:?}");
    }
}

/// Another process created the folders and was killed before it flushed them.
#[test]
fn folders_that_somebody_else_has_made_are_flushed() {
    let root = tempfile::tempdir().unwrap();
    let recording = Recording::begin(root.path(), |_| false, |_| false).unwrap();
    let data = open(root.path(), PLACES[0]);
    for n in 0..=255 {
        std::fs::create_dir_all(root.path().join(format!("data/blobs/library/{n:02x}"))).unwrap();
    }
    let blob = data.put_blocking("library", &content(100)[..]).unwrap();
    let ((), moment) = recording.fail(|| ()).unwrap();
    let mut dice = Dice::new(7);
    for _ in 0..20 {
        let faults = faults(&[(PLACES[0], "library", blob.clone())], &moment, &mut dice);
        assert!(faults.is_empty(), "{faults:?}");
    }
}
