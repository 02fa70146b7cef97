//! From the bytes of a field to Unicode text: UTF-8 or MARC-8.
//!
//! Leader position 09 says which: `a` is UTF-8, a blank is MARC-8. Real records are wrong so often that a record
//! marked as MARC-8 whose non-ASCII bytes are all valid UTF-8 is read as UTF-8; the two can hardly be confused,
//! because a MARC-8 diacritic is followed by a letter and a UTF-8 lead byte never is.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::marc8;
use crate::problem::Fault;

/// The encoding of ISO 2709 records as given by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Encoding {
    /// As the leader says, corrected if the bytes prove it wrong.
    #[default]
    Leader,
    /// UTF-8, whatever the leader says.
    Utf8,
    /// MARC-8, whatever the leader says.
    Marc8,
}

/// An encoding name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no encoding of MARC records; expected leader, utf-8 or marc-8")]
pub struct UnknownEncoding {
    /// What was given.
    pub found: String,
}

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    fn from_str(name: &str) -> Result<Self, UnknownEncoding> {
        match name.to_ascii_lowercase().as_str() {
            "leader" | "auto" => Ok(Self::Leader),
            "utf-8" | "utf8" => Ok(Self::Utf8),
            "marc-8" | "marc8" => Ok(Self::Marc8),
            _ => Err(UnknownEncoding { found: name.to_owned() }),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Leader => "leader",
            Self::Utf8 => "utf-8",
            Self::Marc8 => "marc-8",
        })
    }
}

/// How the texts of one record are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    /// Every text is known to be valid UTF-8 and stands for itself.
    CleanUtf8,
    /// UTF-8 with invalid bytes somewhere.
    Utf8,
    /// MARC-8 with more than ASCII in it.
    Marc8,
}

impl Charset {
    /// Decides for a record, by the caller's choice, leader position 09 and the bytes after the leader. The
    /// fault, if any, is that the leader is wrong.
    pub(crate) fn of(encoding: Encoding, leader_09: char, data: &[u8]) -> (Self, Option<Fault>) {
        match (encoding, leader_09) {
            (Encoding::Utf8, _) | (Encoding::Leader, 'a') => (Self::utf8(data), None),
            (Encoding::Marc8, _) => (Self::marc8(data), None),
            (Encoding::Leader, ' ') => {
                let is_utf8 = !data.is_ascii() && !has_escape(data) && std::str::from_utf8(data).is_ok();
                if is_utf8 { (Self::CleanUtf8, Some(Fault::Utf8NotMarc8)) } else { (Self::marc8(data), None) }
            }
            // Neither of the two values of the standard, such as the `^` that some systems write for a blank: let the
            // bytes decide. UTF-8 has no escape sequences.
            (Encoding::Leader, _) if has_escape(data) => (Self::Marc8, None),
            (Encoding::Leader, _) => match Self::utf8(data) {
                Self::CleanUtf8 => (Self::CleanUtf8, None),
                _ => (Self::Marc8, None),
            },
        }
    }

    fn utf8(data: &[u8]) -> Self {
        if std::str::from_utf8(data).is_ok() { Self::CleanUtf8 } else { Self::Utf8 }
    }

    /// ASCII without escape sequences and character references is the same in MARC-8 and UTF-8.
    fn marc8(data: &[u8]) -> Self {
        let is_plain = data.is_ascii() && !has_escape(data) && memchr::memmem::find(data, b"&#").is_none();
        if is_plain { Self::CleanUtf8 } else { Self::Marc8 }
    }

    /// Decodes one text. Faults come with their offset in `bytes`.
    pub(crate) fn decode<'a>(self, bytes: &'a [u8], mut report: impl FnMut(usize, Fault)) -> Cow<'a, str> {
        match self {
            Self::CleanUtf8 | Self::Utf8 => utf8_lossy(bytes, report),
            Self::Marc8 => marc8::decode_with(bytes, |at, fault| report(at, Fault::Marc8(fault))),
        }
    }
}

fn has_escape(data: &[u8]) -> bool {
    memchr::memchr(0x1B, data).is_some()
}

/// UTF-8 with each invalid run replaced by U+FFFD; one fault for the whole text, at the first bad byte.
pub(crate) fn utf8_lossy(bytes: &[u8], mut report: impl FnMut(usize, Fault)) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if let Cow::Owned(_) = text {
        let (mut at, mut first, mut len) = (0, None, 0);
        for chunk in bytes.utf8_chunks() {
            let bad = at + chunk.valid().len();
            if let Some(byte) = chunk.invalid().first() {
                first = first.or(Some((bad, *byte)));
            }
            len += chunk.invalid().len();
            at = bad + chunk.invalid().len();
        }
        if let Some((at, first)) = first {
            report(at, Fault::InvalidUtf8 { len, first });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_decide_where_the_leader_does_not() {
        for (leader_09, data, expected) in [
            ('a', &b"A\x1bp2"[..], Charset::CleanUtf8),
            (' ', b"A\x1bp2", Charset::Marc8),
            ('^', b"A\x1bp2", Charset::Marc8),
            ('^', "\u{e9}".as_bytes(), Charset::CleanUtf8),
            ('^', b"\xe2e", Charset::Marc8),
            ('0', b"A", Charset::CleanUtf8),
        ] {
            assert_eq!(Charset::of(Encoding::Leader, leader_09, data).0, expected, "{leader_09:?} {data:?}");
        }
    }
}
