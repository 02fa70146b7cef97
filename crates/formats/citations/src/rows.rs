//! Parses one line of a citation file into a row: its columns, which work cites which, and when.
//!
//! It reads the OpenCitations formats (`oci,citing,cited,creation,timespan,journal_sc,author_sc`, with `oci` or
//! `id` first or without it; DOIs or OMIDs), the submission format (`citing_id,citing_publication_date,cited_id,
//! cited_publication_date`), `citing,referenced`, and headerless pairs `citing<TAB>cited` or `citing,cited`.
//!
//! A line is a row: no column of these formats can contain a line feed, so a quote that is never closed costs
//! one row, not the file. Tabs take precedence over commas; in a tab-separated file quotes have no meaning.

use csv_core::ReadRecordResult;

use crate::date::{PartialDate, Timespan};
use crate::doi::{self, Dirt};
use crate::lines::LINE_LEN_MAX_BYTES;
use crate::oci::{self, Supplier};
use crate::omid::Omid;
use crate::problem::{Reason, excerpt};

/// Maximum number of columns that are read.
const COLUMNS_MAX: usize = 32;

/// A statement of a dump that may be missing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub enum Statement {
    /// The field was empty.
    #[default]
    Unknown,
    /// `no`
    No,
    /// `yes`
    Yes,
}

impl Statement {
    /// Returns the field's text: empty, `no` or `yes`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::No => "no",
            Self::Yes => "yes",
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"" => Some(Self::Unknown),
            b"no" => Some(Self::No),
            b"yes" => Some(Self::Yes),
            _ => None,
        }
    }
}

/// One end of a citation as the row names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work<'a> {
    /// A normalised DOI.
    Doi(&'a str),
    /// A number of OpenCitations Meta, to be joined with a DOI.
    Omid(Omid),
}

/// The statements of a row besides the citing and the cited work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Details {
    /// Publication date of the citing work.
    pub creation: Option<PartialDate>,
    /// Time from the cited work to the citing one.
    pub timespan: Option<Timespan>,
    /// Whether both appeared in the same journal.
    pub journal_sc: Statement,
    /// Whether both have an author in common.
    pub author_sc: Statement,
    /// Prefixes of the two sides of the OCI, if the row has an OCI that spells DOIs.
    pub suppliers: Option<(Supplier, Supplier)>,
}

/// A citation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// The citing work.
    pub citing: Work<'a>,
    /// The cited work.
    pub cited: Work<'a>,
    /// Everything else.
    pub details: Details,
}

/// The positions of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    separator: u8,
    n_columns: usize,
    oci: Option<usize>,
    citing: usize,
    cited: usize,
    creation: Option<usize>,
    cited_date: Option<usize>,
    timespan: Option<usize>,
    journal_sc: Option<usize>,
    author_sc: Option<usize>,
}

impl Layout {
    /// Detects the layout by a file's first line: by its names if it is a header, else by the number of
    /// columns.
    ///
    /// `None` if the line has neither the names nor two, six or seven columns.
    #[must_use]
    pub fn detect(first_line: &[u8]) -> Option<Self> {
        let line = first_line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first_line);
        let separator = if memchr::memchr(b'\t', line).is_some() { b'\t' } else { b',' };
        let mut fields = Fields::default();
        fields.split(line, separator).ok()?;
        Self::of_header(separator, &fields).or_else(|| Self::of_width(separator, fields.len()))
    }

    /// Returns whether there are columns for dates: without them a row does not state dates, rather than
    /// stating that there are none.
    pub(crate) fn has_dates(&self) -> bool {
        self.creation.is_some() || self.timespan.is_some()
    }

    fn of_header(separator: u8, fields: &Fields) -> Option<Self> {
        let place = |names: &[&str]| {
            (0..fields.len()).find(|&at| names.iter().any(|name| fields.get(at) == name.as_bytes()))
        };
        Some(Self {
            separator,
            n_columns: fields.len(),
            oci: place(&["oci", "id"]),
            citing: place(&["citing", "citing_id"])?,
            cited: place(&["cited", "cited_id", "referenced"])?,
            creation: place(&["creation", "citing_publication_date"]),
            cited_date: place(&["cited_publication_date"]),
            timespan: place(&["timespan"]),
            journal_sc: place(&["journal_sc"]),
            author_sc: place(&["author_sc"]),
        })
    }

    fn of_width(separator: u8, n_columns: usize) -> Option<Self> {
        let before = match n_columns {
            2 | 6 => 0,
            7 => 1,
            _ => return None,
        };
        let behind = |place: usize| (n_columns != 2).then_some(before + place);
        Some(Self {
            separator,
            n_columns,
            oci: (before == 1).then_some(0),
            citing: before,
            cited: before + 1,
            creation: behind(2),
            cited_date: None,
            timespan: behind(3),
            journal_sc: behind(4),
            author_sc: behind(5),
        })
    }
}

/// Parses lines of one file. Reuses its buffers from line to line.
#[derive(Debug)]
pub struct RowParser {
    layout: Layout,
    fields: Fields,
    citing: Vec<u8>,
    cited: Vec<u8>,
}

impl RowParser {
    /// Returns a parser for lines of the given layout.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self { layout, fields: Fields::default(), citing: Vec::new(), cited: Vec::new() }
    }

    /// Parses a line without its line end. Empty lines and headers give `Ok(None)`: concatenated dumps have
    /// headers in their middle. Fields with invalid values are passed to `on_field_problem` and left empty.
    ///
    /// # Errors
    /// The [`Reason`] why the row is not a citation.
    pub fn parse(
        &mut self,
        line: &[u8],
        on_field_problem: &mut dyn FnMut(Reason),
    ) -> Result<Option<Row<'_>>, Reason> {
        if LINE_LEN_MAX_BYTES < line.len() {
            return Err(Reason::TooLong { max: LINE_LEN_MAX_BYTES });
        }
        if line.iter().all(|&byte| byte == b' ') {
            return Ok(None);
        }
        let layout = &self.layout;
        self.fields.split(line, layout.separator)?;
        if self.fields.len() != layout.n_columns {
            return Err(Reason::FieldCount { found: self.fields.len(), expected: layout.n_columns });
        }
        if is_header(self.fields.get(layout.citing), self.fields.get(layout.cited)) {
            return Ok(None);
        }
        let details = details(layout, &self.fields, on_field_problem);
        let citing = work(self.fields.get(layout.citing), "citing", &mut self.citing)?;
        let cited = work(self.fields.get(layout.cited), "cited", &mut self.cited)?;
        Ok(Some(Row { citing, cited, details }))
    }
}

fn is_header(citing: &[u8], cited: &[u8]) -> bool {
    matches!(citing, b"citing" | b"citing_id") && matches!(cited, b"cited" | b"cited_id" | b"referenced")
}

/// Returns the work that a field names: a DOI, an OMID, or several identifiers separated by spaces, of which
/// a DOI is preferred.
fn work<'a>(field: &[u8], column: &'static str, buffer: &'a mut Vec<u8>) -> Result<Work<'a>, Reason> {
    if let Some(omid) = Omid::parse(field) {
        return Ok(Work::Omid(omid));
    }
    let several = memchr::memmem::find(field, b"omid:").is_some();
    let named = |prefix: &[u8]| field.split(u8::is_ascii_whitespace).find(|it| it.starts_with(prefix));
    let value = if several { named(b"doi:").or_else(|| named(b"omid:")).unwrap_or(field) } else { field };
    if let Some(omid) = Omid::parse(value) {
        return Ok(Work::Omid(omid));
    }
    buffer.clear();
    let not_a_doi = |error| Reason::NotADoi { column, value: excerpt(field), error };
    doi::normalise_into(value, Dirt::Keep, buffer).map_err(not_a_doi)?;
    str::from_utf8(buffer).map(Work::Doi).map_err(|_| not_a_doi(doi::DoiError::NotUtf8))
}

fn details(layout: &Layout, fields: &Fields, on_problem: &mut dyn FnMut(Reason)) -> Details {
    let field = |place: Option<usize>| place.map_or(b"".as_slice(), |at| fields.get(at));
    let mut date = |place, column| {
        parsed(field(place), PartialDate::parse, column, "YYYY, YYYY-MM or YYYY-MM-DD", on_problem)
    };
    let creation = date(layout.creation, "creation");
    let cited_date = date(layout.cited_date, "cited_publication_date");
    let stated_span = parsed(field(layout.timespan), Timespan::parse, "timespan", "like P1Y2M3D", on_problem);
    let mut flag = |place, column| {
        parsed(field(place), Statement::parse, column, "yes or no", on_problem).unwrap_or_default()
    };
    Details {
        creation,
        timespan: stated_span.or_else(|| Some(Timespan::between(creation?, cited_date?))),
        journal_sc: flag(layout.journal_sc, "journal_sc"),
        author_sc: flag(layout.author_sc, "author_sc"),
        suppliers: suppliers(field(layout.oci), on_problem),
    }
}

/// Returns the supplier prefixes of an OCI that spells DOIs; none for the OMID style, whose OCI follows from
/// the OMIDs.
fn suppliers(oci: &[u8], on_problem: &mut dyn FnMut(Reason)) -> Option<(Supplier, Supplier)> {
    if oci.is_empty() {
        return None;
    }
    let sides = oci::sides(oci);
    let prefix = |side| Supplier::at_start_of(side).map(|(supplier, _)| supplier);
    let found = sides.and_then(|(citing, cited)| Some((prefix(citing)?, prefix(cited)?)));
    if found.is_none() {
        let value = excerpt(oci);
        on_problem(Reason::Field { column: "oci", value, expected: "two runs of digits joined by '-'" });
    }
    found.filter(|_| !sides.is_some_and(|(citing, cited)| is_omid_style(citing) && is_omid_style(cited)))
}

fn is_omid_style(side: &[u8]) -> bool {
    Omid::from_digits(side).is_some()
}

/// Parses a field: an empty one is nothing; one that does not parse is nothing and a problem.
fn parsed<T>(
    field: &[u8],
    parse: impl Fn(&[u8]) -> Option<T>,
    column: &'static str,
    expected: &'static str,
    on_problem: &mut dyn FnMut(Reason),
) -> Option<T> {
    if field.is_empty() {
        return None;
    }
    let value = parse(field);
    if value.is_none() {
        on_problem(Reason::Field { column, value: excerpt(field), expected });
    }
    value
}

/// The fields of one line, unquoted.
#[derive(Debug)]
pub(crate) struct Fields {
    /// The fields' bytes, concatenated.
    bytes: Vec<u8>,
    /// The end of each field in `bytes`; a shorter line has fewer.
    ends: [usize; COLUMNS_MAX],
    n_fields: usize,
    /// Bytes between two fields in `bytes`: the separators of an unmodified line.
    gap: usize,
    parser: csv_core::Reader,
}

impl Default for Fields {
    fn default() -> Self {
        let parser = csv_core::Reader::new();
        Self { bytes: Vec::new(), ends: [0; COLUMNS_MAX], n_fields: 0, gap: 0, parser }
    }
}

impl Fields {
    pub(crate) fn len(&self) -> usize {
        self.n_fields
    }

    /// Returns the field at `place`; empty if the line has fewer.
    pub(crate) fn get(&self, place: usize) -> &[u8] {
        if self.n_fields <= place {
            return b"";
        }
        let start = if place == 0 { 0 } else { self.ends[place - 1] + self.gap };
        &self.bytes[start..self.ends[place]]
    }

    /// Splits a line. Fields beyond [`COLUMNS_MAX`] make it a row with too many fields.
    pub(crate) fn split(&mut self, line: &[u8], separator: u8) -> Result<(), Reason> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if separator == b',' && memchr::memchr(b'"', line).is_some() {
            return self.split_quoted(line);
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(line);
        self.gap = 1;
        self.n_fields = 0;
        for end in memchr::memchr_iter(separator, line).chain([line.len()]) {
            *self.ends.get_mut(self.n_fields).ok_or_else(too_many)? = end;
            self.n_fields += 1;
        }
        Ok(())
    }

    fn split_quoted(&mut self, line: &[u8]) -> Result<(), Reason> {
        self.parser.reset();
        self.gap = 0;
        self.bytes.resize(line.len() + 1, 0);
        let (result, _, n_written, n_fields) = self.parser.read_record(line, &mut self.bytes, &mut self.ends);
        match result {
            ReadRecordResult::InputEmpty => self.finish_quoted(n_written, n_fields),
            ReadRecordResult::Record => {
                self.n_fields = n_fields;
                Ok(())
            }
            _ => Err(too_many()),
        }
    }

    /// Signals the end of the line to the parser, so that it closes the last field.
    fn finish_quoted(&mut self, n_written: usize, n_ended: usize) -> Result<(), Reason> {
        let ends = self.ends.get_mut(n_ended..).ok_or_else(too_many)?;
        let (result, _, _, n_more) = self.parser.read_record(&[], &mut self.bytes[n_written..], ends);
        self.n_fields = n_ended + n_more;
        if result == ReadRecordResult::OutputEndsFull {
            return Err(too_many());
        }
        Ok(())
    }
}

fn too_many() -> Reason {
    Reason::FieldCount { found: COLUMNS_MAX + 1, expected: 7 }
}
