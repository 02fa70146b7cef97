//! When a service point is open: the calendars of `/calendar/calendars`, read into openings.
//!
//! A calendar applies from `startDate` to `endDate` to the service points of `assignments`. `normalHours` are weekly
//! openings, which may end on a later weekday; an exception replaces them on its days, and closes those days if it has
//! no openings.

use jiff::Timestamp;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use serde_json::Value;

use super::moment;

/// The last minute of a day.
const END_OF_DAY: Time = Time::constant(23, 59, 0, 0);
/// Maximum number of days to search for an opening.
const DAYS_MAX: i32 = 366;

/// Openings of a service point.
#[derive(Debug, Default)]
pub(crate) struct Calendar {
    spans: Vec<Span>,
}

/// The content of one calendar record.
#[derive(Debug)]
struct Span {
    first: Date,
    last: Date,
    weekly: Vec<Weekly>,
    exceptions: Vec<Exception>,
}

#[derive(Debug)]
struct Weekly {
    start: (Weekday, Time),
    end: (Weekday, Time),
}

#[derive(Debug)]
struct Exception {
    name: String,
    first: Date,
    last: Date,
    /// Start and end, in local time.
    openings: Vec<(Date, Time, Date, Time)>,
}

/// A period during which the service point is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

impl Calendar {
    /// Builds the calendar from records of `/calendar/calendars`; those of other service points and unreadable ones are
    /// skipped.
    pub(crate) fn of<'a>(records: impl IntoIterator<Item = &'a Value>, service_point: &str) -> Self {
        let is_assigned = |record: &&Value| {
            let list = record["assignments"].as_array();
            list.is_some_and(|it| it.iter().any(|id| id.as_str() == Some(service_point)))
        };
        Self { spans: records.into_iter().filter(is_assigned).filter_map(span).collect() }
    }

    /// Checks that no calendar covers the day.
    pub(crate) fn is_silent_on(&self, day: Date) -> bool {
        !self.spans.iter().any(|it| (it.first..=it.last).contains(&day))
    }

    /// Returns the name of the exception in effect on the day.
    pub(crate) fn exception_on(&self, day: Date) -> Option<&str> {
        let of_day = self.spans.iter().filter(|it| (it.first..=it.last).contains(&day));
        of_day.flat_map(|it| it.exception_on(day)).next().map(|it| it.name.as_str())
    }

    /// Returns the hours of a day, in order; an opening that continues past midnight is split at 23:59 and 00:00.
    pub(crate) fn hours(&self, day: Date) -> Vec<(Time, Time)> {
        let of_day = self.spans.iter().filter(|it| (it.first..=it.last).contains(&day));
        let mut list: Vec<(Time, Time)> = of_day.flat_map(|it| it.hours(day)).collect();
        list.sort_unstable();
        list
    }

    /// Returns the openings that begin on a day, in order.
    pub(crate) fn openings(&self, day: Date, zone: &TimeZone) -> Vec<Opening> {
        let mut list: Vec<Opening> = self
            .spans
            .iter()
            .filter(|it| (it.first..=it.last).contains(&day))
            .flat_map(|it| it.openings(day, zone))
            .collect();
        list.sort_by_key(|it| it.start);
        list
    }

    /// Checks whether the service point is open at some time of a day.
    pub(crate) fn is_open_on(&self, day: Date, zone: &TimeZone) -> bool {
        let is_some = |from, until| moment::at(day, from, zone) < moment::at(day, until, zone);
        self.hours(day).into_iter().any(|(from, until)| is_some(from, until))
    }

    /// Returns the nearest open day, starting with `from` itself, in steps of one or minus one day.
    pub(crate) fn open_day(&self, from: Date, step_days: i32, zone: &TimeZone) -> Option<Date> {
        let mut day = from;
        for _ in 0..DAYS_MAX {
            if self.is_open_on(day, zone) {
                return Some(day);
            }
            day = if step_days < 0 { day.yesterday() } else { day.tomorrow() }.ok()?;
        }
        None
    }

    /// Returns the opening that contains a moment.
    pub(crate) fn opening_at(&self, moment: Timestamp, zone: &TimeZone) -> Option<Opening> {
        let day = moment::day_of(moment, zone);
        // A weekly opening may have begun seven days earlier.
        let first = day.checked_sub(jiff::Span::new().days(7)).unwrap_or(day);
        let days: Vec<Date> = first.series(jiff::Span::new().days(1)).take_while(|it| *it <= day).collect();
        let mut openings = days.into_iter().flat_map(|it| self.openings(it, zone));
        openings.rfind(|it| (it.start..=it.end).contains(&moment))
    }

    /// Returns the first opening that begins after a moment.
    pub(crate) fn next_opening(&self, moment: Timestamp, zone: &TimeZone) -> Option<Opening> {
        let mut day = moment::day_of(moment, zone);
        for _ in 0..DAYS_MAX {
            if let Some(found) = self.openings(day, zone).into_iter().find(|it| moment < it.start) {
                return Some(found);
            }
            day = day.tomorrow().ok()?;
        }
        None
    }
}

impl Span {
    fn exception_on(&self, day: Date) -> Option<&Exception> {
        self.exceptions.iter().find(|it| (it.first..=it.last).contains(&day))
    }

    fn hours(&self, day: Date) -> Vec<(Time, Time)> {
        let part = |is_first: bool, is_last: bool, from: Time, until: Time| {
            (if is_first { from } else { Time::midnight() }, if is_last { until } else { END_OF_DAY })
        };
        if let Some(exception) = self.exception_on(day) {
            let of_day = exception.openings.iter().filter(|it| (it.0..=it.2).contains(&day));
            return of_day.map(|it| part(it.0 == day, it.2 == day, it.1, it.3)).collect();
        }
        let mut list = Vec::new();
        for weekly in &self.weekly {
            let n_days = weekly.n_days();
            let nth = weekly.start.0.until(day.weekday());
            for nth in [nth, nth + 7].into_iter().filter(|it| *it <= n_days) {
                list.push(part(nth == 0, nth == n_days, weekly.start.1, weekly.end.1));
            }
        }
        list
    }

    fn openings(&self, day: Date, zone: &TimeZone) -> Vec<Opening> {
        if let Some(exception) = self.exception_on(day) {
            let of_day = exception.openings.iter().filter(|it| it.0 == day);
            let opening = |it: &(Date, Time, Date, Time)| Opening {
                start: moment::at(it.0, it.1, zone),
                end: moment::at(it.2, it.3, zone),
            };
            return of_day.map(opening).collect();
        }
        let of_day = self.weekly.iter().filter(|it| it.start.0 == day.weekday());
        of_day.filter_map(|it| it.on(day, zone)).collect()
    }
}

impl Weekly {
    /// Returns the number of days from the start to the end.
    fn n_days(&self) -> i8 {
        let days = self.start.0.until(self.end.0);
        if days == 0 && self.end.1 < self.start.1 { 7 } else { days }
    }

    /// Returns the opening that begins on `day`. If start and end are on the same weekday and the end is earlier, it
    /// ends a week later.
    fn on(&self, day: Date, zone: &TimeZone) -> Option<Opening> {
        let last = day.checked_add(jiff::Span::new().days(self.n_days())).ok()?;
        Some(Opening { start: moment::at(day, self.start.1, zone), end: moment::at(last, self.end.1, zone) })
    }
}

fn span(record: &Value) -> Option<Span> {
    let list = |field: &str| record[field].as_array().map(Vec::as_slice).unwrap_or_default();
    Some(Span {
        first: date(&record["startDate"])?,
        last: date(&record["endDate"])?,
        weekly: list("normalHours").iter().filter_map(weekly).collect(),
        exceptions: list("exceptions").iter().filter_map(exception).collect(),
    })
}

fn weekly(hours: &Value) -> Option<Weekly> {
    Some(Weekly {
        start: (weekday(&hours["startDay"])?, time(&hours["startTime"])?),
        end: (weekday(&hours["endDay"])?, time(&hours["endTime"])?),
    })
}

fn exception(exception: &Value) -> Option<Exception> {
    let opening = |it: &Value| {
        let (start, end) = (date(&it["startDate"])?, date(&it["endDate"])?);
        Some((start, time(&it["startTime"])?, end, time(&it["endTime"])?))
    };
    let openings = exception["openings"].as_array();
    Some(Exception {
        name: exception["name"].as_str().unwrap_or_default().to_owned(),
        first: date(&exception["startDate"])?,
        last: date(&exception["endDate"])?,
        openings: openings.map(|it| it.iter().filter_map(opening).collect()).unwrap_or_default(),
    })
}

fn date(value: &Value) -> Option<Date> {
    value.as_str()?.parse().ok()
}

/// Parses `09:00` or `09:00:00`.
fn time(value: &Value) -> Option<Time> {
    let text = value.as_str()?;
    let mut parts = text.split(':').map(|it| it.parse::<i8>().ok());
    let (hour, minute) = (parts.next()??, parts.next()??);
    Time::new(hour, minute, parts.next().flatten().unwrap_or(0), 0).ok()
}

fn weekday(value: &Value) -> Option<Weekday> {
    Some(match value.as_str()?.to_ascii_uppercase().as_str() {
        "MONDAY" => Weekday::Monday,
        "TUESDAY" => Weekday::Tuesday,
        "WEDNESDAY" => Weekday::Wednesday,
        "THURSDAY" => Weekday::Thursday,
        "FRIDAY" => Weekday::Friday,
        "SATURDAY" => Weekday::Saturday,
        "SUNDAY" => Weekday::Sunday,
        _ => return None,
    })
}
