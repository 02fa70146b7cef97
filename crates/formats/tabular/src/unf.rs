//! The universal numeric fingerprint, version 6: equal data have equal fingerprints, whatever file they come
//! from.
//!
//! Numbers are rounded to 7 significant digits, texts to 128 characters; each value is written in a normal form and the
//! whole column is hashed.

use std::fmt;

use base64::Engine as _;
use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

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

    pub(crate) fn finish(self) -> Unf {
        let hash = self.0.finalize();
        let text = base64::engine::general_purpose::STANDARD.encode(&hash[..HASH_BYTES]);
        Unf(format!("UNF:6:{text}"))
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
    let text = format!("{:.6e}", value.abs());
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (first, rest) = digits.split_once('.').unwrap_or((digits, ""));
    let rest = rest.trim_end_matches('0');
    let (exponent_sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |it| ('-', it));
    let exponent = exponent.trim_start_matches('0');
    format!("{sign}{first}.{rest}e{exponent_sign}{exponent}")
}

/// Combines several fingerprints, regardless of their order: of the columns of a table, of the tables of a study.
pub fn combined<'u>(list: impl IntoIterator<Item = &'u Unf>) -> Unf {
    let mut list: Vec<&Unf> = list.into_iter().collect();
    if let [one] = list[..] {
        return one.clone();
    }
    list.sort();
    let mut fingerprint = Fingerprint::default();
    list.iter().for_each(|it| fingerprint.text(&it.0));
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
}
