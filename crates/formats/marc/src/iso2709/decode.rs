//! Decodes slices into an owned record in Unicode.

use super::shape::{Part, Shape, parts, shape};
use super::view::{FieldView, RecordView};
use crate::encoding::{Charset, Encoding};
use crate::leader::LEADER_LEN_BYTES;
use crate::parsed::ParsedRecord;
use crate::problem::{Report, Severity, worst};
use crate::record::{ControlField, DataField, Field, Record, Subfield};

/// Decodes all fields. The leader's position 09 becomes `a`, because the texts are Unicode from here on.
pub(crate) fn decode(view: RecordView<'_>, encoding: Encoding) -> ParsedRecord {
    let offset = view.offset;
    let mut leader = view.leader();
    let data = view.bytes.get(LEADER_LEN_BYTES..).unwrap_or_default();
    let (charset, fault) = Charset::of(encoding, leader.at(9), data);
    let is_readable = worst(&view.problems) < Some(Severity::Fatal);
    let field_offsets = view.fields().map(|field| offset + field.at as u64).collect();
    let mut report = Report::new(view.number, offset, view.problems.clone());
    if let Some(fault) = fault {
        report.add(9, None, fault);
    }
    let fields = view.fields().map(|field| decode_field(&field, charset, &mut report)).collect();
    leader.set(9, 'a');
    ParsedRecord {
        number: view.number,
        offset,
        record: is_readable.then_some(Record { leader, fields }),
        field_offsets,
        problems: report.finish(),
    }
}

fn decode_field(field: &FieldView<'_>, charset: Charset, report: &mut Report) -> Field {
    let FieldView { tag, at, .. } = *field;
    let shape = shape(field, |in_field, fault| report.add(at + in_field, Some(tag), fault));
    match shape {
        Shape::Control(bytes) => {
            let value = charset.decode(bytes, |in_text, fault| report.add(at + in_text, Some(tag), fault));
            ControlField::new(tag, value).into()
        }
        Shape::Data(indicators, bytes) => {
            let at = at + (field.bytes.len() - bytes.len());
            DataField { tag, indicators, subfields: decode_subfields(field, bytes, at, charset, report) }
                .into()
        }
    }
}

/// `at` is where `bytes` begin in the record.
fn decode_subfields(
    field: &FieldView<'_>,
    bytes: &[u8],
    at: usize,
    charset: Charset,
    report: &mut Report,
) -> Vec<Subfield> {
    let tag = Some(field.tag);
    let mut subfields = Vec::new();
    for part in parts(bytes) {
        match part {
            Part::Subfield(code, value_at, value) => {
                let text = charset
                    .decode(value, |in_text, fault| report.add(at + value_at + in_text, tag, fault))
                    .into_owned();
                subfields.push(Subfield { code, value: text });
            }
            Part::Wrong(in_field, fault) => report.add(at + in_field, tag, fault),
        }
    }
    subfields
}
