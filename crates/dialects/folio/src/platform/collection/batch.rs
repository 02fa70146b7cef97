//! Many records in one request, all or nothing: `…/batch/synchronous`, and long queries in a body: `…/retrieve`
//! (section 10 of the contract).

use std::borrow::Cow;

use http::StatusCode;
use pinakes_http::{Stage, answer, body, stages};
use pinakes_store::Txn;
use serde_json::{Map, Value};

use super::{Lock, Missing, Page, answer_list, insert, parsed, put};
use crate::platform::app::Call;
use crate::platform::coerce;
use crate::platform::collection::declared::Collection;
use crate::platform::collection::declared::Writer;
use crate::platform::error::{Answer, Fault, FolioError, Shape};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// The batch endpoints of a collection below `base`, e.g. `/item-storage`.
pub fn batch_routes(routes: Routes, collection: &'static Collection, base: &str) -> Routes {
    let batch = |end: &str| format!("{base}/batch/{end}");
    let to = |end: &str| Access::Permission(Cow::Owned(format!("{}.{end}", collection.permission)));
    routes
        .post(&batch("synchronous"), to("batch.post"), move |call| {
            write_batch(call, collection, Lock::Checked)
        })
        .post(&batch("synchronous-unsafe"), to("batch-unsafe.post"), move |call| {
            write_batch(call, collection, Lock::Ignored)
        })
        .post(&format!("{}/retrieve", collection.path), to("retrieve.collection.post"), move |call| {
            retrieve(call, collection)
        })
}

/// `{"items":[…]}` with `?upsert=true`: 201 without a body.
///
/// Errors: 413 for more records than the bound; what is wrong with the first bad record, as 422.
pub(crate) async fn write_batch(mut call: Call, collection: &'static Collection, lock: Lock) -> Answer {
    let records = records(&mut call, collection).await?;
    let is_upsert = call.query.is_true("upsert") || lock == Lock::Ignored;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| write_all(txn, &writer(), collection, &records, is_upsert, lock);
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::CREATED))
}

async fn records(
    call: &mut Call,
    collection: &'static Collection,
) -> Result<Vec<Map<String, Value>>, FolioError> {
    let limits = call.app.context.limits().clone();
    let bytes = {
        let body = call.take_body();
        body::receive(&call.headers, body, limits.stream_body_bytes, &limits).await?
    };
    let mut whole: Value = stages::timed(Stage::Parse, || body::parse_json(&bytes, &limits))
        .map_err(|fault| FolioError::bad_request(format!("Json content error: {fault}")))?;
    coerce::texts(&mut whole);
    let list = match whole {
        Value::Object(mut map) => map.get_mut(collection.list).map(Value::take),
        _ => None,
    };
    let Some(Value::Array(list)) = list else {
        return Err(FolioError::unprocessable(Fault::missing(collection.list)));
    };
    let most = call.app.settings.batch_records;
    if most < list.len() {
        let message = format!(
            "Expected a maximum of {most} {} to prevent out of memory but got {}",
            collection.list,
            list.len()
        );
        return Err(FolioError::text(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let object = |it: Value| match it {
        Value::Object(map) => Ok(map),
        _ => {
            Err(FolioError::bad_request(format!("Json content error: {} must hold objects", collection.list)))
        }
    };
    list.into_iter().map(object).collect()
}

/// Writes records in their order.
pub(crate) fn write_all(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    records: &[Map<String, Value>],
    is_upsert: bool,
    lock: Lock,
) -> Result<(), FolioError> {
    if let Some(numbered) = collection.numbered {
        let is_new =
            |it: &&Map<String, Value>| !it.contains_key("hrid") && (!is_upsert || !it.contains_key("id"));
        crate::platform::collection::numbers::reserve(
            txn,
            writer,
            numbered,
            records.iter().filter(is_new).count() as u64,
        )?;
    }
    for record in records {
        let id = record.get("id").and_then(Value::as_str).and_then(crate::platform::values::parse_uuid);
        let written = match id {
            Some(id) if is_upsert => put(txn, writer, collection, &id, record.clone(), Missing::Insert, lock),
            _ => insert(txn, writer, collection, record.clone()),
        };
        written.map_err(in_batch)?;
    }
    Ok(())
}

/// What a single request is told in plain text with 400 is an entry with 422 in a batch.
fn in_batch(error: FolioError) -> FolioError {
    match (error.status, error.shape) {
        (StatusCode::BAD_REQUEST, Shape::Text(text)) => {
            FolioError::unprocessable(Fault::new(text).ty("1").code("-1"))
        }
        (status, shape) => FolioError { status, shape },
    }
}

/// `{query, limit, offset}`: a list whose query is too long for a URL.
async fn retrieve(mut call: Call, collection: &'static Collection) -> Answer {
    let body = call.object().await?;
    let number = |name: &str, default| body.get(name).and_then(Value::as_u64).unwrap_or(default);
    let text = body.get("query").and_then(Value::as_str).unwrap_or_default();
    let cql = parsed(&call.app.settings, text)?;
    let (offset, limit) = (number("offset", 0), number("limit", 10));
    let page = Page { cql, offset, limit, collections: call.app.collections };
    answer_list(&call, collection, page).await
}
