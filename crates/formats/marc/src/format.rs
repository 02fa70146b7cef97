//! The four formats, their names, and how to tell them apart by their first bytes.

use std::fmt;
use std::str::FromStr;

/// A serialisation of MARC records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// ISO 2709, the exchange format (`.mrc`).
    Iso2709,
    /// MARCXML, also known as MARC 21 slim (`.xml`).
    Xml,
    /// MARC-in-JSON: one object a record (`.json`, `.ndjson`).
    Json,
    /// Mnemonic text, one line a field (`.mrk`).
    Mnemonic,
}

/// Why the format of an input could not be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SniffError {
    /// Nothing to read.
    #[error("the input is empty")]
    Empty,
    /// A compressed file.
    #[error("the input is packed ({0}); unpack it first")]
    Packed(&'static str),
    /// Text with two bytes per character.
    #[error("the input is UTF-16; convert it to UTF-8 first")]
    Utf16,
    /// None of the four formats.
    #[error(
        "the input is none of ISO 2709, MARCXML, MARC-in-JSON and mnemonic text; \
         if it is one of them with a damaged beginning, name the format"
    )]
    Unknown,
}

/// The byte order mark of UTF-8, which some programs put before the first record.
pub(crate) const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";

/// Detects the format by the first bytes of an input; some hundred are enough.
///
/// ```
/// use pinakes_marc::{Format, sniff};
/// assert_eq!(sniff(b"=LDR  00000nam a2200000   4500\n"), Ok(Format::Mnemonic));
/// ```
///
/// # Errors
///
/// [`SniffError`] says whether the input is empty, compressed, UTF-16 or something else.
pub fn sniff(head: &[u8]) -> Result<Format, SniffError> {
    if let Some(kind) = packed(head) {
        return Err(SniffError::Packed(kind));
    }
    if head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF") || head.starts_with(b"<\0") {
        return Err(SniffError::Utf16);
    }
    let text = head.strip_prefix(UTF8_BOM).unwrap_or(head);
    let text = text.trim_ascii_start();
    match text {
        [] if head.is_empty() => Err(SniffError::Empty),
        [b'<', ..] => Ok(Format::Xml),
        [b'{', ..] => Ok(Format::Json),
        [b'[', rest @ ..] if matches!(rest.trim_ascii_start().first(), Some(b'{' | b']')) => Ok(Format::Json),
        [b'=', _, _, _, b' ', ..] => Ok(Format::Mnemonic),
        [a, b, c, d, e, ..] if [a, b, c, d, e].iter().all(|byte| byte.is_ascii_digit()) => {
            Ok(Format::Iso2709)
        }
        _ if memchr::memchr2(0x1D, 0x1E, text).is_some() => Ok(Format::Iso2709),
        _ => Err(SniffError::Unknown),
    }
}

/// Returns the name of the compression, if the bytes begin with its signature.
fn packed(head: &[u8]) -> Option<&'static str> {
    const SIGNATURES: [(&[u8], &str); 6] = [
        (b"\x1F\x8B", "gzip"),
        (b"PK\x03\x04", "zip"),
        (b"BZh", "bzip2"),
        (b"\xFD7zXZ\0", "xz"),
        (b"\x28\xB5\x2F\xFD", "zstd"),
        (b"7z\xBC\xAF", "7z"),
    ];
    SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature)).map(|(_, name)| *name)
}

impl Format {
    /// All formats, in the order in which help texts name them.
    pub const ALL: [Self; 4] = [Self::Iso2709, Self::Xml, Self::Json, Self::Mnemonic];

    /// Returns the short name by which commands know the format: `iso2709`, `xml`, `json`, `text`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iso2709 => "iso2709",
            Self::Xml => "xml",
            Self::Json => "json",
            Self::Mnemonic => "text",
        }
    }

    /// Returns the name as a sentence needs it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Iso2709 => "ISO 2709",
            Self::Xml => "MARCXML",
            Self::Json => "MARC-in-JSON",
            Self::Mnemonic => "mnemonic text",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

/// A format name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no MARC format; expected iso2709 (or mrc), xml, json, text (or mrk)")]
pub struct UnknownFormat {
    /// What was given.
    pub found: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name.to_ascii_lowercase().as_str() {
            "iso2709" | "mrc" | "marc" | "raw" => Ok(Self::Iso2709),
            "xml" | "marcxml" => Ok(Self::Xml),
            "json" | "marc-in-json" | "ndjson" => Ok(Self::Json),
            "text" | "mrk" | "mnemonic" => Ok(Self::Mnemonic),
            _ => Err(UnknownFormat { found: name.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_formats_apart() {
        assert_eq!(sniff(b"00755cam  22002414a 4500"), Ok(Format::Iso2709));
        assert_eq!(sniff(b"\xEF\xBB\xBF<?xml version"), Ok(Format::Xml));
        assert_eq!(sniff(b" [ {\"leader\""), Ok(Format::Json));
        assert_eq!(sniff(b"{}"), Ok(Format::Json));
        assert_eq!(sniff(b"\n=LDR  00755cam"), Ok(Format::Mnemonic));
        assert_eq!(sniff(b"junk\x1Emore\x1D"), Ok(Format::Iso2709));
    }

    #[test]
    fn names_what_it_cannot_read() {
        assert_eq!(sniff(b""), Err(SniffError::Empty));
        assert_eq!(sniff(b"\x1F\x8B\x08\x00"), Err(SniffError::Packed("gzip")));
        assert_eq!(sniff(b"PK\x03\x04"), Err(SniffError::Packed("zip")));
        assert_eq!(sniff(b"\xFF\xFE<\0"), Err(SniffError::Utf16));
        assert_eq!(sniff(b"invalid marc file\n"), Err(SniffError::Unknown));
    }
}
