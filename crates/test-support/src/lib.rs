//! What tests of several crates share: where the collection of real records is, fuzz targets within `cargo test` ([`fuzzing`]),
//! power failures ([`power`]), and a clock that is set ([`clock`]).
//!
//! Most tests bring their data along. Some read a collection of real records that is too large, or not ours, to be kept
//! here. Where it is missing such a test checks nothing, and that is counted: `.ci/run` prints how many there were.

pub mod clock;
pub mod fuzzing;
pub mod power;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Names the folder of the collection.
pub const VARIABLE: &str = "PINAKES_TEST_DATA";
/// Names a file that gets a line for each test that missed the collection.
pub const MISSED: &str = "PINAKES_TEST_MISSED";

/// A folder of the collection, e.g. `marc`: below `PINAKES_TEST_DATA`, else below `../shared/data` beside the
/// repository. `None` when the collection is not there: the test has nothing to check and returns.
///
/// # Panics
/// `PINAKES_TEST_DATA` is set and the folder is not below it: whoever names a collection wants it read.
#[track_caller]
pub fn collection(part: &str) -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = named.clone().unwrap_or_else(beside).join(part);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(named.is_none(), "{VARIABLE} is set, and there is no folder {}", folder.display());
    miss(part);
    None
}

#[track_caller]
fn miss(part: &str) {
    let place = std::panic::Location::caller();
    let line =
        format!("{}:{}: no collection of records ({part}); {VARIABLE} names one", place.file(), place.line());
    if let Some(list) = std::env::var_os(MISSED) {
        let written = OpenOptions::new().create(true).append(true).open(list);
        // One call, so that lines of tests in parallel do not mix.
        let written = written.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        assert!(written.is_ok(), "{MISSED} cannot be written: {written:?}");
    }
    eprintln!("{line}");
}
