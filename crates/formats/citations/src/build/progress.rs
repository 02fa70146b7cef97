//! Reports of a build's progress.

use crate::problem::Problem;

/// The progress of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The current step.
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
    /// Writing what each DOI cites.
    References,
    /// Writing what cites each DOI.
    Citations,
    /// Writing the dictionary and joining the sections.
    Finish,
}

impl Step {
    /// Returns the step as a word for a progress line.
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

    /// Returns what [`Progress::n_done`] counts.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Scan => "bytes",
            Self::Number | Self::Finish => "DOIs",
            Self::Join | Self::References | Self::Citations => "citations",
        }
    }
}

/// Receives reports of a build's progress.
pub trait Observer {
    /// Called some hundred times per step.
    fn progress(&mut self, progress: Progress);
    /// Called for every row or field that could not be used.
    fn problem(&mut self, problem: &Problem);
}
