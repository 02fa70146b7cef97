//! The options of a build.

use std::path::PathBuf;

/// What to build, and from which files.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Citation dumps: files of any compression that [`crate::source`] reads.
    pub edges: Vec<PathBuf>,
    /// OpenCitations Meta: which DOI, OMID and PMID name the same work. Needed if `edges` name works by OMID.
    pub works: Vec<PathBuf>,
    /// Tables of the catalogue: local id, tab, DOI.
    pub ids: Vec<PathBuf>,
    /// The graph file to build. The working folder is beside it, with `.building` appended to its name.
    pub out: PathBuf,
    /// Number of parser threads.
    pub n_threads: usize,
    /// Rows between two checkpoints from which an interrupted scan can resume.
    pub checkpoint_rows: u64,
    /// DOIs and OMIDs whose numbers are in memory at a time, 18 bytes each.
    pub keys_at_once: u64,
    /// How to treat a working folder left by a build from other or changed input.
    pub leftover: Leftover,
}

/// How to treat a working folder left by a build from other or changed input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// Keep it and stop the build: hours of work are not lost to a mistyped name.
    Refuse,
    /// Remove it and start again: a nightly job is not blocked by last night's failure.
    Remove,
}

impl BuildOptions {
    /// Default number of rows between checkpoints: about half a minute of work.
    pub const CHECKPOINT_ROWS: u64 = 32_000_000;
    /// Default number of keys in memory: 250 MB.
    pub const KEYS_AT_ONCE: u64 = 14_000_000;

    /// Builds `out` from `edges` alone, with the default limits and one thread per processor.
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
