//! The formats in which SPSS shows its variables. Those of dates and times say that a number is a moment.

use crate::dates::civil;

/// Seconds from 1582-10-14, the epoch of SPSS, to 1970-01-01.
const SECONDS_TO_1970: f64 = 12_219_379_200.0;

/// What a number of seconds represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Date,
    DateTime,
    TimeOfDay,
}

impl Moment {
    /// Returns what the numbers in a format represent, if it is a moment.
    pub(crate) fn of(format: u32) -> Option<Self> {
        Some(match format >> 16 & 0xff {
            20 | 23 | 24 | 28 | 29 | 30 | 38 | 39 => Self::Date,
            22 | 41 => Self::DateTime,
            21 | 25 => Self::TimeOfDay,
            _ => return None,
        })
    }

    /// Formats a number of seconds; `None` outside the years 1 to 9999.
    #[expect(clippy::cast_possible_truncation, reason = "seconds beyond 2^53 are no moments")]
    pub(crate) fn text(self, value: f64) -> Option<String> {
        if 1e15 < value.abs() {
            return None;
        }
        let clock =
            |seconds: i64| format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        if self == Self::TimeOfDay {
            return (0.0 <= value).then(|| clock(value as i64));
        }
        let seconds = (value - SECONDS_TO_1970) as i64;
        let (year, month, day) = civil(seconds.div_euclid(86_400));
        let date = format!("{year:04}-{month:02}-{day:02}");
        if !(1..=9999).contains(&year) {
            return None;
        }
        match self {
            Self::Date => Some(date),
            _ => Some(format!("{date} {}", clock(seconds.rem_euclid(86_400)))),
        }
    }
}

/// Returns the name of one of SPSS's formats for variables, by number; nothing for the ordinary formats of texts and
/// numbers, `A` and `F`, which say no more than the type.
pub(crate) fn format_name(format: u32) -> String {
    let name = match format >> 16 & 0xff {
        2 => "AHEX",
        3 => "COMMA",
        4 => "DOLLAR",
        17 => "E",
        20 => "DATE",
        21 => "TIME",
        22 => "DATETIME",
        23 => "ADATE",
        24 => "JDATE",
        25 => "DTIME",
        26 => "WKDAY",
        27 => "MONTH",
        28 => "MOYR",
        29 => "QYR",
        30 => "WKYR",
        31 => "PCT",
        32 => "DOT",
        38 => "EDATE",
        39 => "SDATE",
        40 => "MTIME",
        41 => "YMDHMS",
        _ => return String::new(),
    };
    let (width, decimals) = (format >> 8 & 0xff, format & 0xff);
    if decimals == 0 { format!("{name}{width}") } else { format!("{name}{width}.{decimals}") }
}
