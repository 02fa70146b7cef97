//! Files written by other programs, as NcML: the description of `tests/files/X` must equal
//! `tests/files/X.xml`.

use std::path::Path;

use pinakes_arrays::ncml::BoundingBox;
use pinakes_arrays::{ArrayError, Limits, Source, ncml};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files")
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

/// Compares with the file beside it; if `BLESS` is set, writes that file.
fn check(name: &str) -> Option<BoundingBox> {
    let described = ncml::describe(&Source::of(bytes(name)), name, &Limits::default()).unwrap();
    let expected = folder().join(format!("{name}.xml"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&expected, &described.xml).unwrap();
    }
    assert_eq!(described.xml, std::fs::read_to_string(&expected).unwrap(), "{name}");
    described.bounds
}

#[test]
fn netcdf_4() {
    let expected = BoundingBox { west: -16.320_007, east: -6.220_001, north: 49.62, south: 41.8 };
    assert_eq!(check("ocean.nc"), Some(expected));
}

#[test]
fn netcdf_classic() {
    assert_eq!(check("classic.nc"), None);
}

#[test]
fn hdf5() {
    assert_eq!(check("scan.h5"), None);
}

#[test]
fn groups_in_a_circle_are_refused() {
    let circle = ncml::describe(&Source::of(bytes("circle.h5")), "circle.h5", &Limits::default());
    let error = circle.unwrap_err().to_string();
    assert!(error.contains("one within itself: at most 32"), "{error}");
}

#[test]
fn a_file_cut_anywhere_is_described_or_refused() {
    for name in ["ocean.nc", "classic.nc", "scan.h5"] {
        let whole = bytes(name);
        let mut n_refused = 0;
        for end in (0..whole.len()).step_by(97) {
            let cut = Source::of(whole[..end].to_vec());
            n_refused += usize::from(ncml::describe(&cut, name, &Limits::default()).is_err());
        }
        assert!(0 < n_refused, "{name}");
    }
}

/// A layout whose sizes multiply to an overflow, found by the fuzz target.
#[test]
fn impossible_sizes_are_refused() {
    let file = Source::of(bytes("huge.h5"));
    assert!(ncml::describe(&file, "huge.h5", &Limits::default()).is_err());
}

#[test]
fn no_more_is_read_than_is_allowed() {
    let source = Source::of(bytes("ocean.nc"));
    let few = Limits { reads: 0, ..Limits::default() };
    assert!(
        ncml::describe(&source, "x", &few).unwrap_err().to_string().contains("parts of the file: at most 0")
    );
    let short = Limits { xml_bytes: 300, ..Limits::default() };
    let expected = ArrayError::TooLarge { what: "bytes of NcML", most: 300 };
    assert_eq!(ncml::describe(&source, "x", &short), Err(expected));
}
