//! `pinakes marc` as a person calls it: output, errors and exit codes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pinakes_test_support::collection;

/// Records of the formats crate's tests.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/marc/tests/data").join(name)
}

fn marc(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pinakes"))
        .arg("marc")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const TEXT: &[u8] = b"=LDR  00000nam a2200000   4500\n=001  1\n=245  10$aOne\n\n\
                      =LDR  00000nam a2200000   4500\n=001  2\n=245  10$aCaf\xC3\xA9\n\n";

#[test]
fn cat_prints_text() {
    let output = marc(&["cat", "--limit", "1", data("iso2709/good.in").to_str().unwrap()], b"");
    assert_eq!(
        stdout(&output),
        "=LDR  00106nam a2200061   4500\n=001  ocm01\n=245  10$aA title /$cAnn Example.\n=650  \\0$aCats.\n\n"
    );
    assert!(output.status.success());
}

#[test]
fn converts_from_standard_input_through_all_formats() {
    let mut bytes = TEXT.to_vec();
    for format in ["json", "xml", "mrc", "xml", "mrc", "json", "text"] {
        let output = marc(&["convert", "--to", format, "-"], &bytes);
        assert!(output.status.success(), "{format}: {}", stderr(&output));
        bytes = output.stdout;
    }
    let lengths_aside = String::from_utf8(bytes).unwrap().replace("00060nam a2200049", "00000nam a2200000");
    assert_eq!(lengths_aside.replace("00062nam a2200049", "00000nam a2200000").as_bytes(), TEXT);
}

#[test]
fn converts_to_and_from_marc8() {
    let output = marc(&["convert", "--to", "mrc", "--to-marc8", "-"], TEXT);
    assert!(output.stdout.windows(5).any(|it| it == b"Caf\xE2e"));
    let back = marc(&["cat", "-"], &output.stdout);
    assert!(stdout(&back).contains("Café"), "{}", stderr(&back));
}

#[test]
fn writes_the_format_that_the_file_name_tells() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.xml");
    let output = marc(&["convert", "-", "--output", path.to_str().unwrap()], TEXT);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("<?xml"));
    let again = marc(&["convert", path.to_str().unwrap(), "--output", path.to_str().unwrap()], b"");
    assert!(stderr(&again).contains("is an input file"), "{}", stderr(&again));
    assert_eq!(again.status.code(), Some(1));
}

#[test]
fn counts_records_losses_and_what_cannot_be_read() {
    let good = data("iso2709/good.in");
    let bad = data("json/faults.in");
    let output = marc(&["count", good.to_str().unwrap(), bad.to_str().unwrap()], b"");
    let rows: Vec<Vec<String>> = stdout(&output)
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().take(3).map(str::to_owned).collect())
        .collect();
    assert_eq!(rows, [["2", "0", "0"], ["11", "0", "8"], ["13", "0", "8"]]);
    assert!(output.status.success());
}

#[test]
fn validate_lists_problems_and_fails() {
    let path = data("iso2709/cut-off.in");
    let output = marc(&["validate", path.to_str().unwrap()], b"");
    let first = format!(
        "{}: record 2 (byte 106): the input ends inside the record, 90 bytes after its start; \
         is the file cut off? [warning]",
        path.display()
    );
    assert_eq!(stdout(&output).lines().next(), Some(first.as_str()));
    assert!(stderr(&output).contains("4 problems, 1 records with problems"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
    let good = marc(&["validate", data("iso2709/good.in").to_str().unwrap()], b"");
    assert_eq!((good.status.code(), stdout(&good)), (Some(0), String::new()));
}

#[test]
fn names_files_that_are_no_records() {
    let check = |input: &[u8], words: &str| {
        let output = marc(&["count", "-"], input);
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(1));
    };
    check(b"", "cannot read -: the input is empty");
    check(b"\x1F\x8B\x08\0\0\0", "packed (gzip); unpack it first");
    check(b"PK\x03\x04 and so on", "packed (zip); unpack it first");
    check(b"invalid marc file\n", "none of ISO 2709, MARCXML, MARC-in-JSON and mnemonic text");
    let output = marc(&["count", "/nowhere/file.mrc"], b"");
    assert!(stderr(&output).contains("cannot open /nowhere/file.mrc"), "{}", stderr(&output));
    let output = marc(&["convert", "-"], TEXT);
    assert!(stderr(&output).contains("give --to"), "{}", stderr(&output));
}

/// The results of an import over HTTP for each broken file.
const BROKEN_OUT: &str = "../dialects/folio/tests/data/broken.out";

#[test]
fn validate_places_every_problem_of_the_broken_files() {
    let Some(folder) = collection("marc/broken") else { return };
    let mut n_files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "md") {
            continue;
        }
        n_files += 1;
        let output = marc(&["validate", path.to_str().unwrap()], b"");
        let told = stdout(&output);
        for line in told.lines() {
            let place = line.strip_prefix(&format!("{}: record ", path.display())).unwrap_or_default();
            let (number, rest) = place.split_once(" (byte ").unwrap_or_default();
            let offset = rest.split_once(')').map(|it| it.0).unwrap_or_default();
            assert!(number.parse::<u64>().is_ok() && offset.parse::<u64>().is_ok(), "no place: {line}");
        }
        let code = output.status.code();
        let is_clean = told.is_empty() && stderr(&output).is_empty();
        assert_eq!(code, Some(i32::from(!is_clean)), "{}: {}", path.display(), stderr(&output));
    }
    assert!(150 < n_files, "{n_files} files");
}

/// `pinakes import marc` gives the same records and reasons for each broken file as an upload does.
#[test]
fn import_reports_the_broken_files_as_an_upload_does() {
    let Some(folder) = collection("marc/broken") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data").display().to_string();
    let expected = std::fs::read_to_string(root.join(BROKEN_OUT)).unwrap();
    let mut lines = expected.lines().peekable();
    let mut n_files = 0;
    while let Some(line) = lines.next() {
        let [name, profile, _] = line.splitn(3, ": ").collect::<Vec<_>>().try_into().unwrap();
        let mut reasons = Vec::new();
        while let Some(reason) = lines.next_if(|it| it.starts_with("    ")) {
            reasons.push(reason.trim_start());
        }
        // The command decompresses what it reads.
        if name.ends_with(".gz") {
            continue;
        }
        n_files += 1;
        let path = folder.join(name);
        let output = Command::new(env!("CARGO_BIN_EXE_pinakes"))
            .args(["import", "marc", "--data", &data, "--profile", profile])
            .arg(&path)
            .output()
            .unwrap();
        let told = stderr(&output);
        let wanted: Vec<&&str> = reasons.iter().filter(|it| !it.starts_with("imported, but ")).collect();
        for reason in &wanted {
            assert!(told.contains(*reason), "{name}: {reason:?} is not in {told:?}");
        }
        assert_eq!(output.status.code(), Some(i32::from(!wanted.is_empty())), "{name}: {told}");
    }
    assert!(150 < n_files, "{n_files} files");
}
