//! Splits the bytes of a field: the one place that knows the quirks of real fields, for the decoder and for
//! the direct conversion to JSON.

use super::SUBFIELD_DELIMITER;
use super::view::FieldView;
use crate::iso2709::view::is_control;
use crate::problem::Fault;

/// The parts of a field, as slices.
pub(crate) enum Shape<'a> {
    /// One text.
    Control(&'a [u8]),
    /// Indicators, and the bytes from the first delimiter on.
    Data([char; 2], &'a [u8]),
}

/// Splits a field; faults come with their offset in the field.
pub(crate) fn shape<'a>(field: &FieldView<'a>, mut report: impl FnMut(usize, Fault)) -> Shape<'a> {
    let bytes = field.bytes;
    if is_control(field.tag, bytes) {
        if field.tag.is_numeric() && !field.tag.is_control() {
            report(0, Fault::NoSubfields);
        }
        return Shape::Control(bytes);
    }
    // The usual field first: two ASCII indicators, then a subfield.
    if let [a, b, SUBFIELD_DELIMITER, ..] = *bytes
        && a.is_ascii()
        && b.is_ascii()
    {
        return Shape::Data([char::from(a), char::from(b)], &bytes[2..]);
    }
    let start = memchr::memchr(SUBFIELD_DELIMITER, bytes).unwrap_or(bytes.len());
    Shape::Data(indicators(&bytes[..start], report), &bytes[start..])
}

/// Takes two indicators from whatever precedes the first subfield.
fn indicators(bytes: &[u8], mut report: impl FnMut(usize, Fault)) -> [char; 2] {
    let (first, len) = first_char(bytes).unwrap_or((' ', 0));
    let rest = &bytes[len..];
    let (second, second_len) = first_char(rest).unwrap_or((' ', 0));
    if rest.is_empty() {
        report(0, Fault::MissingIndicators { found: usize::from(len != 0) });
    }
    let extra = &rest[second_len..];
    if extra.iter().any(|byte| *byte != b' ') {
        report(len + second_len, Fault::ExtraIndicators { found: crate::problem::excerpt(extra) });
    } else if !extra.is_empty() {
        report(len + second_len, Fault::ExtraBlanks { len: extra.len() });
    }
    [first, second]
}

/// Returns the first character and its length in bytes; a byte that is not UTF-8 is U+FFFD.
fn first_char(bytes: &[u8]) -> Option<(char, usize)> {
    let first = *bytes.first()?;
    if first.is_ascii() {
        return Some((char::from(first), 1));
    }
    let head = &bytes[..bytes.len().min(4)];
    let valid = head.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    Some(valid.map_or((char::REPLACEMENT_CHARACTER, 1), |char| (char, char.len_utf8())))
}

/// The part after a subfield delimiter, with its offset in the bytes being walked.
pub(crate) enum Part<'a> {
    /// A code and the place and bytes of its text.
    Subfield(char, usize, &'a [u8]),
    /// Something is wrong at a place; the subfield follows, if there is one.
    Wrong(usize, Fault),
}

/// Walks the bytes of a data field from the first delimiter on.
pub(crate) fn parts(bytes: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at + 1..)?;
        let len = memchr::memchr(SUBFIELD_DELIMITER, rest).unwrap_or(rest.len());
        let start = at;
        at += 1 + len;
        Some((start, &rest[..len]))
    })
    .flat_map(|(start, content)| {
        let Some((code, code_len)) = first_char(content) else {
            return [Some(Part::Wrong(start, Fault::EmptySubfield)), None];
        };
        let fault = (!code.is_ascii()).then_some(Fault::BadSubfieldCode { found: code });
        let subfield = Part::Subfield(code, start + 1 + code_len, &content[code_len..]);
        [fault.map(|fault| Part::Wrong(start + 1, fault)), Some(subfield)]
    })
    .flatten()
}
