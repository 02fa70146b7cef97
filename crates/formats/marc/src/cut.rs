//! Cuts an input into records, before their contents are examined.
//!
//! Each format knows where its records begin and end even when they are damaged inside, so that one bad
//! record cannot take its neighbours with it. The cutting functions (`iso2709/cut.rs` and the others) look at
//! bytes and keep no state; this file has the form of their answers, the raw record, and the iterator over a
//! slice. `reader.rs` does the same over a stream.

use memchr::memmem;

use crate::format::Format;
use crate::problem::{Fault, Problem};
use crate::{iso2709, json, mnemonic, xml};

/// Whether more bytes may follow those that a cutting function sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There may be more.
    Unknown,
    /// The input ends here.
    None,
}

/// The answer of a cutting function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The first `skip` bytes belong to no record; the remaining ones do not hold a whole record yet.
    /// With [`Rest::None`] there is none.
    More {
        /// Bytes to skip.
        skip: usize,
    },
    /// A record, or bytes in the place of one.
    Piece {
        /// Bytes to skip before it.
        skip: usize,
        /// Its length.
        len: usize,
        /// What is wrong with its boundaries.
        fault: Option<Fault>,
    },
}

/// The bytes of one record, good or bad, and their position.
#[derive(Debug, Clone)]
pub struct RawRecord<'a> {
    /// Number in the input, from 1.
    pub number: u64,
    /// Where it begins, in bytes from the start of the input.
    pub offset: u64,
    /// Its bytes as they were found.
    pub bytes: &'a [u8],
    /// What is wrong with its boundaries.
    pub problems: Vec<Problem>,
    /// The encoding of an XML input, which its declaration gives before the first record.
    pub(crate) charset: XmlCharset,
}

/// The XML encodings that are supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum XmlCharset {
    /// The default of XML without a declaration. Other encodings are read as if they were this one, with
    /// reports.
    #[default]
    Utf8,
    /// ISO 8859-1.
    Latin1,
}

impl<'a> RawRecord<'a> {
    /// Wraps bytes that are known to be one record, at the start of an input of their own: the content of a stored
    /// record, or a record cut by another program.
    ///
    /// ISO 2709 bytes from outside should go through [`records`], which checks their boundaries.
    #[must_use]
    pub const fn alone(bytes: &'a [u8]) -> Self {
        Self { number: 1, offset: 0, bytes, problems: Vec::new(), charset: XmlCharset::Utf8 }
    }
}

impl Format {
    /// Finds the next record in `data`.
    pub(crate) fn cut(self, data: &[u8], rest: Rest) -> Cut {
        match self {
            Self::Iso2709 => iso2709::cut(data, rest),
            Self::Xml => xml::cut(data, rest),
            Self::Json => json::cut(data, rest),
            Self::Mnemonic => mnemonic::cut(data, rest),
        }
    }

    /// Returns whether skipped bytes between records are worth a report: not in XML and JSON, where they are
    /// the text around the records.
    fn is_stray(self, bytes: &[u8]) -> bool {
        match self {
            Self::Iso2709 => bytes.iter().any(|byte| !matches!(byte, b'\r' | b'\n')),
            Self::Xml | Self::Json | Self::Mnemonic => false,
        }
    }
}

/// The position in the input; makes raw records out of cuts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Position {
    /// Number of bytes before the ones not yet examined.
    pub(crate) offset: u64,
    /// Records so far.
    n_records: u64,
    /// Start and number of stray bytes since the last record.
    strays: Option<(u64, u64)>,
    charset: XmlCharset,
}

impl Position {
    /// Skips bytes that belong to no record.
    pub(crate) fn skip(&mut self, format: Format, bytes: &[u8]) {
        if format.is_stray(bytes) {
            self.note_strays(bytes.len() as u64);
        }
        if format == Format::Xml && self.n_records == 0 && declares_latin1(bytes) {
            self.charset = XmlCharset::Latin1;
        }
        self.offset += bytes.len() as u64;
    }

    /// Skips bytes that are lost because nothing in them could be found.
    pub(crate) fn discard(&mut self, len: usize) {
        self.note_strays(len as u64);
        self.offset += len as u64;
    }

    fn note_strays(&mut self, len: u64) {
        let (start, before) = self.strays.unwrap_or((self.offset, 0));
        self.strays = Some((start, before + len));
    }

    /// Returns the problem that reports the stray bytes since the last record, if there are any.
    pub(crate) fn take_strays(&mut self) -> Option<Problem> {
        let (offset, len) = self.strays.take()?;
        Some(Problem { record: self.n_records + 1, offset, tag: None, fault: Fault::StrayBytes { len } })
    }

    /// Makes the raw record that begins here.
    pub(crate) fn record<'a>(&mut self, bytes: &'a [u8], fault: Option<Fault>) -> RawRecord<'a> {
        let mut problems: Vec<Problem> = self.take_strays().into_iter().collect();
        self.n_records += 1;
        let (number, offset) = (self.n_records, self.offset);
        problems.extend(fault.map(|fault| Problem { record: number, offset, tag: None, fault }));
        self.offset += bytes.len() as u64;
        RawRecord { number, offset, bytes, problems, charset: self.charset }
    }
}

/// The records of a slice, without copying. Made by [`records`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    format: Format,
    data: &'a [u8],
    position: Position,
}

/// Cuts a slice into its records. Good and bad ones come in the order of the input.
///
/// ```
/// use pinakes_marc::{Format, records};
/// let input = b"=LDR  00000nam a2200000   4500\n=001  1\n\n=LDR  00000nam a2200000   4500\n=001  2\n";
/// let offsets: Vec<u64> = records(Format::Mnemonic, input).map(|raw| raw.offset).collect();
/// assert_eq!(offsets, [0, 40]);
/// ```
#[must_use]
pub fn records(format: Format, data: &[u8]) -> Records<'_> {
    Records { format, data, position: Position::default() }
}

impl<'a> Records<'a> {
    /// Returns the report of stray bytes after the last record. Call it when the iterator has ended.
    pub fn stray_end(&mut self) -> Option<Problem> {
        self.position.take_strays()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = RawRecord<'a>;

    fn next(&mut self) -> Option<RawRecord<'a>> {
        match self.format.cut(self.data, Rest::None) {
            Cut::More { .. } => {
                self.position.skip(self.format, self.data);
                self.data = &[];
                None
            }
            Cut::Piece { skip, len, fault } => {
                let (strays, rest) = self.data.split_at(skip);
                let (bytes, rest) = rest.split_at(len);
                self.position.skip(self.format, strays);
                self.data = rest;
                Some(self.position.record(bytes, fault))
            }
        }
    }
}

/// Returns whether the XML declaration in these bytes names ISO 8859-1.
pub(crate) fn declares_latin1(data: &[u8]) -> bool {
    let Some(start) = memmem::find(data, b"<?xml") else { return false };
    let Some(len) = memmem::find(&data[start..], b"?>") else { return false };
    let declaration = data[start..start + len].to_ascii_lowercase();
    [&b"\"iso-8859-1\""[..], b"'iso-8859-1'", b"\"latin1\"", b"'latin1'"]
        .iter()
        .any(|name| memmem::find(&declaration, name).is_some())
}
