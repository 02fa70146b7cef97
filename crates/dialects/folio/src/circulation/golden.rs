//! Data-driven tests: each `*.in` of a folder must give the `.out` beside it.
//!
//! `BLESS=1` rewrites the answers: read the diff before the commit.

use std::path::{Path, PathBuf};

/// Compares the result of `answer` for every input in `tests/data/circulation/<folder>` with the stored answer.
pub(super) fn check_all(folder: &str, answer: impl Fn(&str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/circulation").join(folder);
    let mut n_cases = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let input = entry.unwrap().path();
        if input.extension().is_some_and(|it| it == "in") {
            check(&input, &answer);
            n_cases += 1;
        }
    }
    assert!(0 < n_cases, "no cases in {}: a moved folder would pass silently", folder.display());
}

fn check(input: &PathBuf, answer: &impl Fn(&str) -> String) {
    let found = answer(&std::fs::read_to_string(input).unwrap());
    let kept = input.with_extension("out");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&kept, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&kept).unwrap_or_default();
    assert!(found == expected, "{}: expected\n{expected}\nfound\n{found}", input.display());
}
