//! Faults of rows: reported with file, line and reason; never a reason to stop.

use crate::doi::DoiError;

/// Maximum number of characters of a bad value that a problem quotes.
const EXCERPT_LEN_MAX_CHARS: usize = 80;

/// A row or a field that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file; members of an archive as `dump.zip!part-1.csv`.
    pub file: String,
    /// Line in the file, from 1.
    pub line: u64,
    /// What is wrong.
    pub reason: Reason,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}: {}", self.file, self.line, self.reason)
    }
}

/// What is wrong with a row or a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The row has another number of fields than its header.
    #[error("row skipped: {found} fields, {expected} expected; is a quote or a separator missing?")]
    FieldCount {
        /// Fields of the row.
        found: usize,
        /// Fields of the header.
        expected: usize,
    },
    /// The line is too long to be a row.
    #[error(
        "row skipped: the line is longer than {max} bytes; is the file no table, or a quote never closed?"
    )]
    TooLong {
        /// The bound, in bytes.
        max: usize,
    },
    /// An identifier that is neither a DOI nor an OMID.
    #[error("row skipped: {column} {value:?} {error}")]
    NotADoi {
        /// The column's name.
        column: &'static str,
        /// The value, cut if long.
        value: String,
        /// Why it is not a DOI.
        error: DoiError,
    },
    /// A row of an identifier map without the identifier that it maps.
    #[error("row skipped: {column} is empty")]
    NoIdentifier {
        /// The column's name.
        column: &'static str,
    },
    /// A local id with control characters.
    #[error("row skipped: id {value:?} has control characters; is the file a table?")]
    ControlInId {
        /// The id, cut if long.
        value: String,
    },
    /// A field with an invalid value; the row is kept without it.
    #[error("field left empty: {column} {value:?} is not {expected}")]
    Field {
        /// The column's name.
        column: &'static str,
        /// The value, cut if long.
        value: String,
        /// The expected form of a value.
        expected: &'static str,
    },
}

impl Reason {
    /// Returns whether the row was left out; otherwise only a field was.
    #[must_use]
    pub fn skips_row(&self) -> bool {
        !matches!(self, Self::Field { .. })
    }
}

/// Returns a bad value as a problem quotes it: lossy UTF-8, bounded.
pub(crate) fn excerpt(value: &[u8]) -> String {
    let head = &value[..value.len().min(4 * EXCERPT_LEN_MAX_CHARS)];
    let mut text: String = String::from_utf8_lossy(head).chars().take(EXCERPT_LEN_MAX_CHARS).collect();
    if text.len() < value.len() {
        text.push('…');
    }
    text
}
