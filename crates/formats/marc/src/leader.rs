//! The leader: 24 characters at the start of a record that say what it is and how it is built.
//!
//! Source: MARC 21 Record Structure (Library of Congress), leader positions 00-23.

use std::fmt;

/// Length of every leader, in bytes.
pub const LEADER_LEN_BYTES: usize = 24;

/// The leader of a new record: new, textual monograph, UTF-8; the writer fills in the lengths.
const BLANK: &[u8; LEADER_LEN_BYTES] = b"00000nam a2200000   4500";

/// The 24 ASCII characters at the head of a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leader([u8; LEADER_LEN_BYTES]);

/// What kind of record a leader announces (position 06).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// `a c d e f g i j k m o p r t`.
    Bibliographic,
    /// `z`.
    Authority,
    /// `u v x y`.
    Holdings,
    /// `w`.
    Classification,
    /// `q`.
    Community,
    /// Any other character.
    Unknown,
}

impl Leader {
    /// Takes 24 bytes as they are; bytes that are not printable ASCII become `?`.
    #[must_use]
    pub fn new(bytes: &[u8; LEADER_LEN_BYTES]) -> Self {
        Self(bytes.map(|byte| if is_printable(byte) { byte } else { b'?' }))
    }

    /// Returns whether bytes are a valid leader: 24 of printable ASCII.
    #[must_use]
    pub fn is_valid_bytes(bytes: &[u8]) -> bool {
        bytes.len() == LEADER_LEN_BYTES && bytes.iter().all(|byte| is_printable(*byte))
    }

    /// Takes bytes of any length: shorter input is filled with blanks, longer input is cut.
    #[must_use]
    pub fn from_lossy(bytes: &[u8]) -> Self {
        let mut whole = [b' '; LEADER_LEN_BYTES];
        let len = bytes.len().min(LEADER_LEN_BYTES);
        whole[..len].copy_from_slice(&bytes[..len]);
        Self::new(&whole)
    }

    /// Takes text of any length: shorter input is filled with blanks, longer input is cut, and each character
    /// that is not ASCII becomes one `?`.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let bytes: Vec<u8> =
            text.chars().take(LEADER_LEN_BYTES).map(|char| u8::try_from(char).unwrap_or(b'?')).collect();
        Self::from_lossy(&bytes)
    }

    /// Returns the leader as text, always 24 characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Always ASCII by construction; the fallback keeps this free of panics.
        std::str::from_utf8(&self.0).unwrap_or("                        ")
    }

    /// Returns the 24 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; LEADER_LEN_BYTES] {
        &self.0
    }

    /// Returns the character at a position, as the standard counts them: `at(6)` is the type of record. A
    /// blank for positions past the end.
    #[must_use]
    pub fn at(&self, position: usize) -> char {
        self.0.get(position).map_or(' ', |byte| char::from(*byte))
    }

    /// Sets the character at a position; positions past the end and characters that are not printable ASCII
    /// leave the leader as it is and return `false`.
    pub fn set(&mut self, position: usize, value: char) -> bool {
        match (self.0.get_mut(position), u8::try_from(value)) {
            (Some(byte), Ok(value)) if is_printable(value) => {
                *byte = value;
                true
            }
            _ => false,
        }
    }

    /// Record status (05): `n` new, `c` corrected, `d` deleted and so on.
    #[must_use]
    pub fn status(&self) -> char {
        self.at(5)
    }

    /// Returns what kind of record this is (06).
    #[must_use]
    pub fn kind(&self) -> RecordKind {
        match self.at(6) {
            'a' | 'c'..='g' | 'i'..='k' | 'm' | 'o' | 'p' | 'r' | 't' => RecordKind::Bibliographic,
            'z' => RecordKind::Authority,
            'u' | 'v' | 'x' | 'y' => RecordKind::Holdings,
            'w' => RecordKind::Classification,
            'q' => RecordKind::Community,
            _ => RecordKind::Unknown,
        }
    }

    /// Length of the record in bytes as the leader states it (00-04), if those are digits.
    #[must_use]
    pub fn stated_len_bytes(&self) -> Option<usize> {
        digits(&self.0[..5])
    }

    /// Returns where the data begin, in bytes from the start of the record, as the leader states it (12-16),
    /// if those are digits.
    #[must_use]
    pub fn stated_base_bytes(&self) -> Option<usize> {
        digits(&self.0[12..17])
    }
}

impl Default for Leader {
    fn default() -> Self {
        Self(*BLANK)
    }
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

const fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Parses a number of only decimal digits, as leaders and directories write it. No more than nine digits.
pub(crate) fn digits(bytes: &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if 9 < digit {
            return None;
        }
        value = value * 10 + usize::from(digit);
    }
    Some(value)
}
