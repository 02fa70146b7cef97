//! OpenCitations Meta identifiers of works: `omid:br/06101801781`.
//!
//! The number is `06`, digits 1-9 that name the supplier, `0`, and a running number
//! (OpenCitations Meta documentation).

use std::fmt;

/// A work's OMID, kept as its number without the leading zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Omid(u64);

impl Omid {
    /// Longest number accepted, in digits with the leading zero: fits 62 bits.
    pub const DIGITS_MAX: usize = 19;

    /// Reads `omid:br/06…`, `meta:br/06…`, `br/06…`, the w3id URL or the bare number.
    ///
    /// `None` if it is none of these.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        const PREFIXES: [&[u8]; 4] = [b"omid:br/", b"meta:br/", b"br/", b"https://w3id.org/oc/meta/br/"];
        let digits = PREFIXES.iter().find_map(|prefix| text.strip_prefix(*prefix)).unwrap_or(text);
        Self::from_digits(digits)
    }

    /// Reads the bare number, `06101801781`.
    ///
    /// `None` unless it is `06`, digits 1-9, `0`, and digits, of a length that fits.
    #[must_use]
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        let rest = digits.strip_prefix(b"06")?;
        let supplier_len = rest.iter().take_while(|byte| (b'1'..=b'9').contains(*byte)).count();
        let running = rest.get(supplier_len + 1..)?;
        if rest[supplier_len] != b'0' || running.is_empty() || Self::DIGITS_MAX < digits.len() {
            return None;
        }
        let digit_value =
            |number: u64, byte: &u8| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0'));
        digits.iter().try_fold(0, digit_value).map(Self)
    }

    /// Returns the number without its leading zero.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns the OMID of a number returned by [`Omid::number`].
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Returns the digits as in an OCI, `06101801781`.
    #[must_use]
    pub fn digits(self) -> String {
        format!("0{}", self.0)
    }
}

impl fmt::Display for Omid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "omid:br/0{}", self.0)
    }
}
