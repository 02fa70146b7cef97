//! Columns and how their values are compared: dates are completed with month and day 1, timespans are compared as
//! durations, counts as numbers, everything else as lower-case text.

use std::cmp::Ordering;

use pinakes_citations::PartialDate;

/// The values of a row, one for each column.
pub(crate) type Row = Vec<String>;

/// A column of an answer.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) ty: Type,
}

impl Column {
    pub(crate) const fn new(name: &'static str, ty: Type) -> Self {
        Self { name, ty }
    }
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// Text.
    Text,
    /// `2020`, `2020-05`, `2020-05-02`.
    Date,
    /// `P6Y8M13D`.
    Span,
    /// A number.
    Count,
}

/// A value that can be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Typed {
    /// Year, month, day.
    Date(u16, u8, u8),
    /// Approximate number of days.
    Span(i64),
    /// A number.
    Count(i64),
    /// Lower-case text.
    Text(String),
}

/// Number of years for an empty timespan.
const NO_SPAN_YEARS: i64 = 2_000;
const DAYS_PER_YEAR: i64 = 372; // Twelve months of 31 days, so that the parts never overlap.
const DAYS_PER_MONTH: i64 = 31;
/// The date to which RAMOSE adds a timespan in order to compare it.
const SPANS_FROM: (u16, u8, u8) = (1983, 1, 15);

impl Typed {
    /// Parses the value of a cell; `None` if it is not of the type.
    pub(crate) fn of(ty: Type, value: &str) -> Option<Self> {
        match ty {
            Type::Text => Some(Self::Text(value.to_lowercase())),
            Type::Count => value.trim().parse().ok().map(Self::Count),
            Type::Date if value.is_empty() => Some(Self::Date(1, 1, 1)),
            Type::Date => {
                let date = PartialDate::parse(value.as_bytes())?;
                Some(Self::Date(date.year(), date.month().unwrap_or(1), date.day().unwrap_or(1)))
            }
            Type::Span if value.is_empty() => Some(Self::Span(NO_SPAN_YEARS * DAYS_PER_YEAR)),
            Type::Span => span_days(value).map(Self::Span),
        }
    }

    /// Parses the value of a filter. Timespans are compared with dates: with the date that they reach from
    /// [`SPANS_FROM`], as RAMOSE does.
    pub(crate) fn asked(ty: Type, value: &str) -> Option<Self> {
        if ty != Type::Span {
            return Self::of(ty, value);
        }
        let Self::Date(year, month, day) = Self::of(Type::Date, value)? else { return None };
        let days = |year: u16, month: u8, day: u8| {
            i64::from(year) * DAYS_PER_YEAR + i64::from(month) * DAYS_PER_MONTH + i64::from(day)
        };
        let (from_year, from_month, from_day) = SPANS_FROM;
        Some(Self::Span(days(year, month, day) - days(from_year, from_month, from_day)))
    }

    /// Compares two cells of a type; those that are not of the type come first, and cells with equal values are
    /// ordered by their texts.
    pub(crate) fn order(ty: Type, a: &str, b: &str) -> Ordering {
        Self::of(ty, a).cmp(&Self::of(ty, b)).then_with(|| a.cmp(b))
    }
}

fn span_days(text: &str) -> Option<i64> {
    let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut rest = rest.strip_prefix('P')?;
    let mut days = 0_i64;
    for (unit, factor) in [('Y', DAYS_PER_YEAR), ('M', DAYS_PER_MONTH), ('D', 1)] {
        if let Some((number, behind)) = rest.split_once(unit) {
            let number: u32 = number.parse().ok()?;
            days += i64::from(number) * factor;
            rest = behind;
        }
    }
    rest.is_empty().then_some(sign * days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_compare_by_type() {
        for (ty, less, more) in [
            (Type::Date, "", "0002"),
            (Type::Date, "2016", "2016-03"),
            (Type::Date, "2016-09", "2016-10-01"),
            (Type::Span, "-P1Y", "P0Y"),
            (Type::Span, "P1Y11M30D", "P2Y"),
            (Type::Span, "P99Y", ""),
            (Type::Count, "9", "10"),
            (Type::Text, "a", "B"),
        ] {
            assert_eq!(Typed::order(ty, less, more), Ordering::Less, "{less} {more}");
        }
        assert_eq!(Typed::of(Type::Date, "2016"), Typed::of(Type::Date, "2016-01-01"));
        assert_eq!(Typed::order(Type::Date, "2016", "2016-01-01"), Ordering::Less, "ties");
        assert_eq!(Typed::asked(Type::Span, "1984-01-15"), Typed::of(Type::Span, "P1Y"));
        assert_eq!(Typed::asked(Type::Span, "P1Y"), None);
        assert_eq!(Typed::of(Type::Date, "soon"), None);
        assert_eq!(Typed::of(Type::Span, "P1"), None);
    }
}
