//! What a record stores about a file: its key, its length and its checksum, in one text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::BlobError;

/// Scheme of the identifiers with which kinds declare where their records name files.
pub const SCHEME: &str = "blob";

/// Number of digits of a key.
const KEY_DIGITS: usize = 32;
/// Number of digits of a checksum.
const SHA256_DIGITS: usize = 64;

/// A file, as a record names it. In JSON, and as text: `<key>-<length>-<sha256>`, so that identifiers with
/// the same key can be found by prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blob {
    /// 32 random hexadecimal digits, which cannot be guessed.
    pub key: String,
    /// Length of the file in bytes.
    pub length: u64,
    /// SHA-256 of the file, 64 hexadecimal digits in lower case.
    pub sha256: String,
}

impl fmt::Display for Blob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}-{}", self.key, self.length, self.sha256)
    }
}

impl FromStr for Blob {
    type Err = BlobError;

    fn from_str(text: &str) -> Result<Self, BlobError> {
        let parse = || {
            let (key, rest) = text.split_once('-')?;
            let (length, sha256) = rest.split_once('-')?;
            let is_plain = !length.is_empty() && length.bytes().all(|it| it.is_ascii_digit());
            let fits = is_key(key) && is_hexadecimal(sha256, SHA256_DIGITS) && is_plain;
            let length = length.parse().ok().filter(|_| fits)?;
            Some(Self { key: key.to_owned(), length, sha256: sha256.to_owned() })
        };
        parse().ok_or_else(|| BlobError::Reference(text.to_owned()))
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Says whether a text has the form of a key: such a text cannot lead out of the tenant's folder.
pub(crate) fn is_key(text: &str) -> bool {
    is_hexadecimal(text, KEY_DIGITS)
}

fn is_hexadecimal(text: &str, n_digits: usize) -> bool {
    text.len() == n_digits && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|it| char::from_digit(it.into(), 16))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_one_text() {
        let blob = Blob { key: "0f".repeat(16), length: 6, sha256: "ab".repeat(32) };
        let text = blob.to_string();
        assert_eq!(text.parse::<Blob>().ok(), Some(blob.clone()));
        assert_eq!(serde_json::to_value(&blob).ok(), Some(text.into()));
    }

    #[test]
    fn other_texts_are_refused() {
        let (key, sha256) = ("0f".repeat(16), "ab".repeat(32));
        for text in [
            String::new(),
            key.clone(),
            format!("{key}-6"),
            format!("{key}--{sha256}"),
            format!("{key}-+6-{sha256}"),
            format!("{key}-99999999999999999999-{sha256}"),
            format!("../../{}-6-{sha256}", &key[6..]),
            format!("{}-6-{sha256}", key.to_uppercase()),
            format!("{key}-6-{sha256}0"),
        ] {
            assert!(matches!(text.parse::<Blob>(), Err(BlobError::Reference(_))), "{text}");
        }
    }
}
