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

/// Formats a number as archives store those of Excel and of statistics, with at least one decimal: `40.0`, `1.5E-4`,
/// `1.2345678E7`. The exponent is written below 10⁻³ and from 10⁷ on.
pub fn with_point(value: f64) -> String {
    if !value.is_finite() || value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_a_point() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-40.0, "-40.0"),
            (19.99, "19.99"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (12_345_678.0, "1.2345678E7"),
            (-1.5e300, "-1.5E300"),
        ] {
            assert_eq!(with_point(value), expected);
        }
    }
}
