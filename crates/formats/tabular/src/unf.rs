//! The universal numeric fingerprint, version 6: equal data have equal fingerprints, whatever file they come
//! from.
//!
//! Numbers are rounded to 7 significant digits, texts to 128 characters; each value is written in a normal form and the
//! whole column is hashed. Archives publish fingerprints, so ours must be theirs: where the specification leaves a
//! choice (how halves are rounded, what is hashed when fingerprints are combined), the tests hold published ones.

use std::fmt;

use base64::Engine as _;
use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

/// What a fingerprint of this version begins with.
const PREFIX: &str = "UNF:6:";
/// Number of significant digits of a number that count.
const DIGITS: usize = 7;
/// Number of characters of a text that count.
const TEXT_CHARS: usize = 128;
/// Number of bytes of the hash that are kept.
const HASH_BYTES: usize = 16;

/// A fingerprint as text: `UNF:6:…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Unf(pub String);

impl fmt::Display for Unf {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The fingerprint of a column being computed.
#[derive(Default)]
pub(crate) struct Fingerprint(Sha256);

impl Fingerprint {
    pub(crate) fn missing(&mut self) {
        self.0.update([0; 3]);
    }

    pub(crate) fn number(&mut self, value: f64) {
        self.0.update(normal_number(value));
        self.0.update(b"\n\0");
    }

    pub(crate) fn text(&mut self, text: &str) {
        if text.is_ascii() {
            self.0.update(&text.as_bytes()[..text.len().min(TEXT_CHARS)]);
        } else {
            let kept: String = text.chars().take(TEXT_CHARS).nfc().collect();
            self.0.update(kept);
        }
        self.0.update(b"\n\0");
    }

    /// Adds a date with a time of day, `2026-01-31 12:00:00.500`, in the normal form `2026-01-31T12:00:00.5`; or a time
    /// of day.
    pub(crate) fn time(&mut self, text: &str) {
        let text = text.replacen(' ', "T", 1);
        match text.contains('.') {
            true => self.text(text.trim_end_matches('0').trim_end_matches('.')),
            false => self.text(&text),
        }
    }

    pub(crate) fn finish(self) -> Unf {
        let hash = self.0.finalize();
        let text = base64::engine::general_purpose::STANDARD.encode(&hash[..HASH_BYTES]);
        Unf(format!("{PREFIX}{text}"))
    }
}

/// Returns a number in its normal form: `+1.5e+`, `-3.e+2`, `+7.3e-4`.
fn normal_number(value: f64) -> String {
    if value.is_nan() {
        return "+nan".to_owned();
    }
    let sign = if value.is_sign_negative() { '-' } else { '+' };
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let text = format!("{:e}", value.abs());
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut exponent: i32 = exponent.parse().unwrap_or(0);
    let mut digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_digit).collect();
    if round(&mut digits) {
        exponent += 1;
    }
    let digits = String::from_utf8_lossy(&digits);
    let (first, rest) = digits.split_at(1);
    let rest = rest.trim_end_matches('0');
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    let exponent = if exponent == 0 { String::new() } else { exponent.unsigned_abs().to_string() };
    format!("{sign}{first}.{rest}e{exponent_sign}{exponent}")
}

/// Rounds decimal digits to [`DIGITS`], halves to the even digit. Returns whether a digit was added in front, as from
/// 9.9999996 to 10.
///
/// The digits are the shortest that read back as the number: 0.00000025 is a half, though no binary number is exactly
/// that.
fn round(digits: &mut Vec<u8>) -> bool {
    let Some((kept, dropped)) = digits.split_at_checked(DIGITS) else { return false };
    let is_odd = kept.last().is_some_and(|it| it % 2 == 1);
    let is_up = match dropped.split_first() {
        Some((b'5', rest)) => is_odd || rest.iter().any(|it| *it != b'0'),
        Some((first, _)) => b'5' < *first,
        None => false,
    };
    digits.truncate(DIGITS);
    if !is_up {
        return false;
    }
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return false;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
    digits.truncate(DIGITS);
    true
}

/// Combines several fingerprints, regardless of their order: of the columns of a table, of the tables of a study. What
/// is hashed are the hashes, without `UNF:6:`.
pub fn combined<'u>(list: impl IntoIterator<Item = &'u Unf>) -> Unf {
    let mut list: Vec<&Unf> = list.into_iter().collect();
    if let [one] = list[..] {
        return one.clone();
    }
    list.sort();
    let mut fingerprint = Fingerprint::default();
    list.iter().for_each(|it| fingerprint.text(it.0.strip_prefix(PREFIX).unwrap_or(&it.0)));
    fingerprint.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the specification's text on normal forms.
    #[test]
    fn numbers_have_one_form() {
        for (value, form) in [
            (1.0, "+1.e+"),
            (-300.0, "-3.e+2"),
            (0.00073, "+7.3e-4"),
            (0.0, "+0.e+"),
            (-0.0, "-0.e+"),
            (1.2345675, "+1.234568e+"),
            (1.2345665, "+1.234566e+"),
            (0.000_012_345_665, "+1.234566e-5"),
            (1.234_566_51, "+1.234567e+"),
            (99_999_995.0, "+1.e+8"),
            (-1e22, "-1.e+22"),
            (f64::INFINITY, "+inf"),
            (f64::NAN, "+nan"),
        ] {
            assert_eq!(normal_number(value), form);
        }
    }

    /// Vectors of the specification, version 6.
    #[test]
    fn the_specifications_vectors() {
        let mut numbers = Fingerprint::default();
        for value in [1.23456789, f64::NAN] {
            if value.is_nan() { numbers.missing() } else { numbers.number(value) }
        }
        numbers.number(0.0);
        assert_eq!(numbers.finish().0, "UNF:6:Do5dfAoOOFt4FSj0JcByEw==");
    }

    /// The columns of Stata's `auto` data, and the fingerprint of the table that Dataverse publishes for them.
    #[test]
    fn a_published_table() {
        let columns = [
            "Oo4vwiL8ffhSECOcjsKk2g==",
            "rvfkkdA36AaCSqCQciybfA==",
            "vVr3w8CgeZq1KpDfJQudOg==",
            "gbFI98swTWNhAjCRyi2cdA==",
            "g4Pl3T0Oz2e/OKJ64WiTnA==",
            "iab0POsE3By7dQfgX/TY4g==",
            "cdoTdfUNeYWHHFEBCDxg+w==",
            "8z1rjwhqBN4meYIiKI4P1A==",
            "QxhjrrNtVz4qA8RulQ2MuQ==",
            "ftk+RAQpTCT1/y6G/rLWfA==",
            "qjnY/qbx26FTepoPqRZ6lw==",
            "nbjzgh3wfAFqKpaoFnHalA==",
        ];
        let columns = columns.map(|it| Unf(format!("{PREFIX}{it}")));
        assert_eq!(combined(&columns).0, "UNF:6:RPd9EWHSZwqUvRZuKTJMqg==");
    }
}
