//! `/links/stats`: headings of authorities that were changed, links of instances by their status.

use http::StatusCode;
use pinakes_store::{
    Column, Direction, End, Expr, Index, Kind, Query, Txn, Type, Value as Condition, View, Weight,
};
use serde_json::{Value, json};

use super::{LINKS, rules};
use crate::authorities::authority::{AUTHORITIES, SOURCE_FILES};
use crate::authorities::headings;
use crate::inventory::instances::INSTANCES;
use crate::platform::app::{Call, json_answer};
use crate::platform::collection::Writer;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// Changes of headings, in the order of their time.
pub(crate) static HEADING_CHANGE: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("startedAt", Type::Instant), Column::one("action", Type::Text)],
    indexes: &[Index::on(&["startedAt"])],
    ..Kind::named("folio_heading_change")
};
/// Entries of an answer when no limit is given.
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

/// Notes that the heading or the number of an authority was changed, or that it goes (`new` is none then).
pub(crate) fn note(
    txn: &mut Txn<'_>,
    writer: &Writer,
    old: &Value,
    new: Option<&Value>,
    n_links: u64,
) -> Result<(), FolioError> {
    let heading = |it: &Value| headings::rows(it).into_iter().next().map(|it| (it.heading, it.heading_type));
    let before = heading(old);
    let after = new.and_then(heading);
    let text = |it: Option<&Value>, name: &str| it.and_then(|it| text_at(it, name)).map(str::to_owned);
    let is_same = new.is_some() && before == after && text(Some(old), "naturalId") == text(new, "naturalId");
    if is_same {
        return Ok(());
    }
    let action = match new {
        None => "DELETE",
        Some(_) if before != after => "UPDATE_HEADING",
        Some(_) => "UPDATE_NATURAL_ID",
    };
    let mut file = |it: Option<&Value>| -> Result<Option<String>, FolioError> {
        let Some(id) = text(it, "sourceFileId") else { return Ok(None) };
        let found = txn.get(&SOURCE_FILES.kind, &id)?.map(|it| it.json()).transpose()?;
        Ok(found.as_ref().and_then(|it| text_at(it, "name")).map(str::to_owned))
    };
    let (file_old, file_new) = (file(Some(old))?, file(new)?);
    let id = writer.new_uuid();
    let at = dates::micros(writer.now_ms);
    let mut body = json!({
        "id": id,
        "authorityId": old.get("id"),
        "action": action,
        "headingOld": before.as_ref().map(|it| &it.0),
        "headingNew": after.as_ref().map(|it| &it.0),
        "headingTypeOld": before.as_ref().map(|it| it.1),
        "headingTypeNew": after.as_ref().map(|it| it.1),
        "naturalIdOld": old.get("naturalId"),
        "naturalIdNew": new.and_then(|it| it.get("naturalId")),
        "sourceFileOld": file_old,
        "sourceFileNew": file_new,
        "lbTotal": n_links, "lbUpdated": if new.is_none() { n_links } else { 0 }, "lbFailed": 0,
        "startedAt": at, "completedAt": at,
        "metadata": {"startedByUserId": writer.user, "startedAt": at, "completedAt": at},
    });
    if let Value::Object(map) = &mut body {
        map.retain(|_, value| !value.is_null());
    }
    txn.insert(&HEADING_CHANGE, &id, &body)?;
    Ok(())
}

/// The window that `fromDate`, `toDate` and `limit` name.
fn window(call: &Call) -> Result<(End, End, u64), FolioError> {
    let at = |name: &str| -> Result<End, FolioError> {
        match call.query.get(name) {
            None => Ok(End::Open),
            Some(text) => dates::parse_ms(text)
                .map(|ms| End::Included(Condition::Instant(ms)))
                .ok_or_else(|| FolioError::bad_request(format!("{name} {text:?} is no date"))),
        }
    };
    Ok((at("fromDate")?, at("toDate")?, call.query.number("limit", DEFAULT_LIMIT)?))
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

/// `{"stats":[…],"next":date}`: the date of the first entry that did not fit.
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

/// Links by their status, newest instance first.
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
