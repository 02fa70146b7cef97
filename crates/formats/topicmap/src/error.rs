//! Errors about a refused document, and warnings about one that was read with something left out.

use std::fmt;

/// Why a document was refused: which one, the line, and what was wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct Error {
    /// Where the fault was found.
    pub place: Place,
    /// What was found, what was expected.
    pub reason: String,
}

/// A line of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// IRI of the document, as it was given or loaded.
    pub document: String,
    /// From 1; 0 if the fault is in the whole document, as with two items that must not be one.
    pub line: u64,
}

impl Place {
    pub(crate) fn new(document: &str, line: u64) -> Place {
        Place { document: document.to_owned(), line }
    }

    pub(crate) fn fault(&self, reason: impl Into<String>) -> Error {
        Error { place: self.clone(), reason: reason.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => out.write_str(&self.document),
            line => write!(out, "{}, line {line}", self.document),
        }
    }
}

/// Something that was left out or read differently from the standard. Only lenient reading produces these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where it was found.
    pub place: Place,
    /// What was found and how it was read.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.text)
    }
}
