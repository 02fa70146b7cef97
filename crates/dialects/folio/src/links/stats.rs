//! `/links/stats`: changed headings of authorities, and links of instances by status.

use http::StatusCode;
use pinakes_store::{Direction, End, Expr, Query, Value as Condition, View, Weight};
use serde_json::{Value, json};

use super::rules;
use crate::authorities::authority::AUTHORITIES;
use crate::inventory::instances::INSTANCES;
use crate::links::linked::LINKS;
use crate::links::noted::HEADING_CHANGE;
use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Default number of entries in an answer.
const DEFAULT_LIMIT: u64 = 100;

pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get(
            "/links/stats/authority",
            to("instance-authority-links.authority-statistics.collection.get"),
            changes,
        )
        .get(
            "/links/stats/instance",
            to("instance-authority-links.instance-statistics.collection.get"),
            links,
        )
}

/// Parses `fromDate`, `toDate` and `limit`.
fn window(call: &Call) -> Result<(End, End, u64), FolioError> {
    let at = |name: &str| -> Result<End, FolioError> {
        match call.query.get(name) {
            None => Ok(End::Open),
            Some(text) => dates::parse_ms(text)
                .map(|ms| End::Included(Condition::Instant(ms)))
                .ok_or_else(|| FolioError::bad_request(format!("{name} {text:?} is no date"))),
        }
    };
    let (from, to) = (at("fromDate")?, at("toDate")?);
    if let (End::Included(Condition::Instant(first)), End::Included(Condition::Instant(last))) = (&from, &to)
        && last < first
    {
        let fault = Fault::new("'to' date should be not less than 'from' date.")
            .ty("RequestBodyValidationException")
            .code("validation-error")
            .with("fromDate", call.query.get("fromDate").unwrap_or_default())
            .with("toDate", call.query.get("toDate").unwrap_or_default());
        return Err(FolioError::unprocessable(fault));
    }
    Ok((from, to, call.query.number("limit", DEFAULT_LIMIT)?))
}

async fn changes(call: Call) -> Answer {
    let (from, to, limit) = window(&call)?;
    let mut filter = match (&from, &to) {
        (End::Open, End::Open) => Expr::All,
        _ => Expr::Range("startedAt".into(), from, to),
    };
    if let Some(action) = call.query.get("action") {
        filter = filter.and(Expr::Is("action".into(), action.into()));
    }
    let query =
        Query::filter(filter).sorted("startedAt", Direction::Descending).window(0, limit.saturating_add(1));
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut list =
            view.find(&HEADING_CHANGE, &query)?.iter().map(|it| it.json()).collect::<Result<Vec<_>, _>>()?;
        Ok(paged(&mut list, limit, "startedAt"))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Builds `{"stats":[…],"next":date}`: the date of the first entry that did not fit.
fn paged(list: &mut Vec<Value>, limit: u64, date: &str) -> Value {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let next = list.get(limit).and_then(|it| it.get(date)).cloned();
    list.truncate(limit);
    let mut body = json!({"stats": list});
    if let Some(next) = next {
        body["next"] = next;
    }
    body
}

/// Lists links by status, newest instance first.
async fn links(call: Call) -> Answer {
    let (from, to, limit) = window(&call)?;
    let status = call.query.get("status").map(str::to_owned);
    let filter = match (&from, &to) {
        (End::Open, End::Open) => Expr::All,
        _ => Expr::Range("updatedAt".into(), from, to),
    };
    let query = Query::filter(filter).sorted("updatedAt", Direction::Descending);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
        let mut list = Vec::new();
        for record in view.find(&LINKS, &query)? {
            let body = record.json()?;
            let title = view.get(&INSTANCES.kind, &record.id)?.map(|it| it.json()).transpose()?;
            for link in body.get("links").and_then(Value::as_array).into_iter().flatten() {
                if status.as_deref().is_some_and(|it| text_at(link, "status") != Some(it)) {
                    continue;
                }
                let authority = text_at(link, "authorityId").unwrap_or_default();
                let authority = view.get(&AUTHORITIES.kind, authority)?.map(|it| it.json()).transpose()?;
                let rule = link.get("linkingRuleId").and_then(Value::as_u64).unwrap_or(0);
                list.push(json!({
                    "id": link.get("id"),
                    "instanceId": record.id,
                    "instanceTitle": title.as_ref().and_then(|it| text_at(it, "title")),
                    "bibRecordTag": rules::bib_field(rule),
                    "authorityNaturalId": authority.as_ref().and_then(|it| text_at(it, "naturalId")),
                    "linkStatus": link.get("status"),
                    "errorCause": link.get("errorCause").cloned().unwrap_or_else(|| "".into()),
                    "updatedAt": body.get("updatedAt"),
                }));
            }
            if wanted <= list.len() {
                break;
            }
        }
        Ok(paged(&mut list, limit, "updatedAt"))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
