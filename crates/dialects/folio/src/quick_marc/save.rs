//! Storing a record from the editor: the source record, the record that it describes, and its links.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_marc::{Record, Tag};
use pinakes_store::{Expr, Txn, Value as StoreValue};
use serde_json::{Map, Value, json};

use super::{check, refused, wire};
use crate::inventory::instances::INSTANCES;
use crate::platform::app::Call;
use crate::platform::collection::{self, Writer};
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::values::parse_uuid;
use crate::quick_marc::refused::{created, unprocessable};
use crate::quick_marc::view::shown;
use crate::source_records::{marc, source_storage};
use crate::{data_import, links};

/// Returns the date of a time in the form of 008: `260131`.
fn today(now_ms: i64) -> String {
    dates::marc_005(now_ms).get(2..8).unwrap_or_default().to_owned()
}

fn format_of(body: &Value) -> Result<String, FolioError> {
    let format = text_at(body, "marcFormat").unwrap_or_default();
    match wire::of_format(format) {
        Some(_) => Ok(format.to_owned()),
        None => Err(refused(
            StatusCode::BAD_REQUEST,
            "INTERNAL",
            format!("Parameter 'marcFormat' is {format:?}, expected BIBLIOGRAPHIC, HOLDINGS or AUTHORITY"),
        )),
    }
}

/// Returns the link details that came with the fields.
fn told(body: &Value) -> Vec<Value> {
    let fields = body.get("fields").and_then(Value::as_array).into_iter().flatten();
    fields.filter_map(|it| it.get("linkDetails").filter(|it| it.is_object())).cloned().collect()
}

/// Moves 001 and 005 to the start, where FOLIO puts them, and removes `999 ff`, which is generated again.
fn arrange(record: &mut Record, hrid: Option<&str>, now_ms: i64) {
    record.remove("001").into_iter().chain(record.remove("005")).for_each(drop);
    record.remove_where(|field| {
        *field.tag() == *"999" && field.as_data().is_some_and(|it| it.indicators == ['f', 'f'])
    });
    let changed = pinakes_marc::ControlField::new(Tag::new(b"005"), dates::marc_005(now_ms));
    record.fields.insert(0, changed.into());
    if let Some(hrid) = hrid {
        record.fields.insert(0, pinakes_marc::ControlField::new(Tag::new(b"001"), hrid).into());
    }
}

/// `POST`: creates a record together with the one that it describes.
pub(super) async fn create(mut call: Call) -> Answer {
    let body = Value::Object(call.object().await?);
    let format = format_of(&body)?;
    check::refuse(&call, &body, &format, true).await?;
    let record = wire::read(&body, &format, &today(call.app.now_ms()))?;
    let (told, tenant) = (told(&body), call.asker.tenant().to_owned());
    let is_suppressed = body.get("suppressDiscovery") == Some(&Value::Bool(true));
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let id = store_new(txn, &writer(), &format, record.clone(), is_suppressed, &told, &tenant)?;
        shown(txn, &id)
    };
    created(&call.db().write(write).await?)
}

fn store_new(
    txn: &mut Txn<'_>,
    writer: &Writer,
    format: &str,
    mut record: Record,
    is_suppressed: bool,
    told: &[Value],
    tenant: &str,
) -> Result<String, FolioError> {
    let own_number = record.control("001").map(str::to_owned);
    let mut added = Map::new();
    if format == "HOLDINGS" {
        let hrid = record.control("004").unwrap_or_default().to_owned();
        let found = txn.first(&INSTANCES.kind, Expr::Is("hrid".into(), StoreValue::Folded(hrid.clone())))?;
        let instance = found.ok_or_else(|| {
            unprocessable(format!(
                "Failed to map marc-holdings record with parsedRecordId null: No instance found for HRID: {hrid} in tenant: {tenant}"
            ))
        })?;
        added.insert("instanceId".into(), instance.id.into());
    }
    if is_suppressed {
        added.insert("discoverySuppress".into(), true.into());
    }
    // Control numbers of another system have no meaning here; those of authorities are their own.
    if format != "AUTHORITY" {
        record.remove("003");
        record.remove("001");
    }
    if format == "BIBLIOGRAPHIC" {
        marc::normalise_oclc(&mut record);
    }
    let (record_type, name) = wire::of_format(format).unwrap_or(("MARC_BIB", "instance"));
    let (collection, mut described) = data_import::described(txn, writer.collections, record_type, &record)?;
    described.shift_remove("hrid");
    // A given control number becomes the human-readable id.
    if let Some(number) =
        own_number.as_deref().map(str::trim).filter(|it| !it.is_empty() && format != "AUTHORITY")
    {
        described.insert("hrid".into(), number.into());
    }
    described.extend(added);
    let stored = collection::insert(txn, writer, collection, described)?;
    let hrid = match format {
        "AUTHORITY" => own_number,
        _ => text_at(&stored.body, "hrid").map(str::to_owned),
    };
    let source_id = writer.new_uuid();
    arrange(&mut record, hrid.as_deref(), writer.now_ms);
    marc::set_folio_ids(&mut record, &stored.id, &source_id);
    marc::set_lengths(&mut record);
    let snapshot = writer.new_uuid();
    source_storage::put_snapshot(txn, &snapshot, "COMMITTED", writer.now_ms)?;
    let mut external = Map::new();
    external.insert(format!("{name}Id"), stored.id.as_str().into());
    external.extend(hrid.map(|it| (format!("{name}Hrid"), it.into())));
    let now = dates::rmb(writer.now_ms);
    let content = marc::to_value(&record);
    let mut metadata = json!({"createdDate": now, "updatedDate": now});
    if let Some(user) = &writer.user {
        metadata["createdByUserId"] = user.as_str().into();
        metadata["updatedByUserId"] = user.as_str().into();
    }
    let source = json!({
        "id": source_id, "snapshotId": snapshot, "matchedId": source_id, "generation": 0, "recordType": record_type,
        "rawRecord": {"id": source_id, "content": content.to_string()},
        "parsedRecord": marc::part(&source_id, content),
        "deleted": false, "externalIdsHolder": external, "additionalInfo": {"suppressDiscovery": is_suppressed},
        "state": "ACTUAL", "leaderRecordStatus": record.leader.status().to_string(), "metadata": metadata,
    });
    source_storage::insert(txn, &source)?;
    if format == "BIBLIOGRAPHIC" {
        links::take_over(txn, writer, &stored.id, &record, told)?;
    }
    Ok(stored.id)
}

/// `PUT …/{parsedRecordId}`: stores a new generation of the record and updates the one that it describes.
pub(super) async fn replace(mut call: Call) -> Answer {
    let text = call.param("id").to_owned();
    let id = parse_uuid(&text).ok_or_else(|| {
        refused(StatusCode::BAD_REQUEST, "INTERNAL", format!("Parameter 'id' is invalid: {text} is no UUID"))
    })?;
    let body = Value::Object(call.object().await?);
    if text_at(&body, "parsedRecordId").and_then(parse_uuid).as_deref() != Some(id.as_str()) {
        return Err(refused(StatusCode::BAD_REQUEST, "INTERNAL", "Request id and entity id are not equal"));
    }
    let format = format_of(&body)?;
    check::refuse(&call, &body, &format, false).await?;
    let record = wire::read(&body, &format, &today(call.app.now_ms()))?;
    let told = told(&body);
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| store_changed(txn, &writer(), &id, &body, record.clone(), &told);
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::ACCEPTED))
}

fn store_changed(
    txn: &mut Txn<'_>,
    writer: &Writer,
    id: &str,
    body: &Value,
    mut record: Record,
    told: &[Value],
) -> Result<(), FolioError> {
    let missing = || {
        refused(
            StatusCode::NOT_FOUND,
            "EXTERNAL_OR_UNDEFINED",
            format!("The Record with id {id} was not found"),
        )
    };
    let matched = match source_storage::get(txn, id)? {
        Some(found) => text_at(&found, "matchedId").unwrap_or_default().to_owned(),
        None => text_at(body, "parsedRecordDtoId").unwrap_or_default().to_owned(),
    };
    let old = source_storage::resolve(txn, &matched, "RECORD", Some("ACTUAL"))?.ok_or_else(missing)?;
    let generation = old.get("generation").and_then(Value::as_u64).unwrap_or(0);
    let asked = body.get("sourceVersion").and_then(Value::as_u64).unwrap_or(generation);
    if asked != generation || text_at(&old, "id") != Some(id) {
        let asked = if asked == generation { generation.saturating_sub(1) } else { asked };
        let message = format!(
            "Cannot update record {id} because it has been changed (optimistic locking): Stored _version is {generation}, _version of request is {asked}"
        );
        return Err(refused(StatusCode::CONFLICT, "EXTERNAL_OR_UNDEFINED", message));
    }
    let changed = dates::marc_005(writer.now_ms);
    if record.control("005").is_some() {
        record.set_control(Tag::new(b"005"), changed);
    }
    marc::set_lengths(&mut record);
    let before = old.pointer("/parsedRecord/content").and_then(marc::from_value);
    let new_id = writer.new_uuid();
    let mut new = old.clone();
    source_storage::set(&mut new, "id", new_id.as_str().into());
    source_storage::set(&mut new, "generation", (generation + 1).into());
    source_storage::set(&mut new, "parsedRecord", marc::part(&new_id, marc::to_value(&record)));
    source_storage::set(&mut new, "leaderRecordStatus", record.leader.status().to_string().into());
    if let Some(is_suppressed) = body.get("suppressDiscovery").and_then(Value::as_bool) {
        source_storage::set(&mut new, "additionalInfo", json!({"suppressDiscovery": is_suppressed}));
    }
    if let Some(Value::Object(raw)) = new.get_mut("rawRecord") {
        raw.insert("id".into(), new_id.as_str().into());
    }
    source_storage::touch(&mut new, writer.now_ms);
    if let (Some(user), Some(Value::Object(metadata))) = (&writer.user, new.get_mut("metadata")) {
        metadata.insert("updatedByUserId".into(), user.as_str().into());
    }
    source_storage::mark_old(txn, id)?;
    source_storage::insert(txn, &new)?;
    data_import::follow(txn, writer, &new, &record)?;
    let of = |name: &str| text_at(&new, &format!("externalIdsHolder.{name}")).map(str::to_owned);
    if let Some(instance) = of("instanceId") {
        links::take_over(txn, writer, &instance, &record, told)?;
    }
    if let (Some(authority), Some(before)) = (of("authorityId"), before) {
        links::follow_authority(txn, writer, &authority, &before, &record)?;
    }
    Ok(())
}
