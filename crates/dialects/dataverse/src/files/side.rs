//! Auxiliary files and provenance.

use http::StatusCode;
use http::header::CONTENT_DISPOSITION;
use pinakes_http::answer;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use super::kinds::{AUXILIARY, Auxiliary, PROVENANCE};
use super::receive::{self, Target};
use super::{Found, Wanted, rows};
use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::files::checksum::Algorithm;
use crate::files::draft;
use crate::files::kinds::{self, MADE_HERE};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{clock, envelope, permissions, site_settings, stored};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/access/datafile/{id}/auxiliary/{tag}/{version}", add_auxiliary)
        .get("/access/datafile/{id}/auxiliary/{tag}/{version}", get_auxiliary)
        .delete("/access/datafile/{id}/auxiliary/{tag}/{version}", delete_auxiliary)
        .get("/access/datafile/{id}/auxiliary/{tag}", list_auxiliary)
        .get("/access/datafile/{id}/auxiliary", list_auxiliary)
        .get("/files/{id}/prov-json", show_provenance)
        .post("/files/{id}/prov-json", set_provenance)
        .delete("/files/{id}/prov-json", delete_provenance)
        .get("/files/{id}/prov-freeform", show_freeform)
        .post("/files/{id}/prov-freeform", set_freeform)
}

async fn found(call: &Call, permission: Option<Permission>) -> Result<Found, ApiError> {
    let (wanted, asker) = (Wanted::of(call)?, call.asker.clone());
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let may = match permission {
            Some(permission) => permissions::may(view, &asker, found.dataset.place(), permission)?,
            None => found.may_see(view, &asker)?,
        };
        if may { Ok(found) } else { Err(permissions::refusal(&asker)) }
    };
    call.db().read(Weight::Point, read).await
}

fn auxiliary_json(it: &Auxiliary) -> Value {
    let mut json = json!({
        "formatTag": it.format_tag,
        "formatVersion": it.format_version,
        "isPublic": it.is_public,
        "fileSize": it.file_size,
        "contentType": it.content_type,
        "checksum": it.checksum,
    });
    if let Some(origin) = &it.origin {
        json["origin"] = origin.as_str().into();
    }
    if let Some(kind) = &it.kind {
        json["type"] = kind.as_str().into();
    }
    json
}

async fn add_auxiliary(mut call: Call) -> Answer {
    let found = match found(&call, Some(Permission::EditDataset)).await {
        Err(error) if error.status == StatusCode::UNAUTHORIZED => {
            return Err(ApiError::forbidden("User not authorized to edit the dataset."));
        }
        other => other?,
    };
    let target = Target {
        blobs: call.app.context.blobs().clone(),
        tenant: call.tenant().to_owned(),
        algorithm: Algorithm::Md5,
        most_bytes: None,
    };
    let limits = call.app.context.limits().clone();
    let body = call.take_body();
    let form = receive::form(&call.headers, body, &limits, &target).await?;
    let received = form.file.clone().ok_or_else(|| ApiError::bad_request("No file was sent."))?;
    let claimed = received.content_type.clone().filter(|it| it != super::types::UNKNOWN);
    let content_type = claimed.unwrap_or_else(|| {
        let found = super::types::detect(None, "", &received.head);
        found.split(';').next().unwrap_or_default().to_owned()
    });
    let it = Auxiliary {
        file: found.file.id,
        id: 0,
        format_tag: call.param("tag").to_owned(),
        format_version: call.param("version").to_owned(),
        origin: form.get("origin").map(str::to_owned),
        is_public: form.get("isPublic").is_some_and(|it| it.eq_ignore_ascii_case("true")),
        kind: form.get("type").map(str::to_owned),
        content_type,
        file_size: received.blob.length,
        checksum: json!({"type": "MD5", "value": received.checksum}),
        blob: received.blob.to_string(),
    };
    let json = auxiliary_json(&it);
    let id = kinds::auxiliary_id(it.file, &it.format_tag, &it.format_version);
    let write = move |txn: &mut Txn<'_>| {
        if txn.has(&AUXILIARY, &id)? {
            return Err(ApiError::conflict("Auxiliary file already exists."));
        }
        stored::insert(txn, &AUXILIARY, &id, &it)
    };
    call.db().write(write).await?;
    envelope::ok(json)
}

async fn get_auxiliary(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let (tag, version) = (call.param("tag").to_owned(), call.param("version").to_owned());
    let today = clock::date(call.app.now_ms());
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let it: Option<Auxiliary> =
            stored::get(view, &AUXILIARY, &kinds::auxiliary_id(found.file.id, &tag, &version))?;
        let it =
            it.ok_or_else(|| ApiError::not_found(format!("Auxiliary file {tag}/{version} not found.")))?;
        let is_published = found.published_row().is_some();
        let may = match it.is_public && is_published {
            // Files that the server created reveal the contents of the file.
            true if it.origin.as_deref() == Some(MADE_HERE) => found.may_download(view, &asker, &today)?,
            // Others were made public on purpose, even if the file itself is restricted.
            true => !super::is_held_back(&found.file, &today) || found.may_download(view, &asker, &today)?,
            false => permissions::may(view, &asker, found.dataset.place(), Permission::EditDataset)?,
        };
        if !may {
            return Err(crate::access::not_authorized());
        }
        let row = found.published_row().or_else(|| found.newest_row());
        let label = row.map(|it| it.label.clone()).unwrap_or_default();
        Ok((it, label))
    };
    let (it, label) = call.db().read(Weight::Point, read).await?;
    let extension = match it.content_type.split(';').next().unwrap_or_default() {
        "application/json" => ".json",
        "application/xml" | "text/xml" => ".xml",
        "application/pdf" => ".pdf",
        "text/plain" => ".txt",
        "text/csv" => ".csv",
        "image/png" => ".png",
        _ => "",
    };
    let name = format!("{label}.{}_{}{extension}", it.format_tag, it.format_version);
    let name = name.replace(['"', '\\'], "_");
    // The character encoding of files from others is unknown.
    let is_ours = it.origin.as_deref() == Some(MADE_HERE);
    let charset = if is_ours { ";charset=UTF-8" } else { "" };
    let content_type = format!("{}; name=\"{name}\"{charset}", it.content_type);
    let response = crate::access::blob_response(&call, &it.blob, &content_type).await?;
    let disposition = format!("attachment; filename=\"{name}\"");
    Ok(answer::with_header(response, CONTENT_DISPOSITION, &disposition))
}

async fn list_auxiliary(call: Call) -> Answer {
    let found = found(&call, None).await?;
    let origin = call.param("tag").to_owned();
    let file = found.file.id;
    let (asker, is_published) = (call.asker.clone(), found.published_row().is_some());
    let place = found.dataset.place();
    let read = move |view: &mut View<'_>| {
        let sees_all = permissions::may(view, &asker, place, Permission::EditDataset)?;
        let mut all: Vec<Auxiliary> = stored::find_by(view, &AUXILIARY, "file", file)?;
        all.retain(|it| origin.is_empty() || it.origin.as_deref() == Some(origin.as_str()));
        all.retain(|it| sees_all || (it.is_public && is_published));
        Ok::<_, ApiError>(all)
    };
    let all = call.db().read(Weight::Point, read).await?;
    if all.is_empty() {
        return Err(ApiError::not_found("There are no auxiliary files of this kind."));
    }
    envelope::ok(all.iter().map(auxiliary_json).collect::<Vec<_>>())
}

async fn delete_auxiliary(call: Call) -> Answer {
    let found = found(&call, Some(Permission::EditDataset)).await?;
    let id = kinds::auxiliary_id(found.file.id, call.param("tag"), call.param("version"));
    let write = move |txn: &mut Txn<'_>| {
        let gone = txn.delete(&AUXILIARY, &id)?;
        gone.map(|_| ()).ok_or_else(|| ApiError::not_found("Auxiliary file not found."))
    };
    call.db().write(write).await?;
    envelope::message("Auxiliary file deleted.")
}

/// Checks that provenance is enabled. Errors: 403.
async fn check_provenance(call: &Call) -> Result<(), ApiError> {
    let read = |view: &mut View<'_>| site_settings::is_true(view, ":ProvCollectionEnabled", false);
    match call.db().read(Weight::Point, read).await? {
        true => Ok(()),
        false => Err(ApiError::forbidden("This functionality has been administratively disabled.")),
    }
}

async fn show_provenance(call: Call) -> Answer {
    check_provenance(&call).await?;
    let found = found(&call, Some(Permission::EditDataset)).await?;
    let id = found.file.id.to_string();
    let read = move |view: &mut View<'_>| {
        Ok::<_, ApiError>(view.get(&PROVENANCE, &id)?.map(|it| it.json()).transpose()?)
    };
    let stored = call.db().read(Weight::Point, read).await?;
    let stored =
        stored.ok_or_else(|| ApiError::bad_request("No provenance json available for this file."))?;
    envelope::ok(json!({"json": stored["json"].to_string()}))
}

async fn set_provenance(mut call: Call) -> Answer {
    check_provenance(&call).await?;
    let found = found(&call, Some(Permission::EditDataset)).await?;
    let entity = call.query.get("entityName").unwrap_or_default().to_owned();
    let json = Value::Object(
        call.object().await.map_err(|_| ApiError::bad_request("A valid JSON object could not be found."))?,
    );
    let is_published = found.published_row().is_some();
    let entities = json["entity"].as_object();
    let is_entity = entities.is_some_and(|it| it.contains_key(&entity));
    if !is_entity {
        return Err(ApiError::bad_request(
            "Entity name provided does not match any entities parsed from the uploaded PROV-JSON.",
        ));
    }
    let id = found.file.id.to_string();
    let body = json!({"json": json, "entity": entity});
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        if is_published && txn.has(&PROVENANCE, &id)? {
            return Err(ApiError::forbidden(
                "PROV-JSON cannot be updated for a published file that already has PROV-JSON.",
            ));
        }
        stored::put(txn, &PROVENANCE, &id, &body)
    };
    call.db().write(write).await?;
    envelope::message(format!("PROV-JSON provenance data saved for Data File: {}", found.file.id))
}

async fn delete_provenance(call: Call) -> Answer {
    check_provenance(&call).await?;
    let found = found(&call, Some(Permission::EditDataset)).await?;
    if found.published_row().is_some() {
        return Err(ApiError::forbidden("PROV-JSON cannot be deleted for a published file."));
    }
    let id = found.file.id.to_string();
    call.db()
        .write(move |txn: &mut Txn<'_>| txn.delete(&PROVENANCE, &id).map(|_| ()).map_err(ApiError::from))
        .await?;
    envelope::message("PROV-JSON deleted for the selected Data File.")
}

async fn show_freeform(call: Call) -> Answer {
    check_provenance(&call).await?;
    let found = found(&call, Some(Permission::EditDataset)).await?;
    let text = found.newest_row().and_then(|it| it.provenance.clone());
    let text =
        text.ok_or_else(|| ApiError::bad_request("No provenance free form text available for this file."))?;
    envelope::ok(json!({"text": text}))
}

async fn set_freeform(mut call: Call) -> Answer {
    check_provenance(&call).await?;
    let wanted = Wanted::of(&call)?;
    let body = call.object().await?;
    let text = body.get("text").and_then(Value::as_str).map(str::to_owned);
    let text =
        text.ok_or_else(|| ApiError::bad_request("The JSON object you send must have a key called 'text'."))?;
    let (asker, now, ids) = (call.asker.clone(), call.app.now(), call.ids(2).await?);
    let app = call.app.clone();
    let saved = text.clone();
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let file = wanted.find(txn)?;
        let mut found = Found::of(txn, file)?;
        permissions::require(txn, &asker, found.dataset.place(), Permission::EditDataset)?;
        let row = found.open_row().cloned();
        let row = row.ok_or_else(|| ApiError::bad_request("The file is in no draft."))?;
        let draft = draft::open_draft(txn, &app, &asker, &now, &mut found.dataset, &mut ids)?;
        let checksum = found.file.checksum.clone();
        rows::change(txn, row, draft.ordinal, ids.next()?, &checksum, |row| {
            row.provenance = Some(saved.clone())
        })?;
        Ok::<_, ApiError>(found.file.id)
    };
    let id = call.db().write(write).await?;
    envelope::ok(
        json!({"message": format!("Free-form provenance data saved for Data File: {id}"), "text": text}),
    )
}
