//! ISO 8601 dates and times, checked only for their format.
//!
//! ```text
//! date = year [ [-] ( month [ [-] day ] | "W" week [ [-] weekday ] | day-of-year ) [ ( "T" | blank ) [ time ] [ zone ] ] ]
//! time = hour [ [:] minute ] [ fraction ] [ [:] second [ fraction ] ]
//! zone = "Z" | ( "+" | "-" ) hour [:] [ minute ]
//! ```
//!
//! Day and month use the same separator, and so do minute and second.

/// Says whether `text` has the format of an ISO 8601 date, with or without a time. The date need not exist.
pub fn is_iso_date(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some(rest) = digits(unsigned, 4) else { return false };
    let is_year_and_month_run_together =
        digits(rest, 2).is_some_and(|it| !it.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
    !is_year_and_month_run_together && (rest.is_empty() || is_date_after_year(rest))
}

fn is_date_after_year(text: &str) -> bool {
    let separators: &[&str] = if text.starts_with('-') { &["-", ""] } else { &[""] };
    separators.iter().any(|separator| {
        let rest = &text[separator.len()..];
        calendar_ends(rest, separator).into_iter().flatten().any(is_time_or_end)
    })
}

/// Returns the possible remainders after month and day, week and weekday, or the day of the year.
fn calendar_ends<'a>(text: &'a str, separator: &str) -> [Option<&'a str>; 5] {
    let month = number(text, 2, 1..=12);
    let day = month.and_then(|it| it.strip_prefix(separator)).and_then(|it| number(it, 2, 1..=31));
    let week = text.strip_prefix('W').and_then(|it| number(it, 2, 0..=53));
    let weekday = week.map(|it| it.strip_prefix('-').unwrap_or(it)).and_then(|it| number(it, 1, 1..=7));
    [day, month, weekday, week, number(text, 3, 1..=366)]
}

fn is_time_or_end(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let is_blank = |it: char| it.is_whitespace() || it == '\u{feff}';
    let Some(time) = text.strip_prefix(|it: char| it == 'T' || is_blank(it)) else { return false };
    let starts: [(Option<&str>, &str); 5] = [
        (
            number(time, 2, 0..=23).and_then(|it| it.strip_prefix(':')).and_then(|it| number(it, 2, 0..=59)),
            ":",
        ),
        (number(time, 2, 0..=23).and_then(|it| number(it, 2, 0..=59)), ""),
        (number(time, 2, 0..=23), ""),
        (time.strip_prefix("24:00").or_else(|| time.strip_prefix("2400")), ""),
        (Some(time), ""),
    ];
    starts.into_iter().enumerate().any(|(index, (rest, separator))| {
        let Some(rest) = rest else { return false };
        let has_time = index < 4;
        let after_fraction = fraction(rest).filter(|it| has_time && !it.starts_with(':'));
        [Some(rest), after_fraction].into_iter().flatten().any(|it| is_seconds_or_end(it, separator))
    })
}

fn is_seconds_or_end(text: &str, separator: &str) -> bool {
    let seconds = text.strip_prefix(separator).and_then(|it| number(it, 2, 0..=59));
    let after_fraction = seconds.and_then(fraction);
    [after_fraction, seconds, Some(text)].into_iter().flatten().any(is_zone_or_end)
}

fn is_zone_or_end(text: &str) -> bool {
    if matches!(text, "" | "z" | "Z") {
        return true;
    }
    let Some(hours) = text.strip_prefix(['+', '-']).and_then(|it| number(it, 2, 0..=23)) else {
        return false;
    };
    let minutes = hours.strip_prefix(':').unwrap_or(hours);
    minutes.is_empty() || number(minutes, 2, 0..=59).is_some_and(str::is_empty)
}

fn fraction(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(['.', ','])?;
    let end = rest.trim_start_matches(|it: char| it.is_ascii_digit());
    (end.len() < rest.len()).then_some(end)
}

fn digits(text: &str, n: usize) -> Option<&str> {
    let (head, rest) = text.split_at_checked(n)?;
    head.bytes().all(|it| it.is_ascii_digit()).then_some(rest)
}

fn number(text: &str, n_digits: usize, range: std::ops::RangeInclusive<u16>) -> Option<&str> {
    let rest = digits(text, n_digits)?;
    let value: u16 = text[..n_digits].parse().ok()?;
    range.contains(&value).then_some(rest)
}
