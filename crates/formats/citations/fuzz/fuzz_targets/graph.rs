//! A small sound graph file with bytes changed: refused, or read without harm.
//!
//! The input is pairs of a place (4 bytes) and a byte. Checksums are not corrected, so through the header only the
//! parts they do not cover and the refusal itself are reached; the sections are read unverified, as a server does.

#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pinakes_citations::{BuildOptions, Graph, Observer, Problem, Progress, build};
use tempfile::TempDir;

struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: Progress) {}

    fn problem(&mut self, _: &Problem) {}
}

static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    let edges = folder.path().join("edges.csv");
    let rows: String = (0..500).map(|n| format!("10.1/{},10.1/{}\n", n * 7 % 90, n * n % 70)).collect();
    fs::write(&edges, rows).unwrap();
    let out = folder.path().join("graph");
    let options = BuildOptions::new(vec![edges], out.clone());
    build(&options, &mut Silent).unwrap();
    fs::read(out).unwrap()
});

fuzz_target!(|changes: &[u8]| {
    let mut bytes = SOUND.clone();
    for change in changes.chunks_exact(5) {
        let place = u32::from_le_bytes([change[0], change[1], change[2], change[3]]) as usize % bytes.len();
        bytes[place] = change[4];
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("graph");
    fs::write(&path, &bytes).unwrap();
    let Ok(graph) = Graph::open(&path) else { return };
    graph.verify().ok();
    for number in 0..100 {
        let doi = graph.doi(number).unwrap_or_default();
        std::hint::black_box((graph.number_of(&doi), graph.reference_rows(number).count()));
        std::hint::black_box(graph.citation_rows(number).count());
    }
});
