//! `/calendar/dates`: when a service point is open around a day, or on each day of a range (section 13 of the contract;
//! mod-calendar).

use http::StatusCode;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use pinakes_store::{View, Weight};
use serde_json::{Value, json};

use super::calendar::Calendar;
use super::terms;
use crate::platform::app::Call;
use crate::platform::error::{Answer, FolioError};
use crate::platform::limits::CALENDAR_DAYS;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get(
            "/calendar/dates/{servicePointId}/surrounding-openings",
            to("calendar.endpoint.calendars.surroundingOpenings.get"),
            surrounding,
        )
        .get(
            "/calendar/dates/{servicePointId}/all-openings",
            to("calendar.endpoint.calendars.allOpenings.get"),
            all,
        )
        .with(super::calendars::routes)
}

/// Parses the date in a parameter. Errors: 400.
fn day(call: &Call, name: &str) -> Result<Date, FolioError> {
    let text = call.query.get(name).unwrap_or_default();
    text.get(..10)
        .and_then(|it| it.parse().ok())
        .ok_or_else(|| FolioError::bad_request(format!("{name} {text:?} is no date; expected YYYY-MM-DD")))
}

fn calendar(view: &mut View<'_>, service_point: &str) -> Result<Calendar, FolioError> {
    Ok(terms::calendar(view, service_point)?)
}

/// Returns a day with its hours. Times are local to the service point: no zone is applied.
fn shown(calendar: &Calendar, date: Date) -> Value {
    let hours = calendar.hours(date);
    let clock = |it: Time| it.strftime("%H:%M:%S").to_string();
    let is_all_day = |it: &(Time, Time)| it.0 == Time::midnight() && it.1 >= Time::constant(23, 59, 0, 0);
    let list: Vec<Value> =
        hours.iter().map(|it| json!({"startTime": clock(it.0), "endTime": clock(it.1)})).collect();
    let exception = calendar.exception_on(date);
    let mut map = serde_json::Map::new();
    map.insert("date".into(), date.to_string().into());
    map.insert("allDay".into(), (hours.is_empty() || hours.iter().any(is_all_day)).into());
    map.insert("open".into(), (!hours.is_empty()).into());
    map.insert("exceptional".into(), exception.is_some().into());
    map.extend(exception.map(|it| ("exceptionName".to_owned(), it.into())));
    map.insert("openings".into(), list.into());
    Value::Object(map)
}

/// Returns the day itself, between the nearest open days before and after it.
async fn surrounding(call: Call) -> Answer {
    let (point, date) = (call.uuid_param("servicePointId")?, day(&call, "date")?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let calendar = calendar(view, &point)?;
        let near = |from: Option<Date>, step| from.and_then(|it| calendar.open_day(it, step, &TimeZone::UTC));
        let before = near(date.yesterday().ok(), -1);
        let after = near(date.tomorrow().ok(), 1);
        // If there is no open day, the adjacent day is shown as closed.
        let list = json!([
            shown(&calendar, before.or(date.yesterday().ok()).unwrap_or(date)),
            shown(&calendar, date),
            shown(&calendar, after.or(date.tomorrow().ok()).unwrap_or(date)),
        ]);
        Ok(json!({"openings": list}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Lists the days of a range; closed ones only with `includeClosed=true`.
async fn all(call: Call) -> Answer {
    let (point, first, last) =
        (call.uuid_param("servicePointId")?, day(&call, "startDate")?, day(&call, "endDate")?);
    let includes_closed = call.query.is_true("includeClosed");
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let n_days = i64::from(first.until(last).map_or(-1, |it| it.get_days())) + 1;
    if !(1..=CALENDAR_DAYS).contains(&n_days) {
        return Err(FolioError::bad_request(format!(
            "from startDate to endDate must be 1 to {CALENDAR_DAYS} days, found {n_days}"
        )));
    }
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let calendar = calendar(view, &point)?;
        let days = first.series(jiff::Span::new().days(1)).take_while(|it| *it <= last);
        let all: Vec<Value> = days
            .map(|it| shown(&calendar, it))
            .filter(|it| includes_closed || it["open"] == true || it["exceptional"] == true)
            .collect();
        let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let page: Vec<&Value> = all.iter().skip(at(offset)).take(at(limit)).collect();
        Ok(json!({"dates": page, "totalRecords": all.len()}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
