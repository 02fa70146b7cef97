//! Cases as data: every `tests/data/<area>/*.in` must give the `.out` beside it.
//! `BLESS=1 cargo test` rewrites the answers: read the diff before the commit.

use std::fs;
use std::path::Path;

/// Compares `answer` of every case of an area with its recorded answer.
pub(crate) fn check_area(area: &str, answer: impl Fn(&str, &[u8]) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(area);
    let mut n_cases = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let case = entry.unwrap().path();
        if case.extension().is_some_and(|it| it == "in") {
            let name = case.file_stem().unwrap().to_str().unwrap().to_owned();
            check(&case.with_extension("out"), &answer(&name, &fs::read(&case).unwrap()));
            n_cases += 1;
        }
    }
    assert!(0 < n_cases, "no cases found: a moved folder would pass silently");
}

fn check(expected: &Path, found: &str) {
    if std::env::var_os("BLESS").is_some() {
        return fs::write(expected, found).unwrap();
    }
    let recorded = fs::read_to_string(expected).unwrap_or_default();
    assert_eq!(found, recorded, "{}", expected.display());
}
