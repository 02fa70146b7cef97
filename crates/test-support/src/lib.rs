//! Shared support for the tests of several crates: cases with their answers beside them ([`golden`]), exchanges of
//! requests and answers ([`exchange`]), the location of the collection of real records, fuzz targets within `cargo test`
//! ([`fuzzing`]), power failures ([`power`]), and a clock that can be set ([`clock`]).
//!
//! Most tests contain their own data. Some read a collection of real records that is too large, or not ours, to be kept
//! here. If it is missing, such a test checks nothing, which is counted: `.ci/run` prints how many there were.

pub mod clock;
pub mod exchange;
pub mod fuzzing;
pub mod golden;
pub mod power;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Environment variable with the folder of the collection.
pub const VARIABLE: &str = "PINAKES_TEST_DATA";
/// Environment variable with a file that gets a line for each test that did not find the collection.
pub const MISSED: &str = "PINAKES_TEST_MISSED";

/// Returns a folder of the collection, e.g. `marc`: below `PINAKES_TEST_DATA`, else below `../shared/data` next to the
/// repository. `None` if there is no collection: the test has nothing to check and returns.
///
/// # Panics
/// `PINAKES_TEST_DATA` is set but does not contain the folder: a collection that is named must be used.
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
        // One call, so that lines of concurrent tests do not mix.
        let written = written.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        assert!(written.is_ok(), "{MISSED} cannot be written: {written:?}");
    }
    eprintln!("{line}");
}
