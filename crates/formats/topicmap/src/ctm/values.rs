//! Dates and numbers as CTM writes them (XML Schema, part 2).

use crate::iri::datatype;

/// Recognises the number, date or instant that `text` begins with: its length in bytes and its datatype.
///
/// `Err` for an invalid date, `None` if there is no digit.
pub(super) fn literal(text: &str) -> Option<Result<(usize, &'static str), String>> {
    let bytes = text.as_bytes();
    let sign = usize::from(bytes.first().is_some_and(|it| matches!(it, b'+' | b'-')));
    let n_digits = digits(&bytes[sign..]);
    let end = sign + n_digits;
    let is_fraction = bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
    if is_fraction {
        let len = end + 1 + digits(&bytes[end + 1..]);
        return Some(Ok((len, datatype::DECIMAL)));
    }
    if n_digits == 0 {
        return None;
    }
    let is_date = bytes.get(end) == Some(&b'-') && digits(&bytes[end + 1..]) > 0 && bytes[0] != b'+';
    if !is_date {
        return Some(Ok((end, datatype::INTEGER)));
    }
    Some(date(text, sign, end).ok_or_else(|| {
        let word: String = text.chars().take_while(|it| !it.is_whitespace()).take(40).collect();
        format!("{word} is no date or instant (as 2010-03-31 or 2010-03-31T12:00:00Z)")
    }))
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|it| it.is_ascii_digit()).count()
}

/// Reads a date whose year ends at `year_end`.
fn date(text: &str, sign: usize, year_end: usize) -> Option<(usize, &'static str)> {
    let year = &text[sign..year_end];
    let number: i64 = year.parse().ok()?;
    if year.len() < 4 || year.len() > 4 && year.starts_with('0') || number == 0 {
        return None;
    }
    let mut at = year_end;
    let month = two(text, &mut at, "-")?;
    let day = two(text, &mut at, "-")?;
    let is_leap = number % 4 == 0 && (number % 100 != 0 || number % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > days {
        return None;
    }
    let mut kind = datatype::DATE;
    if text[at..].starts_with('T') {
        let hour = two(text, &mut at, "T")?;
        let minute = two(text, &mut at, ":")?;
        let second = two(text, &mut at, ":")?;
        let bytes = text.as_bytes();
        if bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
            at += 1 + digits(&bytes[at + 1..]);
        }
        let is_midnight = hour == 24 && minute == 0 && second == 0;
        if minute > 59 || second > 59 || hour > 23 && !is_midnight {
            return None;
        }
        kind = datatype::DATE_TIME;
    }
    if text[at..].starts_with('Z') {
        at += 1;
    } else if let Some(sign) = ["+", "-"].into_iter().find(|it| text[at..].starts_with(it)) {
        let hour = two(text, &mut at, sign)?;
        let minute = two(text, &mut at, ":")?;
        if hour > 14 || minute > 59 {
            return None;
        }
    }
    Some((at, kind))
}

/// Reads two digits after a mark.
fn two(text: &str, at: &mut usize, mark: &str) -> Option<u32> {
    let rest = text[*at..].strip_prefix(mark)?;
    if digits(rest.as_bytes()) < 2 {
        return None;
    }
    *at += mark.len() + 2;
    rest[..2].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_datatype_of_their_form() {
        let cases = [
            ("1.", 1, datatype::INTEGER),
            ("+001;", 4, datatype::INTEGER),
            ("-.03.", 4, datatype::DECIMAL),
            ("1.0.", 3, datatype::DECIMAL),
            ("191976-09-19.", 12, datatype::DATE),
            ("2011-01-01T00:00:00Z .", 20, datatype::DATE_TIME),
            ("2012-02-29 ", 10, datatype::DATE),
        ];
        for (text, len, kind) in cases {
            assert_eq!(literal(text), Some(Ok((len, kind))), "{text}");
        }
        for text in ["2000-13-02", "00002000-01-02", "2011-02-29", "2011-01-01T25:00:00"] {
            assert!(matches!(literal(text), Some(Err(_))), "{text}");
        }
        assert_eq!(literal("-INF"), None);
    }
}
