//! `/calendar/dates`: when a service point is open around a day, or on each day of a range (section 13 of the contract;
//! mod-calendar).

use http::StatusCode;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use pinakes_store::{Query, View, Weight};
use serde_json::{Value, json};

use super::calendar::{Calendar, Opening};
use super::policies::CALENDARS;
use crate::app::{Call, json_answer};
use crate::error::{Answer, FolioError};
use crate::limits::CALENDAR_DAYS;
use crate::permissions::Access;
use crate::places::SERVICE_POINTS;
use crate::routes::Routes;

pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get(
            "/calendar/dates/{servicePointId}/surrounding-openings",
            to("calendar.endpoint.dates.get"),
            surrounding,
        )
        .get("/calendar/dates/{servicePointId}/all-openings", to("calendar.endpoint.dates.get"), all)
}

/// A day that a parameter names. Errors: 400.
fn day(call: &Call, name: &str) -> Result<Date, FolioError> {
    let text = call.query.get(name).unwrap_or_default();
    text.get(..10)
        .and_then(|it| it.parse().ok())
        .ok_or_else(|| FolioError::bad_request(format!("{name} {text:?} is no date; expected YYYY-MM-DD")))
}

fn calendar(view: &mut View<'_>, service_point: &str) -> Result<Calendar, FolioError> {
    if !view.has(&SERVICE_POINTS.kind, service_point)? {
        return Err(FolioError::not_found(format!("there is no service point {service_point}")));
    }
    let records = view.find(&CALENDARS.kind, &Query::filter(pinakes_store::Expr::All))?;
    let records = records.iter().map(|it| it.json()).collect::<Result<Vec<Value>, _>>()?;
    Ok(Calendar::of(&records, service_point))
}

/// A day with its openings. Times are those of the service point's own clock: no zone is applied.
fn shown(date: Date, openings: &[Opening], from_weekly: bool) -> Value {
    let clock = |it: jiff::Timestamp| it.to_zoned(TimeZone::UTC).strftime("%H:%M").to_string();
    let all_day =
        |it: &Opening| clock(it.start) == "00:00" && matches!(clock(it.end).as_str(), "23:59" | "00:00");
    let list: Vec<Value> =
        openings.iter().map(|it| json!({"startTime": clock(it.start), "endTime": clock(it.end)})).collect();
    json!({
        "date": date.to_string(),
        "allDay": openings.is_empty() || openings.iter().any(all_day),
        "open": !openings.is_empty(),
        "exceptional": !from_weekly,
        "openings": list,
    })
}

fn of_day(calendar: &Calendar, date: Date) -> Value {
    shown(date, &calendar.openings(date, &TimeZone::UTC), !calendar.is_exceptional_on(date))
}

/// The day itself, between the open days before and behind it.
async fn surrounding(call: Call) -> Answer {
    let (point, date) = (call.uuid_param("servicePointId")?, day(&call, "date")?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let calendar = calendar(view, &point)?;
        let near = |from: Option<Date>, step| from.and_then(|it| calendar.open_day(it, step, &TimeZone::UTC));
        let before = near(date.yesterday().ok(), -1);
        let after = near(date.tomorrow().ok(), 1);
        let closed = |it: Option<Date>, otherwise: Option<Date>| match it {
            Some(date) => of_day(&calendar, date),
            None => shown(otherwise.unwrap_or(date), &[], true),
        };
        let list = json!([
            closed(before, date.yesterday().ok()),
            of_day(&calendar, date),
            closed(after, date.tomorrow().ok())
        ]);
        Ok(json!({"openings": list}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Each day of a range; closed ones with `includeClosed=true`.
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
            .map(|it| of_day(&calendar, it))
            .filter(|it| includes_closed || it.get("open") == Some(&true.into()))
            .collect();
        let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let page: Vec<&Value> = all.iter().skip(at(offset)).take(at(limit)).collect();
        Ok(json!({"dates": page, "totalRecords": all.len()}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
