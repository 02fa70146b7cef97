//! Converts ISO 2709 directly to MARC-in-JSON, without an owned record in between: used by bulk imports.

use super::write::JsonRecord;
use crate::encoding::{Charset, Encoding};
use crate::iso2709::shape::{Part, Shape, parts, shape};
use crate::iso2709::{FieldView, RecordView};
use crate::leader::LEADER_LEN_BYTES;
use crate::marc8;
use crate::problem::{Problem, Report};

/// Appends a record as one JSON object, with the same bytes as decoding and writing. Returns all problems of the
/// record, including those of its texts. A record that cannot be read gives an object without fields.
///
/// ```
/// use pinakes_marc::{Encoding, Format, RecordView, json, records};
/// let input = b"00050nam a2200037   4500245001200000\x1E10\x1FaA title\x1E\x1D";
/// let mut out = Vec::new();
/// for raw in records(Format::Iso2709, input) {
///     let problems = json::write_view(&RecordView::new(raw), Encoding::Leader, &mut out);
///     assert!(problems.is_empty());
/// }
/// assert_eq!(
///     std::str::from_utf8(&out).unwrap(),
///     r#"{"leader":"00050nam a2200037   4500","fields":[{"245":{"ind1":"1","ind2":"0","subfields":[{"a":"A title"}]}}]}"#
/// );
/// ```
pub fn write_view(view: &RecordView<'_>, encoding: Encoding, out: &mut Vec<u8>) -> Vec<Problem> {
    let mut leader = view.leader();
    let data = view.bytes.get(LEADER_LEN_BYTES..).unwrap_or_default();
    let (charset, fault) = Charset::of(encoding, leader.at(9), data);
    let mut report = Report::new(view.number, view.offset, view.problems.clone());
    if let Some(fault) = fault {
        report.add(9, None, fault);
    }
    leader.set(9, 'a');
    let mut json = JsonRecord::begin(leader.as_bytes(), out);
    for field in view.fields() {
        write_field(&field, charset, &mut json, &mut report);
    }
    json.end();
    report.finish()
}

fn write_field(field: &FieldView<'_>, charset: Charset, json: &mut JsonRecord<'_>, report: &mut Report) {
    let FieldView { tag, at, .. } = *field;
    match shape(field, |in_field, fault| report.add(at + in_field, Some(tag), fault)) {
        Shape::Control(bytes) => json.control(tag.as_bytes(), &text(charset, bytes, at, field, report)),
        Shape::Data(indicators, bytes) => {
            let at = at + (field.bytes.len() - bytes.len());
            json.begin_data(tag.as_bytes(), indicators);
            for part in parts(bytes) {
                match part {
                    Part::Subfield(code, value_at, value) => {
                        json.subfield(code, &text(charset, value, at + value_at, field, report));
                    }
                    Part::Wrong(in_field, fault) => report.add(at + in_field, Some(tag), fault),
                }
            }
            json.end_data();
        }
    }
}

/// Returns one text in UTF-8; that of a clean record, and plain MARC-8, is its own bytes.
fn text<'a>(
    charset: Charset,
    bytes: &'a [u8],
    at: usize,
    field: &FieldView<'_>,
    report: &mut Report,
) -> std::borrow::Cow<'a, [u8]> {
    if charset == Charset::CleanUtf8 || (charset == Charset::Marc8 && marc8::is_plain(bytes)) {
        return bytes.into();
    }
    let text = charset.decode(bytes, |in_text, fault| report.add(at + in_text, Some(field.tag), fault));
    match text {
        std::borrow::Cow::Borrowed(text) => text.as_bytes().into(),
        std::borrow::Cow::Owned(text) => text.into_bytes().into(),
    }
}
