//! Writes ISO 2709: lengths, directory and base address are computed, the rest is taken from the record.

use super::{
    ENTRY_LEN_BYTES, FIELD_LEN_MAX_BYTES, FIELD_TERMINATOR, RECORD_LEN_MAX_BYTES, RECORD_TERMINATOR,
    SUBFIELD_DELIMITER,
};
use crate::leader::LEADER_LEN_BYTES;
use crate::marc8;
use crate::record::{Field, Record};
use crate::tag::Tag;

/// How texts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OutputEncoding {
    /// UTF-8; leader position 09 becomes `a`.
    #[default]
    Utf8,
    /// MARC-8; leader position 09 becomes a blank. Characters that MARC-8 lacks are written as `&#x20AC;`.
    Marc8,
}

/// Why a record cannot be written as ISO 2709.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The directory has four digits for the length of a field.
    #[error(
        "field {tag} (number {field}) has {len} bytes; ISO 2709 allows 9,999: write MARCXML or MARC-in-JSON"
    )]
    FieldTooLong {
        /// The field's name.
        tag: Tag,
        /// Its number in the record, from 1.
        field: usize,
        /// Its length in bytes.
        len: usize,
    },
    /// The leader has five digits for the length of a record.
    #[error("the record has {len} bytes; ISO 2709 allows 99,999: write MARCXML or MARC-in-JSON")]
    RecordTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A text contains one of the bytes that end fields.
    #[error("field {tag} (number {field}) holds the delimiter {byte:02X} hex inside a text; remove it first")]
    Delimiter {
        /// The field's name.
        tag: Tag,
        /// Its number in the record, from 1.
        field: usize,
        /// The byte.
        byte: u8,
    },
}

/// Appends a record to `out`. On an error nothing was appended.
///
/// # Errors
///
/// [`WriteError`] when the record or a field is too long or a text holds a delimiter.
pub fn write(record: &Record, encoding: OutputEncoding, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let start = out.len();
    let result = append(record, encoding, out);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn append(record: &Record, encoding: OutputEncoding, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let start = out.len();
    let base = LEADER_LEN_BYTES + record.fields.len() * ENTRY_LEN_BYTES + 1;
    out.resize(start + base, b'0');
    for (number, field) in record.fields.iter().enumerate() {
        let field_start = out.len();
        append_field(field, encoding, out);
        let text = &out[field_start..out.len() - 1];
        check_field(field, number + 1, text)?;
        let entry = start + LEADER_LEN_BYTES + number * ENTRY_LEN_BYTES;
        let len = out.len() - field_start;
        out[entry..entry + 3].copy_from_slice(field.tag().as_bytes());
        put_digits(&mut out[entry + 3..entry + 7], len);
        put_digits(&mut out[entry + 7..entry + 12], field_start - start - base);
    }
    out.push(RECORD_TERMINATOR);
    out[start + base - 1] = FIELD_TERMINATOR;
    let len = out.len() - start;
    if RECORD_LEN_MAX_BYTES < len {
        return Err(WriteError::RecordTooLong { len });
    }
    put_leader(record, encoding, len, base, &mut out[start..start + LEADER_LEN_BYTES]);
    Ok(())
}

/// Writes a field with its terminator.
fn append_field(field: &Field, encoding: OutputEncoding, out: &mut Vec<u8>) {
    match field {
        Field::Control(field) => append_text(&field.value, encoding, out),
        Field::Data(field) => {
            field.indicators.iter().for_each(|indicator| append_char(*indicator, out));
            for subfield in &field.subfields {
                out.push(SUBFIELD_DELIMITER);
                append_char(subfield.code, out);
                append_text(&subfield.value, encoding, out);
            }
        }
    }
    out.push(FIELD_TERMINATOR);
}

fn append_char(char: char, out: &mut Vec<u8>) {
    out.extend(char.encode_utf8(&mut [0; 4]).as_bytes());
}

fn append_text(text: &str, encoding: OutputEncoding, out: &mut Vec<u8>) {
    match encoding {
        OutputEncoding::Utf8 => out.extend(text.as_bytes()),
        OutputEncoding::Marc8 => out.extend(marc8::encode(text)),
    }
}

/// Refuses a field that the directory or a reader could not handle. `text` is the field without its
/// terminator.
fn check_field(field: &Field, number: usize, text: &[u8]) -> Result<(), WriteError> {
    let tag = *field.tag();
    let len = text.len() + 1;
    if FIELD_LEN_MAX_BYTES < len {
        return Err(WriteError::FieldTooLong { tag, field: number, len });
    }
    if let Some(at) = memchr::memchr2(FIELD_TERMINATOR, RECORD_TERMINATOR, text) {
        return Err(WriteError::Delimiter { tag, field: number, byte: text[at] });
    }
    let n_delimiters = memchr::memchr_iter(SUBFIELD_DELIMITER, text).count();
    if n_delimiters != field.as_data().map_or(0, |data| data.subfields.len()) {
        return Err(WriteError::Delimiter { tag, field: number, byte: SUBFIELD_DELIMITER });
    }
    Ok(())
}

fn put_leader(record: &Record, encoding: OutputEncoding, len: usize, base: usize, leader: &mut [u8]) {
    leader.copy_from_slice(record.leader.as_bytes());
    put_digits(&mut leader[..5], len);
    put_digits(&mut leader[12..17], base);
    leader[9] = match encoding {
        OutputEncoding::Utf8 => b'a',
        OutputEncoding::Marc8 => b' ',
    };
    // The reader relies on these: two indicators, codes of one character, twelve-byte entries.
    leader[10..12].copy_from_slice(b"22");
    leader[20..24].copy_from_slice(b"4500");
}

/// Decimal digits, right-aligned, filled with zeros; the caller has checked that they fit.
fn put_digits(place: &mut [u8], mut value: usize) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).unwrap_or_default();
        value /= 10;
    }
}
