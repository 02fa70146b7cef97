//! Uploads in parts: URLs for the parts, and their assembly (section 2 of the contract).

use http::StatusCode;
use http::header::ETAG;
use pinakes_http::body::Pieces;
use pinakes_http::{Db, answer};
use pinakes_store::{Expr, Query, StoreError, Tenant, Txn, View, Weight};
use serde_json::{Value, json};

use super::{Expiry, cancel, change_file, note_uploaded};
use crate::data_import::uploads::extensions::to;
use crate::data_import::uploads::tickets::{UPLOAD_TICKET, remove_upload};
use crate::data_import::{self, FILE_PART, Job, StoredFile};
use crate::platform::app::Call;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Path for uploading parts. The upload's id in it serves as a signature: it cannot be guessed.
const STORE: &str = "/data-import/uploadParts";

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get("/data-import/splitStatus", to("data-import.splitconfig.get"), split_status)
        .get("/data-import/uploadUrl", to("data-import.uploadurl.get"), first_url)
        .get("/data-import/uploadUrl/subsequent", to("data-import.uploadurl.get"), next_url)
        .put("/data-import/uploadParts/{tenant}/{uploadId}/{number}", Access::Anybody, receive_part)
        .post(
            "/data-import/uploadDefinitions/{id}/files/{fileId}/assembleStorageFile",
            to("data-import.assembleStorageFile.post"),
            assemble,
        )
        .get("/data-import/testFileSplit", to("data-import.uploadurl.get"), first_url)
        .get("/data-import/jobExecutions/{id}/downloadUrl", to("data-import.downloadUrl.get"), download_url)
        .get("/data-import/uploadedFiles", to("data-import.downloadUrl.get"), download_kept)
        .get("/data-import/uploadedFiles/{id}", to("data-import.downloadUrl.get"), download)
        .delete("/data-import/jobExecutions/{id}/cancel", to("data-import.jobexecution.cancel"), cancel)
}

async fn split_status(_: Call) -> Answer {
    Ok(json_answer(StatusCode::OK, &json!({"splitStatus": true})))
}

/// Returns the URL of a part. It includes the tenant, because FOLIO's clients do not send FOLIO headers to their
/// storage.
fn url(call: &Call, upload: &str, number: u64) -> String {
    let tenant = call.asker.tenant();
    format!("{}{STORE}/{tenant}/{upload}/{number}", call.origin)
}

async fn first_url(call: Call) -> Answer {
    let name = call.query.get("filename").unwrap_or("file").replace(['/', '\\'], "_");
    // Anybody who knows the URL may write to it, so the id is entirely random.
    let upload = call.app.context.entropy().uuid().to_string();
    let key = format!("{}/{}-{name}", call.asker.tenant(), call.app.now_ms());
    let now_ms = call.app.now_ms();
    let expiry = Expiry::of(&call);
    let (at, body) = (upload.clone(), json!({"key": key, "begunMs": now_ms}));
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        super::expire(txn, expiry)?;
        txn.insert(&UPLOAD_TICKET, &at, &body)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &json!({"url": url(&call, &upload, 1), "key": key, "uploadId": upload})))
}

async fn next_url(call: Call) -> Answer {
    let missing = |name: &str| FolioError::bad_request(format!("the parameter {name} is missing"));
    let upload = call
        .query
        .get("uploadId")
        .and_then(crate::platform::values::parse_uuid)
        .ok_or_else(|| missing("uploadId"))?;
    let key = call.query.get("key").ok_or_else(|| missing("key"))?.to_owned();
    let number = call.query.number("partNumber", 0)?;
    if number == 0 {
        return Err(missing("partNumber"));
    }
    Ok(json_answer(
        StatusCode::OK,
        &json!({"url": url(&call, &upload, number), "key": key, "uploadId": upload}),
    ))
}

/// Receives one part; the `ETag` of the answer identifies it when the parts are assembled.
async fn receive_part(mut call: Call) -> Answer {
    let upload = call.uuid_param("uploadId")?;
    let number: u64 = call.param("number").parse().map_err(|_| {
        FolioError::bad_request(format!("part number {:?} is no number", call.param("number")))
    })?;
    let limits = call.app.context.limits().clone();
    let refused = || FolioError::text(StatusCode::FORBIDDEN, format!("the upload {upload} was never begun"));
    let tenant =
        call.app.context.catalogue().tenant_aside(call.param("tenant")).await.map_err(|_| refused())?;
    let db = Db::new(tenant);
    let at = upload.clone();
    if !db
        .read(Weight::Point, move |view| -> Result<bool, StoreError> { view.has(&UPLOAD_TICKET, &at) })
        .await?
    {
        return Err(refused());
    }
    let body = call.take_body();
    let pieces = Pieces::new(&call.headers, body, limits.stream_body_bytes, &limits)?;
    let part = data_import::receive(&db, format!("{upload}/{number}"), upload, pieces).await?;
    pinakes_http::etag::spell_headers();
    Ok(answer::with_header(answer::empty(StatusCode::OK), ETAG, &format!("\"{}\"", part.etag)))
}

async fn assemble(mut call: Call) -> Answer {
    let (id, file_id) = (call.uuid_param("id")?, call.uuid_param("fileId")?);
    let body = call.object().await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let missing = |name: &str| FolioError::unprocessable(Fault::missing(name));
    let upload = text("uploadId").ok_or_else(|| missing("uploadId"))?;
    let key = text("key").ok_or_else(|| missing("key"))?;
    let tags: Vec<String> = body
        .get("tags")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|it| it.as_str().map(|it| it.trim_matches('"').to_owned()))
        .collect();
    if tags.is_empty() {
        return Err(missing("tags"));
    }
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let stored = parts_of(txn, &upload)?;
        let mut parts = Vec::with_capacity(tags.len());
        for (at, tag) in tags.iter().enumerate() {
            let part = stored.get(at).filter(|(number, _, part)| {
                *number == at as u64 + 1 && part.get("etag").and_then(Value::as_str) == Some(tag.as_str())
            });
            let (_, id, body) = part.ok_or_else(|| {
                FolioError::bad_request(format!(
                    "part {} of the upload {upload} with the tag {tag:?} was not uploaded",
                    at + 1
                ))
            })?;
            parts.push(json!([id, body.get("nBytes")]));
        }
        change_file(txn, &id, &file_id, |file| {
            file.insert("_split".into(), true.into());
        })?;
        note_uploaded(txn, &id, &file_id, &key, &Value::Array(parts), now_ms)?;
        // From now on the parts belong to the file; the upload accepts no more.
        txn.delete(&UPLOAD_TICKET, &upload)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// A part: its number, its id, its record.
type Part = (u64, String, Value);

/// Returns the parts of an upload, in order.
fn parts_of(view: &mut View<'_>, upload: &str) -> Result<Vec<Part>, FolioError> {
    let mut parts = Vec::new();
    for record in view.find(&FILE_PART, &Query::filter(Expr::Is("key".into(), upload.into())))? {
        let number: u64 = record.id.rsplit('/').next().and_then(|it| it.parse().ok()).unwrap_or(0);
        parts.push((number, record.id.clone(), record.json()?));
    }
    parts.sort_by_key(|it| it.0);
    Ok(parts)
}

/// Returns the upload with a key, and its parts in the form that [`StoredFile`] reads.
fn upload_of(view: &mut View<'_>, key: &str) -> Result<Option<(String, Value)>, FolioError> {
    let Some(ticket) = view.first(&UPLOAD_TICKET, Expr::Is("key".into(), key.into()))? else {
        return Ok(None);
    };
    let parts = parts_of(view, &ticket.id)?;
    let parts = parts.iter().map(|(_, id, body)| json!([id, body.get("nBytes")])).collect();
    Ok(Some((ticket.id, parts)))
}

/// Returns the file that was uploaded under a key.
pub(crate) fn kept_file(tenant: &Tenant, key: &str) -> Result<Option<StoredFile>, FolioError> {
    let at = key.to_owned();
    let found = tenant.read_blocking(move |view| upload_of(view, &at))?;
    let found = found.filter(|(_, parts)| parts.as_array().is_some_and(|it| !it.is_empty()));
    Ok(found.map(|(_, parts)| StoredFile::new(tenant.clone(), &parts, 0, None)))
}

/// Stores bytes generated by the server under a key, replacing the previous content.
pub(crate) fn keep_file(
    tenant: &Tenant,
    key: &str,
    bytes: &[u8],
    upload: &str,
    now_ms: i64,
) -> Result<(), FolioError> {
    data_import::store_file(tenant, format!("{upload}/1"), upload, &mut &*bytes)
        .map_err(|error| FolioError::bad_request(error.to_string()))?;
    let (key, upload) = (key.to_owned(), upload.to_owned());
    tenant.write_blocking(move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        if let Some((before, _)) = upload_of(txn, &key)? {
            remove_upload(txn, &before)?;
        }
        txn.insert(&UPLOAD_TICKET, &upload, &json!({"key": key, "begunMs": now_ms}))?;
        Ok(())
    })
}

/// Sends the file stored under a key.
async fn download_kept(call: Call) -> Answer {
    let key = call.query.get("key").unwrap_or_default().to_owned();
    let absent = FolioError::not_found(format!("there is no file under the key {key:?}"));
    let found = call.db().read(Weight::Point, move |view| upload_of(view, &key)).await?;
    let (_, parts) = found.ok_or(absent)?;
    send(&call, &parts).await
}

async fn download_url(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let at = id.clone();
    let job = call.db().read(Weight::Point, move |view| Job::get(view, &at)).await?;
    job.ok_or_else(|| crate::data_import::job::not_found(&id))?;
    Ok(json_answer(
        StatusCode::OK,
        &json!({"url": format!("{}/data-import/uploadedFiles/{id}", call.origin)}),
    ))
}

/// Sends the file of a job as it was uploaded.
async fn download(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let at = id.clone();
    let job = call.db().read(Weight::Point, move |view| Job::get(view, &at)).await?;
    let job = job.ok_or_else(|| crate::data_import::job::not_found(&id))?;
    let parts = job.work("parts").clone();
    if parts.as_array().is_none_or(Vec::is_empty) {
        return Err(FolioError::not_found(format!(
            "the job {id} was not made of a file, or it is kept no longer"
        )));
    }
    send(&call, &parts).await
}

/// Sends the bytes of the parts, one after the other.
async fn send(call: &Call, parts: &Value) -> Answer {
    let ids: Vec<String> = parts
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it.get(0)?.as_str().map(str::to_owned))
        .collect();
    let limits = call.app.context.limits();
    let produce = move |view: &mut View<'_>, sink: &mut pinakes_http::Sink| -> Result<(), FolioError> {
        for id in &ids {
            let Some(part) = view.get(&FILE_PART, id)? else { break };
            view.members(&FILE_PART, &part, 0, |_, _, chunk| match sink.push(chunk) {
                Ok(()) => std::ops::ControlFlow::Continue(()),
                Err(_) => std::ops::ControlFlow::Break(()),
            })?;
        }
        Ok(())
    };
    let body = call.db().stream(limits, produce).await?;
    Ok(answer::with_body(StatusCode::OK, http::HeaderValue::from_static("application/octet-stream"), body))
}
