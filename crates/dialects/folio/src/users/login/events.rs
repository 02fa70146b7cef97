//! Records about logins: `/authn/loginAttempts/{id}`, the number of consecutive failures of a user, and
//! `/authn/log/events`, events about users reported by clients.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde_json::{Value, json};

use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};

/// Consecutive failed logins, by the id of the user: `{id, userId, attemptCount, lastAttempt}`.
pub(crate) static ATTEMPTS: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_login_attempts") };

/// Reported events: `{id, tenant, userId, eventType, ip, browserInformation, timestamp}`.
pub(crate) static EVENT: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("userId", Type::Text), Column::one("timestamp", Type::Instant)],
    indexes: &[Index::on(&["userId"]), Index::on(&["timestamp"])],
    ..Kind::named("folio_login_event")
};

pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get("/authn/loginAttempts/{id}", to("login.attempts.item.get"), attempts)
        .get("/authn/log/events", to("login.event.collection.get"), events)
        .post("/authn/log/events", to("login.event.collection.post"), note)
        .delete("/authn/log/events/{id}", to("login.event.delete"), forget)
}

/// Counts a failed login of a user.
pub(super) fn failed(txn: &mut Txn<'_>, user: &str, now_ms: i64) -> Result<(), FolioError> {
    let before = txn.get(&ATTEMPTS, user)?.map(|it| it.json()).transpose()?;
    let n = before.and_then(|it| it["attemptCount"].as_u64()).unwrap_or(0) + 1;
    let attempts = json!({"id": user, "userId": user, "attemptCount": n, "lastAttempt": dates::rmb(now_ms)});
    txn.put(&ATTEMPTS, user, &attempts)?;
    Ok(())
}

/// Deletes the failed logins of a user; writes nothing if there are none.
pub(super) async fn succeeded(call: &Call, user: &str) -> Result<(), FolioError> {
    let id = user.to_owned();
    if call.db().read(Weight::Point, move |view| view.has(&ATTEMPTS, &id)).await? {
        let id = user.to_owned();
        call.db().write(move |txn| txn.delete(&ATTEMPTS, &id).map(drop)).await?;
    }
    Ok(())
}

/// Returns the failed logins of a user by id. Errors: 404 if none failed since the last login.
async fn attempts(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let wanted = id.clone();
    let found = call.db().read(Weight::Point, move |view| view.get(&ATTEMPTS, &wanted)).await?;
    let missing = || FolioError::not_found(format!("Attempts with user id {id} not found"));
    Ok(json_answer(StatusCode::OK, &found.ok_or_else(missing)?.json()?))
}

/// Lists events, newest first: `?start&length`.
async fn events(call: Call) -> Answer {
    let (start, length) = (call.query.number("start", 0)?, call.query.number("length", 10)?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let newest = Query::filter(Expr::All).sorted("timestamp", pinakes_store::Direction::Descending);
        let page = view.find(&EVENT, &newest.window(start, length))?;
        let page = page.iter().map(pinakes_store::Record::json).collect::<Result<Vec<_>, _>>()?;
        let total = view.count(&EVENT, &Expr::All)?;
        Ok(json!({"loggingEvent": page, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Stores an event: `{"userId","eventType","tenant"?}`.
async fn note(mut call: Call) -> Answer {
    let mut body = call.object().await?;
    required_text(&body, "userId")?;
    required_text(&body, "eventType")?;
    let id = call.app.new_uuid();
    body.insert("id".into(), id.as_str().into());
    body.entry("tenant").or_insert(call.asker.tenant().into());
    body.insert("timestamp".into(), dates::rmb(call.app.now_ms()).into());
    let event = Value::Object(body);
    call.db().write(move |txn| txn.insert(&EVENT, &id, &event).map(drop)).await?;
    Ok(answer::empty(StatusCode::CREATED))
}

/// Deletes the events of a user. Errors: 404 if there are none.
async fn forget(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let of_user = Query::filter(Expr::Is("userId".into(), id.as_str().into()));
        let found = txn.find(&EVENT, &of_user)?;
        if found.is_empty() {
            return Err(FolioError::not_found("Event logs not found"));
        }
        for event in found {
            txn.delete(&EVENT, &event.id)?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
