//! `/source-storage/batch`: many records in one request.

use http::StatusCode;
use pinakes_store::{Expr, Query, Value as Condition, View, Weight};
use serde_json::{Map, Value, json};

use super::{SOURCE_RECORD, access, get, records, rewrite, set, shown, touch};
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::error::{Answer, FolioError};
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .post("/source-storage/batch/records", access("source-storage.batch.records.post"), create)
        .put(
            "/source-storage/batch/parsed-records",
            access("source-storage.batch.parsed-records.put"),
            put_parsed,
        )
        .post(
            "/source-storage/batch/parsed-records/fetch",
            access("source-storage.batch.parsed-records.fetch.collection.post"),
            fetch_parsed,
        )
        .post(
            "/source-storage/batch/verified-records",
            access("source-storage.batch.verified-records.post"),
            verify,
        )
}

fn list_of(body: &mut Map<String, Value>, name: &str) -> Result<Vec<Value>, FolioError> {
    match body.remove(name) {
        Some(Value::Array(list)) => Ok(list),
        _ => Err(super::lacking(name)),
    }
}

/// Stores a batch, which may have only one snapshot; records that cannot be stored are reported, the others are stored.
async fn create(mut call: Call) -> Answer {
    let list = list_of(&mut call.object().await?, "records")?;
    let mut snapshots: Vec<&str> =
        list.iter().filter_map(|it| it.get("snapshotId").and_then(Value::as_str)).collect();
    snapshots.sort_unstable();
    snapshots.dedup();
    if 1 < snapshots.len() {
        return Err(FolioError::bad_request("Batch record collection only supports single snapshot"));
    }
    let writer = Writer::of(&call);
    let (stored, errors) = call
        .db()
        .write(move |txn| -> Result<_, FolioError> {
            let (mut stored, mut errors) = (Vec::new(), Vec::new());
            for record in &list {
                let Value::Object(record) = record else {
                    errors.push(format!("expected an object, found {record}"));
                    continue;
                };
                let made = records::complete(txn, &writer(), record.clone())
                    .and_then(|whole| super::insert(txn, &whole).map_err(records::taken).map(|()| whole));
                match made {
                    Ok(whole) => stored.push(whole),
                    Err(error) if error.status.is_server_error() => return Err(error),
                    Err(error) => errors.push(error.message()),
                }
            }
            Ok((stored, errors))
        })
        .await?;
    let status = if stored.is_empty() { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::CREATED };
    let total = stored.len();
    let list: Vec<Value> = stored.into_iter().map(shown).collect();
    Ok(json_answer(status, &json!({"records": list, "errorMessages": errors, "totalRecords": total})))
}

async fn put_parsed(mut call: Call) -> Answer {
    let list = list_of(&mut call.object().await?, "records")?;
    let now_ms = call.app.now_ms();
    let (stored, errors) = call
        .db()
        .write(move |txn| -> Result<_, FolioError> {
            let (mut stored, mut errors) = (Vec::new(), Vec::new());
            for record in &list {
                let id = record.get("id").and_then(Value::as_str).unwrap_or_default();
                let (Some(mut body), Some(content)) =
                    (get(txn, id)?, record.pointer("/parsedRecord/content"))
                else {
                    errors.push(format!("Parsed Record with id '{id}' was not updated"));
                    continue;
                };
                let content = match content {
                    Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| content.clone()),
                    other => other.clone(),
                };
                set(&mut body, "parsedRecord", json!({"id": id, "content": content}));
                touch(&mut body, now_ms);
                rewrite(txn, &body)?;
                stored.push(body.get("parsedRecord").cloned().unwrap_or_default());
            }
            Ok((stored, errors))
        })
        .await?;
    let status = if stored.is_empty() { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
    let total = stored.len();
    Ok(json_answer(status, &json!({"parsedRecords": stored, "errorMessages": errors, "totalRecords": total})))
}

/// Returns the requested fields of the requested records.
async fn fetch_parsed(mut call: Call) -> Answer {
    let mut body = call.object().await?;
    let conditions = body.get("conditions").cloned().unwrap_or_default();
    let ids: Vec<Condition> = conditions
        .get("ids")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(Condition::from)
        .collect();
    let path = match conditions.get("idType").and_then(Value::as_str).unwrap_or("RECORD") {
        "INSTANCE" => "externalIdsHolder.instanceId",
        "HOLDINGS" => "externalIdsHolder.holdingsId",
        "AUTHORITY" => "externalIdsHolder.authorityId",
        _ => "matchedId",
    };
    let wanted: Vec<(String, String)> = match body.remove("data") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(range).collect(),
        _ => Vec::new(),
    };
    let limit = ids.len() as u64;
    let filter = Expr::And(vec![
        Expr::In(path.into(), ids),
        Expr::In("state".into(), vec!["ACTUAL".into(), "DELETED".into()]),
    ]);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = view.find(&SOURCE_RECORD, &Query::filter(filter.clone()).window(0, limit))?;
        let mut list = Vec::with_capacity(found.len());
        for record in found {
            let body = record.json()?;
            let mut content = body.pointer("/parsedRecord/content").cloned().unwrap_or_default();
            if let Some(Value::Array(fields)) = content.get_mut("fields").filter(|_| !wanted.is_empty()) {
                fields.retain(|field| {
                    let tag = field.as_object().and_then(|it| it.keys().next());
                    tag.is_some_and(|tag| wanted.iter().any(|(from, to)| from <= tag && tag <= to))
                });
            }
            list.push(json!({
                "id": body.get("id"),
                "recordType": body.get("recordType"),
                "recordState": body.get("state"),
                "externalIdsHolder": body.get("externalIdsHolder"),
                "parsedRecord": {"id": body.get("id"), "content": content},
            }));
        }
        let total = list.len();
        Ok(json!({"records": list, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Parses `245` or `100-199`.
fn range(text: &str) -> (String, String) {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    (from.trim().to_owned(), to.trim().to_owned())
}

/// Returns those ids that no record has.
async fn verify(mut call: Call) -> Answer {
    let Value::Array(ids) = call.json().await? else {
        return Err(FolioError::bad_request("expected a list of ids"));
    };
    let ids: Vec<String> = ids.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut unknown = Vec::new();
        for id in &ids {
            if view.count(&SOURCE_RECORD, &Expr::Is("matchedId".into(), id.as_str().into()))? == 0 {
                unknown.push(id.clone());
            }
        }
        Ok(json!({"invalidMarcBibIds": unknown}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
