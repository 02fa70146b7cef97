//! Uploads in parts: URLs to put them to, and putting them together (section 2 of the contract).

use std::ops::ControlFlow;

use http::StatusCode;
use http::header::ETAG;
use pinakes_http::body::Pieces;
use pinakes_http::{Db, answer};
use pinakes_store::{
    Column, End, Expr, Index, Kind, Query, StoreError, Txn, Type, Value as Condition, Weight,
};
use serde_json::{Value, json};

use super::{cancel, change_file, expired_before, note_uploaded, to};
use crate::app::{Call, json_answer};
use crate::error::{Answer, Fault, FolioError};
use crate::import::{self, FILE_PART, Job};
use crate::limits::EXPIRED_UPLOADS;
use crate::permissions::Access;
use crate::routes::Routes;

/// Where parts are put. The upload's id in it is as good as a signature: nobody can guess one that was given out.
const STORE: &str = "/data-import/uploadParts";

/// Uploads that were begun, by the id that was given out.
pub(super) static UPLOAD_TICKET: Kind = Kind {
    columns: &[Column::one("begunMs", Type::Integer)],
    indexes: &[Index::on(&["begunMs"])],
    ..Kind::named("folio_upload_ticket")
};

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
        .get("/data-import/uploadedFiles/{id}", to("data-import.downloadUrl.get"), download)
        .delete("/data-import/jobExecutions/{id}/cancel", to("data-import.jobexecution.cancel"), cancel)
}

async fn split_status(_: Call) -> Answer {
    Ok(json_answer(StatusCode::OK, &json!({"splitStatus": true})))
}

/// The server as the client called it.
fn origin(call: &Call) -> String {
    let header = |name: &str| call.headers.get(name).and_then(|it| it.to_str().ok());
    let host = header("x-forwarded-host").or_else(|| header("host")).unwrap_or("localhost");
    let scheme = header("x-forwarded-proto").unwrap_or("http");
    format!("{scheme}://{host}")
}

/// The tenant goes into the URL: the storage that FOLIO's clients know takes no headers of FOLIO's.
fn url(call: &Call, upload: &str, number: u64) -> String {
    let tenant = call.asker.tenant();
    format!("{}{STORE}/{tenant}/{upload}/{number}", origin(call))
}

async fn first_url(call: Call) -> Answer {
    let name = call.query.get("filename").unwrap_or("file").replace(['/', '\\'], "_");
    let upload = call.app.new_uuid();
    let key = format!("{}/{}-{name}", call.asker.tenant(), call.app.now_ms());
    let now_ms = call.app.now_ms();
    let until_ms = expired_before(&call);
    let (at, body) = (upload.clone(), json!({"key": key, "begunMs": now_ms}));
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        super::expire(txn, until_ms, now_ms)?;
        txn.insert(&UPLOAD_TICKET, &at, &body)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &json!({"url": url(&call, &upload, 1), "key": key, "uploadId": upload})))
}

async fn next_url(call: Call) -> Answer {
    let missing = |name: &str| FolioError::bad_request(format!("the parameter {name} is missing"));
    let upload =
        call.query.get("uploadId").and_then(crate::app::parse_uuid).ok_or_else(|| missing("uploadId"))?;
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

/// One part; the answer's `ETag` names it when the parts are put together.
async fn receive_part(mut call: Call) -> Answer {
    let upload = call.uuid_param("uploadId")?;
    let number: u64 = call.param("number").parse().map_err(|_| {
        FolioError::bad_request(format!("part number {:?} is no number", call.param("number")))
    })?;
    let limits = call.app.context.limits().clone();
    let refused = || FolioError::text(StatusCode::FORBIDDEN, format!("the upload {upload} was never begun"));
    let tenant = call.app.context.catalogue().tenant(call.param("tenant")).map_err(|_| refused())?;
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
    let part = import::receive(&db, format!("{upload}/{number}"), upload, pieces).await?;
    pinakes_http::etag::spell_as_etag();
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
        let query = Query::filter(Expr::Is("key".into(), upload.as_str().into()));
        let mut stored = Vec::new();
        for record in txn.find(&FILE_PART, &query)? {
            let number: u64 = record.id.rsplit('/').next().and_then(|it| it.parse().ok()).unwrap_or(0);
            stored.push((number, record.id.clone(), record.json()?));
        }
        stored.sort_by_key(|it| it.0);
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
        // From now on the parts are the file's; nothing more is put to the upload.
        txn.delete(&UPLOAD_TICKET, &upload)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Clears away uploads whose parts nobody has put together, see [`super::expire`].
pub(super) fn expire(txn: &mut Txn<'_>, until_ms: i64) -> Result<(), FolioError> {
    let old = Expr::Range("begunMs".into(), End::Open, End::Included(Condition::Integer(until_ms)));
    let tickets = txn.find(&UPLOAD_TICKET, &Query::filter(old).window(0, EXPIRED_UPLOADS))?;
    for ticket in tickets {
        let parts = Query::filter(Expr::Is("key".into(), ticket.id.as_str().into()));
        let mut ids = Vec::new();
        txn.for_each(&FILE_PART, &parts, |part| {
            ids.push(part.id);
            ControlFlow::Continue(())
        })?;
        ids.iter().try_for_each(|id| txn.delete(&FILE_PART, id).map(drop))?;
        txn.delete(&UPLOAD_TICKET, &ticket.id)?;
    }
    Ok(())
}

async fn download_url(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let at = id.clone();
    let job = call.db().read(Weight::Point, move |view| Job::get(view, &at)).await?;
    job.ok_or_else(|| crate::change_manager::not_found(&id))?;
    Ok(json_answer(
        StatusCode::OK,
        &json!({"url": format!("{}/data-import/uploadedFiles/{id}", origin(&call))}),
    ))
}

/// The file of a job, as it was uploaded.
async fn download(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let at = id.clone();
    let job = call.db().read(Weight::Point, move |view| Job::get(view, &at)).await?;
    let job = job.ok_or_else(|| crate::change_manager::not_found(&id))?;
    let parts = job.work("parts").clone();
    let ids: Vec<String> = parts
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it.get(0)?.as_str().map(str::to_owned))
        .collect();
    if ids.is_empty() {
        return Err(FolioError::not_found(format!("the job {id} was not made of a file")));
    }
    let limits = call.app.context.limits();
    let produce =
        move |view: &mut pinakes_store::View<'_>, sink: &mut pinakes_http::Sink| -> Result<(), FolioError> {
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
