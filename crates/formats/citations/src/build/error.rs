//! Why a build stopped.

use std::io;
use std::path::PathBuf;

use crate::container::GraphError;
use crate::source::SourceError;

/// Why a build stopped. The working folder stays: the same build started again resumes.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A dump could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file that is not a table of citations.
    #[error(
        "{file}: not a citation table; its first line is {first_line:?}, expected are the columns citing and cited \
         by name, or two, six or seven columns"
    )]
    Layout {
        /// The file, members of archives after `!`.
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
    /// More DOIs than there are numbers.
    #[error("more than {} DOIs or local ids; split the input", u32::MAX)]
    TooMany,
    /// No seed avoids collisions of keys: cannot happen by chance.
    #[error("DOIs could not be told apart by any of {tried} hash seeds; were they chosen to collide?")]
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
    /// Each citation names its works by OMID, and no DOI is known for any.
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

/// Why a dump of OMIDs yields nothing.
pub(crate) const WITHOUT_META: &str =
    "and nothing tells their DOIs; give the dump of OpenCitations Meta as well (--meta)";

pub(crate) const META_OF_OTHERS: &str = "and the files of OpenCitations Meta (--meta) have a DOI for none of them; are they of the same release, and whole?";

/// Makes the error for a run that does not decode: only a changed file can be the cause.
pub(crate) fn torn_run() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a temporary file is damaged; remove the working folder")
}
