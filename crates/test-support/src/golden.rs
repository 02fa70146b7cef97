//! Cases with their answers beside them: what is found must equal a file, which `BLESS=1` rewrites.

use std::fs;
use std::path::{Path, PathBuf};

/// Environment variable that makes tests write the files of expected answers. Read the diff before the commit.
pub const BLESS: &str = "BLESS";

/// Returns whether the files of expected answers are to be written.
pub fn is_blessing() -> bool {
    std::env::var_os(BLESS).is_some()
}

/// Compares a text with that of a file, or writes the file if tests are blessing.
///
/// Errors: the first line that differs; the file cannot be written.
pub fn compare(expected: &Path, found: &str) -> Result<(), String> {
    if is_blessing() {
        return fs::write(expected, found).map_err(|error| format!("{}: {error}", expected.display()));
    }
    let wanted = fs::read_to_string(expected).unwrap_or_default();
    match difference(&wanted, found) {
        None => Ok(()),
        Some(difference) => Err(format!("{}, {difference}", expected.display())),
    }
}

/// Describes the first line that differs; `None` if the texts are equal.
fn difference(wanted: &str, found: &str) -> Option<String> {
    if wanted == found {
        return None;
    }
    let differs = wanted.lines().zip(found.lines()).position(|(a, b)| a != b);
    let at = differs.unwrap_or_else(|| wanted.lines().count().min(found.lines().count()));
    let line = |text: &str| text.lines().nth(at).unwrap_or("the end").to_owned();
    Some(format!("line {}:\n  expected {}\n  found    {}", at + 1, line(wanted), line(found)))
}

/// Returns the files of an ending in a folder and below, in order.
///
/// # Panics
/// There are none: a moved folder would pass silently.
pub fn cases(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut cases = Vec::new();
    collect(folder, ending, &mut cases);
    assert!(!cases.is_empty(), "no case *.{ending} in {}", folder.display());
    cases.sort();
    cases
}

fn collect(folder: &Path, ending: &str, cases: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, ending, cases);
        } else if path.extension().is_some_and(|it| it == ending) {
            cases.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_told() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let told = |wanted, found| difference(wanted, found).unwrap_or_default();
        assert_eq!(told("a\nb\n", "a\nc\n"), "line 2:\n  expected b\n  found    c");
        assert_eq!(told("a\n", "a\nc\n"), "line 2:\n  expected the end\n  found    c");
        assert_eq!(told("a", "a\n"), "line 2:\n  expected the end\n  found    the end");
    }

    #[test]
    fn a_folder_without_cases_is_no_success() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert!(cases(&folder, "rs").iter().any(|it| it.ends_with("golden.rs")));
        assert!(std::panic::catch_unwind(|| cases(&folder, "http")).is_err());
    }
}
