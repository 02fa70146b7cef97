//! `pinakes citations`: builds the citation graph from dumps, replaces it by a new release, inspects it.
//!
//! The work is done in `pinakes-citations`; this file has the flags, the progress and the output. Results go to
//! standard output, progress and bad rows to standard error.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use pinakes_citations::{
    BuildOptions, CompleteBuild, Doi, Graph, Leftover, Observer, Problem, Progress, Step, Summary,
    build_beside, is_half_published,
};

/// Number of bad rows that are printed individually if no file receives them.
const PROBLEMS_SHOWN_MAX: u64 = 20;
/// Time between two lines of progress where there is no terminal.
const PLAIN_PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// Number of neighbours that `lookup` prints by default.
const NEIGHBOURS_SHOWN: usize = 20;
/// Percentage of the citations that an update may lose by default.
const SHRINK_LIMIT_PERCENT: u8 = 5;

/// Builds the citation graph from dumps, replaces it by a new release, inspects it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Build a graph file. Started again after an interruption, it resumes where it was.
    Build(BuildArgs),
    /// Build a new graph beside the one in use, check it, and replace the one in use in one step.
    Update(UpdateArgs),
    /// Print counts and sizes of a graph file.
    Stats(GraphArgs),
    /// Print what a DOI cites and what cites it.
    Lookup(LookupArgs),
    /// Read a whole graph file and compare its checksums.
    Verify(GraphArgs),
}

#[derive(Debug, clap::Args)]
struct BuildArgs {
    /// Citation dumps: CSV or TSV, plain, gzip, zstd, zip, zip of zips.
    #[arg(long, required = true, num_args = 1..)]
    edges: Vec<PathBuf>,
    /// `OpenCitations` Meta CSV, or OMID, tab, DOI: needed for dumps that name works by OMID.
    #[arg(long, num_args = 1..)]
    meta: Vec<PathBuf>,
    /// The catalogue's table: local id, tab, DOI.
    #[arg(long, num_args = 1..)]
    ids: Vec<PathBuf>,
    /// The graph file to build.
    #[arg(long)]
    out: PathBuf,
    /// Parser threads [default: all processors].
    #[arg(long)]
    threads: Option<usize>,
    /// File that receives every bad row: file, line, reason. Otherwise the first ones are printed.
    #[arg(long)]
    problems: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct UpdateArgs {
    #[command(flatten)]
    build: BuildArgs,
    /// Refuse a new graph that has this many per cent fewer citations than the one in use: a sign of a broken
    /// download.
    #[arg(long, default_value_t = SHRINK_LIMIT_PERCENT, value_parser = clap::value_parser!(u8).range(0..=100))]
    shrink_limit_percent: u8,
}

#[derive(Debug, clap::Args)]
struct GraphArgs {
    /// The graph file.
    #[arg(long)]
    graph: PathBuf,
}

#[derive(Debug, clap::Args)]
struct LookupArgs {
    /// The graph file.
    #[arg(long)]
    graph: PathBuf,
    /// The DOI, in any usual spelling.
    doi: String,
    /// Neighbours to print in each direction.
    #[arg(long, default_value_t = NEIGHBOURS_SHOWN)]
    limit: usize,
}

/// Runs the command.
///
/// # Errors
/// Faults of the input, the disk or the graph file, with what to do.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match args.command {
        Command::Build(args) => build(&args, &mut out)?,
        Command::Update(args) => update(&args, &mut out)?,
        Command::Stats(args) => stats(&open(&args.graph)?, &mut out)?,
        Command::Lookup(args) => lookup(&args, &mut out)?,
        Command::Verify(args) => verify(&args.graph, &mut out)?,
    }
    Ok(out.flush()?)
}

fn build(args: &BuildArgs, out: &mut impl Write) -> anyhow::Result<()> {
    // A build that was killed while publishing is finished.
    ensure!(
        !args.out.exists() || is_half_published(&args.out),
        "{} exists; `pinakes citations update` replaces it",
        args.out.display()
    );
    let summary = build_reporting(args, Leftover::Refuse)?.publish()?;
    write_counts(&summary, out)
}

fn update(args: &UpdateArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let complete = build_reporting(&args.build, Leftover::Remove)?;
    let verified = open(&complete.path()).and_then(|new| Ok(new.verify().map(|()| new)?));
    let new = match verified {
        Ok(new) => new,
        Err(error) => {
            // Otherwise the next update would find the same file, complete.
            complete.discard()?;
            return Err(error);
        }
    };
    if args.build.out.exists() {
        let old = open(&args.build.out)?;
        check_shrinkage(&old, &new, args.shrink_limit_percent).with_context(|| {
            format!("{} stays; the new graph is {}", args.build.out.display(), complete.path().display())
        })?;
    }
    drop(new);
    let summary = complete.publish()?;
    write_counts(&summary, out)
}

fn check_shrinkage(old: &Graph, new: &Graph, limit_percent: u8) -> anyhow::Result<()> {
    let (n_old, n_new) = (old.n_citations(), new.n_citations());
    let n_least = u128::from(n_old) * u128::from(100 - limit_percent) / 100;
    if u128::from(n_new) < n_least {
        bail!(
            "the new graph has {n_new} citations, the one in use {n_old}: more than {limit_percent} % fewer; \
             is the dump complete? --shrink-limit-percent allows it"
        );
    }
    Ok(())
}

fn build_reporting(args: &BuildArgs, leftover: Leftover) -> anyhow::Result<CompleteBuild> {
    let mut options = BuildOptions {
        works: args.meta.clone(),
        ids: args.ids.clone(),
        leftover,
        ..BuildOptions::new(args.edges.clone(), args.out.clone())
    };
    options.n_threads = args.threads.unwrap_or(options.n_threads);
    let mut reporter = Reporter::new(args.problems.as_deref())?;
    let complete = build_beside(&options, &mut reporter)?;
    reporter.finish()?;
    Ok(complete)
}

/// Shows the progress of a build: a bar on a terminal, a line now and then elsewhere.
struct Reporter {
    bar: Option<ProgressBar>,
    step: Option<Step>,
    step_since: Instant,
    last_line: Instant,
    problems: Option<BufWriter<File>>,
    /// A full disk must not stop a build that lasts hours; it is reported at the end.
    problem_error: Option<io::Error>,
    n_problems: u64,
}

impl Reporter {
    fn new(problems: Option<&Path>) -> anyhow::Result<Self> {
        let create = |path: &Path| File::create(path).with_context(|| format!("creating {}", path.display()));
        let now = Instant::now();
        Ok(Self {
            bar: io::stderr().is_terminal().then(|| ProgressBar::new(0)),
            step: None,
            step_since: now,
            last_line: now,
            problems: problems.map(create).transpose()?.map(BufWriter::new),
            problem_error: None,
            n_problems: 0,
        })
    }

    fn begin(&mut self, progress: Progress) {
        self.step = Some(progress.step);
        self.step_since = Instant::now();
        let Some(bar) = &self.bar else { return };
        let done =
            if progress.step == Step::Scan { "{bytes}/{total_bytes}" } else { "{human_pos}/{human_len}" };
        let template = format!("{{prefix:10}} {{wide_bar}} {done} {{eta}} {{msg}}");
        // A template that does not parse leaves the plain style: the build matters more.
        bar.set_style(
            ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.reset();
        bar.set_prefix(progress.step.name());
    }

    fn line(&self, progress: Progress) {
        let total = progress.n_total.map(|n| format!(" of {n}")).unwrap_or_default();
        let seconds = self.step_since.elapsed().as_secs();
        let (step, unit) = (progress.step.name(), progress.step.unit());
        eprintln!("{step}: {}{total} {unit}, {} rows, {seconds} s", progress.n_done, progress.n_rows);
    }

    fn write_problem(&mut self, problem: &Problem) {
        match &mut self.problems {
            Some(file) => {
                if let Err(error) = writeln!(file, "{}\t{}\t{}", problem.file, problem.line, problem.reason) {
                    self.problem_error.get_or_insert(error);
                }
            }
            None if self.n_problems <= PROBLEMS_SHOWN_MAX => self.print(&problem.to_string()),
            None => {}
        }
    }

    fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    fn finish(mut self) -> anyhow::Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if self.problems.is_none() && PROBLEMS_SHOWN_MAX < self.n_problems {
            let n_more = self.n_problems - PROBLEMS_SHOWN_MAX;
            eprintln!("{n_more} more rows or fields could not be used; --problems FILE lists them all");
        }
        if let Some(error) = self.problem_error {
            return Err(error).context("writing the list of bad rows");
        }
        self.problems.map_or(Ok(()), |mut file| file.flush()).context("writing the list of bad rows")
    }
}

impl Observer for Reporter {
    fn progress(&mut self, progress: Progress) {
        if self.step != Some(progress.step) {
            self.begin(progress);
        }
        match &self.bar {
            Some(bar) => {
                bar.set_length(progress.n_total.unwrap_or(progress.n_done));
                bar.set_position(progress.n_done);
                bar.set_message(format!("{} rows", progress.n_rows));
            }
            None if PLAIN_PROGRESS_EVERY <= self.last_line.elapsed() => {
                self.last_line = Instant::now();
                self.line(progress);
            }
            None => {}
        }
    }

    fn problem(&mut self, problem: &Problem) {
        self.n_problems += 1;
        self.write_problem(problem);
    }
}

fn open(path: &Path) -> anyhow::Result<Graph> {
    Ok(Graph::open(path)?)
}

fn verify(path: &Path, out: &mut impl Write) -> anyhow::Result<()> {
    let graph = open(path)?;
    graph.verify()?;
    Ok(writeln!(out, "{}: {} bytes, every checksum right", path.display(), graph.len_bytes())?)
}

fn stats(graph: &Graph, out: &mut impl Write) -> anyhow::Result<()> {
    write_counts(graph.summary(), out)?;
    let extremes =
        [("most references", graph.summary().max_references), ("most cited", graph.summary().max_citations)];
    for (name, extreme) in extremes {
        writeln!(out, "{name:20} {:>15}  {}", extreme.n, graph.doi(extreme.number).unwrap_or_default())?;
    }
    writeln!(out, "\n{:20} {:>15}  bits per citation  bytes per DOI", "section", "bytes")?;
    let per = |len_bytes: u64, n: u64| len_bytes as f64 / n.max(1) as f64;
    for section in graph.sections() {
        let bits_per_citation = 8.0 * per(section.len_bytes, graph.n_citations());
        let bytes_per_doi = per(section.len_bytes, graph.n_dois());
        writeln!(
            out,
            "{:20} {:>15} {bits_per_citation:>18.2} {bytes_per_doi:>14.2}",
            section.name, section.len_bytes
        )?;
    }
    Ok(writeln!(out, "{:20} {:>15}", "whole file", graph.len_bytes())?)
}

fn write_counts(summary: &Summary, out: &mut impl Write) -> anyhow::Result<()> {
    let counts = &summary.counts;
    let lines = [
        ("DOIs", summary.n_dois),
        ("  that cite", summary.n_citing),
        ("  that are cited", summary.n_cited),
        ("  with a date", summary.n_dated),
        ("  with inferred date", summary.n_inferred),
        ("citations", summary.n_citations),
        ("  self-loops", summary.n_self_loops),
        ("  date exceptions", summary.n_exceptions),
        ("local ids", summary.n_local_ids),
        ("further DOIs", summary.n_other_dois),
        ("OMIDs", summary.n_omids),
        ("PubMed numbers", summary.n_pmids),
        ("rows read", counts.n_rows),
        ("  duplicates", counts.n_duplicates),
        ("  without DOI", counts.n_without_doi),
        ("rows skipped", counts.n_rows_skipped),
        ("fields skipped", counts.n_fields_skipped),
        ("Meta rows read", counts.n_work_rows),
        ("id rows read", counts.n_id_rows),
        ("  duplicates", counts.n_id_duplicates),
    ];
    for (name, n) in lines {
        writeln!(out, "{name:20} {n:>15}")?;
    }
    Ok(())
}

fn lookup(args: &LookupArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let graph = open(&args.graph)?;
    let doi = Doi::parse(&args.doi).with_context(|| format!("{:?} is no DOI", args.doi))?;
    let number = graph.number_of(doi.as_str()).with_context(|| format!("{doi} is not in the graph"))?;
    writeln!(out, "{doi}  number {number}")?;
    if let Some(date) = graph.date(number) {
        writeln!(out, "published {date}")?;
    }
    if let Some(omid) = graph.omid(number) {
        writeln!(out, "{omid}")?;
    }
    for id in graph.local_ids(number) {
        let mut text = Vec::new();
        graph.local_id_into(id, &mut text);
        writeln!(out, "local id {}", String::from_utf8_lossy(&text))?;
    }
    writeln!(out, "cites {}", graph.references(number).len())?;
    write_neighbours(&graph, graph.reference_rows(number), args.limit, out)?;
    writeln!(out, "cited by {}", graph.citations(number).len())?;
    write_neighbours(&graph, graph.citation_rows(number), args.limit, out)
}

fn write_neighbours(
    graph: &Graph,
    rows: impl Iterator<Item = (u32, pinakes_citations::Citation)>,
    limit: usize,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    for (number, citation) in rows.take(limit) {
        let creation = citation.creation.map(|it| it.to_string()).unwrap_or_default();
        let timespan = citation.timespan.map(|it| it.to_string()).unwrap_or_default();
        writeln!(out, "  {}\t{creation}\t{timespan}", graph.doi(number).unwrap_or_default())?;
    }
    Ok(())
}
