//! The result of reading one raw record of any format into an owned one.

use crate::problem::{Problem, Severity, worst};
use crate::record::Record;

/// The result of reading one record: the record if there is one, and all problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedRecord {
    /// Number in the input, from 1.
    pub number: u64,
    /// Where it begins, in bytes from the start of the input.
    pub offset: u64,
    /// The record; `None` if nothing of it could be read.
    pub record: Option<Record>,
    /// Where each field begins, in bytes from the start of the input; as long as the record's fields.
    pub field_offsets: Vec<u64>,
    /// What is wrong, from the boundaries of the record to its texts.
    pub problems: Vec<Problem>,
}

impl ParsedRecord {
    /// Returns the severity of the worst problem; `None` if there is none.
    #[must_use]
    pub fn severity(&self) -> Option<Severity> {
        worst(&self.problems)
    }

    /// Returns the record if nothing of it was lost: with warnings, but without losses.
    #[must_use]
    pub fn complete(&self) -> Option<&Record> {
        self.record.as_ref().filter(|_| self.severity() < Some(Severity::Loss))
    }
}
