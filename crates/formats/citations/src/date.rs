//! Publication dates with one to three parts, and the time between two of them as OpenCitations states it.
//!
//! Source: the OpenCitations data model (`creation` is an `xsd:gYear`, `xsd:gYearMonth` or `xsd:date`,
//! `timespan` an `xsd:duration`) and the worked examples of its index software.

use std::fmt;

/// Bits that [`PartialDate::code`] needs.
pub(crate) const DATE_BITS: u32 = 22;
/// Bits that [`Timespan::code`] needs.
pub(crate) const TIMESPAN_BITS: u32 = 26;

const MONTH_CODES: u32 = 13; // "No month" and twelve months.
const DAY_CODES: u32 = 32; // "No day" and 31 days.

/// A year, a month or a day, depending on the precision of its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartialDate {
    year: u16,
    /// 1 to 12; 0 if the date has no month.
    month: u8,
    /// 1 to 31; 0 if the date has no day.
    day: u8,
}

impl PartialDate {
    /// Reads `YYYY`, `YYYY-MM` or `YYYY-MM-DD`; one digit is enough for month and day.
    ///
    /// `None` for anything else, and for a month over 12 or a day over 31. A day that its month does not have
    /// (February 30th) is kept as in the source.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut parts = text.split(|&byte| byte == b'-');
        let year = parts.next().filter(|part| part.len() == 4).and_then(decimal)?;
        let month = parts.next().map(|part| decimal(part).filter(|it| (1..=12).contains(it)));
        let day = parts.next().map(|part| decimal(part).filter(|it| (1..=31).contains(it)));
        if parts.next().is_some() {
            return None;
        }
        Some(Self { year: u16::try_from(year).ok()?, month: or_missing(month)?, day: or_missing(day)? })
    }

    /// Creates a date from parts; `None` if they are not valid by the rules of [`PartialDate::parse`].
    #[must_use]
    pub fn new(year: u16, month: Option<u8>, day: Option<u8>) -> Option<Self> {
        let fits = |part: Option<u8>, max: u8| part.is_none_or(|it| (1..=max).contains(&it));
        let is_date = year <= 9999 && fits(month, 12) && fits(day, 31) && (month.is_some() || day.is_none());
        is_date.then(|| Self { year, month: month.unwrap_or(0), day: day.unwrap_or(0) })
    }

    /// Returns the year.
    #[must_use]
    pub fn year(self) -> u16 {
        self.year
    }

    /// Returns the month, if the date has one.
    #[must_use]
    pub fn month(self) -> Option<u8> {
        (self.month != 0).then_some(self.month)
    }

    /// Returns the day, if the date has one.
    #[must_use]
    pub fn day(self) -> Option<u8> {
        (self.day != 0).then_some(self.day)
    }

    /// Returns 1 for a year, 2 for a month, 3 for a day.
    #[must_use]
    pub fn n_parts(self) -> u8 {
        1 + u8::from(self.month != 0) + u8::from(self.day != 0)
    }

    /// Returns a number below 2^22 that orders as dates do; 0 is reserved for "no date".
    pub(crate) fn code(self) -> u32 {
        1 + (u32::from(self.year) * MONTH_CODES + u32::from(self.month)) * DAY_CODES + u32::from(self.day)
    }

    /// Returns the date of a code; `None` for 0 and for values that [`PartialDate::code`] never returns.
    pub(crate) fn from_code(code: u32) -> Option<Self> {
        let code = code.checked_sub(1)?;
        let part = |value: u32| u8::try_from(value).ok().filter(|it| *it != 0);
        let (day, month) = (part(code % DAY_CODES), part(code / DAY_CODES % MONTH_CODES));
        Self::new(u16::try_from(code / DAY_CODES / MONTH_CODES).ok()?, month, day)
    }

    /// Returns the day this date stands for in arithmetic: missing parts are the first, an impossible day the
    /// 28th.
    fn full(self) -> Day {
        let month = self.month.max(1);
        let day = self.day.max(1);
        let is_possible = day <= days_in_month(i32::from(self.year), month);
        Day { year: i32::from(self.year), month, day: if is_possible { day } else { 28 } }
    }
}

impl fmt::Display for PartialDate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}", self.year)?;
        if self.month != 0 {
            write!(out, "-{:02}", self.month)?;
        }
        if self.day != 0 {
            write!(out, "-{:02}", self.day)?;
        }
        Ok(())
    }
}

/// The time between two dates in calendar years, months and days, with one to three parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timespan {
    is_negative: bool,
    years: u16,
    months: Option<u8>,
    days: Option<u8>,
}

impl Timespan {
    /// Reads `P6Y`, `P6Y8M`, `P6Y8M13D`, each with or without `-` in front.
    ///
    /// `None` for anything else, and for over 9999 years, 11 months or 31 days.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (is_negative, rest) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
        let rest = rest.strip_prefix(b"P")?;
        let (years, rest) = part_before(rest, b'Y')?;
        let years = u16::try_from(years).ok().filter(|it| *it <= 9999)?;
        if rest.is_empty() {
            return Some(Self { is_negative, years, months: None, days: None });
        }
        let (months, rest) = part_before(rest, b'M')?;
        let months = u8::try_from(months).ok().filter(|it| *it <= 11)?;
        if rest.is_empty() {
            return Some(Self { is_negative, years, months: Some(months), days: None });
        }
        let (days, rest) = part_before(rest, b'D')?;
        let days = u8::try_from(days).ok().filter(|it| *it <= 31)?;
        rest.is_empty().then_some(Self { is_negative, years, months: Some(months), days: Some(days) })
    }

    /// Returns citing date minus cited date, with as many parts as both have.
    ///
    /// Whole months are counted first, from the earlier towards the later day of the month, then days; the sign
    /// shows only if a part shown is not zero.
    #[must_use]
    pub fn between(citing: PartialDate, cited: PartialDate) -> Self {
        let (citing_day, cited_day) = (citing.full(), cited.full());
        let (months, days) = citing_day.months_and_days_since(cited_day);
        let n_parts = citing.n_parts().min(cited.n_parts());
        let years = months.unsigned_abs() / 12;
        let is_shown_negative = (months < 0 && (years != 0 || 2 <= n_parts)) || (days < 0 && n_parts == 3);
        let small = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
        Self {
            is_negative: is_shown_negative,
            years: u16::try_from(years).unwrap_or(u16::MAX),
            months: (2 <= n_parts).then(|| small(months.unsigned_abs() % 12)),
            days: (n_parts == 3).then(|| small(days.unsigned_abs())),
        }
    }

    /// Returns whether the cited work is the younger one.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.is_negative
    }

    /// Returns 1 for years, 2 with months, 3 with days.
    #[must_use]
    pub fn n_parts(self) -> u8 {
        1 + u8::from(self.months.is_some()) + u8::from(self.days.is_some())
    }

    /// Returns a number below 2^26; 0 is reserved for "no timespan".
    pub(crate) fn code(self) -> u32 {
        u32::from(self.n_parts())
            | u32::from(self.is_negative) << 2
            | u32::from(self.days.unwrap_or(0)) << 3
            | u32::from(self.months.unwrap_or(0)) << 8
            | u32::from(self.years) << 12
    }

    /// Returns the timespan of a code; `None` for 0.
    pub(crate) fn from_code(code: u32) -> Option<Self> {
        let part = |shift: u32, mask: u32| u8::try_from(code >> shift & mask).unwrap_or(0);
        let n_parts = code & 3;
        (n_parts != 0).then(|| Self {
            is_negative: code >> 2 & 1 == 1,
            years: u16::try_from(code >> 12 & 0x3fff).unwrap_or(0),
            months: (2 <= n_parts).then(|| part(8, 15)),
            days: (n_parts == 3).then(|| part(3, 31)),
        })
    }

    /// Returns dates of a cited work for which [`Timespan::between`] gives this timespan, best guess first.
    pub(crate) fn cited_dates(self, citing: PartialDate) -> impl Iterator<Item = PartialDate> {
        let n_parts = self.n_parts().min(citing.n_parts());
        let sign = if self.is_negative { 1 } else { -1 };
        let n_months = i32::from(self.years) * 12 + i32::from(self.months.unwrap_or(0));
        let near = citing.full().plus_months(sign * n_months);
        let near = if n_parts == 3 { near.plus_days(sign * i32::from(self.days.unwrap_or(0))) } else { near };
        [0, -1, 1, -2, 2, -3, 3].into_iter().filter_map(move |step| {
            let day = match n_parts {
                1 => near.plus_months(12 * step),
                2 => near.plus_months(step),
                _ => near.plus_days(step),
            };
            let month = (2 <= n_parts).then_some(day.month);
            let date =
                PartialDate::new(u16::try_from(day.year).ok()?, month, (n_parts == 3).then_some(day.day))?;
            (Self::between(citing, date) == self).then_some(date)
        })
    }
}

impl fmt::Display for Timespan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}P{}Y", if self.is_negative { "-" } else { "" }, self.years)?;
        if let Some(months) = self.months {
            write!(out, "{months}M")?;
        }
        if let Some(days) = self.days {
            write!(out, "{days}D")?;
        }
        Ok(())
    }
}

/// A day of the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Day {
    year: i32,
    month: u8,
    day: u8,
}

impl Day {
    /// Returns the same day of another month, or that month's last day.
    fn plus_months(self, n_months: i32) -> Self {
        let index = self.year * 12 + i32::from(self.month) - 1 + n_months;
        let year = index.div_euclid(12);
        let month = u8::try_from(index.rem_euclid(12) + 1).unwrap_or(1);
        Self { year, month, day: self.day.min(days_in_month(year, month)) }
    }

    fn plus_days(self, n_days: i32) -> Self {
        let mut day = Self { day: 1, ..self };
        let mut left = i32::from(self.day) - 1 + n_days;
        while left < 0 {
            day = day.plus_months(-1);
            left += i32::from(days_in_month(day.year, day.month));
        }
        while i32::from(days_in_month(day.year, day.month)) <= left {
            left -= i32::from(days_in_month(day.year, day.month));
            day = day.plus_months(1);
        }
        Self { day: u8::try_from(left + 1).unwrap_or(1), ..day }
    }

    /// Returns months and days of the same sign that lead from `earlier` to `self`.
    fn months_and_days_since(self, earlier: Self) -> (i32, i32) {
        let mut months = (self.year - earlier.year) * 12 + i32::from(self.month) - i32::from(earlier.month);
        let mut reached = earlier.plus_months(months);
        let step = if self < earlier { 1 } else { -1 };
        // One month too many: at most one step back, as `reached` is in the month of `self`.
        while (step == 1 && reached < self) || (step == -1 && self < reached) {
            months += step;
            reached = earlier.plus_months(months);
        }
        (months, self.number() - reached.number())
    }

    /// Returns the number of days since a fixed day, for differences.
    fn number(self) -> i32 {
        // March-based years make the leap day the last one.
        let (year, month) = if self.month <= 2 {
            (self.year - 1, i32::from(self.month) + 9)
        } else {
            (self.year, i32::from(self.month) - 3)
        };
        365 * year + year.div_euclid(4) - year.div_euclid(100)
            + year.div_euclid(400)
            + (153 * month + 2) / 5
            + i32::from(self.day)
    }
}

fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Parses up to four decimal digits; `None` for anything else.
fn decimal(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || 4 < digits.len() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')))
}

/// Keeps a missing part as 0; a part that is present must have been valid.
fn or_missing(part: Option<Option<u32>>) -> Option<u8> {
    match part {
        None => Some(0),
        Some(value) => u8::try_from(value?).ok(),
    }
}

/// Returns the digits up to `unit`, and the rest after it.
fn part_before(text: &[u8], unit: u8) -> Option<(u32, &[u8])> {
    let at = memchr::memchr(unit, text)?;
    Some((decimal(&text[..at])?, &text[at + 1..]))
}
