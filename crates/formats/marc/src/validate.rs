//! The rules of MARC 21 that reading does not enforce: what is allowed in a leader, in indicators, in
//! subfield codes, and maximum lengths.
//!
//! Only the structure that all of MARC 21 shares is checked, not which subfields a 245 may have.
//!
//! Source: MARC 21 Record Structure; MARC 21 formats for bibliographic, authority, holdings, classification
//! and community data (Library of Congress), leader and 00X.

use crate::iso2709::{FIELD_LEN_MAX_BYTES, RECORD_LEN_MAX_BYTES};
use crate::leader::{LEADER_LEN_BYTES, Leader, RecordKind};
use crate::parsed::ParsedRecord;
use crate::problem::{Fault, Problem, Report};
use crate::record::{ControlField, DataField, Field, Record};
use crate::tag::Tag;

/// Tags that may occur once in a record.
const NOT_REPEATABLE: [&str; 4] = ["001", "003", "005", "008"];
/// Length of field 005: `yyyymmddhhmmss.f`.
const LEN_005: usize = 16;

/// Returns everything that is wrong with a record: first what reading reported, then violations of the rules.
#[must_use]
pub fn validate(parsed: &ParsedRecord) -> Vec<Problem> {
    let mut report = Report::new(parsed.number, parsed.offset, parsed.problems.clone());
    if let Some(record) = &parsed.record {
        check_leader(&record.leader, &mut report);
        check_repetition(record, &mut report);
        for (number, field) in record.fields.iter().enumerate() {
            let offset = parsed.field_offsets.get(number).copied().unwrap_or(parsed.offset);
            let at = usize::try_from(offset - parsed.offset).unwrap_or_default();
            FieldCheck { at, tag: *field.tag(), report: &mut report }.check(field, &record.leader);
        }
        check_len(record, &mut report);
    }
    report.finish()
}

fn check_leader(leader: &Leader, report: &mut Report) {
    let mut check = |position: usize, len: usize, is_good: &dyn Fn(&str) -> bool, expected: &'static str| {
        let found = leader.as_str().get(position..position + len).unwrap_or_default();
        if !is_good(found) {
            report.add(0, None, Fault::LeaderValue { position, found: found.to_owned(), expected });
        }
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    check(0, 5, &is_digits, "five digits");
    check(5, 1, &|text| "acdnopsx".contains(text), "one of a c d n o p s x");
    check(6, 1, &|_| leader.kind() != RecordKind::Unknown, "a type of record of MARC 21");
    check(9, 1, &|text| matches!(text, " " | "a"), "a blank (MARC-8) or a (UTF-8)");
    check(10, 2, &|text| text == "22", "22 (indicators, characters of a subfield code)");
    check(12, 5, &is_digits, "five digits");
    check(20, 3, &|text| text == "450", "450 (lengths of the parts of a directory entry)");
}

fn check_repetition(record: &Record, report: &mut Report) {
    for tag in NOT_REPEATABLE {
        let found = record.fields.iter().filter(|field| *field.tag() == tag).count();
        if 1 < found {
            report.add(0, Tag::try_from(tag).ok(), Fault::Repeated { found });
        }
    }
}

/// Checks lengths as ISO 2709 in UTF-8 would have them, whatever format the record was read from.
fn check_len(record: &Record, report: &mut Report) {
    let fields: usize = record.fields.iter().map(|field| field_len(field) + 12).sum();
    let len = LEADER_LEN_BYTES + fields + 2;
    if RECORD_LEN_MAX_BYTES < len {
        report.add(0, None, Fault::RecordTooLong { len });
    }
}

fn field_len(field: &Field) -> usize {
    match field {
        Field::Control(field) => field.value.len() + 1,
        Field::Data(field) => {
            let subfields: usize =
                field.subfields.iter().map(|it| 1 + it.code.len_utf8() + it.value.len()).sum();
            3 + subfields
        }
    }
}

/// One field being checked and where to report faults.
struct FieldCheck<'a> {
    at: usize,
    tag: Tag,
    report: &'a mut Report,
}

impl FieldCheck<'_> {
    fn add(&mut self, fault: Fault) {
        self.report.add(self.at, Some(self.tag), fault);
    }

    fn check(&mut self, field: &Field, leader: &Leader) {
        if !self.tag.is_numeric() {
            self.add(Fault::TagNotNumeric);
        }
        match field {
            Field::Control(field) => self.control(field, leader),
            Field::Data(field) => self.data(field),
        }
        let len = field_len(field);
        if FIELD_LEN_MAX_BYTES < len {
            self.add(Fault::FieldTooLong { len });
        }
    }

    fn control(&mut self, field: &ControlField, leader: &Leader) {
        if field.value.is_empty() {
            return self.add(Fault::EmptyField);
        }
        self.text(&field.value);
        let expected = match (field.tag.as_str(), leader.kind()) {
            ("005", _) => LEN_005,
            ("008", RecordKind::Holdings) => 32,
            ("008", RecordKind::Bibliographic | RecordKind::Authority) => 40,
            _ => return,
        };
        let found = field.value.chars().count();
        if found != expected {
            self.add(Fault::FixedLength { found, expected });
        }
    }

    fn data(&mut self, field: &DataField) {
        for (position, found) in (1..).zip(field.indicators) {
            if !is_code(found) && found != ' ' {
                self.add(Fault::BadIndicator { position, found });
            }
        }
        if field.subfields.is_empty() {
            self.add(Fault::EmptyField);
        }
        for subfield in &field.subfields {
            // The reader has reported codes that are not ASCII.
            if !is_code(subfield.code) && subfield.code.is_ascii() {
                self.add(Fault::BadSubfieldCode { found: subfield.code });
            }
            if subfield.value.is_empty() {
                self.add(Fault::EmptyValue { code: subfield.code });
            }
            self.text(&subfield.value);
        }
    }

    /// One report per text is enough.
    fn text(&mut self, text: &str) {
        if let Some(char) = text.chars().find(|char| is_forbidden(*char)) {
            self.add(Fault::ControlCharacter { code: u32::from(char) });
        }
    }
}

const fn is_code(char: char) -> bool {
    char.is_ascii_digit() || char.is_ascii_lowercase()
}

/// Returns whether a character is a forbidden control character: all except the marks around non-sorting text
/// and joiners.
fn is_forbidden(char: char) -> bool {
    char.is_control() && !matches!(char, '\u{98}' | '\u{9C}')
}
