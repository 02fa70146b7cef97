//! `/calendar/calendars`: when service points are open (mod-calendar).

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Record, Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::policies::CALENDARS;
use super::records::text;
use crate::platform::app::Call;
use crate::platform::collection::{self, Lock, Missing, Writer};
use crate::platform::error::{Answer, FolioError};
use crate::platform::limits::BULK_ACCOUNTS;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};

pub(super) fn routes(routes: Routes) -> Routes {
    let all = "/calendar/calendars";
    let one = "/calendar/calendars/{id}";
    let to = Access::to;
    routes
        .get(all, to("calendar.endpoint.calendars.get"), list)
        .post(all, to("calendar.endpoint.calendars.post"), create)
        .delete(all, to("calendar.endpoint.calendars.delete"), remove_many)
        .get(one, to("calendar.endpoint.calendars.calendarId.get"), |call| {
            collection::by_id(call, &CALENDARS)
        })
        .put(one, to("calendar.endpoint.calendars.calendarId.put"), replace)
        .delete(one, to("calendar.endpoint.calendars.calendarId.delete"), |call| {
            collection::remove(call, &CALENDARS)
        })
}

/// Builds an error in the module's own format, with its code.
fn refused(status: StatusCode, code: &str, message: String, about: &Value) -> Refused {
    Refused {
        status,
        body: json!({"status": status.as_u16(), "errors": [{
            "code": code, "message": message, "parameters": about,
        }]}),
    }
}

struct Refused {
    status: StatusCode,
    body: Value,
}

/// Lists calendars by id or service point that apply at some time from `startDate` to `endDate`.
async fn list(call: Call) -> Answer {
    let all = |name: &str| -> Vec<String> { call.query.all(name).map(str::to_lowercase).collect() };
    let (ids, points) = (all("id"), all("servicePointId"));
    let date = |name: &str| call.query.get(name).map(str::to_owned);
    let (first, last) = (date("startDate"), date("endDate"));
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let texts = |list: &[String]| list.iter().map(|it| it.as_str().into()).collect::<Vec<_>>();
        let mut wanted = if ids.is_empty() { Expr::All } else { Expr::Ids(ids.clone()) };
        if !points.is_empty() {
            wanted = wanted.and(Expr::In("assignments".into(), texts(&points)));
        }
        let found = view.find(
            &CALENDARS.kind,
            &Query::filter(wanted).sorted("startDate", pinakes_store::Direction::Ascending),
        )?;
        let found = found.iter().map(Record::json).collect::<Result<Vec<Value>, _>>()?;
        let holds = |it: &&Value| {
            first.as_deref().is_none_or(|from| from <= text(it, "endDate"))
                && last.as_deref().is_none_or(|until| text(it, "startDate") <= until)
        };
        let found: Vec<&Value> = found.iter().filter(holds).collect();
        let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let page: Vec<&Value> = found.iter().copied().skip(at(offset)).take(at(limit)).collect();
        Ok(json!({"calendars": page, "totalRecords": found.len()}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Returns an error for a calendar that ends before it begins, or that overlaps another one of the same service point.
fn fault(view: &mut View<'_>, id: &str, body: &Map<String, Value>) -> Result<Option<Refused>, FolioError> {
    let whole = Value::Object(body.clone());
    let (first, last) = (text(&whole, "startDate"), text(&whole, "endDate"));
    if last < first {
        let message = format!("The start date ({first}) was after the end date ({last}).");
        let about = json!({"startDate": first, "endDate": last});
        return Ok(Some(refused(StatusCode::BAD_REQUEST, "calendarInvalidDateRange", message, &about)));
    }
    let points: Vec<&str> = whole["assignments"]
        .as_array()
        .map(|it| it.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    if points.is_empty() {
        return Ok(None);
    }
    let assigned = Expr::In("assignments".into(), points.iter().map(|it| (*it).into()).collect());
    for record in view.find(&CALENDARS.kind, &Query::filter(assigned))? {
        let other = record.json()?;
        if record.id != id && text(&other, "startDate") <= last && first <= text(&other, "endDate") {
            let message = format!(
                "The calendar may not be saved because it overlaps with another calendar \"{}\" ({} to {}).",
                text(&other, "name"),
                text(&other, "startDate"),
                text(&other, "endDate")
            );
            let about = json!({"conflictingCalendarId": record.id});
            return Ok(Some(refused(StatusCode::CONFLICT, "calendarDateOverlap", message, &about)));
        }
    }
    Ok(None)
}

/// Stores a calendar, or answers why it is refused.
async fn store(call: Call, id: Option<String>, body: Map<String, Value>, done: StatusCode) -> Answer {
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Result<Value, Refused>, FolioError> {
        if let Some(fault) = fault(txn, id.as_deref().unwrap_or_default(), &body)? {
            return Ok(Err(fault));
        }
        let stored = match &id {
            Some(id) => {
                collection::put(txn, &writer(), &CALENDARS, id, body.clone(), Missing::Refuse, Lock::Ignored)?
            }
            None => collection::insert(txn, &writer(), &CALENDARS, body.clone())?,
        };
        Ok(Ok(stored.body))
    };
    Ok(match call.db().write(write).await? {
        Ok(body) => json_answer(done, &body),
        Err(refused) => json_answer(refused.status, &refused.body),
    })
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    store(call, None, body, StatusCode::CREATED).await
}

async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    store(call, Some(id), body, StatusCode::OK).await
}

/// Deletes all the calendars of `?id=…&id=…`, or none.
async fn remove_many(call: Call) -> Answer {
    let given: Vec<&str> = call.query.all("id").collect();
    if given.is_empty() || BULK_ACCOUNTS < given.len() {
        let message = format!("id must be given 1 to {BULK_ACCOUNTS} times, found {}", given.len());
        return Err(FolioError::bad_request(message));
    }
    let ids = given
        .into_iter()
        .map(|it| parse_uuid(it).ok_or_else(|| FolioError::bad_request(format!("Invalid UUID string: {it}"))))
        .collect::<Result<Vec<String>, _>>()?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        ids.iter().try_for_each(|id| collection::delete(txn, &writer, &CALENDARS, id).map(drop))
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
