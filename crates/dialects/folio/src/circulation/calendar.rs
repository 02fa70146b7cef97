//! When a service point is open: the calendars of `/calendar/calendars`, read into openings.
//!
//! A calendar holds from `startDate` to `endDate` for the service points of `assignments`. `normalHours` are weekly
//! openings, which may end on a later weekday; an exception replaces them on its days, without openings it closes them.

use jiff::Timestamp;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use serde_json::Value;

use super::moment;

/// Days that are looked at in search of an opening.
const DAYS_MAX: i32 = 366;

/// Openings of a service point.
#[derive(Debug, Default)]
pub(crate) struct Calendar {
    spans: Vec<Span>,
}

/// What one calendar record says.
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
    first: Date,
    last: Date,
    /// Start and end, in local time.
    openings: Vec<(Date, Time, Date, Time)>,
}

/// A time in which the service point is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

impl Calendar {
    /// From the records of `/calendar/calendars`; those of other service points and what is not readable are left out.
    pub(crate) fn of<'a>(records: impl IntoIterator<Item = &'a Value>, service_point: &str) -> Self {
        let is_assigned = |record: &&Value| {
            let list = record["assignments"].as_array();
            list.is_some_and(|it| it.iter().any(|id| id.as_str() == Some(service_point)))
        };
        Self { spans: records.into_iter().filter(is_assigned).filter_map(span).collect() }
    }

    /// Whether no calendar speaks of the day.
    pub(crate) fn is_silent_on(&self, day: Date) -> bool {
        !self.spans.iter().any(|it| (it.first..=it.last).contains(&day))
    }

    /// Whether an exception holds on the day.
    pub(crate) fn is_exceptional_on(&self, day: Date) -> bool {
        let mut of_day = self.spans.iter().filter(|it| (it.first..=it.last).contains(&day));
        of_day.any(|it| it.exceptions.iter().any(|it| (it.first..=it.last).contains(&day)))
    }

    /// The openings that begin on a day, in order.
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

    /// Whether the service point is open at some time of a day.
    pub(crate) fn is_open_on(&self, day: Date, zone: &TimeZone) -> bool {
        let begins = !self.openings(day, zone).is_empty();
        let noon_before = day.yesterday().map(|it| self.openings(it, zone)).unwrap_or_default();
        begins || noon_before.iter().any(|it| moment::at(day, Time::midnight(), zone) < it.end)
    }

    /// The nearest open day, `from` itself included, in steps of one or minus one day.
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

    /// The opening that a moment lies in.
    pub(crate) fn opening_at(&self, moment: Timestamp, zone: &TimeZone) -> Option<Opening> {
        let day = moment::day_of(moment, zone);
        let days = [day.yesterday().ok(), Some(day)];
        let mut openings = days.into_iter().flatten().flat_map(|it| self.openings(it, zone));
        openings.rfind(|it| (it.start..=it.end).contains(&moment))
    }

    /// The first opening that begins behind a moment.
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
    fn openings(&self, day: Date, zone: &TimeZone) -> Vec<Opening> {
        if let Some(exception) = self.exceptions.iter().find(|it| (it.first..=it.last).contains(&day)) {
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
    /// The opening that begins on `day`. Same weekday and an end before the start is a week later.
    fn on(&self, day: Date, zone: &TimeZone) -> Option<Opening> {
        let days = self.start.0.until(self.end.0);
        let days = if days == 0 && self.end.1 < self.start.1 { 7 } else { days };
        let last = day.checked_add(jiff::Span::new().days(days)).ok()?;
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
        first: date(&exception["startDate"])?,
        last: date(&exception["endDate"])?,
        openings: openings.map(|it| it.iter().filter_map(opening).collect()).unwrap_or_default(),
    })
}

fn date(value: &Value) -> Option<Date> {
    value.as_str()?.parse().ok()
}

/// `09:00` or `09:00:00`.
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
