//! Checks that every fuzz target of the repository also runs in the tests of its crate.

use std::fs;
use std::path::{Path, PathBuf};

fn below(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("data") {
            below(&path, out);
        } else if path.extension().is_some_and(|it| it == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn every_fuzz_target_is_run_by_a_test() {
    let mut sources = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut sources);
    let (targets, others): (Vec<_>, Vec<_>) =
        sources.into_iter().partition(|it| it.parent().is_some_and(|it| it.ends_with("fuzz_targets")));
    assert!(32 <= targets.len(), "{} targets found: a moved folder would pass silently", targets.len());
    let is_run = |target: &PathBuf| {
        let krate = target.ancestors().nth(3).expect("CRATE/fuzz/fuzz_targets/NAME.rs");
        let name = target.file_stem().expect("a name").to_string_lossy();
        let (path, call) = (format!("/fuzz/fuzz_targets/{name}.rs\"]"), format!("{name}::survives("));
        others.iter().filter(|it| it.starts_with(krate)).any(|it| {
            let text = fs::read_to_string(it).unwrap_or_default();
            text.contains(&path) && text.contains(&call)
        })
    };
    let missing: Vec<_> = targets.iter().filter(|it| !is_run(it)).collect();
    assert!(
        missing.is_empty(),
        "no test of its crate runs {missing:?}: add it to tests/fuzz.rs or src/fuzzing/tests.rs"
    );
}
