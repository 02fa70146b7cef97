//! Numbers as text.

use std::fmt::Write as _;

/// Appends a number in plain decimals, in the shortest form that reads back as the same: no exponent, no
/// `.0`.
pub(crate) fn push(value: f64, text: &mut String) {
    if value == 0.0 {
        text.push('0');
    } else if value.is_finite() {
        let _ = write!(text, "{value}");
    }
}

/// Formats a number as text.
pub(crate) fn shown(value: f64) -> String {
    let mut text = String::new();
    push(value, &mut text);
    text
}
