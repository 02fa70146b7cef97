//! What is wrong with a record, and where.
//!
//! Reading never stops at a bad record. Each reader returns what it could read together with a list of
//! [`Problem`]s, each with the number of the record (from 1), the byte offset from the start of the input,
//! the field if there is one, and a [`Fault`] that says what was found and expected.

use std::fmt;

use crate::tag::Tag;

/// One thing that is wrong, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Number of the record in the input, from 1.
    pub record: u64,
    /// Where it is, in bytes from the start of the input.
    pub offset: u64,
    /// The field, where the fault is inside one.
    pub tag: Option<Tag>,
    /// What is wrong.
    pub fault: Fault,
}

/// The severity of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It violates the standard, but everything was read.
    Warning,
    /// A part of the record could not be read or not be understood; its bytes are only in the raw record.
    Loss,
    /// Nothing of the record could be read; only its bytes are available.
    Fatal,
}

/// What is wrong. Lengths and positions are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    // The boundaries of records.
    /// Bytes between two records.
    #[error("{len} stray bytes between records were passed over")]
    StrayBytes {
        /// Their number.
        len: u64,
    },
    /// The leader's length is not that of the record.
    #[error("the leader states a length of {stated:?} bytes, the record terminator comes after {found}")]
    WrongLength {
        /// The five characters of the leader.
        stated: String,
        /// Real length.
        found: usize,
    },
    /// A record ends without its terminator.
    #[error("no record terminator (1D hex) before the next record")]
    MissingTerminator,
    /// The input ends inside a record.
    #[error("the input ends inside the record, {available} bytes after its start; is the file cut off?")]
    CutOff {
        /// Bytes that are there.
        available: usize,
    },
    /// The record has no end within the reader's limit.
    #[error("no end of the record within {limit} bytes, which is the reader's bound; it was skipped")]
    TooLong {
        /// The reader's limit.
        limit: usize,
    },
    /// Bytes that are not a record of the expected format.
    #[error("{len} bytes that are no {expected} record")]
    NotARecord {
        /// Their number.
        len: usize,
        /// The format that was expected.
        expected: &'static str,
    },

    // The structure of an ISO 2709 record.
    /// The leader has bytes that are not printable ASCII, or is not 24 characters long.
    #[error("the leader {found:?} is not 24 printable ASCII characters")]
    BadLeader {
        /// What was found.
        found: String,
    },
    /// No leader at all (formats other than ISO 2709).
    #[error("the record has no leader; {:?} was assumed", crate::leader::Leader::default().as_str())]
    NoLeader,
    /// The base address does not point to the end of the directory.
    #[error("the leader states {stated:?} as the base address of the data, the directory ends at {found}")]
    WrongBaseAddress {
        /// The five characters of the leader.
        stated: String,
        /// Where the data begin.
        found: usize,
    },
    /// No directory was found.
    #[error("no directory: no field terminator (1E hex) follows the leader")]
    NoDirectory,
    /// The directory's length is not a multiple of twelve.
    #[error("the directory has {len} bytes, which is no multiple of 12; the odd bytes were ignored")]
    OddDirectory {
        /// Its length.
        len: usize,
    },
    /// A directory with entries of thirteen bytes.
    #[error("the directory has entries with six digits for the start of a field; ISO 2709 has five")]
    OvergrownDirectory,
    /// Directory entries that do not point at fields; the terminators were used instead.
    #[error(
        "{n_bad} of {n_entries} directory entries do not fit the data, the first is entry {first} ({entry:?}); \
         fields were taken by their terminators"
    )]
    WrongDirectory {
        /// Entries that do not fit.
        n_bad: usize,
        /// All entries.
        n_entries: usize,
        /// Number of the first that does not fit, from 1.
        first: usize,
        /// Its twelve characters.
        entry: String,
    },
    /// A directory entry for which there is no field.
    #[error("directory entry {entry} has no field in the data")]
    MissingField {
        /// Number of the entry, from 1.
        entry: usize,
    },
    /// A field which no directory entry names.
    #[error("a field of {len} bytes has no directory entry, so its tag is unknown")]
    UnnamedField {
        /// Its length.
        len: usize,
    },
    /// The data hold bytes that no directory entry names.
    #[error("the directory names {named} bytes of data, the record has {found}")]
    UnnamedBytes {
        /// Sum of the directory's lengths.
        named: usize,
        /// Bytes of data.
        found: usize,
    },
    /// The last field has no terminator.
    #[error("the field does not end with a field terminator (1E hex)")]
    UnendedField,

    // Fields.
    /// A tag with other characters than printable ASCII.
    #[error("the tag {found:?} is not three printable ASCII characters")]
    BadTag {
        /// What was found.
        found: String,
    },
    /// Fewer than two indicators.
    #[error("{found} instead of 2 indicators; blanks were put in")]
    MissingIndicators {
        /// How many there are.
        found: usize,
    },
    /// Text between the indicators and the first subfield.
    #[error("{found:?} between the indicators and the first subfield was left out")]
    ExtraIndicators {
        /// The text.
        found: String,
    },
    /// More blanks than two indicators before the first subfield.
    #[error("blanks after the two indicators were dropped: {len}")]
    ExtraBlanks {
        /// How many.
        len: usize,
    },
    /// An indicator that the standard does not allow.
    #[error("indicator {position} is {found:?}; expected a digit, a lower-case letter or a blank")]
    BadIndicator {
        /// 1 or 2.
        position: u8,
        /// The character.
        found: char,
    },
    /// A data field that has neither indicators nor subfields but text.
    #[error("no subfield in a field that should have subfields; its text was kept as one")]
    NoSubfields,
    /// A subfield delimiter followed by no code.
    #[error("a subfield delimiter without a subfield")]
    EmptySubfield,
    /// A subfield code that the standard does not allow.
    #[error("subfield code {found:?}; expected a digit or a lower-case letter")]
    BadSubfieldCode {
        /// The character.
        found: char,
    },
    /// A field without content.
    #[error("the field is empty")]
    EmptyField,
    /// A subfield without content.
    #[error("subfield {code:?} is empty")]
    EmptyValue {
        /// Its code.
        code: char,
    },

    // Text.
    /// Bytes that are not UTF-8.
    #[error("not UTF-8: {len} bytes, the first is {first:02X} hex; each run was replaced by U+FFFD")]
    InvalidUtf8 {
        /// How many bytes in this text.
        len: usize,
        /// The first of them.
        first: u8,
    },
    /// The leader says MARC-8, but the text is UTF-8.
    #[error("leader position 09 says MARC-8, but the text is UTF-8 and was read as such")]
    Utf8NotMarc8,
    /// Something wrong in MARC-8 text.
    #[error("MARC-8: {0}")]
    Marc8(#[from] crate::marc8::Marc8Fault),
    /// A control character inside a text.
    #[error("control character {code:02X} hex in the text")]
    ControlCharacter {
        /// Its code.
        code: u32,
    },

    // The other formats.
    /// An error of the XML parser.
    #[error("XML: {message}")]
    Xml {
        /// Its message.
        message: String,
    },
    /// An XML entity that is not defined.
    #[error("the XML entity &{name}; is not defined and was replaced by U+FFFD")]
    UnknownEntity {
        /// Its name.
        name: String,
    },
    /// A tag that has lost its leading zeros.
    #[error("the tag {found:?} has fewer than three digits; zeros were prepended")]
    ShortTag {
        /// What was found.
        found: String,
    },
    /// A missing indicator attribute.
    #[error("<datafield> has no attribute {attribute:?}; a blank was inserted")]
    MissingIndicator {
        /// `ind1` or `ind2`.
        attribute: &'static str,
    },
    /// A subfield code of more or less than one character.
    #[error("subfield code {found:?}; expected one character")]
    LongSubfieldCode {
        /// What was found.
        found: String,
    },
    /// A missing attribute that MARCXML requires.
    #[error("<{element}> has no attribute {attribute:?}")]
    MissingAttribute {
        /// The element.
        element: &'static str,
        /// The attribute.
        attribute: &'static str,
    },
    /// An error of the JSON parser.
    #[error("JSON: {message}")]
    Json {
        /// Its message.
        message: String,
    },
    /// A line of mnemonic text that is not a field.
    #[error("line {found:?} is no field; expected = and a tag, as in =245  10$aTitle")]
    BadLine {
        /// The beginning of the line.
        found: String,
    },

    /// More problems than are kept.
    #[error("{n} more problems in this record are not listed")]
    Omitted {
        /// How many.
        n: u64,
        /// The worst of them.
        worst: Severity,
    },

    // Rules of MARC 21 that only `validate` checks.
    /// A leader character that the standard does not allow.
    #[error("leader position {position:02} is {found:?}; expected {expected}")]
    LeaderValue {
        /// Position, from 0.
        position: usize,
        /// The characters there.
        found: String,
        /// What is allowed there.
        expected: &'static str,
    },
    /// A tag that is not numeric.
    #[error("the tag is not three digits")]
    TagNotNumeric,
    /// A field that may occur only once.
    #[error("the field occurs {found} times; it may occur once")]
    Repeated {
        /// How often.
        found: usize,
    },
    /// A control field of fixed length with another length.
    #[error("{found} characters; expected {expected}")]
    FixedLength {
        /// Its length in characters.
        found: usize,
        /// The length of the standard.
        expected: usize,
    },
    /// A field too long for ISO 2709.
    #[error("{len} bytes; ISO 2709 allows 9,999 in a field")]
    FieldTooLong {
        /// Length with indicators and terminator.
        len: usize,
    },
    /// A record too long for ISO 2709.
    #[error("{len} bytes; ISO 2709 allows 99,999 in a record")]
    RecordTooLong {
        /// Length with leader and directory.
        len: usize,
    },
}

impl Fault {
    /// Returns the severity of this problem.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::Omitted { worst, .. } => *worst,
            Self::NotARecord { .. }
            | Self::TooLong { .. }
            | Self::NoDirectory
            | Self::Xml { .. }
            | Self::Json { .. } => Severity::Fatal,
            Self::MissingField { .. }
            | Self::UnnamedField { .. }
            | Self::UnnamedBytes { .. }
            | Self::UnendedField
            | Self::BadTag { .. }
            | Self::ExtraIndicators { .. }
            | Self::InvalidUtf8 { .. }
            | Self::Marc8(_)
            | Self::UnknownEntity { .. }
            | Self::MissingAttribute { .. }
            | Self::BadLine { .. } => Severity::Loss,
            _ => Severity::Warning,
        }
    }
}

impl Problem {
    /// Returns the severity of this fault.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.fault.severity()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} (byte {})", self.record, self.offset)?;
        if let Some(tag) = self.tag {
            write!(f, ", field {tag}")?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for Problem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.fault)
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Warning => "warning",
            Self::Loss => "loss",
            Self::Fatal => "unreadable",
        })
    }
}

/// Returns the worst of some problems; `None` when there are none.
#[must_use]
pub fn worst(problems: &[Problem]) -> Option<Severity> {
    problems.iter().map(Problem::severity).max()
}

/// Maximum number of problems kept for one record: repeated damage must not fill the memory.
pub const PROBLEMS_MAX: usize = 100;

/// The problems of one record while it is being read.
#[derive(Debug)]
pub(crate) struct Report {
    record: u64,
    /// Start of the record in the input.
    offset: u64,
    problems: Vec<Problem>,
    /// Number and worst severity of those beyond the limit.
    omitted: Option<(u64, Severity)>,
}

impl Report {
    /// Begins with the problems that are known already, and continues counting if those were too many.
    pub(crate) fn new(record: u64, offset: u64, mut problems: Vec<Problem>) -> Self {
        let omitted = match problems.last().map(|last| &last.fault) {
            Some(Fault::Omitted { n, worst }) => Some((*n, *worst)),
            _ => None,
        };
        if omitted.is_some() {
            problems.pop();
        }
        Self { record, offset, problems, omitted }
    }

    /// Adds a fault at a place in the record.
    pub(crate) fn add(&mut self, at: usize, tag: Option<Tag>, fault: Fault) {
        if self.problems.len() < PROBLEMS_MAX {
            let offset = self.offset + at as u64;
            self.problems.push(Problem { record: self.record, offset, tag, fault });
        } else {
            let (n, worst) = self.omitted.unwrap_or((0, Severity::Warning));
            self.omitted = Some((n + 1, worst.max(fault.severity())));
        }
    }

    /// Returns the problems, with one more that stands for those beyond the limit.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        if let Some((n, worst)) = self.omitted {
            let fault = Fault::Omitted { n, worst };
            self.problems.push(Problem { record: self.record, offset: self.offset, tag: None, fault });
        }
        self.problems
    }
}

/// Returns a short, printable piece of bytes for a message.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const LEN_MAX: usize = 40;
    String::from_utf8_lossy(&bytes[..bytes.len().min(LEN_MAX)]).into_owned()
}
