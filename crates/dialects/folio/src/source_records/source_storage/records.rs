//! `/source-storage/records`: single records and their generations.

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{Direction, Expr, Query, StoreError, Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::{SNAPSHOT, SOURCE_RECORD, access, get, record_not_found, resolve, rewrite, set, shown, touch};
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};
use crate::source_records::marc;

pub(super) fn routes(routes: Routes) -> Routes {
    let base = "/source-storage/records";
    let item = "/source-storage/records/{id}";
    routes
        .get(base, access("source-storage.records.collection.get"), list)
        .post(base, access("source-storage.records.post"), create)
        .get(item, access("source-storage.records.item.get"), by_id)
        .put(item, access("source-storage.records.put"), replace)
        .delete(item, access("source-storage.records.delete"), remove)
        .put(
            "/source-storage/records/{id}/generation",
            access("source-storage.records.generation.item.put"),
            generation,
        )
        .post("/source-storage/records/{id}/un-delete", access("source-storage.records.undelete"), undelete)
        .get(
            "/source-storage/records/{id}/formatted",
            access("source-storage.records.formatted.item.get"),
            formatted,
        )
        .put(
            "/source-storage/records/{id}/suppress-from-discovery",
            access("source-storage.records.suppress-from-discovery.update"),
            suppress,
        )
}

/// Returns the condition of a list request.
pub(super) fn filter(call: &Call) -> Result<Expr, FolioError> {
    let mut all = vec![Expr::Is("recordType".into(), super::record_type(&call.query)?.into())];
    for name in ["state", "snapshotId"] {
        all.extend(call.query.get(name).map(|it| Expr::Is(name.into(), it.into())));
    }
    Ok(Expr::And(all))
}

async fn list(call: Call) -> Answer {
    let (offset, limit) = super::window(&call)?;
    let filter = filter(&call)?;
    let query =
        Query { order: super::orders(&call.query)?, ..Query::filter(filter.clone()) }.window(offset, limit);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = if limit == 0 { Vec::new() } else { view.find(&SOURCE_RECORD, &query)? };
        let list = found.iter().map(|it| it.json().map(shown)).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({"records": list, "totalRecords": view.count(&SOURCE_RECORD, &filter)?}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let id_type = call.query.get("idType").unwrap_or_default().to_owned();
    let found = call.db().read(Weight::Point, move |view| -> Result<Value, FolioError> {
        resolve(view, &id, &id_type, None)?.ok_or_else(|| record_not_found(&id))
    });
    Ok(json_answer(StatusCode::OK, &shown(found.await?)))
}

async fn formatted(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let id_type = call.query.get("idType").unwrap_or("SRS_RECORD").to_owned();
    let found = call.db().read(Weight::Point, move |view| -> Result<Value, FolioError> {
        resolve(view, &id, &id_type, Some("ACTUAL"))?.ok_or_else(|| record_not_found(&id))
    });
    Ok(json_answer(StatusCode::OK, &shown(found.await?)))
}

/// Checks and completes a record sent by a client.
pub(super) fn complete(
    txn: &mut Txn<'_>,
    writer: &Writer,
    mut body: Map<String, Value>,
) -> Result<Value, FolioError> {
    let missing = |name: &str| FolioError::unprocessable(Fault::missing(name));
    let text =
        |body: &Map<String, Value>, name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let snapshot = text(&body, "snapshotId").ok_or_else(|| missing("snapshotId"))?;
    let record_type = text(&body, "recordType").ok_or_else(|| missing("recordType"))?;
    let stored = txn.get(&SNAPSHOT, &snapshot)?;
    let stored =
        stored.ok_or_else(|| FolioError::not_found(format!("Couldn't find snapshot with id {snapshot}")))?;
    let stored = stored.json()?;
    if stored.get("processingStartedDate").is_none() {
        let status = stored.get("status").and_then(Value::as_str).unwrap_or_default();
        return Err(FolioError::bad_request(format!(
            "Date when processing started is not set, expected snapshot status is PARSING_IN_PROGRESS, actual - {status}"
        )));
    }
    let id = match text(&body, "id") {
        None => writer.new_uuid(),
        Some(id) => {
            parse_uuid(&id).ok_or_else(|| FolioError::bad_request(format!("Invalid UUID string: {id}")))?
        }
    };
    let matched = text(&body, "matchedId").unwrap_or_else(|| id.clone());
    parse_content(&mut body)?;
    let content = body.get("parsedRecord").and_then(|it| it.get("content")).cloned().unwrap_or_default();
    let holder = body.get("externalIdsHolder").cloned().unwrap_or_default();
    if record_type == "MARC_BIB" && !content.is_null() {
        let has = |name: &str| holder.get(name).and_then(Value::as_str).is_some_and(|it| !it.is_empty());
        let has_001 = !marc::MarcPath::new("001", "", "", "").values_in(&content).is_empty();
        if !(has("instanceId") && has("instanceHrid") && has_001) {
            return Err(FolioError::bad_request(
                "MARC_BIB records must contain external instance and hr id's and 001 field into parsed record",
            ));
        }
    }
    let last = last_generation(txn, &matched)?;
    let generation = match &last {
        Some(last) if last.get("snapshotId").and_then(Value::as_str) == Some(snapshot.as_str()) => {
            return Err(FolioError::bad_request(format!(
                "Incoming file may contain duplicates: matchedId {matched} is in snapshot {snapshot} already"
            )));
        }
        Some(last) => last.get("generation").and_then(Value::as_u64).unwrap_or(0) + 1,
        None => 0,
    };
    if let Some(mut last) = last
        && last.get("state").and_then(Value::as_str) == Some("ACTUAL")
    {
        set(&mut last, "state", "OLD".into());
        rewrite(txn, &last)?;
    }
    let leader = content.get("leader").and_then(Value::as_str).unwrap_or_default();
    let status = leader.get(5..6).unwrap_or_default().to_owned();
    for part in ["rawRecord", "parsedRecord", "errorRecord"] {
        if let Some(Value::Object(part)) = body.get_mut(part) {
            part.insert("id".into(), id.as_str().into());
        }
    }
    let now = dates::rmb(writer.now_ms);
    body.insert("id".into(), id.into());
    body.insert("matchedId".into(), matched.into());
    body.insert("generation".into(), generation.into());
    body.entry("deleted").or_insert_with(|| matches!(status.as_str(), "d" | "s" | "x").into());
    body.entry("state").or_insert_with(|| "ACTUAL".into());
    body.entry("additionalInfo").or_insert_with(|| json!({"suppressDiscovery": false}));
    if !status.is_empty() {
        body.insert("leaderRecordStatus".into(), status.into());
    }
    let mut metadata = json!({"createdDate": now, "updatedDate": now});
    if let Some(user) = &writer.user {
        set(&mut metadata, "createdByUserId", user.as_str().into());
        set(&mut metadata, "updatedByUserId", user.as_str().into());
    }
    body.insert("metadata".into(), metadata);
    Ok(Value::Object(body))
}

/// Parses content that was sent as JSON text, and drops the text form, which is generated on request.
fn parse_content(body: &mut Map<String, Value>) -> Result<(), FolioError> {
    let Some(Value::Object(parsed)) = body.get_mut("parsedRecord") else { return Ok(()) };
    parsed.shift_remove("formattedContent");
    if let Some(Value::String(text)) = parsed.get("content") {
        let content: Value = serde_json::from_str(text)
            .map_err(|error| FolioError::bad_request(format!("parsedRecord.content is not JSON: {error}")))?;
        parsed.insert("content".into(), content);
    }
    Ok(())
}

fn last_generation(txn: &mut Txn<'_>, matched: &str) -> Result<Option<Value>, StoreError> {
    let query = Query::filter(Expr::Is("matchedId".into(), matched.into()))
        .sorted("generation", Direction::Descending)
        .window(0, 1);
    txn.find(&SOURCE_RECORD, &query)?.first().map(|it| it.json()).transpose()
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let stored = call
        .db()
        .write(move |txn| -> Result<Value, FolioError> {
            let whole = complete(txn, &writer(), body.clone())?;
            super::insert(txn, &whole).map_err(taken)?;
            Ok(whole)
        })
        .await?;
    let id = stored.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let answer = json_answer(StatusCode::CREATED, &shown(stored));
    Ok(answer::with_header(answer, LOCATION, &format!("/source-storage/records/{id}")))
}

/// Translates the error for an id that is taken.
pub(super) fn taken(error: StoreError) -> FolioError {
    match error {
        StoreError::Duplicate { value, .. } => FolioError::bad_request(format!(
            "duplicate key value violates unique constraint \"records_lb_pkey\": {value}"
        )),
        other => other.into(),
    }
}

async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let mut body = call.object().await?;
    parse_content(&mut body)?;
    let now_ms = call.app.now_ms();
    let stored = call
        .db()
        .write(move |txn| -> Result<Value, FolioError> {
            let old = get(txn, &id)?.ok_or_else(|| record_not_found(&id))?;
            let mut whole = Value::Object(body.clone());
            set(&mut whole, "id", id.as_str().into());
            for name in ["matchedId", "generation", "snapshotId", "recordType", "state", "metadata", "order"]
            {
                if whole.get(name).is_none_or(|_| name == "metadata")
                    && let Some(value) = old.get(name)
                {
                    set(&mut whole, name, value.clone());
                }
            }
            touch(&mut whole, now_ms);
            rewrite(txn, &whole)?;
            Ok(whole)
        })
        .await?;
    Ok(json_answer(StatusCode::OK, &shown(stored)))
}

/// Stores a new generation of a record: the body replaces the stored one.
async fn generation(mut call: Call) -> Answer {
    let matched = call.uuid_param("id")?;
    let mut body = call.object().await?;
    body.insert("matchedId".into(), matched.as_str().into());
    body.shift_remove("id");
    let writer = Writer::of(&call);
    let stored = call
        .db()
        .write(move |txn| -> Result<Value, FolioError> {
            if last_generation(txn, &matched)?.is_none() {
                return Err(record_not_found(&matched));
            }
            let whole = complete(txn, &writer(), body.clone())?;
            super::insert(txn, &whole).map_err(taken)?;
            Ok(whole)
        })
        .await?;
    Ok(json_answer(StatusCode::OK, &shown(stored)))
}

async fn remove(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    let id_type = call.query.get("idType").unwrap_or_default().to_owned();
    call.db()
        .write(move |txn| -> Result<(), FolioError> {
            let found = resolve(txn, &id, &id_type, None)?.ok_or_else(|| record_not_found(&id))?;
            let own = found.get("id").and_then(Value::as_str).unwrap_or_default();
            super::mark_deleted(txn, own, now_ms)?;
            Ok(())
        })
        .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn undelete(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    let id_type = call.query.get("idType").unwrap_or_default().to_owned();
    call.db()
        .write(move |txn| -> Result<(), FolioError> {
            let found = resolve(txn, &id, &id_type, None)?.ok_or_else(|| record_not_found(&id))?;
            let own = found.get("id").and_then(Value::as_str).unwrap_or_default();
            super::mark_undeleted(txn, own, now_ms)?;
            Ok(())
        })
        .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn suppress(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    let id_type = call.query.get("idType").unwrap_or("INSTANCE").to_owned();
    let suppress = call.query.is_true("suppress");
    call.db()
        .write(move |txn| -> Result<(), FolioError> {
            let mut body =
                resolve(txn, &id, &id_type, Some("ACTUAL"))?.ok_or_else(|| record_not_found(&id))?;
            set(&mut body, "additionalInfo", json!({"suppressDiscovery": suppress}));
            touch(&mut body, now_ms);
            rewrite(txn, &body)?;
            Ok(())
        })
        .await?;
    Ok(answer::text(StatusCode::OK, "true"))
}
