//! Runs every file of `../shared/data/marc` through every part of the crate.
//!
//! `tests/data/corpus/counts.tsv` holds the counts read from each file; `BLESS=1` rewrites it. The numbers of
//! records must also be those of the README files of the corpus, which were counted by other programs;
//! `tests/data/corpus/exceptions.tsv` lists the files where we differ, with the reason.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use common::{corpus, corpus_files, golden};
use pinakes_marc::{
    Encoding, Format, RawRecord, Reader, RecordView, Severity, Writer, json, parse, records, sniff,
};
use pinakes_marc::{OutputEncoding, validate};

/// What was read from one file.
#[derive(Default)]
struct Counts {
    /// Records, good and bad, but not bytes that are not a record.
    n_records: u64,
    /// Records of which something was read.
    n_read: u64,
    /// Records of which nothing was lost.
    n_complete: u64,
    /// Problems that reading reports.
    n_problems: u64,
    /// Problems that the rules of MARC 21 add.
    n_invalid: u64,
}

fn count(format: Format, data: &[u8]) -> Counts {
    let mut counts = Counts::default();
    let mut cut = records(format, data);
    for raw in cut.by_ref() {
        let parsed = parse(format, Encoding::Leader, raw);
        let is_junk =
            parsed.problems.iter().any(|it| matches!(it.fault, pinakes_marc::Fault::NotARecord { .. }));
        counts.n_records += u64::from(!is_junk);
        counts.n_read += u64::from(parsed.record.is_some());
        counts.n_complete += u64::from(parsed.complete().is_some());
        counts.n_problems += parsed.problems.len() as u64;
        counts.n_invalid += (validate(&parsed).len() - parsed.problems.len()) as u64;
    }
    counts.n_problems += u64::from(cut.stray_end().is_some());
    counts
}

#[test]
fn counts_of_every_file() {
    let mut table = String::from("file\tformat\trecords\tread\tcomplete\tproblems\tinvalid\n");
    for (name, data) in corpus_files() {
        let Ok(format) = sniff(&data) else {
            writeln!(table, "{name}\t-\t0\t0\t0\t0\t0").unwrap();
            continue;
        };
        let Counts { n_records, n_read, n_complete, n_problems, n_invalid } = count(format, &data);
        let format = format.name();
        writeln!(table, "{name}\t{format}\t{n_records}\t{n_read}\t{n_complete}\t{n_problems}\t{n_invalid}")
            .unwrap();
    }
    if corpus().is_some() {
        golden("corpus/counts.tsv", &table);
    }
}

/// Numbers of records as the README files of the corpus state them.
fn stated_counts(corpus: &Path) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for folder in ["authority", "bib", "broken", "holdings", "marcxml"] {
        let readme = std::fs::read_to_string(corpus.join(folder).join("README.md")).unwrap();
        let rows = readme.lines().skip_while(|line| !line.starts_with("| file | bytes"));
        for row in rows.filter(|line| line.starts_with("| ")).skip(1) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            if let Ok(n_records) = cells[3].replace(',', "").parse() {
                counts.insert(format!("{folder}/{}", cells[1]), n_records);
            }
        }
    }
    counts
}

#[test]
fn counts_are_those_of_other_programs() {
    let ours: BTreeMap<String, u64> = include_str!("data/corpus/counts.tsv")
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            (cells[0].to_owned(), cells[2].parse().unwrap())
        })
        .collect();
    let exceptions: BTreeMap<&str, u64> = include_str!("data/corpus/exceptions.tsv")
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            (cells[0], cells[1].parse().unwrap())
        })
        .collect();
    let Some(corpus) = corpus() else { return };
    let stated = stated_counts(&corpus);
    assert!(200 < stated.len(), "the README files of the corpus were not understood");
    let wrong: Vec<String> = stated
        .iter()
        .filter(|(name, _)| !is_other_json(name))
        .map(|(name, stated)| (name, exceptions.get(name.as_str()).unwrap_or(stated), ours[name]))
        .filter(|(_, expected, ours)| *expected != ours)
        .map(|(name, expected, ours)| format!("{name}: expected {expected}, read {ours}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The holdings folder has answers of a library system that are JSON but not MARC, and a table.
fn is_other_json(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == "json" || it == "tsv")
}

/// Returns what a reader over a stream yields, with records detached from its buffer.
fn read_all(mut reader: Reader<impl std::io::Read>) -> Vec<(u64, u64, Vec<u8>, String)> {
    let mut all = Vec::new();
    while let Some(raw) = reader.next_record().unwrap() {
        let problems: Vec<String> = raw.problems.iter().map(ToString::to_string).collect();
        all.push((raw.number, raw.offset, raw.bytes.to_vec(), problems.join("; ")));
    }
    all
}

/// A stream that yields few bytes at a time.
struct Trickle<'a>(&'a [u8], usize);

impl std::io::Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.1.min(self.0.len()).min(buffer.len());
        buffer[..len].copy_from_slice(&self.0[..len]);
        self.0 = &self.0[len..];
        Ok(len)
    }
}

#[test]
fn a_stream_gives_what_a_slice_gives() {
    for (name, data) in corpus_files() {
        let Ok(format) = sniff(&data) else { continue };
        let from_slice: Vec<(u64, u64, Vec<u8>, String)> = records(format, &data)
            .map(|RawRecord { number, offset, bytes, problems, .. }| {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                (number, offset, bytes.to_vec(), problems.join("; "))
            })
            .collect();
        assert!(read_all(Reader::new(&*data, format)) == from_slice, "{name} read at once");
        let trickle = Trickle(&data, 997);
        assert!(read_all(Reader::new(trickle, format)) == from_slice, "{name} read in small pieces");
    }
}

#[test]
fn raw_records_are_the_input() {
    for (name, data) in corpus_files() {
        let Ok(format) = sniff(&data) else { continue };
        for raw in records(format, &data) {
            let start = usize::try_from(raw.offset).unwrap();
            assert_eq!(&data[start..start + raw.bytes.len()], raw.bytes, "{name}, record {}", raw.number);
        }
    }
}

/// Reads all records of the odd files, some of the large ones: debug builds are slow.
fn step(name: &str, of_large_files: usize) -> usize {
    if name.starts_with("broken") { 1 } else { of_large_files }
}

#[test]
fn the_direct_way_to_json_is_the_long_one() {
    for (name, data) in corpus_files() {
        if sniff(&data) != Ok(Format::Iso2709) {
            continue;
        }
        for raw in records(Format::Iso2709, &data).step_by(step(&name, 5)) {
            let view = RecordView::new(raw.clone());
            let mut direct = Vec::new();
            let problems = json::write_view(&view, Encoding::Leader, &mut direct);
            let parsed = parse(Format::Iso2709, Encoding::Leader, raw);
            let Some(record) = parsed.record else { continue };
            let mut long = Vec::new();
            json::write(&record, &mut long);
            assert!(direct == long, "{name}, record {}", parsed.number);
            assert_eq!(problems.len(), parsed.problems.len(), "{name}, record {}", parsed.number);
        }
    }
}

/// Records of the corpus, whatever their format, come back unchanged from each format, unless the format says
/// that it cannot hold them.
#[test]
fn round_trips_of_every_record() {
    for (name, data) in corpus_files() {
        let Ok(from) = sniff(&data) else { continue };
        for raw in records(from, &data).step_by(step(&name, 19)) {
            let parsed = parse(from, Encoding::Leader, raw);
            let Some(record) = parsed.record.as_ref() else { continue };
            for to in Format::ALL {
                if let Some(back) = common::round_trip(record, to, OutputEncoding::Utf8) {
                    common::assert_same(record, &back, to, &format!("{name}, record {}", parsed.number));
                }
            }
            if let Some(back) = common::round_trip(record, Format::Iso2709, OutputEncoding::Marc8) {
                let composed = common::composed(record);
                common::assert_same(&composed, &back, Format::Iso2709, &format!("{name} as MARC-8"));
            }
        }
    }
}

#[test]
fn good_files_are_written_back_byte_by_byte() {
    for folder in ["authority", "bib", "holdings"] {
        for (name, data) in corpus_files().into_iter().filter(|(name, _)| name.starts_with(folder)) {
            if sniff(&data) != Ok(Format::Iso2709) {
                continue;
            }
            for raw in records(Format::Iso2709, &data) {
                let is_utf8 = raw.bytes.get(9) == Some(&b'a');
                let bytes = raw.bytes;
                let parsed = parse(Format::Iso2709, Encoding::Leader, raw);
                let (true, None, Some(record)) = (is_utf8, parsed.severity(), &parsed.record) else {
                    continue;
                };
                if !record_is_plain(bytes) {
                    continue;
                }
                let mut writer = Writer::new(Vec::new(), Format::Iso2709, OutputEncoding::Utf8);
                writer.write(record).unwrap();
                let written = writer.finish().unwrap();
                let at = written.iter().zip(bytes).position(|(a, b)| a != b);
                assert!(written == bytes, "{name}, record {}, byte {at:?}", parsed.number);
            }
        }
    }
}

/// Returns whether the directory is in the order of the data and the leader has the entry map that we write.
fn record_is_plain(bytes: &[u8]) -> bool {
    let base: usize = std::str::from_utf8(&bytes[12..17]).unwrap().parse().unwrap();
    let starts: Vec<&[u8]> = bytes[24..base - 1].chunks(12).map(|entry| &entry[7..12]).collect();
    starts.is_sorted() && &bytes[20..24] == b"4500" && &bytes[10..12] == b"22"
}

#[test]
fn severities_are_ordered() {
    assert!(Severity::Warning < Severity::Loss && Severity::Loss < Severity::Fatal);
}
