//! Rebuilding the search index (mod-search). The index here is kept by the store and never lags, so each job is over when
//! it begins.

use http::StatusCode;
use pinakes_http::answer;
use serde_json::{Value, json};

use super::refusals::invalid;
use crate::inventory::reindex;
use crate::platform::app::Call;
use crate::platform::error::Answer;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Types of records in the index of instances, and the status of a job that is over.
const ENTITIES: [(&str, &str); 7] = [
    ("instance", "UPLOAD_COMPLETED"),
    ("subject", "UPLOAD_COMPLETED"),
    ("contributor", "UPLOAD_COMPLETED"),
    ("classification", "UPLOAD_COMPLETED"),
    ("call-number", "UPLOAD_COMPLETED"),
    ("holdings", "MERGE_COMPLETED"),
    ("item", "MERGE_COMPLETED"),
];

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let records = "/search/index/instance-records/reindex";
    routes
        .post("/search/index/inventory/reindex", to("search.index.inventory.reindex.post"), begin)
        .post("/search/index/indices", to("search.index.indices.item.post"), make)
        .put("/search/index/mappings", to("search.index.mappings.item.put"), make)
        .post(&format!("{records}/full"), to("search.index.instance-records.reindex.full.post"), done)
        .post(&format!("{records}/upload"), to("search.index.instance-records.reindex.upload.post"), upload)
        .get(&format!("{records}/status"), to("search.index.instance-records.reindex.status.get"), status)
}

/// Begins a job for the records that the body names, instances otherwise.
async fn begin(mut call: Call) -> Answer {
    let body: Value = serde_json::from_slice(&call.bytes().await?).unwrap_or_default();
    let job = match body.get("resourceName").and_then(Value::as_str) {
        Some(name) if name.eq_ignore_ascii_case("authority") => &reindex::AUTHORITIES_JOB,
        _ => &reindex::INSTANCES_JOB,
    };
    reindex::begin_with(call, job, Value::Null).await
}

/// Answers that an index exists.
async fn make(mut call: Call) -> Answer {
    let body = call.object().await?;
    let Some(name) = body.get("resourceName").and_then(Value::as_str) else {
        return Err(invalid("must not be null", "resourceName", "null"));
    };
    let index = format!("folio_{name}_{}", call.asker.tenant());
    Ok(json_answer(StatusCode::OK, &json!({"status": "success", "indices": [index]})))
}

async fn done(_: Call) -> Answer {
    Ok(answer::empty(StatusCode::OK))
}

/// Accepts the types of records to rebuild, `{"entityTypes": ["subject"]}`.
async fn upload(mut call: Call) -> Answer {
    let body = call.object().await?;
    let types = body.get("entityTypes").and_then(Value::as_array).cloned().unwrap_or_default();
    if types.is_empty() {
        return Err(invalid("size must be between 1 and 2147483647", "entityTypes", "[]"));
    }
    let unknown = types.iter().find(|it| !ENTITIES[..5].iter().any(|known| **it == known.0));
    match unknown {
        Some(unknown) => {
            let found = unknown.as_str().map_or_else(|| unknown.to_string(), str::to_owned);
            Err(invalid(format!("Unexpected value '{found}'"), "entityTypes", &found))
        }
        None => Ok(answer::empty(StatusCode::OK)),
    }
}

async fn status(_: Call) -> Answer {
    let shown: Vec<Value> =
        ENTITIES.iter().map(|(entity, status)| json!({"entityType": entity, "status": status})).collect();
    Ok(json_answer(StatusCode::OK, &shown.into()))
}
