//! Dumps in every compression, broken dumps, broken rows.

mod building;
mod golden;

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use building::{Collecting, options};
use pinakes_citations::id_table::read_id_table;
use pinakes_citations::meta::read_work_ids;
use pinakes_citations::rows::{Layout, RowParser};
use pinakes_citations::{BuildError, Graph, LINE_LEN_MAX_BYTES, Reason, Summary, build};
use proptest::prelude::*;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

const EDGES: &str = "oci,citing,cited,creation,timespan,journal_sc,author_sc\n\
    020010036-020010136,10.1/a,10.1/b,2020-01-02,P1Y,no,no\n\
    020010036-020010236,10.1/a,10.1/c,2020-01-02,,no,yes\n";
const MORE_EDGES: &str = "citing\tcited\n10.2/x\t10.1/a\n10.2/\"quoted\t10.1/b\n";

fn zip_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    archive.add_directory("folder/", SimpleFileOptions::default()).unwrap();
    for (name, bytes) in members {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn gzip_of(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn try_build(bytes: &[u8]) -> (Result<(Summary, Graph), BuildError>, Collecting) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("dump");
    fs::write(&path, bytes).unwrap();
    let options = options(&[path], folder.path());
    let mut observer = Collecting::default();
    let built = build(&options, &mut observer).map(|summary| (summary, Graph::open(&options.out).unwrap()));
    (built, observer)
}

/// The same two files in every compression give the same four citations.
#[test]
fn packings() {
    let (one, other) = (EDGES.as_bytes(), MORE_EDGES.as_bytes());
    let two_members = [gzip_of(one), gzip_of(b"020010036-020010336,10.1/a,10.1/d,,,,\n")].concat();
    let inner = zip_of(&[("1.csv", one), ("__MACOSX/._1.csv", b"\0\0junk")]);
    let cases: Vec<(&str, Vec<u8>, u64)> = vec![
        ("plain", one.to_vec(), 2),
        ("without last line feed", EDGES.trim_end().into(), 2),
        ("CRLF", EDGES.replace('\n', "\r\n").into(), 2),
        ("with byte order mark", [b"\xef\xbb\xbf", one].concat(), 2),
        ("two files in one", [one, one].concat(), 2),
        ("gzip", gzip_of(one), 2),
        ("gzip of two members", two_members, 3),
        ("zstd", zstd_of(one), 2),
        ("zstd of two frames", [zstd_of(one), zstd_of(b"x,10.1/a,10.1/d,,,,\n")].concat(), 3),
        ("zip", zip_of(&[("a.csv", one), ("folder/b.tsv", other)]), 4),
        ("zip of zips", zip_of(&[("a.zip", &inner), ("b.zip", &zip_of(&[("2.tsv", other)]))]), 4),
        ("zip of gzip and zstd", zip_of(&[("a.csv.gz", &gzip_of(one)), ("b.zst", &zstd_of(other))]), 4),
        ("gzip of zip", gzip_of(&zip_of(&[("a.csv", one)])), 2),
    ];
    for (name, bytes, n_citations) in cases {
        let (summary, graph) = try_build(&bytes).0.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(summary.n_citations, n_citations, "{name}");
        assert!(graph.number_of("10.1/a").is_some(), "{name}");
    }
}

/// An incomplete dump must not be mistaken for a complete one.
#[test]
fn broken_dumps_stop_the_build() {
    let long = EDGES.repeat(500);
    let (gzip, zstd) = (gzip_of(long.as_bytes()), zstd_of(long.as_bytes()));
    let zip = zip_of(&[("a.csv", long.as_bytes())]);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("gzip cut off", gzip[..gzip.len() / 2].to_vec(), "complete"),
        ("zstd cut off", zstd[..zstd.len() / 2].to_vec(), "complete"),
        ("zip cut off", zip[..zip.len() / 2].to_vec(), "complete"),
        ("no table", b"this is prose\n".to_vec(), "not a citation table"),
        ("three columns", b"a,b,c\n".to_vec(), "not a citation table"),
        ("empty", Vec::new(), "not one usable citation"),
        ("empty zip", zip_of(&[]), "not one usable citation"),
        ("header only", b"citing,cited\n".to_vec(), "not one usable citation"),
        ("zips within zips", nested(6), "deep"),
    ];
    for (name, bytes, told) in cases {
        let error = try_build(&bytes).0.err().unwrap_or_else(|| panic!("{name}: built")).to_string();
        assert!(error.contains(told), "{name}: {error}");
    }
}

fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(EDGES.as_bytes().to_vec(), |bytes, _| zip_of(&[("inner.zip", &bytes)]))
}

/// Each file of bad rows: every problem with its line, and what is left.
#[test]
fn golden_rows() {
    golden::check_area("rows", |_, input| {
        let (built, observer) = try_build(input);
        let mut answer = String::new();
        for problem in &observer.problems {
            answer.push_str(&format!("line {}: {}\n", problem.line, problem.reason));
        }
        match built {
            Err(error) => answer.push_str(&format!("! {error}\n").replace(&scratch_name(&error), "FILE")),
            Ok((_, graph)) => {
                for citing in 0..u32::try_from(graph.n_dois()).unwrap() {
                    for cited in graph.references(citing) {
                        let doi = |number| graph.doi(number).unwrap();
                        answer.push_str(&format!("{} -> {}\n", doi(citing), doi(cited)));
                    }
                }
            }
        }
        answer
    });
}

fn scratch_name(error: &BuildError) -> String {
    match error {
        BuildError::Layout { file, .. } => file.clone(),
        _ => "\0".to_owned(),
    }
}

/// A line longer than any row, also longer than a read, affects only itself.
#[test]
fn overlong_lines() {
    for len in [LINE_LEN_MAX_BYTES + 1, 3 << 20] {
        let text = format!("10.1/a,10.1/b\n{}\n10.1/a,10.1/c\n", "x".repeat(len));
        let (built, observer) = try_build(text.as_bytes());
        assert_eq!(built.unwrap().0.n_citations, 2);
        assert_eq!(observer.problems.len(), 1);
        assert_eq!(
            (observer.problems[0].line, &observer.problems[0].reason),
            (2, &Reason::TooLong { max: LINE_LEN_MAX_BYTES })
        );
    }
}

/// Line numbers stay correct over many reads.
#[test]
fn line_numbers_of_a_long_file() {
    let mut text = "10.1/a,10.1/b\n".repeat(200_000);
    text.push_str("10.1/a,bad\n");
    let (_, observer) = try_build(text.as_bytes());
    assert_eq!(observer.problems.iter().map(|it| it.line).collect::<Vec<_>>(), [200_001]);
}

fn mutated(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec((0..text.len(), any::<u8>()), 0..12).prop_map(move |changes| {
        let mut bytes = text.as_bytes().to_vec();
        for (place, byte) in changes {
            bytes[place] = byte;
        }
        bytes
    })
}

fn read_everything(bytes: &[u8]) {
    if let Some(layout) = Layout::detect(bytes.split(|&byte| byte == b'\n').next().unwrap_or_default()) {
        let mut parser = RowParser::new(layout);
        for line in bytes.split(|&byte| byte == b'\n') {
            parser.parse(line, &mut |_| {}).ok();
        }
    }
    read_work_ids(&mut Cursor::new(bytes), &mut |_, _| Ok::<_, std::io::Error>(())).unwrap();
    read_id_table(&mut Cursor::new(bytes), &mut |_, _| Ok::<_, std::io::Error>(())).unwrap();
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_everything(&bytes);
    }

    #[test]
    fn mutated_rows_do_no_harm(bytes in mutated(EDGES), more in mutated("\"id\",\"title\"\n\"omid:br/0601 doi:10.1/a pmid:7\",\"a\nb\"\n")) {
        read_everything(&bytes);
        read_everything(&more);
    }

    #[test]
    fn arbitrary_files_do_not_open_as_graphs(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("graph");
        fs::write(&path, [b"pncites\n\x01\0\0\0".as_slice(), &bytes].concat()).unwrap();
        prop_assert!(Graph::open(Path::new(&path)).is_err());
    }
}
