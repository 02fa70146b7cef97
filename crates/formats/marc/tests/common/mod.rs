//! Shared parts of this crate's tests: the corpus, golden files and round trips.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use pinakes_marc::{
    ControlField, DataField, Encoding, Field, Format, OutputEncoding, Record, Subfield, Writer,
};
use pinakes_marc::{parse, records};
use pinakes_test_support::collection;
use unicode_normalization::UnicodeNormalization;

/// Returns the folder of real MARC files, if there is one.
pub(crate) fn corpus() -> Option<PathBuf> {
    collection("marc")
}

/// Returns names and contents of all files of the corpus, decompressed, in the order of their names; none if it is
/// missing.
pub(crate) fn corpus_files() -> Vec<(String, Vec<u8>)> {
    let Some(corpus) = corpus() else { return Vec::new() };
    let mut files = Vec::new();
    for folder in ["authority", "bib", "broken", "holdings", "marcxml"] {
        let entries = fs::read_dir(corpus.join(folder)).expect("a folder of the corpus");
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name != "README.md" {
                files.push((format!("{folder}/{name}"), unpacked(&path)));
            }
        }
    }
    files.sort_unstable();
    assert!(200 < files.len(), "the corpus has {} files only", files.len());
    files
}

fn unpacked(path: &Path) -> Vec<u8> {
    let packed = fs::read(path).unwrap();
    if path.extension().is_none_or(|it| it != "gz") {
        return packed;
    }
    let mut data = Vec::new();
    flate2::read::GzDecoder::new(&*packed).read_to_end(&mut data).unwrap();
    data
}

/// Compares a text with a file below `tests/data`; `BLESS=1` rewrites the file.
pub(crate) fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let difference = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    assert!(
        expected == found,
        "{name} differs; first lines: {difference:#?}\nBLESS=1 rewrites it: read the diff before the commit"
    );
}

/// Writes a record in a format and reads it back; `None` if the format cannot hold it.
pub(crate) fn round_trip(record: &Record, format: Format, encoding: OutputEncoding) -> Option<Record> {
    let mut writer = Writer::new(Vec::new(), format, encoding);
    writer.write(record).ok()?;
    if 0 < writer.n_replaced() {
        return None;
    }
    let bytes = writer.finish().unwrap();
    let from = match encoding {
        OutputEncoding::Utf8 => Encoding::Leader,
        OutputEncoding::Marc8 => Encoding::Marc8,
    };
    let all: Vec<_> = records(format, &bytes).map(|raw| parse(format, from, raw)).collect();
    assert_eq!(all.len(), 1, "{format}: {}", String::from_utf8_lossy(&bytes));
    let problems = all[0].problems.clone();
    Some(all.into_iter().next()?.record.unwrap_or_else(|| panic!("{format}: {problems:?}")))
}

/// Compares records except for the leader positions that ISO 2709 rewrites.
pub(crate) fn assert_same(record: &Record, back: &Record, format: Format, place: &str) {
    let mut leader = record.leader;
    if format == Format::Iso2709 {
        for position in (0..5).chain(9..17).chain(20..24) {
            leader.set(position, back.leader.at(position));
        }
    }
    if format == Format::Mnemonic {
        let blank = |char: char| if char == '\\' { ' ' } else { char };
        (0..24).for_each(|position| _ = leader.set(position, blank(leader.at(position))));
    }
    assert_eq!(leader, back.leader, "{place} through {format}");
    for (field, other) in record.fields.iter().zip(&back.fields) {
        let field = &if format == Format::Mnemonic { with_blanks(field) } else { field.clone() };
        assert_eq!(field, other, "{place} through {format}");
    }
    assert_eq!(record.fields.len(), back.fields.len(), "{place} through {format}");
}

/// Replaces backslashes used as indicators by blanks, because mnemonic text cannot represent them.
fn with_blanks(field: &Field) -> Field {
    match field {
        Field::Control(_) => field.clone(),
        Field::Data(field) => Field::Data(DataField {
            indicators: field.indicators.map(|char| if char == '\\' { ' ' } else { char }),
            ..field.clone()
        }),
    }
}

/// Returns the record with all texts composed, as reading MARC-8 produces them.
pub(crate) fn composed(record: &Record) -> Record {
    let fields = record.fields.iter().map(|field| match field {
        Field::Control(field) => ControlField::new(field.tag, compose(&field.value)).into(),
        Field::Data(field) => Field::Data(DataField {
            subfields: field
                .subfields
                .iter()
                .map(|it| Subfield { code: it.code, value: compose(&it.value) })
                .collect(),
            ..field.clone()
        }),
    });
    Record { leader: record.leader, fields: fields.collect() }
}

fn compose(text: &str) -> String {
    text.nfc().collect()
}
