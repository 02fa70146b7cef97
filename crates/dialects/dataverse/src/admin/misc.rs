//! Other routes of administrators: permissions on an object, banner messages, indexes, files to check.

use http::StatusCode;
use pinakes_store::{Expr, Kind, Query, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::assignments::assignee_name;
use crate::collections::{self, Collection};
use crate::error::{Answer, ApiError};
use crate::grants::{self, Permission, Place};
use crate::routing::Routes;
use crate::{datasets, envelope, permissions, signing, stored, users};

/// Banner messages that every page shows: the body is what was posted, with `id`.
pub(crate) static BANNER: Kind = Kind::named("dataverse_banner");

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/permissions/{object}", permissions_on)
        .get("/admin/assignee/{assignee}", show_assignee)
        .get("/admin/bannerMessage", banners)
        .post("/admin/bannerMessage", add_banner)
        .delete("/admin/bannerMessage/{id}", delete_banner)
        .put("/admin/bannerMessage/{id}/deactivate", deactivate_banner)
        .post("/admin/requestSignedUrl", sign)
        .get("/admin/downloadTmpFile", download_tmp)
        .post("/admin/publishDataverseAsCreator/{id}", publish_collection)
        .get("/admin/dataverse/{alias}/storageDriver", storage_driver)
        .put("/admin/dataverse/{alias}/storageDriver", set_storage_driver)
        .delete("/admin/dataverse/{alias}/storageDriver", set_storage_driver)
        .get("/admin/dataverse/storageDrivers", storage_drivers)
        .get("/dataverses/{id}/storageDriver", storage_driver)
        .put("/dataverses/{id}/storageDriver", set_storage_driver)
        .delete("/dataverses/{id}/storageDriver", set_storage_driver)
        .get("/dataverses/{id}/allowedStorageDrivers", storage_drivers)
        .get("/admin/dataverse/{alias}/curationLabelSet", label_set)
        .put("/admin/dataverse/{alias}/curationLabelSet", set_label_set)
        .delete("/admin/dataverse/{alias}/curationLabelSet", set_label_set)
        .get("/admin/dataverse/curationLabelSets", label_sets)
        .get("/admin/rateLimitStats", rate_limits)
        .delete("/admin/clearMetricsCache", done)
        .delete("/admin/clearMetricsCache/{name}", done)
        .delete("/admin/clearThumbnailFailureFlag", done)
        .delete("/admin/clearThumbnailFailureFlag/{id}", clear_thumbnail)
        .post("/admin/sitemap", done)
        .get("/admin/assignments/assignees/{assignee}", assignments_of)
        .post("/admin/convertUserFromBcryptToSha1", downgrade_password)
}

async fn done(_: Call) -> Answer {
    envelope::message("Done.")
}

/// Answers with the caller's permissions on an object.
async fn permissions_on(call: Call) -> Answer {
    let (object, asker) = (call.param("object").to_owned(), call.asker.clone());
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let place = place_of(view, &object)?;
        let held = permissions::held(view, &asker, place)?;
        Ok(json!({
            "user": asker.identifier(),
            "permissions": held.iter().map(|it| it.name()).collect::<Vec<String>>(),
        }))
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

/// Returns a collection by alias or number, or a dataset by number or persistent identifier.
fn place_of(view: &mut View<'_>, object: &str) -> Result<Place, ApiError> {
    if let Ok(collection) = collections::find(view, object) {
        return Ok(collection.place());
    }
    let dataset = match object.parse() {
        Ok(id) => datasets::by_id(view, id)?,
        Err(_) => datasets::by_pid(view, object)?,
    };
    let missing = || ApiError::not_found(format!("DvObject {object} not found"));
    Ok(dataset.ok_or_else(missing)?.place())
}

async fn show_assignee(call: Call) -> Answer {
    let assignee = call.param("assignee").to_owned();
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let name = assignee_name(view, &assignee)?;
        let title =
            name.ok_or_else(|| ApiError::not_found(format!("Role Assignee not found: {assignee}")))?;
        Ok(json!({"id": assignee, "title": title}))
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn banners(call: Call) -> Answer {
    let all = |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        stored::find(view, &BANNER, &Query::filter(Expr::All))
    };
    let all = call.db().read(Weight::Scan, all).await?;
    let shown = all.iter().map(|it| {
        let text = it["messageTexts"][0]["message"].clone();
        let active = it["active"] != false;
        json!({"id": it["id"], "displayValue": text, "dismissible": it["dismissibleByUser"], "active": active})
    });
    envelope::ok(shown.collect::<Vec<Value>>())
}

async fn add_banner(mut call: Call) -> Answer {
    let mut body = call.object().await?;
    let bad = |what: &str| ApiError::bad_request(format!("Improperly formatted banner message: {what}"));
    let texts = body.get("messageTexts").and_then(Value::as_array).ok_or_else(|| bad("no messageTexts"))?;
    let is_text = |it: &Value| it["lang"].is_string() && it["message"].is_string();
    if texts.is_empty() || !texts.iter().all(is_text) {
        return Err(bad("each of messageTexts needs lang and message"));
    }
    let dismissible = match body.get("dismissibleByUser") {
        Some(Value::Bool(it)) => *it,
        Some(Value::String(text)) if text == "true" || text == "false" => text == "true",
        _ => return Err(bad("dismissibleByUser must be true or false")),
    };
    body.insert("dismissibleByUser".into(), dismissible.into());
    let ids = call.ids(1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<i64, ApiError> {
        let (mut ids, mut body) = (ids, body.clone());
        let id = ids.next()?;
        body.insert("id".into(), id.into());
        txn.insert(&BANNER, &id.to_string(), &Value::Object(body))?;
        Ok(id)
    };
    let id = call.db().write(write).await?;
    envelope::ok(json!({"message": "Banner Message added successfully.", "id": id}))
}

async fn delete_banner(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let removed =
        call.db().write(move |txn: &mut Txn<'_>| Ok::<_, ApiError>(txn.delete(&BANNER, &id)?)).await?;
    match removed {
        Some(_) => envelope::message(format!("Banner Message id {} deleted.", call.param("id"))),
        None => Err(ApiError::not_found(format!("No Banner Message found with id {}.", call.param("id")))),
    }
}

/// Deactivates a banner message: it is no longer shown, but administrators still see it in the list.
async fn deactivate_banner(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let missing = || ApiError::not_found(format!("No Banner Message found with id {id}."));
        let mut banner: Value = stored::get(txn, &BANNER, &id)?.ok_or_else(missing)?;
        banner["active"] = false.into();
        stored::put(txn, &BANNER, &id, &banner)
    };
    call.db().write(write).await?;
    envelope::message(format!("Banner Message id {} deactivated.", call.param("id")))
}

/// Signs a URL for a user, for superusers.
async fn sign(mut call: Call) -> Answer {
    call.asker.superuser("Requesting signed URLs is restricted to superusers.")?;
    let body = call.object().await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let url = text("url").ok_or_else(|| ApiError::bad_request("Missing 'url' parameter in JSON body."))?;
    let method = text("method").unwrap_or_else(|| "GET".to_owned());
    let minutes = body.get("timeOut").and_then(Value::as_i64).unwrap_or(10).clamp(1, 60 * 24 * 365);
    let name = match text("user") {
        Some(name) => name,
        None => call.asker.user()?.name.clone(),
    };
    let wanted = name.clone();
    let user = call.db().read(Weight::Point, move |view| users::by_name(view, &wanted)).await?;
    if user.is_none() {
        return Err(ApiError::bad_request(format!("Requested user not found: {name}")));
    }
    let signed = signing::sign(&call, &url, &method, &name, minutes);
    envelope::ok(json!({"signedUrl": signed}))
}

/// Refuses to send files of the server's machine, with the messages of the original.
async fn download_tmp(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let path = call.query.get("fullyQualifiedPathToFile").unwrap_or_default();
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|it| !it.is_empty() && *it != ".") {
        match part {
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let normal = format!("/{}", parts.join("/"));
    if !normal.starts_with("/tmp/") && normal != "/tmp" {
        return Err(ApiError::bad_request(format!(
            "Path must begin with '/tmp' but after normalization was '{normal}'."
        )));
    }
    Err(ApiError::bad_request("Downloading files of the server's machine is switched off."))
}

async fn publish_collection(call: Call) -> Answer {
    collections::publication::publish(&call, "id").await
}

/// Returns the alias of the collection in the path.
fn alias(call: &Call) -> String {
    let alias = call.param("alias");
    if alias.is_empty() { call.param("id") } else { alias }.to_owned()
}

/// Returns the collection that the path names.
async fn collection(call: &Call) -> Result<Collection, ApiError> {
    let alias = alias(call);
    call.db().read(Weight::Point, move |view| collections::find(view, &alias)).await
}

/// Answers with the storage driver that a collection states for its files, or `undefined`; with `getEffective`, with
/// the driver in effect.
async fn storage_driver(call: Call) -> Answer {
    let collection = collection(&call).await?;
    let (asker, place) = (call.asker.clone(), collection.place());
    let check = move |view: &mut View<'_>| permissions::may(view, &asker, place, Permission::EditDataverse);
    let is_admins = call.uri.path().contains("/admin/");
    if is_admins || !call.db().read(Weight::Point, check).await? {
        call.asker.superuser("Superusers only.")?;
    }
    if collection.storage_driver.is_none() && !call.query.is_true("getEffective") {
        return envelope::ok(json!({"name": "undefined", "type": "undefined", "label": "undefined"}));
    }
    envelope::ok(datasets::storage::driver_json(&call.app, collection.storage_driver.as_deref()))
}

async fn storage_drivers(call: Call) -> Answer {
    if call.uri.path().contains("/dataverses/") {
        call.asker.user()?;
        collection(&call).await?;
    }
    let settings = &call.app.settings;
    envelope::ok(json!({ settings.storage_label.clone(): settings.storage_driver }))
}

async fn set_storage_driver(mut call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let label = call.text().await?;
    if !label.is_empty() && label != call.app.settings.storage_label {
        return Err(ApiError::bad_request("No Storage Driver found for : ".to_owned() + &label));
    }
    let (alias, kept) = (alias(&call), Some(label.clone()).filter(|it| !it.is_empty()));
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut collection = collections::find(txn, &alias)?;
        collection.storage_driver.clone_from(&kept);
        collections::put(txn, &collection)
    };
    call.db().write(write).await?;
    let driver = &call.app.settings.storage_driver;
    envelope::message(match label.is_empty() {
        true => format!("Storage reset to default: {driver}"),
        false => format!("Storage set to: {label}/{driver}"),
    })
}

/// Name of a collection's setting.
const LABEL_SET: &str = "curationLabelSet";

async fn label_set(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let collection = collection(&call).await?;
    let name = collection.more.get(LABEL_SET).and_then(Value::as_str).unwrap_or("DEFAULT");
    envelope::message(name)
}

async fn label_sets(call: Call) -> Answer {
    let find = |view: &mut View<'_>| datasets::curation::label_sets(view);
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn set_label_set(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let name = call.query.filled("name").map(str::to_owned);
    let (alias, wanted) = (call.param("alias").to_owned(), name.clone());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut collection = collections::find(txn, &alias)?;
        match &wanted {
            Some(name) if datasets::curation::is_label_set(txn, name)? => {
                collection.more.insert(LABEL_SET.into(), name.as_str().into());
            }
            Some(_) => return Err(ApiError::bad_request("No such curation label set")),
            None => drop(collection.more.remove(LABEL_SET)),
        }
        collections::put(txn, &collection)
    };
    call.db().write(write).await?;
    envelope::message(match name {
        Some(name) => format!("Curation Label Set Name set to: {name}"),
        None => "Curation Label Set reset to default: DEFAULT".to_owned(),
    })
}

async fn rate_limits(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    Ok(pinakes_http::answer::bytes(
        StatusCode::OK,
        http::HeaderValue::from_static("text/csv"),
        "\"User\",\"Action\",\"Tokens\"\n",
    ))
}

async fn clear_thumbnail(call: Call) -> Answer {
    let id = call.param("id");
    Err(ApiError::bad_request(format!("Could not find file with the id {id}")))
}

/// Lists all role assignments of an assignee.
async fn assignments_of(call: Call) -> Answer {
    let assignee = call.param("assignee").to_owned();
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let grants = grants::grants_to(view, std::slice::from_ref(&assignee))?;
        let each = grants.iter().flat_map(|grant| {
            grant.roles.iter().map(|it| {
                json!({
                    "id": it.id, "assignee": grant.assignee, "roleId": it.role, "definitionPointId": grant.object,
                })
            })
        });
        Ok(each.collect())
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

/// Changes nothing: this server creates no weaker password hashes, so the user keeps the password and its hash.
async fn downgrade_password(mut call: Call) -> Answer {
    let _: Map<String, Value> = call.object().await?;
    envelope::message("The password is kept as argon2id, as every other; nothing was changed.")
}
