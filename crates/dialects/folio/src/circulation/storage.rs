//! Other data of mod-circulation-storage, and events that other modules send to mod-circulation: locks of desks that
//! check out at the same time, jobs that switch title-level requests, requests in batches, visits that are over.

use std::collections::HashSet;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, End, Expr, Index, Kind, Query, Txn, Type, Value as Wanted, View, Weight};
use serde_json::{Value, json};

use super::neighbours::{HOLDINGS, INSTANCES, ITEMS};
use super::records::text;
use super::requests::REQUESTS;
use crate::circulation::notices::sessions::SESSIONS;
use crate::platform::app::Call;
use crate::platform::collection::{self, Collection, Kinds, Lock, Page, Schema, Writer, page_of};
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};

/// Path of the locks.
const LOCKS_PATH: &str = "/check-out-lock-storage";
/// Default lifetime of a lock, in milliseconds.
const LOCK_MS: i64 = 180_000;
/// Property of a lock with its lifetime in milliseconds.
const LIFETIME: &str = "ttlMs";
/// Default number of visits in an answer.
const VISITS: u64 = 10;

/// `/check-out-lock-storage`: locks on a patron to whom a desk is checking out items. This server does not need them,
/// because a check-out is one transaction; other programs use them to coordinate.
pub(crate) static LOCKS: Collection = Collection {
    permission: "checkout-lock-storage.checkout-locks",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("userId", Type::Text)],
        indexes: &[Index::on(&["userId"])],
        ..Kind::named("folio_check_out_lock")
    },
    schema: Schema { required: &["userId"], types: &[("userId", Kinds::Uuid)], ..Schema::OPEN },
    is_served: false,
    ..Collection::named(LOCKS_PATH, "checkoutLocks", "check_out_lock")
};

/// `/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs`.
pub(crate) static FEATURE_JOBS: Collection = Collection {
    permission: "tlr-feature-toggle-job-storage.tlr-feature-toggle-jobs",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("status", Type::Folded)],
        indexes: &[Index::on(&["status"])],
        ..Kind::named("folio_tlr_toggle_job")
    },
    schema: Schema { required: &["status"], types: &[("status", Kinds::Text)], ..Schema::OPEN },
    table: "tlr_feature_toggle_job",
    ..Collection::named(
        "/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs",
        "tlrFeatureToggleJobs",
        "folio_tlr_toggle_job",
    )
};

/// Adds the routes beyond the collections.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let lock = format!("{LOCKS_PATH}/{{id}}");
    routes
        .get(LOCKS_PATH, to("checkout-lock-storage.checkout-locks.collection.get"), locks)
        .post(LOCKS_PATH, to("checkout-lock-storage.checkout-locks.item.post"), take_lock)
        .get(&lock, to("checkout-lock-storage.checkout-locks.item.get"), lock_by_id)
        .delete(&lock, to("checkout-lock-storage.checkout-locks.item.delete"), |call| {
            collection::remove(call, &LOCKS)
        })
        .post("/request-storage-batch/requests", to("circulation-storage.request-batch.item.post"), |call| {
            collection::write_batch(call, &REQUESTS, Lock::Ignored)
        })
        .get(
            "/patron-action-session-storage/expired-session-patron-ids",
            to("patron-action-session-storage.expired-session-patron-ids.collection.get"),
            visits_that_are_over,
        )
        .get("/circulation/items-by-instance", to("circulation.items-by-instance.get"), items_of_instance)
        .post(
            "/circulation/handlers/loan-related-fee-fine-closed",
            to("circulation.handlers.loan-related-fee-fine-closed.post"),
            told,
        )
        .post(
            "/circulation/handlers/fee-fine-balance-changed",
            to("circulation.handlers.fee-fine-balance-changed.post"),
            told,
        )
}

/// Accepts an event of another FOLIO module. The consequences of a fee are applied in the transaction that changes it,
/// so there is nothing to do here.
async fn told(mut call: Call) -> Answer {
    call.object().await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Lists the locks of `userId`, or all.
async fn locks(call: Call) -> Answer {
    let filter = match call.query.get("userId").filter(|it| !it.is_empty()) {
        Some(user) => Expr::Is("userId".into(), user.into()),
        None => Expr::All,
    };
    let (skip, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let query = Query { skip, limit: Some(limit), ..Query::filter(filter) };
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = view.find(&LOCKS.kind, &query)?;
        let found: Result<Vec<Value>, _> = found.iter().map(|it| it.json().map(shown)).collect();
        let total = view.count(&LOCKS.kind, &query.filter)?;
        Ok(json!({"checkoutLocks": found?, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Returns one lock.
async fn lock_by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let wanted = id.clone();
    let found = call.db().read(Weight::Point, move |view| view.get(&LOCKS.kind, &wanted)).await?;
    let found = found.ok_or_else(|| LOCKS.not_found(&id))?;
    Ok(json_answer(StatusCode::OK, &shown(found.json()?)))
}

/// Returns a lock as it is shown: without its lifetime, which FOLIO does not tell.
fn shown(mut lock: Value) -> Value {
    if let Some(lock) = lock.as_object_mut() {
        lock.shift_remove(LIFETIME);
    }
    lock
}

/// Takes a lock: `{"userId","ttlMs"}`. It ends when the time is over for which its holder asked. Errors: 503
/// `Unable to acquire lock` while somebody holds it.
async fn take_lock(mut call: Call) -> Answer {
    let body = call.object().await?;
    let user = required_text(&body, "userId")?.to_owned();
    let life_ms = body.get(LIFETIME).and_then(Value::as_i64).unwrap_or(LOCK_MS);
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let writer = writer();
        let of_user = Query::filter(Expr::Is("userId".into(), user.as_str().into()));
        for record in txn.find(&LOCKS.kind, &of_user)? {
            let held = record.json()?;
            let made_ms = dates::parse_ms(text(&held, "creationDate")).unwrap_or_default();
            let its_life_ms = held.get(LIFETIME).and_then(Value::as_i64).unwrap_or(LOCK_MS);
            if writer.now_ms < made_ms.saturating_add(its_life_ms) {
                return Err(FolioError::text(StatusCode::SERVICE_UNAVAILABLE, "Unable to acquire lock"));
            }
            txn.delete(&LOCKS.kind, &record.id)?;
        }
        let lock = json!({"userId": user, "creationDate": dates::rmb(writer.now_ms), LIFETIME: life_ms});
        Ok(collection::insert(txn, &writer, &LOCKS, super::records::object(&lock))?.body)
    };
    Ok(json_answer(StatusCode::CREATED, &shown(call.db().write(write).await?)))
}

/// Lists patrons whose visit has had no activity since `session_inactivity_time_limit`; filtered by `action_type`, at
/// most `limit`.
async fn visits_that_are_over(call: Call) -> Answer {
    let action = call.query.get("action_type").unwrap_or_default().to_owned();
    let until = call.query.get("session_inactivity_time_limit").unwrap_or_default();
    let until_ms = match until {
        "" => call.app.now_ms(),
        text => dates::parse_ms(text).ok_or_else(|| {
            let message = format!("session_inactivity_time_limit is {text:?}, expected a date and time");
            FolioError::bad_request(message)
        })?,
    };
    let limit = usize::try_from(call.query.number("limit", VISITS)?).unwrap_or(usize::MAX);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let since = End::Excluded(Wanted::Instant(until_ms));
        let recent =
            view.find(&SESSIONS.kind, &Query::filter(Expr::Range("createdDate".into(), since, End::Open)))?;
        let key = |it: &Value| (text(it, "patronId").to_owned(), text(it, "actionType").to_owned());
        let mut told = HashSet::new();
        for record in &recent {
            told.insert(key(&record.json()?));
        }
        let old = Expr::Range("createdDate".into(), End::Open, End::Included(Wanted::Instant(until_ms)));
        let mut visits: Vec<Value> = Vec::new();
        for record in view.find(&SESSIONS.kind, &Query::filter(old))? {
            let session = record.json()?;
            let is_asked = action.is_empty() || text(&session, "actionType") == action;
            if is_asked && told.insert(key(&session)) {
                visits.push(json!({"patronId": session["patronId"], "actionType": session["actionType"]}));
            }
            if limit <= visits.len() {
                break;
            }
        }
        Ok(json!({"expiredSessions": visits, "totalRecords": visits.len()}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Returns the instance with its items: `?query=id==…`.
async fn items_of_instance(call: Call) -> Answer {
    let page = Page { limit: 1, ..Page::of(&call)? };
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let (records, _) = page_of(view, &INSTANCES, &page)?;
        let Some(record) = records.first() else { return Ok(json!({"items": []})) };
        let of_instance = Query::filter(Expr::Is("instanceId".into(), record.id.as_str().into()));
        let holdings = view.find(&HOLDINGS.kind, &of_instance)?;
        let ids = holdings.iter().map(|it| it.id.as_str().into()).collect();
        let items = view.find(&ITEMS.kind, &Query::filter(Expr::In("holdingsRecordId".into(), ids)))?;
        let mut shown = record.json()?;
        shown["items"] =
            items.iter().map(pinakes_store::Record::json).collect::<Result<Vec<Value>, _>>()?.into();
        Ok(shown)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
