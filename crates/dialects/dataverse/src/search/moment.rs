//! Solr's date arithmetic: `NOW`, `NOW-7DAYS`, `NOW/MONTH`, `NOW-1YEAR/DAY+2HOURS`.

use time::{Date, Duration, Month, OffsetDateTime, Time};

use crate::clock;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Years,
    Months,
    Days,
    Hours,
    Minutes,
    Seconds,
}

impl Unit {
    fn named(name: &str) -> Option<Self> {
        Some(match name.strip_suffix('S').unwrap_or(name) {
            "YEAR" => Self::Years,
            "MONTH" => Self::Months,
            "DAY" | "DATE" => Self::Days,
            "HOUR" => Self::Hours,
            "MINUTE" => Self::Minutes,
            "SECOND" => Self::Seconds,
            _ => return None,
        })
    }

    /// Returns a moment moved by `n` units; `None` beyond the calendar. The 31st of a month becomes the last day of a
    /// shorter one.
    fn add(self, at: OffsetDateTime, n: i64) -> Option<OffsetDateTime> {
        match self {
            Self::Years => move_months(at, n.checked_mul(12)?),
            Self::Months => move_months(at, n),
            Self::Days => at.checked_add(Duration::seconds(n.checked_mul(24 * 3600)?)),
            Self::Hours => at.checked_add(Duration::seconds(n.checked_mul(3600)?)),
            Self::Minutes => at.checked_add(Duration::seconds(n.checked_mul(60)?)),
            Self::Seconds => at.checked_add(Duration::seconds(n)),
        }
    }

    /// Returns the beginning of the unit that contains a moment.
    fn begin(self, at: OffsetDateTime) -> Option<OffsetDateTime> {
        let (date, time) = (at.date(), at.time());
        let (date, time) = match self {
            Self::Years => (Date::from_calendar_date(date.year(), Month::January, 1).ok()?, Time::MIDNIGHT),
            Self::Months => (date.replace_day(1).ok()?, Time::MIDNIGHT),
            Self::Days => (date, Time::MIDNIGHT),
            Self::Hours => (date, Time::from_hms(time.hour(), 0, 0).ok()?),
            Self::Minutes => (date, Time::from_hms(time.hour(), time.minute(), 0).ok()?),
            Self::Seconds => (date, Time::from_hms(time.hour(), time.minute(), time.second()).ok()?),
        };
        Some(OffsetDateTime::new_utc(date, time))
    }
}

fn move_months(at: OffsetDateTime, n: i64) -> Option<OffsetDateTime> {
    let months = i64::from(at.year()) * 12 + i64::from(u8::from(at.month())) - 1;
    let months = months.checked_add(n)?;
    let month = Month::try_from(u8::try_from(months.rem_euclid(12)).ok()? + 1).ok()?;
    let year = i32::try_from(months.div_euclid(12)).ok()?;
    let day = at.day().min(month.length(year));
    Some(OffsetDateTime::new_utc(Date::from_calendar_date(year, month, day).ok()?, at.time()))
}

/// Returns an end of a range: a text that begins with `NOW` is converted into an instant, any other stays as it is.
///
/// Errors: invalid arithmetic, or a result beyond the calendar.
pub(super) fn resolved(text: &str, now_ms: i64) -> Result<String, String> {
    let Some(rest) = text.strip_prefix("NOW") else { return Ok(text.to_owned()) };
    let wrong = || format!("Invalid Date Math String:'{text}'");
    let now =
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(now_ms) * 1_000_000).map_err(|_| wrong())?;
    let (mut at, mut rest) = (now, rest);
    while let Some(operator) = rest.chars().next() {
        let behind = rest.get(1..).ok_or_else(wrong)?;
        let end = behind.find(['+', '-', '/']).unwrap_or(behind.len());
        let (operand, next) = behind.split_at(end);
        let n_digits = operand.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, unit) = operand.split_at(n_digits);
        let unit = Unit::named(unit).ok_or_else(wrong)?;
        at = match (operator, digits.parse::<i64>()) {
            ('/', _) if digits.is_empty() => unit.begin(at),
            ('+', Ok(n)) => unit.add(at, n),
            ('-', Ok(n)) => unit.add(at, -n),
            _ => None,
        }
        .ok_or_else(wrong)?;
        rest = next;
    }
    let ms = i64::try_from(at.unix_timestamp_nanos() / 1_000_000).map_err(|_| wrong())?;
    Ok(clock::instant(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_reckoned_from_now() {
        let now_ms = clock::parse("2024-03-31T10:20:30Z").unwrap();
        for (text, expected) in [
            ("2020", "2020"),
            ("*", "*"),
            ("NOW", "2024-03-31T10:20:30Z"),
            ("NOW-1DAY", "2024-03-30T10:20:30Z"),
            ("NOW-1MONTH", "2024-02-29T10:20:30Z"),
            ("NOW+1MONTH/MONTH", "2024-04-01T00:00:00Z"),
            ("NOW/YEAR-2YEARS", "2022-01-01T00:00:00Z"),
            ("NOW-40MONTHS", "2020-11-30T10:20:30Z"),
            ("NOW/DAY+90MINUTES", "2024-03-31T01:30:00Z"),
            ("NOW/HOUR-1SECOND", "2024-03-31T09:59:59Z"),
        ] {
            assert_eq!(resolved(text, now_ms).as_deref(), Ok(expected), "{text}");
        }
        for wrong in [
            "NOWADAYS",
            "NOW-DAY",
            "NOW-1",
            "NOW-1WEEK",
            "NOW/2DAYS",
            "NOW-99999999999YEARS",
            "NOW--1DAY",
            "NOWé",
        ] {
            assert!(resolved(wrong, now_ms).is_err(), "{wrong}");
        }
    }
}
