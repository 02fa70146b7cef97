//! Numbers that stand for dates, counted from 1960: by the formats of Stata's variables, and calendar days for all
//! readers.

use std::fmt::Write as _;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// `%tc`, `%tC`.
    Milliseconds,
    /// `%td`, `%d`.
    Days,
    /// `%tw`: 52 to a year.
    Weeks,
    /// `%tm`.
    Months,
    /// `%tq`.
    Quarters,
    /// `%th`.
    Halves,
    /// `%ty`: the year itself.
    Years,
}

/// Days from 1960-01-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 3653;
const MS_PER_DAY: i64 = 86_400_000;
/// The years within which numbers are taken as dates.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;

/// Returns the clock of a format, if it shows dates.
pub(crate) fn clock_of(format: &str) -> Option<Clock> {
    let rest = format.strip_prefix('%')?.trim_start_matches('-');
    if rest.starts_with('d') {
        return Some(Clock::Days);
    }
    Some(match rest.strip_prefix('t')?.chars().next()? {
        'c' | 'C' => Clock::Milliseconds,
        'd' => Clock::Days,
        'w' => Clock::Weeks,
        'm' => Clock::Months,
        'q' => Clock::Quarters,
        'h' => Clock::Halves,
        'y' => Clock::Years,
        _ => return None,
    })
}

impl Clock {
    /// Appends the date of a number; returns false if the number is not a date.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "numbers beyond 2^53 are no dates and were refused before"
    )]
    pub(crate) fn push(self, value: f64, text: &mut String) -> bool {
        if !value.is_finite() || 9e15 < value.abs() {
            return false;
        }
        let number = value.floor() as i64;
        let per_year = |n: i64| (1960 + number.div_euclid(n), number.rem_euclid(n) + 1);
        let (year, result) = match self {
            Self::Days => {
                let (year, month, day) = civil(number - DAYS_TO_1970);
                (year, write!(text, "{year:04}-{month:02}-{day:02}"))
            }
            Self::Milliseconds => {
                let (year, month, day) = civil(number.div_euclid(MS_PER_DAY) - DAYS_TO_1970);
                let ms = number.rem_euclid(MS_PER_DAY);
                let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
                let (second, ms) = (ms / 1000 % 60, ms % 1000);
                let date = write!(text, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
                (year, if ms == 0 { date } else { date.and_then(|()| write!(text, ".{ms:03}")) })
            }
            Self::Weeks => {
                let (year, week) = per_year(52);
                (year, write!(text, "{year:04}-W{week:02}"))
            }
            Self::Months => {
                let (year, month) = per_year(12);
                (year, write!(text, "{year:04}-{month:02}"))
            }
            Self::Quarters => {
                let (year, quarter) = per_year(4);
                (year, write!(text, "{year:04}-Q{quarter}"))
            }
            Self::Halves => {
                let (year, half) = per_year(2);
                (year, write!(text, "{year:04}-H{half}"))
            }
            Self::Years => (number, write!(text, "{number:04}")),
        };
        result.is_ok() && YEARS.contains(&year)
    }
}

/// Returns the day that is so many days after 1970-01-01: (year, month, day), by the algorithm of Hinnant's
/// `civil_from_days`.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_dates() {
        for (format, value, date) in [
            ("%td", 0.0, "1960-01-01"),
            ("%tdD_m_Y", 21_915.0, "2020-01-01"),
            ("%-d", -1.0, "1959-12-31"),
            ("%tc", 1_000.0, "1960-01-01 00:00:01"),
            ("%tc", 86_400_001.0, "1960-01-02 00:00:00.001"),
            ("%tm", 13.0, "1961-02"),
            ("%tq", -1.0, "1959-Q4"),
            ("%tw", 53.0, "1961-W02"),
            ("%th", 1.0, "1960-H2"),
            ("%ty", 1999.0, "1999"),
        ] {
            let mut text = String::new();
            assert!(clock_of(format).unwrap().push(value, &mut text));
            assert_eq!(text, date, "{format}");
        }
        assert_eq!(clock_of("%9.0g"), None);
        assert!(!Clock::Days.push(1e12, &mut String::new()));
    }
}
