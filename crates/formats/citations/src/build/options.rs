//! What a build is asked for.

use std::path::PathBuf;

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
