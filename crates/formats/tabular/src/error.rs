//! Why a table could not be read.

use std::io;

/// Results of this crate.
pub type Result<T, E = TabularError> = std::result::Result<T, E>;

/// Why a table could not be read. Offsets count bytes from the start of the file, lines and rows from 1.
#[derive(Debug, thiserror::Error)]
pub enum TabularError {
    /// The file ends before the announced data.
    #[error("byte {offset}: the file ends within {what}; was it cut off?")]
    CutOff {
        /// The position.
        offset: u64,
        /// What was being read.
        what: &'static str,
    },
    /// It violates the format.
    #[error("byte {offset}: {what}")]
    Damaged {
        /// The position.
        offset: u64,
        /// What was found and what was expected.
        what: String,
    },
    /// A line of delimited text has another number of cells than the line of names.
    #[error("line {line}: {found} cells, but the line of names has {expected}")]
    Cells {
        /// The line.
        line: u64,
        /// Cells in it.
        found: usize,
        /// Cells in the line of names.
        expected: usize,
    },
    /// A line of delimited text cannot be read.
    #[error("line {line}: {what}")]
    Line {
        /// The line.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// It is a variant of the format that this crate does not read.
    #[error("{0}")]
    Unsupported(String),
    /// It exceeds the limits.
    #[error("{what}: {found}, at most {most} are read")]
    TooLarge {
        /// What exceeds them.
        what: &'static str,
        /// The number found.
        found: u64,
        /// The maximum.
        most: u64,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
