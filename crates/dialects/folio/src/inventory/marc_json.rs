//! `/instance-storage/instances/{id}/source-record/marc-json`: the MARC record of an instance, stored in source
//! storage.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::instances::INSTANCES;
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::source_records::{marc, source_storage};

/// The snapshot of records that were stored through this route, not imported.
const NO_JOB: &str = "00000000-0000-0000-0000-000000000000";

pub(super) fn routes(routes: Routes) -> Routes {
    let item = "/instance-storage/instances/{id}/source-record/marc-json";
    routes
        .get(item, Access::to("inventory-storage.instances.source-record.marc-json.get"), show)
        .put(item, Access::to("inventory-storage.instances.source-record.marc-json.put"), replace)
        .delete(item, Access::to("inventory-storage.instances.source-record.marc-json.delete"), remove)
        .delete(
            "/instance-storage/instances/{id}/source-record",
            Access::to("inventory-storage.instances.source-record.delete"),
            remove,
        )
}

fn current(view: &mut View<'_>, instance: &str) -> Result<Option<Value>, FolioError> {
    Ok(source_storage::current_of(view, "instanceId", instance)?)
}

async fn show(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = current(view, &id)?.ok_or_else(|| FolioError::not_found("Not found"))?;
        let content = found.pointer("/parsedRecord/content");
        let mut body = Map::new();
        body.insert("id".into(), id.as_str().into());
        for name in ["leader", "fields"] {
            body.extend(content.and_then(|it| it.get(name)).map(|it| (name.to_owned(), it.clone())));
        }
        body.extend(found.get("metadata").map(|it| ("metadata".to_owned(), it.clone())));
        Ok(Value::Object(body))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Point, read).await?))
}

/// Replaces the content of the source record, `{"leader","fields"}`; creates the record if there is none.
async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    for name in ["leader", "fields"] {
        if body.get(name).is_none_or(Value::is_null) {
            return Err(FolioError::unprocessable(Fault::missing(name)));
        }
    }
    let content = json!({"leader": body.get("leader"), "fields": body.get("fields")});
    let record = marc::from_value(&content)
        .ok_or_else(|| FolioError::unprocessable(Fault::new("leader and fields are no MARC record")))?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        let instance = txn.get(&INSTANCES.kind, &id)?.map(|it| it.json()).transpose()?;
        let instance = instance.ok_or_else(|| FolioError::not_found("Not found"))?;
        let mut record = record.clone();
        let hrid = text_at(&instance, "hrid").unwrap_or_default();
        match current(txn, &id)? {
            Some(mut found) => {
                let own = text_at(&found, "id").unwrap_or_default().to_owned();
                let matched = text_at(&found, "matchedId").unwrap_or_default().to_owned();
                marc::set_folio_ids(&mut record, &id, &matched);
                marc::set_lengths(&mut record);
                let status = record.leader.status().to_string();
                source_storage::set(&mut found, "parsedRecord", marc::part(&own, marc::to_value(&record)));
                source_storage::set(&mut found, "leaderRecordStatus", status.into());
                source_storage::touch(&mut found, writer.now_ms);
                source_storage::rewrite(txn, &found)?;
            }
            None => {
                let own = writer.new_uuid();
                marc::set_folio_ids(&mut record, &id, &own);
                marc::set_lengths(&mut record);
                let now = dates::rmb(writer.now_ms);
                let raw = json!({"leader": body.get("leader"), "fields": body.get("fields")}).to_string();
                let made = json!({
                    "id": own, "snapshotId": NO_JOB, "matchedId": own, "generation": 0, "recordType": "MARC_BIB",
                    "rawRecord": {"id": own, "content": raw},
                    "parsedRecord": marc::part(&own, marc::to_value(&record)),
                    "deleted": false,
                    "externalIdsHolder": {"instanceId": id, "instanceHrid": hrid},
                    "additionalInfo": {"suppressDiscovery": false},
                    "state": "ACTUAL", "leaderRecordStatus": record.leader.status().to_string(),
                    "metadata": {"createdDate": now, "updatedDate": now},
                });
                source_storage::insert(txn, &made)?;
            }
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn remove(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let found = current(txn, &id)?.ok_or_else(|| FolioError::not_found("Not found"))?;
        source_storage::mark_deleted(txn, text_at(&found, "id").unwrap_or_default(), now_ms)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
