//! Uploaded lists of ids for exports, and the files that exports produce.

use http::{HeaderValue, StatusCode};
use pinakes_http::{answer, body};
use pinakes_store::{Kind, Txn, View, Weight};
use serde_json::{Value, json};

use crate::data_export::jobs::{JOBS, invalid};
use crate::data_import::FILE_PART;
use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid, required_text};

/// The metadata of an uploaded list; its text is in `_content`.
pub(crate) static FILE_DEFINITION: Kind =
    Kind { id_path: Some("id"), ..Kind::named("folio_export_file_definition") };
/// Maximum size of a list in bytes: half a million ids.
const LIST_BYTES: u64 = 20 << 20;

pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let item = "/data-export/file-definitions/{id}";
    routes
        .post("/data-export/file-definitions", to("data-export.file-definitions.item.post"), define)
        .get(item, to("data-export.file-definitions.item.get"), show)
        .post(
            "/data-export/file-definitions/{id}/upload",
            to("data-export.file-definitions.upload.post"),
            upload,
        )
        .get(
            "/data-export/job-executions/{id}/download/{file}",
            to("data-export.job-executions.items.download.get"),
            link,
        )
        .get("/data-export/files/{id}", to("data-export.job-executions.items.download.get"), download)
}

/// Removes properties that clients are not shown.
fn shown(mut definition: Value) -> Value {
    if let Some(map) = definition.as_object_mut() {
        map.shift_remove("_content");
    }
    definition
}

/// Creates a file definition: `{fileName, size?, uploadFormat?}`: `csv`, one id per line, or `cql`, a query.
async fn define(mut call: Call) -> Answer {
    let body = call.object().await?;
    let name = required_text(&body, "fileName")?.to_owned();
    let format = body.get("uploadFormat").and_then(Value::as_str).unwrap_or("csv").to_ascii_lowercase();
    let is_fitting = match format.as_str() {
        "csv" => name.to_ascii_lowercase().ends_with(".csv"),
        "cql" => name.to_ascii_lowercase().ends_with(".cql"),
        _ => false,
    };
    if !is_fitting {
        let message =
            format!("Incorrect file extension of {name}: expected .csv, or .cql with uploadFormat cql");
        return Err(invalid("fileName", &name, message));
    }
    let id = match body.get("id").and_then(Value::as_str) {
        Some(id) => parse_uuid(id).ok_or_else(|| invalid("id", id, "id is no UUID".to_owned()))?,
        None => call.app.new_uuid(),
    };
    let now = dates::rmb(call.app.now_ms());
    let definition = json!({
        "id": id, "fileName": name, "jobExecutionId": call.app.new_uuid(), "status": "NEW", "size": body.get("size"),
        "uploadFormat": format,
        "metadata": {"createdDate": now, "updatedDate": now, "createdByUserId": call.asker.user_id()},
    });
    let stored = definition.clone();
    call.db().write(move |txn: &mut Txn<'_>| txn.insert(&FILE_DEFINITION, &id, &stored).map(drop)).await?;
    Ok(json_answer(StatusCode::CREATED, &definition))
}

fn missing(id: &str) -> FolioError {
    FolioError::not_found(format!("File definition with id {id} not found"))
}

async fn show(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let wanted = id.clone();
    let read = move |view: &mut View<'_>| view.get(&FILE_DEFINITION, &wanted);
    let found = call.db().read(Weight::Point, read).await?.ok_or_else(|| missing(&id))?;
    Ok(json_answer(StatusCode::OK, &shown(found.json()?)))
}

/// Receives the list as the request body.
async fn upload(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let limits = call.app.context.limits().clone();
    let incoming = call.take_body();
    let bytes = body::receive(&call.headers, incoming, LIST_BYTES, &limits).await?;
    let content = String::from_utf8_lossy(&bytes).into_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let found = txn.get(&FILE_DEFINITION, &id)?.ok_or_else(|| missing(&id))?;
        let mut definition = found.json()?;
        definition["_content"] = content.as_str().into();
        definition["status"] = "COMPLETED".into();
        definition["sourcePath"] = format!("mod-data-export/{id}").into();
        txn.put(&FILE_DEFINITION, &id, &definition)?;
        Ok(shown(definition))
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

/// Returns the text of an uploaded list.
pub(super) fn text(view: &mut View<'_>, id: &str) -> Result<String, FolioError> {
    let found = view.get(&FILE_DEFINITION, id)?.ok_or_else(|| missing(id))?.json()?;
    Ok(text_at(&found, "_content").unwrap_or_default().to_owned())
}

/// Returns the ids of a list: one per line, quoted or not; lines that are not ids are skipped.
pub(super) fn ids(text: &str) -> Vec<String> {
    let plain = |line: &str| parse_uuid(line.trim().trim_matches(['"', '\u{feff}', ',']).trim());
    text.lines().filter_map(plain).collect()
}

/// Returns the link to the file of a job.
async fn link(call: Call) -> Answer {
    let (id, file) = (call.uuid_param("id")?, call.uuid_param("file")?);
    let wanted = id.clone();
    let job = call.db().read(Weight::Point, move |view: &mut View<'_>| view.get(&JOBS.kind, &wanted)).await?;
    let job =
        job.ok_or_else(|| FolioError::not_found(format!("Job execution with id {id} not found")))?.json()?;
    if job.pointer("/exportedFiles/0/fileId").and_then(Value::as_str) != Some(file.as_str()) {
        return Err(FolioError::not_found(format!("Content of file {file} not found")));
    }
    let header = |name: &str| call.headers.get(name).and_then(|it| it.to_str().ok());
    let host = header("x-forwarded-host").or_else(|| header("host")).unwrap_or("localhost");
    let scheme = header("x-forwarded-proto").unwrap_or("http");
    let link = format!("{scheme}://{host}/data-export/files/{file}");
    Ok(json_answer(StatusCode::OK, &json!({"fileId": file, "link": link})))
}

async fn download(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let limits = call.app.context.limits();
    let wanted = id.clone();
    let is_there = move |view: &mut View<'_>| view.has(&FILE_PART, &wanted);
    if !call.db().read(Weight::Point, is_there).await? {
        return Err(FolioError::not_found(format!("Content of file {id} not found")));
    }
    let produce = move |view: &mut View<'_>, sink: &mut pinakes_http::Sink| -> Result<(), FolioError> {
        let Some(part) = view.get(&FILE_PART, &id)? else { return Ok(()) };
        view.members(&FILE_PART, &part, 0, |_, _, chunk| match sink.push(chunk) {
            Ok(()) => std::ops::ControlFlow::Continue(()),
            Err(_) => std::ops::ControlFlow::Break(()),
        })?;
        Ok(())
    };
    let body = call.db().stream(limits, produce).await?;
    Ok(answer::with_body(StatusCode::OK, HeaderValue::from_static("application/octet-stream"), body))
}

#[cfg(test)]
mod tests {
    use super::ids;

    #[test]
    fn lists_of_ids_are_read_as_people_write_them() {
        let id = "3f0f6d5e-2c35-4a4b-9a1e-0c7c1f2a9d01";
        let text = format!("\u{feff}\"{id}\"\r\n{id},\nnone\n\n  {id}  ");
        assert_eq!(ids(&text), [id, id, id]);
    }
}
