//! Every real file of the shared collection is read, with the counts that its README states.

mod building;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use building::{Collecting, options};
use pinakes_citations::id_table::read_id_table;
use pinakes_citations::meta::{Told, read_work_ids};
use pinakes_citations::oci::{OciWork, decode};
use pinakes_citations::source::{SourceError, visit_members};
use pinakes_citations::{BuildOptions, Graph, Omid, Summary, build};
use pinakes_test_support::collection;
use tempfile::TempDir;

/// Returns a file of the collection; call it only if the collection was found.
fn shared(path: &str) -> PathBuf {
    collection("citations").unwrap_or_default().join(path)
}

fn build_files(edges: &[&str], works: &[&str]) -> (TempDir, Graph, Summary, Collecting) {
    let folder = TempDir::new().unwrap();
    let edges: Vec<PathBuf> = edges.iter().map(|it| shared(it)).collect();
    let works = works.iter().map(|it| shared(it)).collect();
    let options = BuildOptions { works, ..options(&edges, folder.path()) };
    let mut observer = Collecting::default();
    let summary = build(&options, &mut observer).unwrap();
    let graph = Graph::open(&options.out).unwrap();
    graph.verify().unwrap();
    (folder, graph, summary, observer)
}

/// All files that name works by DOI: rows as stated, problems none.
#[test]
fn doi_files() {
    if collection("citations").is_none() {
        return;
    }
    let files = [
        ("index-csv/coronavirus.coci.csv", 902),
        ("index-csv/oc-index-citations_data.csv", 6),
        ("index-csv/oc-index-croci_citations.csv", 13),
        ("index-csv/oc-index-croci_dump.csv", 13),
        ("index-csv/oc-index-doci_citations.csv", 10),
        ("index-csv/oc-index-doci_dump.csv", 10),
        ("index-csv/oc-meta-example_citations.csv", 11),
        ("index-csv/oc-sample-part1.coci.csv", 1913),
        ("index-csv/oc-sample-part3.coci.csv", 1848),
        ("doi-metadata/datacite-1k-part1.doci.csv", 794),
        ("doi-metadata/datacite-1k-part2.doci.csv", 865),
    ];
    let (_folder, graph, summary, observer) = build_files(&files.map(|(file, _)| file), &[]);
    let n_rows: u64 = files.iter().map(|(_, n_rows)| n_rows).sum();
    assert_eq!(summary.counts.n_rows, n_rows);
    assert_eq!(observer.problems, []);
    assert_eq!(graph.n_citations() + summary.counts.n_duplicates, n_rows);
}

/// The rows of one file come back byte for byte: the graph loses nothing.
#[test]
fn rows_come_back() {
    if collection("citations").is_none() {
        return;
    }
    for file in [
        "index-csv/oc-sample-part1.coci.csv",
        "index-csv/coronavirus.coci.csv",
        "doi-metadata/datacite-1k-part2.doci.csv",
    ] {
        let (_folder, graph, _, _) = build_files(&[file], &[]);
        let mut reader = csv::Reader::from_path(shared(file)).unwrap();
        let mut met = BTreeSet::new();
        for row in reader.records() {
            let row = row.unwrap();
            let doi = |place: usize| pinakes_citations::Doi::parse(&row[place]).unwrap();
            let (citing, cited) =
                (graph.number_of(doi(1).as_str()).unwrap(), graph.number_of(doi(2).as_str()).unwrap());
            if !met.insert((citing, cited)) {
                continue;
            }
            let citation = graph.citation(citing, cited).unwrap();
            assert_eq!(citation.creation.map(|it| it.to_string()).unwrap_or_default(), &row[3]);
            assert_eq!(citation.timespan.map(|it| it.to_string()).unwrap_or_default(), &row[4], "{row:?}");
            assert_eq!((citation.journal_sc.as_str(), citation.author_sc.as_str()), (&row[5], &row[6]));
            assert_eq!(graph.oci(citing, cited, &citation).as_deref(), Some(&row[0]), "{row:?}");
        }
    }
}

/// Citations by OMID join with the DOIs of Meta: the same graph as the one by DOI, and the OCI of the OMIDs.
#[test]
fn omid_files() {
    if collection("citations").is_none() {
        return;
    }
    let parts = ["1", "3"];
    let omid_files = parts.map(|part| format!("index-csv/oc-sample-part{part}.index-omid.csv"));
    let doi_files = parts.map(|part| format!("index-csv/oc-sample-part{part}.coci.csv"));
    let works = parts.map(|part| format!("index-csv/oc-sample-part{part}.metadata.csv.gz"));
    let works = works.each_ref().map(String::as_str);
    let (_a, by_omid, summary, observer) = build_files(&omid_files.each_ref().map(String::as_str), &works);
    let (_b, by_doi, _, _) = build_files(&doi_files.each_ref().map(String::as_str), &[]);
    assert_eq!(observer.problems, []);
    assert_eq!((summary.counts.n_rows, summary.counts.n_work_rows), (1913 + 1848, 2194 + 2144));
    assert_eq!(summary.counts.n_without_doi, 0);
    assert_eq!((by_omid.n_dois(), by_omid.n_citations()), (by_doi.n_dois(), by_doi.n_citations()));
    for number in 0..u32::try_from(by_omid.n_dois()).unwrap() {
        assert_eq!(by_omid.doi(number), by_doi.doi(number));
        assert!(
            by_omid
                .reference_rows(number)
                .map(|(it, row)| (it, row.creation, row.timespan))
                .eq(by_doi.reference_rows(number).map(|(it, row)| (it, row.creation, row.timespan)))
        );
        assert!(by_omid.citations(number).eq(by_doi.citations(number)));
    }
    let mut reader = csv::Reader::from_path(shared(&omid_files[0])).unwrap();
    for row in reader.records() {
        let row = row.unwrap();
        let number =
            |place: usize| by_omid.number_of_omid(Omid::parse(row[place].as_bytes()).unwrap()).unwrap();
        let (citing, cited) = (number(1), number(2));
        let citation = by_omid.citation(citing, cited).unwrap();
        let oci = by_omid.oci(citing, cited, &citation).unwrap();
        let (OciWork::Omid(from), OciWork::Omid(to)) = decode(&oci).unwrap() else { panic!("{oci}") };
        assert_eq!((by_omid.number_of_omid(from), by_omid.number_of_omid(to)), (Some(citing), Some(cited)));
    }
}

/// Without Meta nothing can be joined; the rows are counted, not lost silently.
#[test]
fn omid_file_alone() {
    if collection("citations").is_none() {
        return;
    }
    let (_folder, graph, summary, _) =
        build_files(&["index-csv/oc-sample-part1.raw.csv", "index-csv/coronavirus.coci.csv"], &[]);
    assert_eq!(summary.counts.n_without_doi, 1913);
    assert_eq!(graph.n_citations() + summary.counts.n_duplicates, 902);
}

/// Meta files: rows as stated; those of the index software's tests have no OMID yet.
#[test]
fn meta_files() {
    if collection("citations").is_none() {
        return;
    }
    let files = [
        ("meta-csv/oc-meta-00.csv", 1001),
        ("meta-csv/oc-meta-06.csv", 1001),
        ("meta-csv/oc-meta-09.csv", 1000),
        ("meta-csv/oc-meta-15.csv", 1000),
        ("meta-csv/oc-meta-18.csv", 1005),
        ("meta-csv/oc-meta-example_metadata.csv", 13),
        ("meta-csv/oc-meta-long_field.csv", 1),
        ("meta-csv/oc-meta-real_data.csv", 3),
        ("meta-csv/oc-meta-test_data_collect_identifiers.csv", 10),
        ("index-csv/oc-sample-part1.metadata.csv.gz", 2194),
        ("index-csv/oc-sample-part3.metadata.csv.gz", 2144),
    ];
    for (file, n_stated) in files {
        let (mut n_rows, mut n_dois, mut n_omids) = (0, 0, 0);
        visit(&shared(file), &mut |bytes| {
            read_work_ids(bytes, &mut |line, told| {
                let Told::Work(ids) = told else { panic!("{file}:{line}: {told:?}") };
                n_rows += 1;
                n_dois += usize::from(!ids.doi.is_empty());
                n_omids += usize::from(ids.omid.is_some());
                Ok::<_, std::io::Error>(())
            })
            .unwrap();
        });
        assert_eq!(n_rows, n_stated, "{file}");
        assert!(n_rows / 2 < n_dois, "{file}: {n_dois} DOIs");
        assert!(n_omids == 0 || n_omids == n_rows, "{file}: {n_omids} OMIDs");
    }
}

fn visit(path: &Path, read: &mut dyn FnMut(&mut dyn std::io::Read)) {
    let folder = TempDir::new().unwrap();
    let visited: Result<(), SourceError> =
        visit_members(path, folder.path(), &AtomicU64::new(0), &mut |member| {
            read(member.bytes);
            Ok(())
        });
    visited.unwrap();
}

/// DOIs of a catalogue as an id table, one local id per line: in volume, with dirt.
#[test]
fn id_table_at_volume() {
    if collection("citations").is_none() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let table = folder.path().join("ids.tsv");
    let mut text = Vec::new();
    visit(&shared("doi-lists/labe-ma-doi-part2.tsv.zst"), &mut |bytes| {
        let mut list = String::new();
        bytes.read_to_string(&mut list).unwrap();
        text = list
            .lines()
            .step_by(11)
            .enumerate()
            .flat_map(|(n, doi)| format!("id-{n}\t{doi}\n").into_bytes())
            .collect();
    });
    std::fs::write(&table, text).unwrap();
    let (mut n_good, mut n_bad) = (0, 0);
    read_id_table(&mut File::open(&table).unwrap(), &mut |_, row| {
        if row.is_ok() {
            n_good += 1
        } else {
            n_bad += 1
        }
        Ok::<_, std::io::Error>(())
    })
    .unwrap();
    assert_eq!(n_good + n_bad, 477_583_usize.div_ceil(11));
    assert!(n_bad * 100 < n_good, "{n_bad} of {n_good}");
}
