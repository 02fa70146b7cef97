//! Dates: days and seconds, in UTC.

use time::{Date, Month, OffsetDateTime, Time};

use crate::fault::Fault;

const DAY_MS: i64 = 86_400_000;
const SECOND_MS: i64 = 1_000;

/// How fine the dates of a repository are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Granularity {
    /// `2026-01-31`.
    Day,
    /// `2026-01-31T10:20:30Z`.
    Second,
}

impl Granularity {
    /// Returns its name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "YYYY-MM-DD",
            Self::Second => "YYYY-MM-DDThh:mm:ssZ",
        }
    }

    /// Formats milliseconds since 1970.
    pub fn stamp(self, ms: i64) -> String {
        let at =
            OffsetDateTime::from_unix_timestamp(ms.div_euclid(1_000)).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let day = format!("{:04}-{:02}-{:02}", at.year(), u8::from(at.month()), at.day());
        match self {
            Self::Day => day,
            Self::Second => format!("{day}T{:02}:{:02}:{:02}Z", at.hour(), at.minute(), at.second()),
        }
    }

    /// Returns for how long a date of this granularity lasts, in milliseconds.
    const fn length_ms(self) -> i64 {
        match self {
            Self::Day => DAY_MS,
            Self::Second => SECOND_MS,
        }
    }
}

/// The period of a selective harvest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    /// Its first instant, in milliseconds since 1970.
    pub from_ms: Option<i64>,
    /// The first instant after it, in milliseconds since 1970: `until` includes the day, or the second, that it names.
    pub before_ms: Option<i64>,
}

impl Range {
    /// Reads the arguments `from` and `until`, where dates are as fine as `finest` or coarser.
    pub(crate) fn parse(from: Option<&str>, until: Option<&str>, finest: Granularity) -> Result<Self, Fault> {
        let read = |text: &str| -> Result<(Granularity, i64), Fault> {
            let (granularity, ms) = parse(text).ok_or_else(|| Fault::NotADate(text.to_owned()))?;
            match finest < granularity {
                true => Err(Fault::TooFine(text.to_owned())),
                false => Ok((granularity, ms)),
            }
        };
        let (begin, end) = (from.map(read).transpose()?, until.map(read).transpose()?);
        if let (Some(from), Some(until), Some(begin), Some(end)) = (from, until, begin, end) {
            let both = || (from.to_owned(), until.to_owned());
            if begin.0 != end.0 {
                let (from, until) = both();
                return Err(Fault::MixedGranularity(from, until));
            }
            if end.1 < begin.1 {
                let (from, until) = both();
                return Err(Fault::Reversed(from, until));
            }
        }
        let before_ms = end.map(|(granularity, ms)| ms + granularity.length_ms());
        Ok(Self { from_ms: begin.map(|it| it.1), before_ms })
    }

    /// Returns whether it has a beginning or an end.
    pub const fn is_bounded(&self) -> bool {
        self.from_ms.is_some() || self.before_ms.is_some()
    }

    /// Returns whether an instant is within.
    pub fn contains(&self, ms: i64) -> bool {
        self.from_ms.is_none_or(|it| it <= ms) && self.before_ms.is_none_or(|it| ms < it)
    }
}

/// Reads `2026-01-31` or `2026-01-31T10:20:30Z`, and no other form.
fn parse(text: &str) -> Option<(Granularity, i64)> {
    let number = |at: usize, len: usize| -> Option<u16> {
        let digits = text.get(at..at + len)?;
        digits.bytes().all(|it| it.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    let two = |at: usize| number(at, 2).and_then(|it| u8::try_from(it).ok());
    let has = |marks: &[(usize, u8)]| marks.iter().all(|(at, mark)| text.as_bytes().get(*at) == Some(mark));
    let (granularity, time) = match text.len() {
        10 => (Granularity::Day, Time::MIDNIGHT),
        20 if has(&[(10, b'T'), (13, b':'), (16, b':'), (19, b'Z')]) => {
            (Granularity::Second, Time::from_hms(two(11)?, two(14)?, two(17)?).ok()?)
        }
        _ => return None,
    };
    if !has(&[(4, b'-'), (7, b'-')]) {
        return None;
    }
    let month = Month::try_from(two(5)?).ok()?;
    let date = Date::from_calendar_date(i32::from(number(0, 4)?), month, two(8)?).ok()?;
    Some((granularity, date.with_time(time).assume_utc().unix_timestamp() * 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_two_forms() {
        let (day, second) = (1_769_817_600_000, 1_769_854_830_000);
        assert_eq!(parse("2026-01-31"), Some((Granularity::Day, day)));
        assert_eq!(parse("2026-01-31T10:20:30Z"), Some((Granularity::Second, second)));
        assert_eq!(Granularity::Day.stamp(second + 999), "2026-01-31");
        assert_eq!(Granularity::Second.stamp(second + 999), "2026-01-31T10:20:30Z");
        assert_eq!(Granularity::Second.stamp(-1), "1969-12-31T23:59:59Z");
        for text in [
            "",
            "2026",
            "2026-02-30",
            "2026-1-031",
            "+026-01-31",
            "2026-01-31T10:20:30",
            "2026-01-31t10:20:30Z",
            "2026-01-31T10:20:30z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T10:20:3éZ",
            "2026-01-3é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_end_of_a_period_is_within() {
        let period = Range::parse(Some("2026-01-31"), Some("2026-01-31"), Granularity::Second);
        let day = 1_769_817_600_000;
        assert_eq!(period, Ok(Range { from_ms: Some(day), before_ms: Some(day + DAY_MS) }));
        assert!(period.is_ok_and(|it| it.contains(day + DAY_MS - 1) && !it.contains(day + DAY_MS)));
        let until = Range::parse(None, Some("2026-01-31T00:00:00Z"), Granularity::Second);
        assert_eq!(until, Ok(Range { from_ms: None, before_ms: Some(day + SECOND_MS) }));
        assert!(!Range::default().is_bounded() && Range::default().contains(i64::MIN));
    }
}
