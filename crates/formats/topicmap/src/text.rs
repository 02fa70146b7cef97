//! Decodes bytes to text: byte order marks, declared encodings.

use std::borrow::Cow;

use encoding_rs::Encoding;

use crate::error::{Error, Place};

/// Decodes a document whose encoding is `declared` in it; `fallback` if there is no declaration.
///
/// A byte order mark decides, and must not contradict the declaration. Bytes that are not a character of the
/// encoding are refused, or replaced in lenient reading.
pub(crate) fn decode<'b>(
    bytes: &'b [u8],
    declared: Option<&str>,
    fallback: &'static Encoding,
    is_strict: bool,
    place: &Place,
) -> Result<Cow<'b, str>, Error> {
    let stated = match declared {
        None => None,
        Some(label) => Some(
            Encoding::for_label(label.as_bytes())
                .ok_or_else(|| place.fault(format!("declares the encoding {label:?}, which is not known")))?,
        ),
    };
    let (encoding, bytes) = match (Encoding::for_bom(bytes), stated) {
        (Some((marked, len)), None) => (marked, &bytes[len..]),
        (Some((marked, len)), Some(stated)) => {
            let is_utf16 = |it: &Encoding| it == encoding_rs::UTF_16LE || it == encoding_rs::UTF_16BE;
            if marked != stated && !(is_utf16(marked) && is_utf16(stated)) {
                return Err(place.fault(format!(
                    "declares the encoding {}, but begins with the byte order mark of {}",
                    stated.name(),
                    marked.name()
                )));
            }
            (marked, &bytes[len..])
        }
        // A declaration that could be read byte by byte is not in a two-byte encoding.
        (None, Some(stated)) if stated == encoding_rs::UTF_16LE || stated == encoding_rs::UTF_16BE => {
            (unmarked_utf16(bytes).unwrap_or(encoding_rs::UTF_8), bytes)
        }
        (None, Some(stated)) => (stated, bytes),
        (None, None) => (unmarked_utf16(bytes).unwrap_or(fallback), bytes),
    };
    let (text, has_errors) = encoding.decode_without_bom_handling(bytes);
    if has_errors && is_strict {
        let good = match std::str::from_utf8(bytes) {
            Err(error) if encoding == encoding_rs::UTF_8 => error.valid_up_to(),
            _ => 0,
        };
        let line = 1 + bytes[..good].iter().filter(|&&it| it == b'\n').count() as u64;
        return Err(Place::new(&place.document, line)
            .fault(format!("holds bytes that are no characters of the encoding {}", encoding.name())));
    }
    Ok(text)
}

/// Detects UTF-16 without a mark, by the zero bytes around its first character.
fn unmarked_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes {
        [0, it, ..] if it.is_ascii() && *it != 0 => Some(encoding_rs::UTF_16BE),
        [it, 0, ..] if it.is_ascii() && *it != 0 => Some(encoding_rs::UTF_16LE),
        _ => None,
    }
}
