//! Each `tests/data/<format>/<case>.in` must give the `.out` beside it: every record with its place, its fields as
//! mnemonic text, and all problems. `BLESS=1` rewrites the answers: read the diff before the commit.

mod common;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use common::golden;
use pinakes_marc::{Encoding, Format, mnemonic, parse, records, validate};

/// The only function that knows the crate's API.
fn answer(format: Format, input: &[u8]) -> String {
    let mut out = String::new();
    let mut cut = records(format, input);
    for raw in cut.by_ref() {
        writeln!(out, "record {}, byte {}, {} bytes", raw.number, raw.offset, raw.bytes.len()).unwrap();
        let parsed = parse(format, Encoding::Leader, raw);
        for problem in validate(&parsed) {
            writeln!(out, "{}: {problem}", problem.severity()).unwrap();
        }
        match &parsed.record {
            Some(record) => mnemonic::write(record, &mut out),
            None => out.push_str("no record\n\n"),
        }
    }
    if let Some(problem) = cut.stray_end() {
        writeln!(out, "{}: {problem}", problem.severity()).unwrap();
    }
    out
}

fn check_folder(folder: &str, format: Format) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let mut n_cases = 0;
    for entry in fs::read_dir(path).unwrap() {
        let case = entry.unwrap().path();
        if case.extension().is_some_and(|it| it == "in") {
            let name = case.file_stem().unwrap().to_str().unwrap();
            golden(&format!("{folder}/{name}.out"), &answer(format, &fs::read(&case).unwrap()));
            n_cases += 1;
        }
    }
    assert!(0 < n_cases, "no cases in {folder}: a moved folder would pass silently");
}

#[test]
fn iso2709() {
    check_folder("iso2709", Format::Iso2709);
}

#[test]
fn xml() {
    check_folder("xml", Format::Xml);
}

#[test]
fn json() {
    check_folder("json", Format::Json);
}

#[test]
fn mnemonic_text() {
    check_folder("mnemonic", Format::Mnemonic);
}
