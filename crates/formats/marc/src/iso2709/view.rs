//! A record as slices of the input: nothing is copied or decoded.

use super::SUBFIELD_DELIMITER;
use super::layout::{Span, lay_out};
use crate::cut::RawRecord;
use crate::leader::{LEADER_LEN_BYTES, Leader};
use crate::problem::{Fault, Problem, Report, Severity, excerpt};
use crate::tag::Tag;

/// An ISO 2709 record whose fields are slices of its bytes.
///
/// ```
/// use pinakes_marc::{Format, RecordView, records};
/// let input = b"00050nam a2200037   4500245001200000\x1E10\x1FaA title\x1E\x1D";
/// for raw in records(Format::Iso2709, input) {
///     let view = RecordView::new(raw);
///     let title = view.fields().find(|field| field.tag == "245").unwrap();
///     assert_eq!(title.bytes, b"10\x1FaA title");
///     assert_eq!(title.subfields().next().unwrap().value, b"A title");
/// }
/// ```
#[derive(Debug, Clone)]
pub struct RecordView<'a> {
    /// Number in the input, from 1.
    pub number: u64,
    /// Where it begins, in bytes from the start of the input.
    pub offset: u64,
    /// Its bytes as they were found.
    pub bytes: &'a [u8],
    /// What is wrong with its boundaries and its structure; texts are not examined.
    pub problems: Vec<Problem>,
    spans: Vec<Span>,
}

/// A field as a slice of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldView<'a> {
    /// The field's name.
    pub tag: Tag,
    /// The bytes without the terminator.
    pub bytes: &'a [u8],
    /// Where they begin, in bytes from the start of the record.
    pub at: usize,
}

/// A subfield as a slice of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubfieldView<'a> {
    /// The byte after the delimiter.
    pub code: u8,
    /// The bytes after the code.
    pub value: &'a [u8],
}

impl<'a> RecordView<'a> {
    /// Finds the fields of a raw record.
    #[must_use]
    pub fn new(raw: RawRecord<'a>) -> Self {
        let RawRecord { number, offset, bytes, problems, .. } = raw;
        let mut report = Report::new(number, offset, problems);
        let leader = &bytes[..bytes.len().min(LEADER_LEN_BYTES)];
        if !Leader::is_valid_bytes(leader) {
            report.add(0, None, Fault::BadLeader { found: excerpt(leader) });
        }
        let spans = lay_out(bytes, &mut report);
        Self { number, offset, bytes, problems: report.finish(), spans }
    }

    /// Returns the leader; filled with blanks where the record is shorter.
    #[must_use]
    pub fn leader(&self) -> Leader {
        Leader::from_lossy(self.bytes)
    }

    /// Returns whether anything of the record could be read.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        crate::problem::worst(&self.problems) < Some(Severity::Fatal)
    }

    /// Number of fields.
    #[must_use]
    pub const fn n_fields(&self) -> usize {
        self.spans.len()
    }

    /// Returns the fields in the order of the directory.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = FieldView<'a>> {
        let bytes = self.bytes;
        self.spans.iter().map(move |span| FieldView {
            tag: span.tag,
            bytes: &bytes[span.start..span.end],
            at: span.start,
        })
    }

    /// Bytes of the first control field with this tag: `view.control("001")`.
    #[must_use]
    pub fn control(&self, tag: &str) -> Option<&'a [u8]> {
        self.fields().find(|field| field.tag == *tag && field.is_control()).map(|field| field.bytes)
    }

    /// Bytes of the first subfield with this tag and code.
    #[must_use]
    pub fn subfield(&self, tag: &str, code: u8) -> Option<&'a [u8]> {
        self.fields()
            .filter(|field| field.tag == *tag && !field.is_control())
            .flat_map(|field| field.subfields())
            .find(|subfield| subfield.code == code)
            .map(|subfield| subfield.value)
    }
}

impl<'a> FieldView<'a> {
    /// Returns whether the field is one text: by its tag or, where real records misuse a tag, by having no
    /// subfields.
    #[must_use]
    pub fn is_control(&self) -> bool {
        is_control(self.tag, self.bytes)
    }

    /// Returns the subfields after the indicators; delimiters without a code are skipped.
    #[must_use]
    pub fn subfields(&self) -> Subfields<'a> {
        let start = memchr::memchr(SUBFIELD_DELIMITER, self.bytes).unwrap_or(self.bytes.len());
        Subfields { rest: &self.bytes[start..] }
    }
}

/// Iterator over the subfields of a field. Made by [`FieldView::subfields`].
#[derive(Debug, Clone)]
pub struct Subfields<'a> {
    /// Empty, or begins with a delimiter.
    rest: &'a [u8],
}

impl<'a> Iterator for Subfields<'a> {
    type Item = SubfieldView<'a>;

    fn next(&mut self) -> Option<SubfieldView<'a>> {
        while let [_, rest @ ..] = self.rest {
            let len = memchr::memchr(SUBFIELD_DELIMITER, rest).unwrap_or(rest.len());
            let (content, rest) = rest.split_at(len);
            self.rest = rest;
            if let [code, value @ ..] = content {
                return Some(SubfieldView { code: *code, value });
            }
        }
        None
    }
}

/// Returns whether the field is one text. Tags `000` to `009` are by the standard. Other fields are if they
/// have no subfield delimiter but more bytes than two indicators could hold, or a tag with letters, as some
/// systems write (`FMT`).
pub(crate) fn is_control(tag: Tag, bytes: &[u8]) -> bool {
    if tag.is_control() {
        return true;
    }
    let could_be_indicators = bytes.len() <= 2 && tag.is_numeric();
    !could_be_indicators && memchr::memchr(SUBFIELD_DELIMITER, bytes).is_none() && !bytes.is_empty()
}
