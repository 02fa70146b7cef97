//! Builds a graph file from dumps of any size in bounded memory, by external sorting.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | scan | the dumps, once | citations as 63-bit keys of their ends, spread over files by the citing key; all DOIs, sorted in runs |
//! | number | DOI runs | the DOIs in order, which numbers them; key → number, spread as the citations are |
//! | join | citations, keys | citations as pairs of numbers, sorted in runs by either end |
//! | encode | pair runs | the sections: lists both ways, dates, exceptions, dictionary, identifiers |
//! | join sections | sections | the graph file, under a temporary name, then renamed |
//!
//! Memory: about 130 MB remember which DOIs were seen lately, two batches of each sorter, one table of keys (its size
//! is bounded by looking at a share of the keys at a time), and 2 to 4 bits per DOI. Everything else is files in a
//! folder beside the output. The state is saved after each stage, and within the scan every
//! [`BuildOptions::checkpoint_rows`] rows, so an interrupted build goes on from there.
//!
//! Keys: a DOI's is a 63-bit hash, an OMID's a bijection of its number. Two DOIs of one key would be mixed up; all DOIs
//! meet when keys are numbered, so this is noticed, and the build starts anew with another seed.

mod disk;
mod encode;
mod identifiers;
mod join;
mod keys;
mod local_ids;
mod number;
mod pairs;
mod parse;
mod scan;
mod section;
mod spool;
mod texts;
mod workspace;

pub(crate) use disk::sync;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::container::{GraphError, Section, write_container};
use crate::graph::Graph;
use crate::problem::Problem;
use crate::source::SourceError;
use crate::summary::Summary;
use workspace::{Stage, Workspace};

/// What to build from what.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Citation dumps: files of any packing that [`crate::source`] reads.
    pub edges: Vec<PathBuf>,
    /// OpenCitations Meta: which DOI, OMID and PMID name the same work. Needed if `edges` name works by OMID.
    pub works: Vec<PathBuf>,
    /// Tables of the catalogue: local id, tab, DOI.
    pub ids: Vec<PathBuf>,
    /// The graph file to make. The working folder is beside it, with `.building` behind its name.
    pub out: PathBuf,
    /// Threads that parse.
    pub n_threads: usize,
    /// Rows between two points that an interrupted scan can go on from.
    pub checkpoint_rows: u64,
    /// DOIs and OMIDs whose numbers are in memory at a time, 18 bytes each.
    pub keys_at_once: u64,
    /// What becomes of a working folder that a build from other or changed input left.
    pub leftover: Leftover,
}

/// What becomes of a working folder that a build from other or changed input left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// It stays, and the build stops: hours of work are not lost to a mistyped name.
    Refuse,
    /// It is removed, and the build starts anew: what runs by itself each night is not held up by what failed last night.
    Remove,
}

impl BuildOptions {
    /// Rows between checkpoints if nothing else is asked: about half a minute of work.
    pub const CHECKPOINT_ROWS: u64 = 32_000_000;
    /// Keys in memory if nothing else is asked: 250 MB.
    pub const KEYS_AT_ONCE: u64 = 14_000_000;

    /// Makes `out` from `edges` alone, with the usual bounds and one thread per processor.
    #[must_use]
    pub fn new(edges: Vec<PathBuf>, out: PathBuf) -> Self {
        Self {
            edges,
            works: Vec::new(),
            ids: Vec::new(),
            out,
            n_threads: std::thread::available_parallelism().map_or(1, usize::from),
            checkpoint_rows: Self::CHECKPOINT_ROWS,
            keys_at_once: Self::KEYS_AT_ONCE,
            leftover: Leftover::Refuse,
        }
    }
}

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub step: Step,
    /// Units done, see [`Step::unit`].
    pub n_done: u64,
    /// Units in all, if known.
    pub n_total: Option<u64>,
    /// Rows read so far.
    pub n_rows: u64,
}

/// What a build is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Reading the dumps.
    Scan,
    /// Numbering DOIs.
    Number,
    /// Replacing keys by numbers.
    Join,
    /// Writing whom each DOI cites.
    References,
    /// Writing who cites each DOI.
    Citations,
    /// Writing the dictionary and joining the sections.
    Finish,
}

impl Step {
    /// The step as a word for a progress line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Number => "number",
            Self::Join => "join",
            Self::References => "references",
            Self::Citations => "citations",
            Self::Finish => "finish",
        }
    }

    /// What [`Progress::n_done`] counts.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Scan => "bytes",
            Self::Number | Self::Finish => "DOIs",
            Self::Join | Self::References | Self::Citations => "citations",
        }
    }
}

/// Who is told how a build goes.
pub trait Observer {
    /// Called some hundred times per step.
    fn progress(&mut self, progress: Progress);
    /// Called for every row or field that could not be used.
    fn problem(&mut self, problem: &Problem);
}

/// Why a build stopped. The working folder stays: the same build started again goes on.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A dump could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file that is no table of citations.
    #[error(
        "{file}: not a citation table; its first line is {first_line:?}, expected are the columns citing and cited \
         by name, or two, six or seven columns"
    )]
    Layout {
        /// The file, members of archives behind `!`.
        file: String,
        /// Its first line, cut if long.
        first_line: String,
    },
    /// The working folder could not be read or written.
    #[error(
        "working folder of the build: {0}; is the disk full? Started again, the build goes on where it was"
    )]
    Work(#[from] io::Error),
    /// Another process builds the same file.
    #[error("{folder}: another build is at work here; wait for it, or give another output")]
    Busy {
        /// The working folder.
        folder: PathBuf,
    },
    /// The working folder belongs to a build from other files.
    #[error(
        "{folder}: left by a build from other or changed input ({what}); remove this folder to start anew"
    )]
    OtherBuild {
        /// The working folder.
        folder: PathBuf,
        /// What differs.
        what: String,
    },
    /// More DOIs than numbers.
    #[error("more than {} DOIs or local ids; split the input", u32::MAX)]
    TooMany,
    /// No seed keeps the keys apart: cannot happen by chance.
    #[error("DOIs could not be told apart by any of {tried} hash seeds; is the input made to collide?")]
    Collisions {
        /// Seeds tried.
        tried: u64,
    },
    /// There is nothing to build from.
    #[error("not one usable citation in the input ({n_rows} rows read); is it the right file?")]
    Nothing {
        /// Rows read.
        n_rows: u64,
    },
    /// Every citation names its works by OMID, and no DOI is known of any.
    #[error("all {n_rows} citations name their works by OMID, {told}")]
    NoDois {
        /// Citations.
        n_rows: u64,
        /// Why no DOI is known, and what to do.
        told: &'static str,
    },
    /// The finished file does not open.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Why a dump of OMIDs gives nothing.
pub(crate) const WITHOUT_META: &str =
    "and nothing tells their DOIs; give the dump of OpenCitations Meta as well (--meta)";
const META_OF_OTHERS: &str = "and the files of OpenCitations Meta (--meta) have a DOI for none of them; are they of the same release, and whole?";

/// Seeds tried before giving up; one suffices but for one build in a thousand of the largest size.
const SEEDS_MAX: u64 = 4;

/// Builds the graph file, or goes on with a build that was interrupted.
///
/// The file appears at [`BuildOptions::out`] when it is complete and on disk, replacing what is there in one step:
/// programs that have the old one open keep it until they open anew.
///
/// # Errors
/// [`BuildError`]. Bad rows are no errors: the observer gets them.
pub fn build(options: &BuildOptions, observer: &mut dyn Observer) -> Result<Summary, BuildError> {
    let complete = build_beside(options, observer)?;
    complete.publish()
}

/// Builds the graph file, but leaves it beside the output until [`CompleteBuild::publish`] is called.
///
/// # Errors
/// As [`build`].
pub fn build_beside(
    options: &BuildOptions,
    observer: &mut dyn Observer,
) -> Result<CompleteBuild, BuildError> {
    let mut work = Workspace::open(options)?;
    while work.plan.stage != Stage::Complete {
        match advance(&mut work, options, observer) {
            // Nothing of it can serve a build with more files.
            Err(error @ BuildError::NoDois { .. }) => {
                work.remove()?;
                return Err(error);
            }
            advanced => advanced?,
        }
    }
    Ok(CompleteBuild { work, out: options.out.clone() })
}

fn advance(
    work: &mut Workspace,
    options: &BuildOptions,
    observer: &mut dyn Observer,
) -> Result<(), BuildError> {
    let next = match work.plan.stage {
        Stage::Scan => {
            scan::scan(work, options, observer)?;
            if work.plan.counts.n_rows_kept == 0 {
                return Err(BuildError::Nothing { n_rows: work.plan.counts.n_rows });
            }
            Stage::Number
        }
        Stage::Number => match number::number(work, options.keys_at_once, observer)? {
            number::Numbered::Distinct => Stage::Join,
            number::Numbered::Collision if work.plan.seed + 1 < SEEDS_MAX => {
                work.start_over()?;
                Stage::Scan
            }
            number::Numbered::Collision => return Err(BuildError::Collisions { tried: SEEDS_MAX }),
        },
        Stage::Join => {
            join::join(work, options.keys_at_once, observer)?;
            let counts = &work.plan.counts;
            if counts.n_without_doi == counts.n_rows_kept {
                return Err(BuildError::NoDois { n_rows: counts.n_rows_kept, told: META_OF_OTHERS });
            }
            Stage::Encode
        }
        Stage::Encode => {
            // Not at the end of the join: until this stage is entered, the join may have to be done again.
            join::remove_used_up(work)?;
            let sections = encode::encode(work, observer)?;
            write_container(&work.path(workspace::COMPLETE), &sections)?;
            Stage::Complete
        }
        Stage::Complete => Stage::Complete,
    };
    work.enter(next)?;
    Ok(())
}

/// A graph file that is complete but not yet in its place.
#[derive(Debug)]
pub struct CompleteBuild {
    work: Workspace,
    out: PathBuf,
}

impl CompleteBuild {
    /// The complete file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.work.path(workspace::COMPLETE)
    }

    /// Puts the file into its place in one step, on disk, and removes the working folder. Killed in between, the same build
    /// does it again.
    ///
    /// # Errors
    /// [`BuildError::Graph`] if it does not open, [`BuildError::Work`] if it cannot be renamed.
    pub fn publish(self) -> Result<Summary, BuildError> {
        let summary = Graph::open(&self.path())?.summary().clone();
        self.take_place()?;
        let folder = self.out.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        disk::sync_folder(folder)?;
        self.work.remove()?;
        Ok(summary)
    }

    /// Removes the file with the working folder: the same build starts anew.
    ///
    /// # Errors
    /// [`BuildError::Work`] if the folder cannot be removed.
    pub fn discard(self) -> Result<(), BuildError> {
        Ok(self.work.remove()?)
    }

    /// Gives the file its name. Where the file system has hard links it keeps the one in the working folder until that is
    /// removed.
    fn take_place(&self) -> io::Result<()> {
        let second = self.work.path("publishing");
        match fs::remove_file(&second) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match fs::hard_link(self.path(), &second) {
            Ok(()) => fs::rename(second, &self.out),
            Err(_) => fs::rename(self.path(), &self.out),
        }
    }
}

/// Whether the file at `out` is that of a build that was killed while it was published: the same build finishes that.
#[must_use]
pub fn is_half_published(out: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    let kept = identity(&workspace::folder_of(out).join(workspace::COMPLETE));
    kept.is_some() && kept == identity(out)
}

/// Sections in the order of the file, with where they are.
type Sections = Vec<(Section, PathBuf)>;

/// A run that does not decode: only a changed file can be the cause.
fn torn_run() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a temporary file is damaged; remove the working folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Observer for Silent {
        fn progress(&mut self, _: Progress) {}

        fn problem(&mut self, _: &Problem) {}
    }

    /// The moment between the end of the join and the stage behind it.
    #[test]
    fn a_build_killed_at_the_end_of_the_join_goes_on() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let (edges, ids) = (folder.path().join("edges.tsv"), folder.path().join("ids.tsv"));
        fs::write(&edges, "10.1/a\t10.1/b\n10.1/a\t10.1/c\n")?;
        fs::write(&ids, "x\t10.1/a\n")?;
        let mut options = BuildOptions {
            ids: vec![ids],
            n_threads: 1,
            ..BuildOptions::new(vec![edges], folder.path().join("whole"))
        };
        build(&options, &mut Silent)?;
        let whole = fs::read(&options.out)?;
        options.out = folder.path().join("killed");
        let mut work = Workspace::open(&options)?;
        while work.plan.stage != Stage::Join {
            advance(&mut work, &options, &mut Silent)?;
        }
        join::join(&mut work, options.keys_at_once, &mut Silent)?;
        drop(work);
        build(&options, &mut Silent)?;
        assert!(fs::read(&options.out)? == whole);
        Ok(())
    }

    /// Failures of the power in the test of it, spread over the whole build.
    const CUTS: u64 = 24;

    /// Wherever the power fails, the build goes on from what the disk holds then and gives the same file.
    #[test]
    fn a_build_survives_power_failures() -> Result<(), Box<dyn std::error::Error>> {
        let inputs = tempfile::tempdir()?;
        let (edges, ids) = (inputs.path().join("edges.tsv"), inputs.path().join("ids.tsv"));
        let rows: String = (0..600).map(|n| format!("10.1/{}\t10.1/{}\n", n % 97, n % 89)).collect();
        fs::write(&edges, rows)?;
        fs::write(&ids, (0..60).map(|n| format!("x{n}\t10.1/{n}\n")).collect::<String>())?;
        let options = |out: PathBuf| BuildOptions {
            ids: vec![ids.clone()],
            n_threads: 1,
            checkpoint_rows: 200,
            ..BuildOptions::new(vec![edges.clone()], out)
        };
        let whole = inputs.path().join("whole");
        build(&options(whole.clone()), &mut Silent)?;
        let whole = fs::read(whole)?;
        let folder = tempfile::tempdir()?;
        let begin = options(folder.path().join("graph"));
        let work = || drop(build(&begin, &mut Silent).map_err(|error| panic!("{error}")));
        let n_requests = disk::power::n_requests(folder.path(), work);
        assert!(CUTS < n_requests, "the disk is asked {n_requests} times");
        for seed in 0..CUTS {
            let cut_at = 1 + seed * n_requests / CUTS;
            let folder = tempfile::tempdir()?;
            let begin = options(folder.path().join("graph"));
            let work = || drop(build(&begin, &mut Silent).map_err(|error| panic!("{error}")));
            let found = disk::power::failing(folder.path(), cut_at, seed, work);
            let found = found.ok_or_else(|| format!("request {cut_at} of {n_requests} was not made"))?;
            let after = tempfile::tempdir()?;
            for (name, bytes) in &found {
                let path = after.path().join(name);
                fs::create_dir_all(path.parent().unwrap_or(after.path()))?;
                fs::write(path, bytes)?;
            }
            let go_on = options(after.path().join("graph"));
            let told = || format!("request {cut_at} of {n_requests}, seed {seed}, found {:?}", found.keys());
            build(&go_on, &mut Silent).map_err(|error| format!("{}: {error}", told()))?;
            assert!(fs::read(&go_on.out)? == whole, "{}: another graph", told());
        }
        Ok(())
    }
}
