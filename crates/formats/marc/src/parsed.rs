//! Reading one raw record of any format into an owned one.

use crate::cut::RawRecord;
use crate::encoding::Encoding;
use crate::format::Format;
use crate::iso2709::RecordView;
use crate::problem::{Problem, Severity, worst};
use crate::record::Record;
use crate::{iso2709, json, mnemonic, xml};

/// What reading one record gave: the record if there is one, and all that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedRecord {
    /// Number in the input, from 1.
    pub number: u64,
    /// Where it begins, in bytes from the start of the input.
    pub offset: u64,
    /// The record; `None` when nothing of it could be read.
    pub record: Option<Record>,
    /// Where each field begins, in bytes from the start of the input; as long as the record's fields.
    pub field_offsets: Vec<u64>,
    /// What is wrong, from the borders of the record to its texts.
    pub problems: Vec<Problem>,
}

impl ParsedRecord {
    /// How bad the worst problem is; `None` when all is well.
    #[must_use]
    pub fn severity(&self) -> Option<Severity> {
        worst(&self.problems)
    }

    /// The record if nothing of it was lost: warnings are taken, losses are not.
    #[must_use]
    pub fn complete(&self) -> Option<&Record> {
        self.record.as_ref().filter(|_| self.severity() < Some(Severity::Loss))
    }
}

/// Reads a raw record. The encoding matters for ISO 2709 alone; the other formats are UTF-8.
///
/// ```
/// use pinakes_marc::{Encoding, Format, parse, records};
/// let input = b"00050nam a2200037   4500245001200000\x1E10\x1FaA title\x1E\x1D";
/// for raw in records(Format::Iso2709, input) {
///     let parsed = parse(Format::Iso2709, Encoding::Leader, raw);
///     assert_eq!(parsed.record.unwrap().subfield("245", 'a'), Some("A title"));
/// }
/// ```
#[must_use]
pub fn parse(format: Format, encoding: Encoding, raw: RawRecord<'_>) -> ParsedRecord {
    if Some(Severity::Fatal) <= worst(&raw.problems) {
        let RawRecord { number, offset, problems, .. } = raw;
        return ParsedRecord { number, offset, record: None, field_offsets: Vec::new(), problems };
    }
    match format {
        Format::Iso2709 => iso2709::decode(RecordView::new(raw), encoding),
        Format::Xml => xml::parse(raw),
        Format::Json => json::parse(raw),
        Format::Mnemonic => mnemonic::parse(raw),
    }
}
