//! The parsing half of the scan: turns chunks of lines into citations with keys, on several threads, in
//! order.

use std::sync::Arc;

use super::keys::{doi_key, omid_key};
use super::workspace::Position;
use crate::lines::Chunk;
use crate::problem::{Problem, Reason};
use crate::rows::{Layout, Row, RowParser, Work};
use crate::statement::Statements;
use crate::summary::PaletteEntry;

/// Lines of a file to parse.
pub(crate) struct Job {
    pub(crate) name: Arc<str>,
    pub(crate) layout: Layout,
    pub(crate) chunk: Chunk,
    /// The position of the build when this chunk is done.
    pub(crate) position: Position,
}

/// A citation whose ends are keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedCitation {
    pub(crate) citing: KeyedWork,
    pub(crate) cited: KeyedWork,
    pub(crate) statements: Statements,
    /// To be turned into a symbol.
    pub(crate) entry: PaletteEntry,
}

/// A work's key, and the place of its DOI in [`Parsed::texts`]; no DOI for an OMID.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeyedWork {
    pub(crate) key: u64,
    start: u32,
    len: u32,
}

impl KeyedWork {
    /// Returns the DOI; empty for an OMID.
    pub(crate) fn doi(self, texts: &[u8]) -> &[u8] {
        &texts[self.start as usize..(self.start + self.len) as usize]
    }
}

/// The content of a chunk.
pub(crate) struct Parsed {
    pub(crate) citations: Vec<KeyedCitation>,
    pub(crate) texts: Vec<u8>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) n_rows: u64,
    pub(crate) n_fields_skipped: u64,
    pub(crate) position: Position,
}

/// Parses a chunk.
pub(crate) fn parse(job: &Job, seed: u64) -> Parsed {
    let mut parsed = Parsed {
        citations: Vec::with_capacity(usize::try_from(job.chunk.n_lines).unwrap_or(0)),
        texts: Vec::with_capacity(job.chunk.bytes.len() / 2),
        problems: Vec::new(),
        n_rows: 0,
        n_fields_skipped: 0,
        position: job.position,
    };
    let has_dates = job.layout.has_dates();
    let mut parser = RowParser::new(job.layout.clone());
    for &line in &job.chunk.overlong {
        parsed.note(job, line, Reason::TooLong { max: crate::lines::LINE_LEN_MAX_BYTES });
    }
    let mut field_problems = Vec::new();
    for (line, bytes) in job.chunk.lines() {
        match parser.parse(bytes, &mut |reason| field_problems.push(reason)) {
            Ok(None) => continue,
            Ok(Some(row)) => parsed.push(&row, has_dates, seed),
            Err(reason) => parsed.note(job, line, reason),
        }
        for reason in field_problems.drain(..) {
            parsed.note_field(job, line, reason);
        }
    }
    parsed
}

impl Parsed {
    fn push(&mut self, row: &Row<'_>, has_dates: bool, seed: u64) {
        self.n_rows += 1;
        let details = row.details;
        let statements = if has_dates {
            Statements::new(details.creation, details.timespan, 0)
        } else {
            Statements::unstated(0)
        };
        let entry = PaletteEntry {
            journal_sc: details.journal_sc,
            author_sc: details.author_sc,
            suppliers: details.suppliers,
        };
        let (citing, cited) = (self.keyed(row.citing, seed), self.keyed(row.cited, seed));
        self.citations.push(KeyedCitation { citing, cited, statements, entry });
    }

    fn keyed(&mut self, work: Work<'_>, seed: u64) -> KeyedWork {
        match work {
            Work::Omid(omid) => KeyedWork { key: omid_key(omid), start: 0, len: 0 },
            Work::Doi(doi) => {
                // Texts of a chunk of 1 MB are shorter than 4 GB.
                let (start, len) = (self.texts.len() as u32, doi.len() as u32);
                self.texts.extend_from_slice(doi.as_bytes());
                KeyedWork { key: doi_key(doi.as_bytes(), seed), start, len }
            }
        }
    }

    fn note(&mut self, job: &Job, line: u64, reason: Reason) {
        self.n_rows += 1;
        self.problems.push(Problem { file: job.name.to_string(), line, reason });
    }

    fn note_field(&mut self, job: &Job, line: u64, reason: Reason) {
        self.n_fields_skipped += 1;
        self.problems.push(Problem { file: job.name.to_string(), line, reason });
    }
}
