//! `/change-manager/parsedRecords`: reading and changing one record by the id of the instance, holdings record or
//! authority it describes.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_marc::Record;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use super::to;
use crate::data_import;
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::source_records::{marc, source_storage};

pub(super) fn routes(routes: Routes) -> Routes {
    routes.get("/change-manager/parsedRecords", to("change-manager.parsedrecords.get"), by_external_id).put(
        "/change-manager/parsedRecords/{id}",
        to("change-manager.parsedrecords.put"),
        replace,
    )
}

async fn by_external_id(call: Call) -> Answer {
    let id = call.query.get("externalId").unwrap_or_default().to_owned();
    if id.is_empty() {
        return Err(FolioError::bad_request("externalId is missing"));
    }
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = source_storage::resolve(view, &id, "EXTERNAL", Some("ACTUAL"))?
            .ok_or_else(|| FolioError::not_found(format!("Couldn't find record with INSTANCE_ID: {id}")))?;
        let updated = found.pointer("/metadata/updatedDate").cloned().unwrap_or_default();
        Ok(json!({
            "id": found.get("matchedId"),
            "parsedRecordId": found.get("id"),
            "recordType": found.get("recordType"),
            "recordState": found.get("state"),
            "parsedRecord": found.get("parsedRecord"),
            "externalIdsHolder": found.get("externalIdsHolder"),
            "additionalInfo": found.get("additionalInfo"),
            "metadata": {"updatedDate": updated},
        }))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Point, read).await?))
}

/// Stores the content sent as a new generation of the record, and updates the record that it describes.
async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let content = body
        .get("parsedRecord")
        .and_then(|it| it.get("content"))
        .cloned()
        .ok_or_else(|| FolioError::unprocessable(Fault::missing("parsedRecord")))?;
    let mut record = marc::from_value(&content)
        .ok_or_else(|| FolioError::unprocessable(Fault::new("parsedRecord.content is no MARC record")))?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| save(txn, &writer(), &id, &mut record);
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::ACCEPTED))
}

/// Stores a record as the new generation of the one with a matched id, and updates the record that it describes.
///
/// Errors: 404; those of the record that it describes.
pub(crate) fn save(
    txn: &mut Txn<'_>,
    writer: &Writer,
    id: &str,
    record: &mut Record,
) -> Result<(), FolioError> {
    let old = source_storage::resolve(txn, id, "RECORD", Some("ACTUAL"))?
        .ok_or_else(|| source_storage::record_not_found(id))?;
    let mut new = old.clone();
    let new_id = writer.new_uuid();
    marc::set_lengths(record);
    let generation = old.get("generation").and_then(Value::as_u64).unwrap_or(0) + 1;
    source_storage::set(&mut new, "id", new_id.as_str().into());
    source_storage::set(&mut new, "generation", generation.into());
    source_storage::set(&mut new, "parsedRecord", marc::part(&new_id, marc::to_value(record)));
    source_storage::set(&mut new, "leaderRecordStatus", record.leader.status().to_string().into());
    if let Some(Value::Object(raw)) = new.get_mut("rawRecord") {
        raw.insert("id".into(), new_id.as_str().into());
    }
    source_storage::touch(&mut new, writer.now_ms);
    let old_id = old.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    source_storage::mark_old(txn, &old_id)?;
    source_storage::insert(txn, &new)?;
    data_import::follow(txn, writer, &new, record)
}
