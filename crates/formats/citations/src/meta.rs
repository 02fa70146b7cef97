//! Identifiers of works from OpenCitations Meta: which DOI, OMID and PMID name the same work.
//!
//! It reads the Meta CSV dump (column `id`: `omid:br/… doi:… pmid:…` separated by spaces; all other columns are
//! ignored) and pairs `omid<TAB>doi`. Without it the citation dumps since October 2023, which name works by
//! OMID, cannot be joined with DOIs.

use std::io::{self, Read};

use csv_core::ReadRecordResult;

use crate::doi::{Dirt, normalise_into};
use crate::omid::Omid;
use crate::problem::{Reason, excerpt};

/// Longest record accepted, in bytes. Author lists of large collaborations reach a few hundred kilobytes.
pub const RECORD_LEN_MAX_BYTES: usize = 8 << 20;

const READ_BYTES: usize = 1 << 18;
const COLUMNS_MAX: usize = 256;

/// The identifiers of a work other than the first of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherIds {
    /// Further DOIs, normalised.
    pub dois: Vec<Vec<u8>>,
    /// Further OMIDs.
    pub omids: Vec<Omid>,
    /// Further `PubMed` numbers.
    pub pmids: Vec<u64>,
}

impl OtherIds {
    fn clear(&mut self) {
        self.dois.clear();
        self.omids.clear();
        self.pmids.clear();
    }
}

/// The identifiers of one work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkIds<'a> {
    /// The first DOI, normalised; empty if the work has none.
    pub doi: &'a [u8],
    /// The first OMID.
    pub omid: Option<Omid>,
    /// The first `PubMed` number.
    pub pmid: Option<u64>,
    /// All others.
    pub others: &'a OtherIds,
}

/// The output of a reader of identifiers, with the line.
#[derive(Debug)]
pub enum Told<'a> {
    /// A work.
    Work(WorkIds<'a>),
    /// A row that could not be used.
    Problem(Reason),
}

/// Reads a stream of either format and passes on every row with its line, from 1.
///
/// # Errors
/// Errors of the stream or of `tell`.
pub fn read_work_ids<E: From<io::Error>>(
    source: &mut dyn Read,
    tell: &mut dyn FnMut(u64, Told<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut records = Records::new(source);
    let (mut doi, mut others) = (Vec::new(), OtherIds::default());
    let mut id_column = None;
    while let Some(record) = records.next_record()? {
        if record.is_too_long {
            tell(record.line, Told::Problem(Reason::TooLong { max: RECORD_LEN_MAX_BYTES }))?;
            continue;
        }
        let columns = match id_column {
            Some(columns) => columns,
            None => {
                let (columns, is_header) = IdColumns::detect(&record);
                id_column = Some(columns);
                if is_header {
                    continue;
                }
                columns
            }
        };
        match columns.work_ids(&record, &mut doi, &mut others) {
            Ok(ids) => tell(record.line, Told::Work(ids))?,
            Err(reason) => tell(record.line, Told::Problem(reason))?,
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum IdColumns {
    /// All identifiers in one column, separated by spaces.
    One(usize),
    /// OMID, then DOI.
    Pair,
}

impl IdColumns {
    fn detect(first: &Record<'_>) -> (Self, bool) {
        if let Some(at) = (0..first.len()).find(|&at| first.get(at).eq_ignore_ascii_case(b"id")) {
            return (Self::One(at), true);
        }
        if first.len() == 2 {
            let is_header =
                first.get(0).eq_ignore_ascii_case(b"omid") || first.get(0).eq_ignore_ascii_case(b"br");
            return (Self::Pair, is_header);
        }
        (Self::One(0), false)
    }

    fn work_ids<'a>(
        self,
        record: &Record<'_>,
        doi: &'a mut Vec<u8>,
        others: &'a mut OtherIds,
    ) -> Result<WorkIds<'a>, Reason> {
        others.clear();
        match self {
            Self::One(column) => list_of_ids(record.get(column), doi, others),
            Self::Pair => pair(record, doi, others),
        }
    }
}

fn pair<'a>(record: &Record<'_>, doi: &'a mut Vec<u8>, others: &'a OtherIds) -> Result<WorkIds<'a>, Reason> {
    if record.len() != 2 {
        return Err(Reason::FieldCount { found: record.len(), expected: 2 });
    }
    let omid = Omid::parse(record.get(0)).ok_or(Reason::NoIdentifier { column: "omid" })?;
    read_doi(record.get(1), doi)?;
    Ok(WorkIds { doi, omid: Some(omid), pmid: None, others })
}

/// Maximum number of further identifiers of one kind for a work: more are an error of the dump.
const OTHERS_MAX: usize = 64;

fn list_of_ids<'a>(
    list: &[u8],
    doi: &'a mut Vec<u8>,
    others: &'a mut OtherIds,
) -> Result<WorkIds<'a>, Reason> {
    doi.clear();
    let (mut omid, mut pmid) = (None, None);
    for id in list.split(u8::is_ascii_whitespace) {
        if id.starts_with(b"doi:") && doi.is_empty() {
            read_doi(id, doi)?;
        } else if id.starts_with(b"doi:") {
            let mut other = Vec::new();
            // An invalid one affects only itself: the work has an identifier already.
            if read_doi(id, &mut other).is_ok() && other != *doi && others.dois.len() < OTHERS_MAX {
                others.dois.push(other);
            }
        } else if let Some(digits) = id.strip_prefix(b"pmid:") {
            let number = str::from_utf8(digits).ok().and_then(|it| it.parse().ok());
            let number = number.filter(|it| *it <= PMID_MAX);
            take_first(&mut pmid, number, &mut others.pmids);
        } else if id.starts_with(b"omid:") || id.starts_with(b"meta:") {
            take_first(&mut omid, Omid::parse(id), &mut others.omids);
        }
    }
    Ok(WorkIds { doi, omid, pmid, others })
}

/// Largest `PubMed` number accepted: they have eight digits.
const PMID_MAX: u64 = u32::MAX as u64;

/// Keeps the first identifier, and adds the others to the rest.
fn take_first<T: Copy + PartialEq>(first: &mut Option<T>, found: Option<T>, others: &mut Vec<T>) {
    match (*first, found) {
        (None, found) => *first = found,
        (Some(first), Some(found)) if first != found && others.len() < OTHERS_MAX => others.push(found),
        _ => {}
    }
}

fn read_doi(value: &[u8], doi: &mut Vec<u8>) -> Result<(), Reason> {
    doi.clear();
    let not_a_doi = |error| Reason::NotADoi { column: "id", value: excerpt(value), error };
    normalise_into(value, Dirt::Keep, doi).map_err(not_a_doi)
}

/// One record of a CSV or TSV stream.
struct Record<'a> {
    line: u64,
    bytes: &'a [u8],
    ends: &'a [usize],
    is_too_long: bool,
}

impl Record<'_> {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, place: usize) -> &[u8] {
        let Some(&end) = self.ends.get(place) else { return b"" };
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// Records of a stream whose quoted fields may hold line feeds; none longer than [`RECORD_LEN_MAX_BYTES`].
struct Records<'a> {
    source: &'a mut dyn Read,
    parser: Option<csv_core::Reader>,
    input: Vec<u8>,
    consumed: usize,
    output: Vec<u8>,
    ends: Vec<usize>,
    next_line: u64,
    is_at_end: bool,
}

impl<'a> Records<'a> {
    fn new(source: &'a mut dyn Read) -> Self {
        Self {
            source,
            parser: None,
            input: Vec::new(),
            consumed: 0,
            output: vec![0; READ_BYTES],
            ends: vec![0; COLUMNS_MAX],
            next_line: 1,
            is_at_end: false,
        }
    }

    fn next_record(&mut self) -> io::Result<Option<Record<'_>>> {
        let line = self.next_line;
        let (mut n_written, mut n_ends) = (0, 0);
        loop {
            if self.consumed == self.input.len() && !self.is_at_end {
                self.refill()?;
            }
            let parser = self.parser.get_or_insert_with(|| parser_for(&self.input));
            let input = &self.input[self.consumed..];
            let (result, n_in, n_out, n_new_ends) =
                parser.read_record(input, &mut self.output[n_written..], &mut self.ends[n_ends..]);
            self.next_line += memchr::memchr_iter(b'\n', &input[..n_in]).count() as u64;
            self.consumed += n_in;
            n_written += n_out;
            n_ends += n_new_ends;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.output.len() < RECORD_LEN_MAX_BYTES => {
                    self.output.resize(self.output.len() * 2, 0);
                }
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    self.skip_to_line_end()?;
                    return Ok(Some(Record { line, bytes: &[], ends: &[], is_too_long: true }));
                }
                ReadRecordResult::Record => {
                    let (bytes, ends) = (&self.output[..n_written], &self.ends[..n_ends]);
                    return Ok(Some(Record { line, bytes, ends, is_too_long: false }));
                }
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        self.input.clear();
        self.consumed = 0;
        let n_read = (&mut *self.source).take(READ_BYTES as u64).read_to_end(&mut self.input)?;
        self.is_at_end = n_read == 0;
        if self.next_line == 1 && self.parser.is_none() && self.input.starts_with(b"\xef\xbb\xbf") {
            self.consumed = 3;
        }
        Ok(())
    }

    /// Abandons a record: reading continues after the next line feed.
    fn skip_to_line_end(&mut self) -> io::Result<()> {
        if let Some(parser) = &mut self.parser {
            parser.reset();
        }
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.input[self.consumed..]) {
                self.consumed += at + 1;
                self.next_line += 1;
                return Ok(());
            }
            self.refill()?;
            if self.is_at_end {
                return Ok(());
            }
        }
    }
}

/// Tabs in the first line mean a tab-separated file, in which quotes have no meaning.
fn parser_for(start: &[u8]) -> csv_core::Reader {
    let first_line = &start[..memchr::memchr(b'\n', start).unwrap_or(start.len())];
    if memchr::memchr(b'\t', first_line).is_some() {
        return csv_core::ReaderBuilder::new().delimiter(b'\t').quoting(false).build();
    }
    csv_core::Reader::new()
}
