//! Dates as JavaScript reads and writes them.
//!
//! Dates are always sent as `YYYY-MM-DDTHH:mm:ss.sssZ`; received ones may have an offset, no zone (taken as UTC, the
//! server's zone), no time, or be an HTTP date. Source: ECMAScript's Date Time String Format, and for other forms the
//! lenient parser of V8 as far as clients use it (blank for `T`, `+0100`, two- or one-digit parts, HTTP dates).
//!
//! Times are in milliseconds since 1970 UTC.

const MS_PER_SECOND: i64 = 1_000;
const MS_PER_MINUTE: i64 = 60_000;
const MS_PER_HOUR: i64 = 3_600_000;
const MS_PER_DAY: i64 = 86_400_000;

/// The largest distance from 1970 that a JavaScript date can have.
const MAX_MS: i64 = 8_640_000_000_000_000;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Returns the time that `text` names; `None` if JavaScript would call it an invalid date.
pub fn parse_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    let ms = parse_iso(text).or_else(|| parse_http(text))?;
    (ms.abs() <= MAX_MS).then_some(ms)
}

/// Returns `text` in the format in which dates are sent; `None` if it is not a date.
pub fn normalise(text: &str) -> Option<String> {
    parse_ms(text).map(format_ms)
}

/// Formats a time as `2020-01-15T08:00:00.000Z`. Years beyond 9999 or before 0 have a sign and six digits.
pub fn format_ms(ms: i64) -> String {
    let ms = ms.clamp(-MAX_MS, MAX_MS);
    let (year, month, day) = civil_from_days(ms.div_euclid(MS_PER_DAY));
    let time = ms.rem_euclid(MS_PER_DAY);
    let (hour, minute) = (time / MS_PER_HOUR, time / MS_PER_MINUTE % 60);
    let (second, milli) = (time / MS_PER_SECOND % 60, time % MS_PER_SECOND);
    if (0..=9999).contains(&year) {
        return digits_24(year, [month, day, hour, minute, second], milli);
    }
    let sign = if year < 0 { '-' } else { '+' };
    let year = year.abs();
    format!("{sign}{year:06}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Returns the same day and time `years` later; 29 February becomes 1 March in a year without it, as JavaScript does.
pub fn years_later(ms: i64, years: i64) -> i64 {
    let ms = ms.clamp(-MAX_MS, MAX_MS);
    let (year, month, day) = civil_from_days(ms.div_euclid(MS_PER_DAY));
    let year = year.saturating_add(years.clamp(-200_000, 200_000));
    let days = days_from_civil(year, month, day);
    days.saturating_mul(MS_PER_DAY).saturating_add(ms.rem_euclid(MS_PER_DAY)).clamp(-MAX_MS, MAX_MS)
}

/// Formats a time as `Wed, 15 Jan 2020 08:00:00 GMT`, which the message of a failed precondition and HTTP's date
/// headers use.
pub fn format_http(ms: i64) -> String {
    let ms = ms.clamp(-MAX_MS, MAX_MS);
    let days = ms.div_euclid(MS_PER_DAY);
    let (year, month, day) = civil_from_days(days);
    let time = ms.rem_euclid(MS_PER_DAY);
    let (hour, minute, second) = (time / MS_PER_HOUR, time / MS_PER_MINUTE % 60, time / MS_PER_SECOND % 60);
    let weekday = name(&WEEKDAYS, (days + 4).rem_euclid(7));
    let month = name(&MONTHS, month - 1);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

fn name<const N: usize>(names: &[&'static str; N], index: i64) -> &'static str {
    usize::try_from(index).ok().and_then(|it| names.get(it)).copied().unwrap_or_default()
}

/// Formats the common case without `format!`, as every document contains dates.
fn digits_24(year: i64, parts: [i64; 5], milli: i64) -> String {
    let mut bytes = *b"0000-00-00T00:00:00.000Z";
    put_digits(&mut bytes[0..4], year);
    for (start, part) in [5, 8, 11, 14, 17].into_iter().zip(parts) {
        put_digits(&mut bytes[start..start + 2], part);
    }
    put_digits(&mut bytes[20..23], milli);
    bytes.iter().map(|it| char::from(*it)).collect()
}

fn put_digits(place: &mut [u8], mut value: i64) {
    for byte in place.iter_mut().rev() {
        *byte = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
    }
}

/// Returns the year, month (1 to 12) and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// Years start in March so that the leap day is the last day; an era has 400 of them.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    const DAYS_PER_ERA: i64 = 146_097;
    const DAYS_TO_1970: i64 = 719_468;
    let shifted = days + DAYS_TO_1970;
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Inverse of [`civil_from_days`]. A day beyond the end of the month runs on into the next month.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Parses `2020`, `2020-01`, `2020-01-15`, each with `T08:00`, `T08:00:00`, `T08:00:00.123456` and a zone.
fn parse_iso(text: &str) -> Option<i64> {
    let mut scanner = Scanner { rest: text };
    let year = scanner.year()?;
    let (mut month, mut day) = (1, 1);
    if scanner.take('-') {
        month = scanner.number_in(1..=12)?;
        if scanner.take('-') {
            day = scanner.number_in(1..=31)?;
        }
    }
    let mut ms = days_from_civil(year, month, day) * MS_PER_DAY;
    if scanner.take_one_of("Tt ") {
        ms += scanner.time_ms()?;
        ms -= scanner.zone_ms()?;
    }
    scanner.rest.is_empty().then_some(ms)
}

/// Parses `Wed, 15 Jan 2020 08:00:00 GMT`, ignoring the weekday; other zones are accepted too.
fn parse_http(text: &str) -> Option<i64> {
    let date = text.split_once(',').map_or(text, |it| it.1).trim_start();
    let (day, rest) = date.split_once([' ', '-'])?;
    let (month, rest) = rest.split_once([' ', '-'])?;
    let (year, rest) = rest.split_once(' ')?;
    let month_index = MONTHS.iter().position(|it| month.len() == 3 && it.eq_ignore_ascii_case(month))?;
    let day: i64 = day.parse().ok().filter(|it| (1..=31).contains(it))?;
    let year: i64 = year.parse().ok().filter(|it| (0..=9999).contains(it))?;
    let year = match year {
        0..=49 => year + 2000,
        50..=99 => year + 1900,
        _ => year,
    };
    let month = i64::try_from(month_index).ok()? + 1;
    let mut scanner = Scanner { rest };
    let mut ms = days_from_civil(year, month, day) * MS_PER_DAY + scanner.time_ms()?;
    scanner.rest = scanner.rest.trim_start();
    for universal in ["GMT", "UTC", "UT"] {
        scanner.rest = scanner.rest.strip_prefix(universal).unwrap_or(scanner.rest);
    }
    ms -= scanner.zone_ms()?;
    scanner.rest.is_empty().then_some(ms)
}

struct Scanner<'a> {
    rest: &'a str,
}

impl Scanner<'_> {
    fn take(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_one_of(&mut self, wanted: &str) -> bool {
        wanted.chars().any(|it| self.take(it))
    }

    /// Reads exactly `n` digits.
    fn digits(&mut self, n: usize) -> Option<i64> {
        let (head, rest) = self.rest.split_at_checked(n)?;
        if !head.bytes().all(|it| it.is_ascii_digit()) {
            return None;
        }
        self.rest = rest;
        head.parse().ok()
    }

    /// Reads one or two digits.
    fn number_in(&mut self, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let value = self.digits(2).or_else(|| self.digits(1))?;
        range.contains(&value).then_some(value)
    }

    /// Reads four digits, or a sign and six; year zero may not have a minus.
    fn year(&mut self) -> Option<i64> {
        if self.take('+') {
            self.digits(6)
        } else if self.take('-') {
            self.digits(6).filter(|it| 0 < *it).map(|it| -it)
        } else {
            self.digits(4)
        }
    }

    /// Reads `08:00`, `08:00:00` or `08:00:00.5`; 24:00:00 is the end of the day. Digits beyond milliseconds are
    /// dropped.
    fn time_ms(&mut self) -> Option<i64> {
        let hour = self.number_in(0..=24)?;
        if !self.take(':') {
            return None;
        }
        let minute = self.number_in(0..=59)?;
        let (mut second, mut milli) = (0, 0);
        if self.take(':') {
            second = self.number_in(0..=59)?;
            if self.take_one_of(".,") {
                milli = self.fraction_ms()?;
            }
        }
        let ms = hour * MS_PER_HOUR + minute * MS_PER_MINUTE + second * MS_PER_SECOND + milli;
        (ms <= MS_PER_DAY).then_some(ms)
    }

    fn fraction_ms(&mut self) -> Option<i64> {
        let n_digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(n_digits);
        self.rest = rest;
        let kept = digits.get(..n_digits.min(3))?;
        let scale = [0, 100, 10, 1].get(kept.len())?;
        Some(kept.parse::<i64>().ok()? * scale)
    }

    /// Reads `Z`, `+01:00`, `-0100` or `+01` and returns the offset from UTC; a missing zone is UTC.
    fn zone_ms(&mut self) -> Option<i64> {
        if self.rest.is_empty() || self.take_one_of("Zz") {
            return Some(0);
        }
        let sign = if self.take('+') {
            1
        } else if self.take('-') {
            -1
        } else {
            return None;
        };
        let hours = self.digits(2).filter(|it| *it <= 23)?;
        self.take(':');
        let minutes = if self.rest.is_empty() { 0 } else { self.digits(2).filter(|it| *it <= 59)? };
        Some(sign * (hours * MS_PER_HOUR + minutes * MS_PER_MINUTE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_are_those_of_the_calendar() {
        for (from, years, expected) in [
            ("2026-02-01T10:00:00.000Z", 3, "2029-02-01T10:00:00.000Z"),
            ("2026-11-22T23:59:59.999Z", 10, "2036-11-22T23:59:59.999Z"),
            ("2024-02-29T00:00:00.000Z", 1, "2025-03-01T00:00:00.000Z"),
            ("2024-02-29T00:00:00.000Z", -4, "2020-02-29T00:00:00.000Z"),
        ] {
            let ms = parse_ms(from).unwrap_or_default();
            assert_eq!(format_ms(years_later(ms, years)), expected, "{from} {years}");
        }
    }
}
