//! Parses one record of any format.

use crate::cut::RawRecord;
use crate::encoding::Encoding;
use crate::format::Format;
use crate::iso2709::{self, RecordView};
use crate::parsed::ParsedRecord;
use crate::problem::{Severity, worst};
use crate::{json, mnemonic, xml};

/// Reads a raw record. The encoding matters only for ISO 2709; the other formats are UTF-8.
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
