//! Source storage: MARC records as they arrived and as they are stored, with their generations (section 8 of the
//! contract).
//!
//! A source record is stored as `GET /source-storage/records/{id}` returns it, without `formattedContent`, which is
//! generated from the content on request. Values that imports match on most are columns: 010 $a, 020 $a, 022 $a, 035 $a,
//! and the ids of 999 ff and 001 through `matchedId` and `externalIdsHolder`. The search index has those of all fields.

mod batch;
pub(crate) mod expression;
mod matching;
pub(crate) mod migrations;
mod records;
pub(crate) mod routes;
mod snapshots;
mod source_records;
mod stream;

use http::StatusCode;
use pinakes_store::{
    Arity, Column, Direction, Document, Expr, Index, Kind, Order, Query, Search, StoreError, Txn, Type, View,
};
use serde_json::{Map, Value, json};

use crate::inventory::instances::INSTANCES;
use crate::platform::app::Call;
use crate::platform::error::FolioError;
use crate::platform::permissions::Access;
use crate::platform::values::QueryText;
use crate::platform::{dates, json as text_form};
use crate::source_records::marc;

/// Declares a column with all values of a subfield.
const fn subfield(name: &'static str, path: &'static str) -> Column {
    Column { name, path, ty: Type::Text, arity: Arity::Many }
}

/// Source records, by id.
pub(crate) static SOURCE_RECORD: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column::one("snapshotId", Type::Text),
        Column::one("matchedId", Type::Text),
        Column::one("generation", Type::Integer),
        Column::at("position", "order", Type::Integer),
        Column::one("leaderRecordStatus", Type::Text),
        Column::at("instanceId", "externalIdsHolder.instanceId", Type::Text),
        Column::at("instanceHrid", "externalIdsHolder.instanceHrid", Type::Text),
        Column::at("holdingsId", "externalIdsHolder.holdingsId", Type::Text),
        Column::at("holdingsHrid", "externalIdsHolder.holdingsHrid", Type::Text),
        Column::at("authorityId", "externalIdsHolder.authorityId", Type::Text),
        Column::at("authorityHrid", "externalIdsHolder.authorityHrid", Type::Text),
        Column::at("updatedDate", "metadata.updatedDate", Type::Instant),
        Column::at("suppressDiscovery", "additionalInfo.suppressDiscovery", Type::Boolean),
        subfield("m010a", "parsedRecord.content.fields.010.subfields.a"),
        subfield("m020a", "parsedRecord.content.fields.020.subfields.a"),
        subfield("m022a", "parsedRecord.content.fields.022.subfields.a"),
        subfield("m035a", "parsedRecord.content.fields.035.subfields.a"),
    ],
    indexes: &[
        Index::on(&["snapshotId", "position"]),
        Index::on(&["matchedId"]),
        Index::on(&["instanceId"]),
        Index::on(&["instanceHrid"]),
        Index::on(&["holdingsId"]),
        Index::on(&["holdingsHrid"]),
        Index::on(&["authorityId"]),
        Index::on(&["authorityHrid"]),
    ],
    class_fields: &["recordType", "state", "deleted"],
    // All fields of the MARC record, but not the record as it arrived.
    search: Search::Values,
    ..Kind::named("folio_source_record")
};

/// Snapshots, by the id of the job: each groups the records that one job has stored.
pub(crate) static SNAPSHOT: Kind = Kind {
    id_path: Some("jobExecutionId"),
    columns: &[Column::one("status", Type::Text)],
    search: Search::Folded,
    ..Kind::named("folio_snapshot")
};

/// The kinds of this module.
pub(crate) static KINDS: [&Kind; 2] = [&SOURCE_RECORD, &SNAPSHOT];

/// Properties with the id of the instance, holdings record or authority that a source record describes.
pub(crate) const EXTERNAL_IDS: [&str; 3] = ["instanceId", "holdingsId", "authorityId"];

/// Returns what a route under `/source-storage` requires of its caller.
pub(crate) fn access(name: &'static str) -> Access {
    Access::Permission(name.into())
}

/// Creates or changes the snapshot of a job.
pub(crate) fn put_snapshot(
    txn: &mut Txn<'_>,
    job_id: &str,
    status: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    put(txn, job_id, status, now_ms)
}

/// Returns a source record in the form of an answer: with its text form.
pub(crate) fn shown(mut body: Value) -> Value {
    let text = body.pointer("/parsedRecord/content").map(marc::formatted);
    if let (Some(text), Some(Value::Object(parsed))) = (text, body.get_mut("parsedRecord")) {
        parsed.insert("formattedContent".into(), text.into());
    }
    body
}

/// Returns the same in the form of a source record: with `recordId`, without an error record.
pub(crate) fn as_source_record(body: Value) -> Value {
    let Value::Object(body) = shown(body) else { return Value::Null };
    let mut source = Map::with_capacity(body.len());
    let matched = body.get("matchedId").cloned().unwrap_or_default();
    source.insert("recordId".into(), matched);
    let hidden = ["id", "matchedId", "generation", "errorRecord", "leaderRecordStatus", "state"];
    source.extend(body.into_iter().filter(|(name, _)| !hidden.contains(&name.as_str())));
    Value::Object(source)
}

/// Updates an existing source record.
pub(crate) fn rewrite(txn: &mut Txn<'_>, body: &Value) -> Result<(), StoreError> {
    let id = text_form::text_at(body, "id").unwrap_or_default();
    let document = Document::with_bytes(&SOURCE_RECORD, id, body, text_form::bytes(body))?;
    txn.update_document(&document)?;
    crate::inventory::harvested::source_stored(txn, &INSTANCES.kind, body)
}

/// Creates a source record.
pub(crate) fn insert(txn: &mut Txn<'_>, body: &Value) -> Result<(), StoreError> {
    let id = text_form::text_at(body, "id").unwrap_or_default();
    let document = Document::with_bytes(&SOURCE_RECORD, id, body, text_form::bytes(body))?;
    txn.insert_document(&document)?;
    crate::inventory::harvested::source_stored(txn, &INSTANCES.kind, body)
}

/// Returns the source record with an id.
pub(crate) fn get(view: &mut View<'_>, id: &str) -> Result<Option<Value>, StoreError> {
    view.get(&SOURCE_RECORD, id)?.map(|it| it.json()).transpose()
}

/// Returns the current source record whose `externalIdsHolder` has an id under `name`.
pub(crate) fn current_of(view: &mut View<'_>, name: &str, id: &str) -> Result<Option<Value>, StoreError> {
    let filter = Expr::And(vec![
        Expr::Is(format!("externalIdsHolder.{name}").as_str().into(), id.into()),
        Expr::Is("state".into(), "ACTUAL".into()),
    ]);
    view.first(&SOURCE_RECORD, filter)?.map(|it| it.json()).transpose()
}

/// Marks a record as old because a newer generation replaces it.
pub(crate) fn mark_old(txn: &mut Txn<'_>, id: &str) -> Result<(), StoreError> {
    let Some(mut body) = get(txn, id)? else { return Ok(()) };
    set(&mut body, "state", "OLD".into());
    rewrite(txn, &body)
}

/// Soft-deletes a record by its state, leader/05 and suppression. Returns whether it existed.
pub(crate) fn mark_deleted(txn: &mut Txn<'_>, id: &str, now_ms: i64) -> Result<bool, StoreError> {
    let Some(mut body) = get(txn, id)? else { return Ok(false) };
    set(&mut body, "state", "DELETED".into());
    set(&mut body, "deleted", true.into());
    set(&mut body, "leaderRecordStatus", "d".into());
    set(&mut body, "additionalInfo", json!({"suppressDiscovery": true}));
    set_leader_status(&mut body, 'd');
    touch(&mut body, now_ms);
    rewrite(txn, &body).map(|()| true)
}

/// Updates the record of an instance when the instance is deleted or suppressed, or no longer is; 005 is set if the
/// deletion changes. A record that is already in that state is not changed.
pub(crate) fn follow_instance(
    txn: &mut Txn<'_>,
    instance: &str,
    is_deleted: bool,
    is_suppressed: bool,
    now_ms: i64,
) -> Result<(), FolioError> {
    let Some(mut body) = resolve(txn, instance, "INSTANCE", None)? else { return Ok(()) };
    let was_deleted = body.get("deleted") == Some(&Value::Bool(true));
    let was_suppressed = body.pointer("/additionalInfo/suppressDiscovery") == Some(&Value::Bool(true));
    if was_deleted == is_deleted && was_suppressed == is_suppressed {
        return Ok(());
    }
    set(&mut body, "additionalInfo", json!({"suppressDiscovery": is_suppressed}));
    if was_deleted != is_deleted {
        let (state, status) = if is_deleted { ("DELETED", 'd') } else { ("ACTUAL", 'c') };
        set(&mut body, "state", state.into());
        set(&mut body, "deleted", is_deleted.into());
        set(&mut body, "leaderRecordStatus", status.to_string().into());
        set_leader_status(&mut body, status);
        let fields = body.pointer_mut("/parsedRecord/content/fields").and_then(Value::as_array_mut);
        for field in fields.into_iter().flatten() {
            if field.get("005").is_some() {
                field["005"] = dates::marc_005(now_ms).into();
            }
        }
    }
    touch(&mut body, now_ms);
    rewrite(txn, &body)?;
    Ok(())
}

/// Undoes [`mark_deleted`].
pub(crate) fn mark_undeleted(txn: &mut Txn<'_>, id: &str, now_ms: i64) -> Result<bool, StoreError> {
    let Some(mut body) = get(txn, id)? else { return Ok(false) };
    set(&mut body, "state", "ACTUAL".into());
    set(&mut body, "deleted", false.into());
    set(&mut body, "leaderRecordStatus", "c".into());
    set(&mut body, "additionalInfo", json!({"suppressDiscovery": false}));
    set_leader_status(&mut body, 'c');
    touch(&mut body, now_ms);
    rewrite(txn, &body).map(|()| true)
}

fn set_leader_status(body: &mut Value, status: char) {
    if let Some(Value::String(leader)) = body.pointer_mut("/parsedRecord/content/leader")
        && leader.is_char_boundary(5)
        && leader.is_char_boundary(6)
    {
        leader.replace_range(5..6, status.encode_utf8(&mut [0; 4]));
    }
}

/// Records the time of a change.
pub(crate) fn touch(body: &mut Value, now_ms: i64) {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("updatedDate".into(), dates::rmb(now_ms).into());
    }
}

pub(crate) fn set(body: &mut Value, name: &str, value: Value) {
    if let Value::Object(map) = body {
        map.insert(name.to_owned(), value);
    }
}

/// Returns the record for an id of a given type: `RECORD` (matched id), `SRS_RECORD`, `INSTANCE`, `HOLDINGS`,
/// `AUTHORITY`, `EXTERNAL`.
pub(crate) fn resolve(
    view: &mut View<'_>,
    id: &str,
    id_type: &str,
    state: Option<&str>,
) -> Result<Option<Value>, FolioError> {
    let paths: &[&str] = match id_type {
        "" | "SRS_RECORD" => &["id"],
        "RECORD" => &["matchedId"],
        "INSTANCE" => &["externalIdsHolder.instanceId"],
        "HOLDINGS" => &["externalIdsHolder.holdingsId"],
        "AUTHORITY" => &["externalIdsHolder.authorityId"],
        "EXTERNAL" => {
            &["externalIdsHolder.instanceId", "externalIdsHolder.holdingsId", "externalIdsHolder.authorityId"]
        }
        other => {
            return Err(FolioError::bad_request(format!(
                "No enum constant org.folio.dao.util.IdType.{other}"
            )));
        }
    };
    for path in paths {
        let mut filter = vec![Expr::Is((*path).into(), id.into())];
        filter.extend(state.map(|it| Expr::Is("state".into(), it.into())));
        let query = Query { filter: Expr::And(filter), ..Query::filter(Expr::All) }
            .sorted("generation", Direction::Descending)
            .window(0, 1);
        if let Some(record) = view.find(&SOURCE_RECORD, &query)?.into_iter().next() {
            return Ok(Some(record.json()?));
        }
    }
    Ok(None)
}

/// Builds the error `Record with id '…' was not found`.
pub(crate) fn record_not_found(id: &str) -> FolioError {
    FolioError::not_found(format!("Record with id '{id}' was not found"))
}

/// Parses `orderBy=order,ASC`, which may be repeated.
pub(crate) fn orders(query: &QueryText) -> Result<Vec<Order>, FolioError> {
    let mut orders = Vec::new();
    for text in query.all("orderBy") {
        let (name, direction) = text.split_once(',').unwrap_or((text, "ASC"));
        let path = match name {
            "createdDate" | "created_date" => "metadata.createdDate",
            "updatedDate" | "updated_date" => "metadata.updatedDate",
            "matched_id" => "matchedId",
            "snapshot_id" => "snapshotId",
            "record_type" => "recordType",
            "id" | "order" | "generation" | "matchedId" | "snapshotId" | "recordType" | "state"
            | "status" => name,
            other => {
                return Err(FolioError::bad_request(format!(
                    "invalid order by argument: {other} is not a field"
                )));
            }
        };
        let direction = match direction.trim().to_ascii_uppercase().as_str() {
            "ASC" | "" => Direction::Ascending,
            "DESC" => Direction::Descending,
            other => {
                return Err(FolioError::bad_request(format!(
                    "invalid order by argument: {other} is no direction"
                )));
            }
        };
        orders.push(Order { path: path.into(), direction });
    }
    Ok(orders)
}

/// Returns the type of source record that a request names.
pub(crate) fn record_type(query: &QueryText) -> Result<&str, FolioError> {
    match query.get("recordType").unwrap_or("MARC_BIB") {
        found @ ("MARC_BIB" | "MARC_AUTHORITY" | "MARC_HOLDING" | "EDIFACT") => Ok(found),
        other => Err(FolioError::bad_request(format!(
            "recordType {other:?} is none of MARC_BIB, MARC_AUTHORITY, MARC_HOLDING, EDIFACT"
        ))),
    }
}

/// Returns the window that a request asks for.
pub(crate) fn window(call: &Call) -> Result<(u64, u64), FolioError> {
    Ok((call.query.number("offset", 0)?, call.query.number("limit", 10)?))
}

/// Builds the 422 in plain text for something missing in a body.
pub(crate) fn lacking(what: &str) -> FolioError {
    FolioError::text(StatusCode::UNPROCESSABLE_ENTITY, format!("the body has no {what}"))
}

/// Creates or changes the snapshot of a job.
pub(crate) fn put(txn: &mut Txn<'_>, job_id: &str, status: &str, now_ms: i64) -> Result<(), StoreError> {
    let old = txn.get(&SNAPSHOT, job_id)?.map(|it| it.json()).transpose()?;
    let body = completed(json!({"jobExecutionId": job_id, "status": status}), old.as_ref(), now_ms);
    txn.put(&SNAPSHOT, job_id, &body)?;
    Ok(())
}

/// Adds the dates that the server sets.
pub(crate) fn completed(body: Value, old: Option<&Value>, now_ms: i64) -> Value {
    let Value::Object(mut body) = body else { return body };
    let now = dates::rmb(now_ms);
    let of_old = |name: &str| old.and_then(|it| it.get(name)).cloned();
    let is_processing = body.get("status").and_then(Value::as_str) == Some("PARSING_IN_PROGRESS");
    match of_old("processingStartedDate") {
        Some(date) => {
            body.insert("processingStartedDate".into(), date);
        }
        None if is_processing => {
            body.insert("processingStartedDate".into(), now.as_str().into());
        }
        None => {}
    }
    let created = old.and_then(|it| it.pointer("/metadata/createdDate")).cloned();
    let created = created.unwrap_or_else(|| now.as_str().into());
    body.insert("metadata".into(), json!({"createdDate": created, "updatedDate": now}));
    Value::Object(body)
}
