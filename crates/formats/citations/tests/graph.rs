//! The built graph equals a plain model of its rows, both ways, and survives interruption and damage.

mod building;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use building::{Collecting, options};
use pinakes_citations::synthetic::{Format, Shape, Synthetic};
use pinakes_citations::{
    BuildError, BuildOptions, Citation, Graph, GraphError, Leftover, Observer, Omid, Problem, Progress,
    Summary, build, build_beside, is_half_published,
};
use proptest::prelude::*;
use tempfile::TempDir;

fn build_text(edges: &str) -> (TempDir, Graph, Summary, Vec<Problem>) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("edges.csv");
    fs::write(&path, edges).unwrap();
    let options = options(&[path], folder.path());
    let mut observer = Collecting::default();
    let summary = build(&options, &mut observer).unwrap();
    let graph = Graph::open(&options.out).unwrap();
    graph.verify().unwrap();
    (folder, graph, summary, observer.problems)
}

fn neighbours(graph: &Graph, doi: &str) -> (Vec<String>, Vec<String>) {
    let Some(number) = graph.number_of(doi) else { return Default::default() };
    let texts = |numbers: Vec<u32>| numbers.into_iter().map(|it| graph.doi(it).unwrap()).collect();
    (texts(graph.references(number).collect()), texts(graph.citations(number).collect()))
}

/// The test vectors of the service that this replaces: b is on both sides, the edge to b twice.
#[test]
fn hand_made_vectors() {
    let edges =
        "10.1/a\t10.1/b\n10.1/a\t10.1/c\n10.1/a\t10.1/u\n10.1/x\t10.1/a\n10.1/b\t10.1/a\n10.1/a\t10.1/b\n";
    let (_folder, graph, summary, _) = build_text(edges);
    let (references, citations) = neighbours(&graph, "10.1/a");
    assert_eq!(references, ["10.1/b", "10.1/c", "10.1/u"]);
    assert_eq!(citations, ["10.1/b", "10.1/x"]);
    assert_eq!((summary.n_dois, summary.n_citations, summary.counts.n_duplicates), (5, 5, 1));
    assert_eq!(graph.number_of("10.1/none"), None);
    assert_eq!(graph.references(99).len(), 0);
    assert_eq!(graph.doi(99), None);
}

#[test]
fn self_loops_stay_on_both_sides() {
    let (_folder, graph, summary, _) = build_text("citing,cited\n10.1/a,10.1/a\n10.1/a,10.1/b\n");
    assert_eq!(neighbours(&graph, "10.1/a"), (vec!["10.1/a".into(), "10.1/b".into()], vec!["10.1/a".into()]));
    assert_eq!(summary.n_self_loops, 1);
}

/// The statements of rows come back unchanged, even where they contradict other rows.
#[test]
fn rows_come_back() {
    let rows = [
        "10.1/a,10.1/b,2020-05-02,P6Y8M13D,no,yes", // States the date of b, which cites nothing.
        "10.1/a,10.1/c,2020-05-02,,no,no",
        "10.1/d,10.1/b,2016-03,P2Y6M,yes,no", // Fits that date.
        "10.1/e,10.1/b,2016-03,P1Y,,",        // Does not.
        "10.1/a,10.1/d,2020,P4Y,no,no",       // Another creation of a.
        "10.1/c,10.1/a,,P1Y,no,no",           // A timespan without creation.
        "10.1/f,10.1/a,2021,P1Y,no,no",
        "10.1/f,10.1/f,2021,P0Y,yes,yes",
        "10.1/a,10.1/f,2020-05-02,-P0Y,no,no",
    ];
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let (_folder, graph, summary, problems) =
        build_text(&format!("citing,cited,creation,timespan,journal_sc,author_sc\n{text}"));
    assert_eq!(problems, []);
    assert_eq!(summary.n_inferred, 1, "b");
    for row in rows {
        let fields: Vec<&str> = row.split(',').collect();
        let (citing, cited) = (graph.number_of(fields[0]).unwrap(), graph.number_of(fields[1]).unwrap());
        let citation = graph.citation(citing, cited).unwrap();
        assert_eq!(row_of(&graph, citing, cited, &citation), row);
        assert!(graph.reference_rows(citing).any(|it| it == (cited, citation)));
        assert!(graph.citation_rows(cited).any(|it| it == (citing, citation)));
    }
    assert_eq!(graph.citation(graph.number_of("10.1/b").unwrap(), 0), None);
}

fn row_of(graph: &Graph, citing: u32, cited: u32, citation: &Citation) -> String {
    let creation = citation.creation.map(|it| it.to_string()).unwrap_or_default();
    let timespan = citation.timespan.map(|it| it.to_string()).unwrap_or_default();
    let (journal_sc, author_sc) = (citation.journal_sc.as_str(), citation.author_sc.as_str());
    let (citing, cited) = (graph.doi(citing).unwrap(), graph.doi(cited).unwrap());
    format!("{citing},{cited},{creation},{timespan},{journal_sc},{author_sc}")
}

/// A row: citing and cited work, and the fields after them.
#[derive(Debug, Clone)]
struct ModelRow {
    citing: u16,
    cited: u16,
    fields: String,
}

fn model_rows() -> impl Strategy<Value = Vec<ModelRow>> {
    let date = prop::sample::select(vec!["", "2020", "2019-07", "2018-02-28", "2020-02-29", "1999-12-31"]);
    let span = prop::sample::select(vec!["", "P0Y", "P1Y", "-P2Y3M", "P1Y0M1D", "P20Y1M30D", "P3Y6M"]);
    let flag = || prop::sample::select(vec!["", "no", "no", "yes"]);
    let fields = (date, span, flag(), flag()).prop_map(|(a, b, c, d)| format!("{a},{b},{c},{d}"));
    // Squares make low numbers hubs.
    let work = || (0_u32..40).prop_map(|root| (root * root / 2) as u16);
    let row = (work(), work(), fields).prop_map(|(citing, cited, fields)| ModelRow { citing, cited, fields });
    proptest::collection::vec(row, 1..900)
}

fn model_doi(number: u16) -> String {
    format!("10.{}/{}é-{number}", 1000 + number % 7, number % 3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn equals_model(rows in model_rows()) {
        let mut model: BTreeMap<(String, String), String> = BTreeMap::new();
        let mut text = String::from("citing,cited,creation,timespan,journal_sc,author_sc\n");
        for row in &rows {
            let (citing, cited) = (model_doi(row.citing), model_doi(row.cited));
            text.push_str(&format!("{citing},{cited},{}\n", row.fields));
            model.entry((citing, cited)).or_insert_with(|| row.fields.clone());
        }
        let (_folder, graph, summary, _) = build_text(&text);
        let dois: BTreeSet<&String> = model.keys().flat_map(|(citing, cited)| [citing, cited]).collect();
        prop_assert_eq!(summary.n_dois, dois.len() as u64);
        prop_assert_eq!(summary.n_citations, model.len() as u64);
        prop_assert_eq!(summary.counts.n_duplicates, (rows.len() - model.len()) as u64);
        for (number, doi) in (0..).zip(&dois) {
            prop_assert_eq!(graph.number_of(doi), Some(number));
            prop_assert_eq!(&graph.doi(number).unwrap(), *doi);
            let out: Vec<String> = model.keys().filter(|it| it.0 == **doi).map(|it| it.1.clone()).collect();
            let mut into: Vec<String> = model.keys().filter(|it| it.1 == **doi).map(|it| it.0.clone()).collect();
            into.sort();
            prop_assert_eq!(graph.references(number).len(), out.len());
            prop_assert_eq!(neighbours(&graph, doi), (out, into));
        }
        for ((citing, cited), fields) in &model {
            let (from, to) = (graph.number_of(citing).unwrap(), graph.number_of(cited).unwrap());
            let citation = graph.citation(from, to).unwrap();
            prop_assert_eq!(row_of(&graph, from, to, &citation), format!("{citing},{cited},{fields}"));
        }
    }
}

/// Stops a build by a panic at the n-th progress report: as a killed process would, as far as the files are
/// concerned.
struct Killing {
    n_left: u32,
}

impl Observer for Killing {
    fn progress(&mut self, _: Progress) {
        self.n_left = self.n_left.checked_sub(1).expect("the build is killed here");
    }

    fn problem(&mut self, _: &Problem) {}
}

/// Wherever a build is killed, resuming gives the same bytes as a build in one go.
#[test]
fn goes_on_after_interruption() {
    let folder = TempDir::new().unwrap();
    let edges = folder.path().join("edges.csv");
    let synthetic = Synthetic::new(Shape { n_dois: 3000, n_citations: 25_000, seed: 3 });
    synthetic.write_edges(Format::Coci, &mut fs::File::create(&edges).unwrap()).unwrap();
    let ids = folder.path().join("ids.tsv");
    synthetic.write_ids(&mut fs::File::create(&ids).unwrap()).unwrap();
    let mut options =
        BuildOptions { ids: vec![ids], checkpoint_rows: 1000, ..options(&[edges], folder.path()) };
    build(&options, &mut Collecting::default()).unwrap();
    let whole = fs::read(&options.out).unwrap();
    options.out = folder.path().join("interrupted");
    let mut n_kills = 0;
    for n_left in [0, 1, 1, 1, 1, 1, 0, 1, 0, 1] {
        let killed =
            catch_unwind(AssertUnwindSafe(|| build_beside(&options, &mut Killing { n_left }).map(drop)));
        n_kills += u32::from(killed.is_err());
    }
    assert!(5 <= n_kills, "the build ran through too early to test anything");
    build(&options, &mut Collecting::default()).unwrap();
    assert!(fs::read(&options.out).unwrap() == whole);
    assert!(!folder.path().join("interrupted.building").exists());
}

/// A join in shares, as for inputs whose keys do not fit into memory at once, gives the same bytes as one at
/// once.
#[test]
fn join_in_shares() {
    let folder = TempDir::new().unwrap();
    let (edges, ids) = (folder.path().join("edges.csv"), folder.path().join("ids.tsv"));
    let synthetic = Synthetic::new(Shape { n_dois: 700, n_citations: 9000, seed: 11 });
    synthetic.write_edges(Format::Coci, &mut fs::File::create(&edges).unwrap()).unwrap();
    synthetic.write_ids(&mut fs::File::create(&ids).unwrap()).unwrap();
    let mut options = BuildOptions { ids: vec![ids], ..options(&[edges], folder.path()) };
    build(&options, &mut Collecting::default()).unwrap();
    let at_once = fs::read(&options.out).unwrap();
    (options.keys_at_once, options.out) = (100, folder.path().join("in-shares"));
    build(&options, &mut Collecting::default()).unwrap();
    assert!(fs::read(&options.out).unwrap() == at_once);
}

#[test]
fn refuses_to_go_on_with_other_input() {
    let folder = TempDir::new().unwrap();
    let edges = folder.path().join("edges.csv");
    fs::write(&edges, "10.1/a,10.1/b\n").unwrap();
    let options = options(std::slice::from_ref(&edges), folder.path());
    let complete = build_beside(&options, &mut Collecting::default()).unwrap();
    let busy = build_beside(&options, &mut Collecting::default()).unwrap_err();
    assert!(matches!(busy, BuildError::Busy { .. }), "{busy}");
    drop(complete);
    fs::write(&edges, "10.1/a,10.1/b\n10.1/a,10.1/c\n").unwrap();
    let other = build_beside(&options, &mut Collecting::default()).unwrap_err();
    assert!(matches!(other, BuildError::OtherBuild { .. }), "{other}");
}

/// A nightly job is not blocked by the leftovers of another input.
#[test]
fn a_leftover_can_be_removed() {
    let folder = TempDir::new().unwrap();
    let edges = folder.path().join("edges.csv");
    fs::write(&edges, "10.1/a,10.1/b\n").unwrap();
    let mut options = options(std::slice::from_ref(&edges), folder.path());
    drop(build_beside(&options, &mut Collecting::default()).unwrap());
    fs::write(&edges, "10.1/a,10.1/b\n10.1/a,10.1/c\n").unwrap();
    options.leftover = Leftover::Remove;
    assert_eq!(build(&options, &mut Collecting::default()).unwrap().n_citations, 2);
    drop(build_beside(&options, &mut Collecting::default()).unwrap());
    build_beside(&options, &mut Collecting::default()).unwrap().discard().unwrap();
    assert!(!folder.path().join("graph.building").exists());
}

/// A build that is killed between taking the name and removing the working folder is finished by the next.
#[test]
fn a_publication_is_finished() {
    let folder = TempDir::new().unwrap();
    let edges = folder.path().join("edges.csv");
    fs::write(&edges, "10.1/a,10.1/b\n").unwrap();
    let options = options(std::slice::from_ref(&edges), folder.path());
    let complete = build_beside(&options, &mut Collecting::default()).unwrap();
    fs::hard_link(complete.path(), &options.out).unwrap();
    drop(complete);
    assert!(is_half_published(&options.out));
    build(&options, &mut Collecting::default()).unwrap();
    assert!(!is_half_published(&options.out) && !folder.path().join("graph.building").exists());
    // Without hard links the file is gone from the folder.
    let complete = build_beside(&options, &mut Collecting::default()).unwrap();
    fs::rename(complete.path(), &options.out).unwrap();
    drop(complete);
    fs::write(&edges, "10.1/a,10.1/b\n10.1/a,10.1/c\n").unwrap();
    assert_eq!(build(&options, &mut Collecting::default()).unwrap().n_citations, 2);
}

/// A dump that names works by OMID yields nothing without Meta: this is reported, not published.
#[test]
fn omids_without_dois_are_refused() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let edges = write("edges.csv", "id,citing,cited\noci:0601-0602,omid:br/0601,omid:br/0602\n");
    let ids = write("ids.tsv", "x\t10.1/a\n");
    let meta = write("meta.tsv", "omid:br/0601\t10.1/a\nomid:br/0602\t10.1/b\n");
    let other = write("other.tsv", "omid:br/0603\t10.1/a\n");
    let plain = options(&[edges], folder.path());
    for (works, ids, told) in [
        (vec![], vec![], "--meta"),
        (vec![], vec![ids.clone()], "--meta"),
        (vec![other], vec![ids], "of the same release"),
    ] {
        let options = BuildOptions { works, ids, ..plain.clone() };
        let error = build(&options, &mut Collecting::default()).unwrap_err();
        assert!(matches!(error, BuildError::NoDois { n_rows: 1, .. }), "{error}");
        assert!(error.to_string().contains(told), "{error}");
        assert!(!options.out.exists() && !folder.path().join("graph.building").exists());
    }
    let options = BuildOptions { works: vec![meta], ..plain };
    assert_eq!(build(&options, &mut Collecting::default()).unwrap().n_citations, 1);
}

/// A work is found by each of its DOIs, OMIDs and `PubMed` numbers.
#[test]
fn further_identifiers_lead_to_the_work() {
    let folder = TempDir::new().unwrap();
    let (edges, works) = (folder.path().join("edges.csv"), folder.path().join("works.csv"));
    fs::write(&edges, "citing,cited\n10.1/a,10.1/b\n10.1/own,10.1/a\n").unwrap();
    let rows = [
        "omid:br/0601 omid:br/0603 doi:10.1/b doi:10.1/B2 doi:10.1/b3 doi:nonsense pmid:7 pmid:8",
        "omid:br/0602 doi:10.1/a doi:10.1/own doi:10.1/a2",
        "omid:br/0604 doi:10.1/unused doi:10.1/unused2",
        "omid:br/0605 doi:10.1/own doi:10.1/b3",
    ];
    fs::write(&works, format!("id\n{}\n", rows.join("\n"))).unwrap();
    let ids = folder.path().join("ids.tsv");
    fs::write(&ids, "record\t10.1/a2\n").unwrap();
    let options = BuildOptions { works: vec![works], ids: vec![ids], ..options(&[edges], folder.path()) };
    build(&options, &mut Collecting::default()).unwrap();
    let graph = Graph::open(&options.out).unwrap();
    graph.verify().unwrap();
    let number = |doi: &str| graph.number_of(doi).and_then(|it| graph.doi(it));
    assert_eq!(number("10.1/b2").as_deref(), Some("10.1/b"));
    assert_eq!(number("10.1/b3").as_deref(), Some("10.1/b"), "the first work that has it");
    assert_eq!(number("10.1/a2").as_deref(), Some("10.1/a"), "though a record has it as well");
    assert_eq!(number("10.1/own").as_deref(), Some("10.1/own"), "it cites itself");
    assert_eq!((number("10.1/unused"), number("10.1/unused2")), (None, None));
    let b = graph.number_of("10.1/b").unwrap();
    assert_eq!((graph.number_of_pmid(7), graph.number_of_pmid(8)), (Some(b), Some(b)));
    let omid = |digits: &[u8]| Omid::from_digits(digits).and_then(|it| graph.number_of_omid(it));
    assert_eq!((omid(b"0601"), omid(b"0603")), (Some(b), Some(b)));
    assert_eq!(graph.other_dois(b), ["10.1/b2", "10.1/b3"]);
    assert_eq!(graph.other_dois(graph.number_of("10.1/a").unwrap()), ["10.1/a2"]);
    let record = graph.doi_of_local_id(graph.local_id_number(b"record").unwrap()).unwrap();
    assert_eq!(graph.doi(record).as_deref(), Some("10.1/a2"));
    assert_eq!(graph.doi(graph.work_of(record)).as_deref(), Some("10.1/a"));
    let copy = Graph::open_copy(&options.out, folder.path()).unwrap();
    assert_eq!(copy.identity(), graph.identity());
}

fn small_graph(folder: &Path) -> PathBuf {
    let edges = folder.join("edges.csv");
    let synthetic = Synthetic::new(Shape { n_dois: 400, n_citations: 3000, seed: 1 });
    synthetic.write_edges(Format::Coci, &mut fs::File::create(&edges).unwrap()).unwrap();
    let ids = folder.join("ids.tsv");
    synthetic.write_ids(&mut fs::File::create(&ids).unwrap()).unwrap();
    let options = BuildOptions { ids: vec![ids], ..options(&[edges], folder) };
    build(&options, &mut Collecting::default()).unwrap();
    options.out
}

/// A cut-off file is refused at open, whatever is missing.
#[test]
fn truncated_files_are_refused() {
    let folder = TempDir::new().unwrap();
    let whole = fs::read(small_graph(folder.path())).unwrap();
    let cut = folder.path().join("cut");
    for len in (0..whole.len()).step_by(whole.len() / 40).chain([1, 7, 8, 23, 24, 100, whole.len() - 1]) {
        fs::write(&cut, &whole[..len]).unwrap();
        let error = Graph::open(&cut).unwrap_err();
        let says_what_to_do = error.to_string().contains("build");
        assert!(says_what_to_do, "{len}: {error}");
    }
    fs::write(&cut, [whole.as_slice(), b"more"].concat()).unwrap();
    assert!(matches!(Graph::open(&cut), Err(GraphError::Length { .. })));
}

/// A changed bit is found at open or by verification, and reading such a file is harmless before that.
#[test]
fn flipped_bits_are_found() {
    let folder = TempDir::new().unwrap();
    let mut bytes = fs::read(small_graph(folder.path())).unwrap();
    let sound = Graph::open(&folder.path().join("graph")).unwrap();
    let header_len = 32 + sound.sections().len() * 32;
    let path = folder.path().join("flipped");
    let places = (0..header_len).step_by(3).chain((header_len..bytes.len()).step_by(211));
    let mut n_found = 0;
    let mut n_tried = 0;
    for place in places {
        bytes[place] ^= 1 << (place % 8);
        fs::write(&path, &bytes).unwrap();
        n_tried += 1;
        match Graph::open(&path) {
            Err(_) => n_found += 1,
            Ok(graph) => {
                n_found += usize::from(graph.verify().is_err());
                read_all(&graph);
            }
        }
        bytes[place] ^= 1 << (place % 8);
    }
    // Only changes in the padding between sections, which nothing reads, may go unnoticed.
    assert!(n_tried * 9 / 10 < n_found, "{n_found} of {n_tried}");
}

fn read_all(graph: &Graph) {
    let mut text = Vec::new();
    for number in 0..u32::try_from(graph.n_dois().min(500)).unwrap() {
        text.clear();
        graph.doi_into(number, &mut text);
        std::hint::black_box(graph.number_of(&String::from_utf8_lossy(&text)));
        graph.reference_rows(number).take(50).count();
        graph.citation_rows(number).take(5).count();
        for id in graph.local_ids(number) {
            graph.local_id_into(id, &mut text);
            std::hint::black_box((graph.doi_of_local_id(id), graph.spelling(id)));
        }
    }
}

/// A new release takes the name in one step; readers that have the old one open keep reading it.
#[test]
fn swap_leaves_readers_alone() {
    let folder = TempDir::new().unwrap();
    let edges = folder.path().join("edges.tsv");
    fs::write(&edges, "10.1/a\t10.1/b\n").unwrap();
    let options = options(std::slice::from_ref(&edges), folder.path());
    build(&options, &mut Collecting::default()).unwrap();
    let old = Graph::open(&options.out).unwrap();
    fs::write(&edges, "10.1/a\t10.1/b\n10.1/a\t10.1/c\n").unwrap();
    build(&options, &mut Collecting::default()).unwrap();
    let new = Graph::open(&options.out).unwrap();
    assert_eq!((old.n_citations(), new.n_citations()), (1, 2));
    old.verify().unwrap();
}

/// Ids, DOIs and spellings of a catalogue's table come back; first rows win; the order of the table is kept.
#[test]
fn local_ids() {
    let folder = TempDir::new().unwrap();
    let (edges, ids) = (folder.path().join("edges.tsv"), folder.path().join("ids.tsv"));
    fs::write(&edges, "10.1/a\t10.1/b\n").unwrap();
    let table = "z\t10.1/A\nb/2\thttps://doi.org/10.1/b.\nc\t10.1/lonely\na\t10.1/a\nz\t10.1/b\nbad row\nd\tno doi\n\t10.1/a\n";
    fs::write(&ids, table).unwrap();
    let options = BuildOptions { ids: vec![ids], ..options(&[edges], folder.path()) };
    let mut observer = Collecting::default();
    let summary = build(&options, &mut observer).unwrap();
    let graph = Graph::open(&options.out).unwrap();
    assert_eq!((summary.n_local_ids, summary.counts.n_id_duplicates, summary.n_spellings), (4, 1, 2));
    assert_eq!(observer.problems.iter().map(|it| it.line).collect::<Vec<_>>(), [6, 7, 8]);
    let doi_of = |id: &[u8]| graph.doi_of_local_id(graph.local_id_number(id)?).and_then(|it| graph.doi(it));
    assert_eq!(doi_of(b"z").as_deref(), Some("10.1/a"));
    assert_eq!(doi_of(b"b/2").as_deref(), Some("10.1/b"));
    assert_eq!(doi_of(b"c").as_deref(), Some("10.1/lonely"));
    assert_eq!(doi_of(b"none"), None);
    let ids_of = |doi: &str| -> Vec<String> {
        let text = |id| {
            let mut text = Vec::new();
            graph.local_id_into(id, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        graph.local_ids(graph.number_of(doi).unwrap()).map(text).collect()
    };
    assert_eq!(ids_of("10.1/a"), ["z", "a"]);
    assert_eq!(ids_of("10.1/lonely"), ["c"]);
    let spelling = |id: &[u8]| graph.spelling(graph.local_id_number(id).unwrap());
    assert_eq!(spelling(b"z"), Some("10.1/A"));
    assert_eq!(spelling(b"b/2"), Some("https://doi.org/10.1/b."));
    assert_eq!(spelling(b"a"), None);
}

/// The synthetic graph has the claimed shape, and is the same for the same seed.
#[test]
fn synthetic_shape() {
    let shape = Shape { n_dois: 2000, n_citations: 20_000, seed: 5 };
    let write = |shape| {
        let mut bytes = Vec::new();
        Synthetic::new(shape).write_edges(Format::Pairs, &mut bytes).unwrap();
        bytes
    };
    let bytes = write(shape);
    assert_eq!(bytes.iter().filter(|&&byte| byte == b'\n').count(), 20_000);
    assert!(bytes == write(shape));
    assert!(bytes != write(Shape { seed: 6, ..shape }));
    let (_folder, graph, summary, problems) = build_text(str::from_utf8(&bytes).unwrap());
    assert_eq!(problems, []);
    assert!(summary.n_citing < 1700 && 1200 < summary.n_citing, "{}", summary.n_citing);
    assert!(graph.n_citations() <= 20_000);
}
