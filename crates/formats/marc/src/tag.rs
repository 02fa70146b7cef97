//! Field tags: the three characters that name a field.
//!
//! MARC 21 uses digits; real records also have letters (`FMT`, `CAT`, `9AA`). A [`Tag`] is always three
//! printable ASCII characters, so that it can be written into every format; bytes outside that range are
//! replaced when a record is read, and the reader reports them.

use std::fmt;

/// Replaces a byte that cannot be part of a tag.
const REPLACEMENT: u8 = b'?';

/// The three printable ASCII characters that name a field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag([u8; 3]);

/// A text that is not a tag: anything but three printable ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no field tag: expected three printable ASCII characters such as 245")]
pub struct TagError {
    /// The text that was given.
    pub found: String,
}

impl Tag {
    /// Creates a tag known at compile time: `Tag::new(b"245")`.
    ///
    /// Bytes that are not printable ASCII become `?`; [`Tag::is_valid_bytes`] checks beforehand.
    #[must_use]
    pub const fn new(bytes: &[u8; 3]) -> Self {
        let mut clean = *bytes;
        let mut at = 0;
        while at < clean.len() {
            if !is_printable(clean[at]) {
                clean[at] = REPLACEMENT;
            }
            at += 1;
        }
        Self(clean)
    }

    /// Whether all three bytes can stand in a tag.
    #[must_use]
    pub const fn is_valid_bytes(bytes: &[u8; 3]) -> bool {
        is_printable(bytes[0]) && is_printable(bytes[1]) && is_printable(bytes[2])
    }

    /// Returns the tag as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Always ASCII by construction; the fallback keeps this free of panics.
        std::str::from_utf8(&self.0).unwrap_or("???")
    }

    /// Returns the three bytes of the tag.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 3] {
        &self.0
    }

    /// Returns whether the standard makes this a control field (no indicators, no subfields): `000` to `009`.
    #[must_use]
    pub const fn is_control(&self) -> bool {
        self.0[0] == b'0' && self.0[1] == b'0' && self.0[2].is_ascii_digit()
    }

    /// Returns whether all three characters are digits, as MARC 21 requires.
    #[must_use]
    pub const fn is_numeric(&self) -> bool {
        self.0[0].is_ascii_digit() && self.0[1].is_ascii_digit() && self.0[2].is_ascii_digit()
    }
}

/// Blanks are included: they are wrong in a tag but can be kept.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

impl TryFrom<&str> for Tag {
    type Error = TagError;

    fn try_from(text: &str) -> Result<Self, TagError> {
        match text.as_bytes().try_into() {
            Ok(bytes) if Self::is_valid_bytes(bytes) => Ok(Self(*bytes)),
            _ => Err(TagError { found: text.chars().take(40).collect() }),
        }
    }
}

impl PartialEq<str> for Tag {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Tag {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
