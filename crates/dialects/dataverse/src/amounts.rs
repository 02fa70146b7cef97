//! Numbers and sizes for display.

/// Formats a number with thousands separators: `1,234`.
pub(crate) fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place != 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes for display: `1.7 KB`, `718 B`.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(crate) fn size_text(bytes: u64) -> String {
    let units = [("TB", 1_u64 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    match units.into_iter().find(|it| it.1 <= bytes) {
        Some((unit, size)) => format!("{:.1} {unit}", bytes as f64 / size as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people() {
        assert_eq!(size_text(718), "718 B");
        assert_eq!(size_text(1787), "1.7 KB");
        assert_eq!(size_text(5 << 20), "5.0 MB");
    }
}
