//! Points in time as circulation reads and writes them, and the tenant's time zone.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Parses a client's date: ISO 8601 with `Z` or an offset (`+00:00`, `+0000`), or without (UTC); a date alone means its
/// start in UTC. `None` for anything else.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let civil: jiff::civil::DateTime = text.parse().ok()?;
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Formats a date for output: `2026-01-31T10:20:30.000Z`.
pub(crate) fn wire(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// Converts milliseconds since 1970; the last representable time for what lies beyond it.
pub(crate) fn from_ms(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

/// Returns the zone by its name in the zone database, e.g. `Europe/Berlin`; UTC for an unknown one, as in FOLIO.
pub(crate) fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap_or(TimeZone::UTC)
}

/// Returns the last second of a day in a zone, which is what a due date without a time means.
pub(crate) fn end_of_day(day: Date, zone: &TimeZone) -> Timestamp {
    at(day, Time::constant(23, 59, 59, 0), zone)
}

/// Returns a time of a day in a zone; if a clock change skips it, the first time after the gap.
pub(crate) fn at(day: Date, time: Time, zone: &TimeZone) -> Timestamp {
    zone.to_zoned(day.to_datetime(time)).map_or(Timestamp::MAX, |it: Zoned| it.timestamp())
}

/// Returns the day of a moment in a zone.
pub(crate) fn day_of(moment: Timestamp, zone: &TimeZone) -> Date {
    zone.to_datetime(moment).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares what a text is parsed as, or `-`.
    fn check(text: &str, expected: &str) {
        assert_eq!(parse(text).map_or_else(|| "-".to_owned(), wire), expected, "{text}");
    }

    #[test]
    fn texts_of_clients() {
        check("2026-01-31T10:20:30.123Z", "2026-01-31T10:20:30.123Z");
        check("2026-01-31T10:20:30Z", "2026-01-31T10:20:30.000Z");
        check("2026-01-31T10:20:30.123456+01:00", "2026-01-31T09:20:30.123Z");
        check("2026-01-31T10:20:30.123+0000", "2026-01-31T10:20:30.123Z");
        check("2026-01-31T10:20:30", "2026-01-31T10:20:30.000Z");
        check(" 2026-01-31 ", "2026-01-31T00:00:00.000Z");
        check("2026-02-30T10:20:30Z", "-");
        check("31.1.2026", "-");
        check("", "-");
    }

    #[test]
    fn ends_of_days_follow_the_zone() {
        let check = |day: &str, name: &str, expected: &str| {
            assert_eq!(wire(end_of_day(day.parse().unwrap(), &zone(name))), expected, "{day} {name}");
        };
        check("2026-01-31", "UTC", "2026-01-31T23:59:59.000Z");
        check("2026-01-31", "Europe/Berlin", "2026-01-31T22:59:59.000Z");
        check("2026-07-31", "Europe/Berlin", "2026-07-31T21:59:59.000Z");
        check("2026-07-31", "America/New_York", "2026-08-01T03:59:59.000Z");
        check("2026-07-31", "Nowhere/Land", "2026-07-31T23:59:59.000Z");
    }
}
