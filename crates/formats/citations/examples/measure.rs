//! Builds a graph from a dump and measures: build rate, memory peak, bytes per citation and per DOI, look-ups.
//!
//! ```text
//! cargo run --release -p pinakes-citations --example measure -- EDGES IDS|- OUT
//! ```

use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pinakes_citations::{BuildOptions, Graph, Observer, Problem, Progress, build};

const N_LOOKUPS: u64 = 1_000_000;

struct Silent {
    n_problems: u64,
}

impl Observer for Silent {
    fn progress(&mut self, _: Progress) {}

    fn problem(&mut self, problem: &Problem) {
        self.n_problems += 1;
        if self.n_problems <= 5 {
            eprintln!("{problem}");
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let [edges, ids, out] = arguments.as_slice() else { return Err("usage: measure EDGES IDS|- OUT".into()) };
    if !out.exists() {
        measure_build(edges, ids, out)?;
    }
    let start = Instant::now();
    let graph = Graph::open(out)?;
    eprintln!("open: {:?}", start.elapsed());
    report_sizes(&graph);
    report_lookups(&graph);
    let start = Instant::now();
    graph.verify()?;
    eprintln!("verify: {:?}", start.elapsed());
    Ok(())
}

fn measure_build(edges: &Path, ids: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let ids = if ids == Path::new("-") { Vec::new() } else { vec![ids.to_owned()] };
    let options = BuildOptions { ids, ..BuildOptions::new(vec![edges.to_owned()], out.to_owned()) };
    let start = Instant::now();
    let summary = build(&options, &mut Silent { n_problems: 0 })?;
    let seconds = start.elapsed().as_secs_f64();
    let n_rows = summary.counts.n_rows;
    eprintln!("build: {n_rows} rows in {seconds:.1} s, {:.0} citations/s", n_rows as f64 / seconds);
    eprintln!("processor time: {:.1} s", processor_seconds()?);
    eprintln!("memory peak: {}", memory_peak()?);
    eprintln!("{summary:#?}");
    Ok(())
}

/// User and system time of this process, in seconds; the kernel counts hundredths.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = status.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
}

fn memory_peak() -> std::io::Result<String> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    Ok(status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("unknown").to_owned())
}

fn report_sizes(graph: &Graph) {
    let (n_citations, n_dois) = (graph.n_citations() as f64, graph.n_dois() as f64);
    eprintln!("{n_dois} DOIs, {n_citations} citations, {} bytes", graph.len_bytes());
    for section in graph.sections() {
        let len = section.len_bytes as f64;
        let (per_citation, per_doi) = (len * 8.0 / n_citations, len / n_dois);
        eprintln!(
            "{:20} {len:12} bytes {per_citation:7.2} bits/citation {per_doi:7.2} bytes/DOI",
            section.name
        );
    }
}

fn report_lookups(graph: &Graph) {
    let n_dois = graph.n_dois();
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((u128::from(state) * u128::from(n_dois)) >> 64) as u32
    };
    let numbers: Vec<u32> = (0..N_LOOKUPS).map(|_| random()).collect();
    let each = |name: &str, start: Instant, n: u64| {
        eprintln!("{name}: {:.3} us", start.elapsed().as_secs_f64() * 1e6 / n as f64);
    };
    for round in ["cold", "warm"] {
        let start = Instant::now();
        let mut n_neighbours = 0_u64;
        for &number in &numbers {
            n_neighbours +=
                graph.references(number).map(u64::from).map(|it| black_box(it) & 1 | 1).sum::<u64>();
            n_neighbours +=
                graph.citations(number).map(u64::from).map(|it| black_box(it) & 1 | 1).sum::<u64>();
        }
        each(&format!("both lists of a random DOI ({round})"), start, N_LOOKUPS);
        each("  per neighbour", start, n_neighbours);
        let start = Instant::now();
        let mut text = Vec::new();
        for &number in &numbers {
            text.clear();
            black_box(graph.doi_into(number, &mut text));
        }
        each("DOI of a number", start, N_LOOKUPS);
        let dois: Vec<String> = numbers.iter().filter_map(|&number| graph.doi(number)).collect();
        let start = Instant::now();
        for doi in &dois {
            black_box(graph.number_of(doi));
        }
        each("number of a DOI", start, N_LOOKUPS);
        let start = Instant::now();
        for &number in &numbers {
            black_box(graph.local_ids(number).next());
        }
        each("first local id of a DOI", start, N_LOOKUPS);
        let start = Instant::now();
        let mut n_rows = 0;
        for &number in &numbers[..20_000] {
            n_rows += graph.citation_rows(number).map(black_box).count() as u64;
        }
        each("citation with what it says, incoming", start, n_rows);
    }
    let hub = graph.summary().max_citations;
    let start = Instant::now();
    black_box(graph.citations(hub.number).map(black_box).count());
    eprintln!("list of the greatest hub ({}): {:?}", hub.n, start.elapsed());
}
