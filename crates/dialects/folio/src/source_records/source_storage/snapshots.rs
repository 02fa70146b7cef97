//! `/source-storage/snapshots`: the jobs as recorded in source storage.

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{Direction, Expr, Query, View, Weight};
use serde_json::{Map, Value, json};

use super::{SNAPSHOT, SOURCE_RECORD, access};
use crate::platform::app::Call;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};
use crate::source_records::source_storage::completed;

/// The statuses of a snapshot.
const STATUSES: [&str; 12] = [
    "PARENT",
    "NEW",
    "FILE_UPLOADED",
    "PARSING_IN_PROGRESS",
    "PARSING_FINISHED",
    "PROCESSING_IN_PROGRESS",
    "PROCESSING_FINISHED",
    "COMMIT_IN_PROGRESS",
    "COMMITTED",
    "ERROR",
    "DISCARDED",
    "CANCELLED",
];

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get("/source-storage/snapshots", access("source-storage.snapshots.collection.get"), list)
        .post("/source-storage/snapshots", access("source-storage.snapshots.post"), create)
        .get("/source-storage/snapshots/{id}", access("source-storage.snapshots.item.get"), by_id)
        .put("/source-storage/snapshots/{id}", access("source-storage.snapshots.put"), replace)
        .delete("/source-storage/snapshots/{id}", access("source-storage.snapshots.delete"), remove)
}

async fn list(call: Call) -> Answer {
    let (offset, limit) = super::window(&call)?;
    let filter = match call.query.get("status") {
        None => Expr::All,
        Some(status) => Expr::Is("status".into(), status.into()),
    };
    let mut query = Query::filter(filter.clone()).window(offset, limit);
    if let Some(text) = call.query.get("orderBy") {
        let (name, direction) = text.split_once(',').unwrap_or((text, "ASC"));
        let direction =
            if direction.eq_ignore_ascii_case("desc") { Direction::Descending } else { Direction::Ascending };
        query = query.sorted(if name == "status" { "status" } else { "jobExecutionId" }, direction);
    }
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = if limit == 0 { Vec::new() } else { view.find(&SNAPSHOT, &query)? };
        let list = found.iter().map(|it| it.json()).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({"snapshots": list, "totalRecords": view.count(&SNAPSHOT, &filter)?}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn checked(body: &Map<String, Value>) -> Result<String, FolioError> {
    let missing = |name: &str| FolioError::unprocessable(Fault::missing(name));
    let id = body.get("jobExecutionId").and_then(Value::as_str).ok_or_else(|| missing("jobExecutionId"))?;
    let id = parse_uuid(id).ok_or_else(|| FolioError::bad_request(format!("Invalid UUID string: {id}")))?;
    let status = body.get("status").and_then(Value::as_str).ok_or_else(|| missing("status"))?;
    if !STATUSES.contains(&status) {
        return Err(FolioError::bad_request(format!("status {status:?} is none of {}", STATUSES.join(", "))));
    }
    Ok(id)
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let id = checked(&body)?;
    let body = completed(Value::Object(body), None, call.app.now_ms());
    let (at, stored) = (id.clone(), body.clone());
    call.db()
        .write(move |txn| -> Result<(), FolioError> {
            if txn.has(&SNAPSHOT, &at)? {
                return Err(FolioError::bad_request(format!(
                    "duplicate key value violates unique constraint \"snapshots_lb_pkey\": {at}"
                )));
            }
            txn.insert(&SNAPSHOT, &at, &stored)?;
            Ok(())
        })
        .await?;
    let answer = json_answer(StatusCode::CREATED, &body);
    Ok(answer::with_header(answer, LOCATION, &format!("/source-storage/snapshots/{id}")))
}

fn not_found(id: &str) -> FolioError {
    FolioError::not_found(format!("Snapshot with id '{id}' was not found"))
}

async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let at = id.clone();
    let found = call.db().read(Weight::Point, move |view| view.get(&SNAPSHOT, &at)).await?;
    let body = found.ok_or_else(|| not_found(&id))?.json()?;
    Ok(json_answer(StatusCode::OK, &body))
}

async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let mut body = call.object().await?;
    body.insert("jobExecutionId".into(), id.as_str().into());
    checked(&body)?;
    let now_ms = call.app.now_ms();
    let stored = call
        .db()
        .write(move |txn| -> Result<Value, FolioError> {
            let old = txn.get(&SNAPSHOT, &id)?.ok_or_else(|| not_found(&id))?.json()?;
            let body = completed(Value::Object(body.clone()), Some(&old), now_ms);
            txn.update(&SNAPSHOT, &id, &body)?;
            Ok(body)
        })
        .await?;
    Ok(json_answer(StatusCode::OK, &stored))
}

/// Deletes a snapshot with its records, in steps, so that the size of transactions does not depend on the job.
async fn remove(call: Call) -> Answer {
    const STEP: u64 = 100;
    let id = call.uuid_param("id")?;
    loop {
        let at = id.clone();
        let n_deleted = call
            .db()
            .write(move |txn| -> Result<usize, FolioError> {
                if !txn.has(&SNAPSHOT, &at)? {
                    return Err(not_found(&at));
                }
                let filter = Expr::Is("snapshotId".into(), at.as_str().into());
                let records = txn.find(&SOURCE_RECORD, &Query::filter(filter).window(0, STEP))?;
                for record in &records {
                    txn.delete(&SOURCE_RECORD, &record.id)?;
                }
                if records.is_empty() {
                    txn.delete(&SNAPSHOT, &at)?;
                }
                Ok(records.len())
            })
            .await?;
        if n_deleted == 0 {
            return Ok(answer::empty(StatusCode::NO_CONTENT));
        }
    }
}
