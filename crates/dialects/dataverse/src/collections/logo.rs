//! The logo of a collection: `/dataverses/{id}/logo`, shown small in lists of results.

use http::StatusCode;
use pinakes_blobs::SCHEME;
use pinakes_store::{Identifier, Kind, Txn, View, Weight};
use serde_json::json;

use crate::app::Call;
use crate::collections::{self, visibility};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{envelope, permissions, thumbnails};

/// Logos by the collection's number: body `{"blob": …}`.
pub(crate) static COLLECTION_LOGO: Kind = Kind {
    identifiers: &[Identifier { scheme: SCHEME, path: "blob" }],
    ..Kind::named("dataverse_collection_logo")
};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/dataverses/{id}/logo", show)
        .put("/dataverses/{id}/logo", set)
        .delete("/dataverses/{id}/logo", remove)
        .get("/access/dvCardImage/{id}", show)
}

/// Returns the URL of a collection's logo, if it has one.
pub(crate) fn url(view: &mut View<'_>, site_url: &str, id: i64) -> Result<Option<String>, ApiError> {
    let has = view.has(&COLLECTION_LOGO, &id.to_string())?;
    Ok(has.then(|| format!("{site_url}/api/access/dvCardImage/{id}")))
}

/// Deletes the logo of a collection that is deleted.
pub(super) fn forget(txn: &mut Txn<'_>, id: i64) -> Result<(), ApiError> {
    txn.delete(&COLLECTION_LOGO, &id.to_string())?;
    Ok(())
}

async fn show(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let read = move |view: &mut View<'_>| -> Result<Option<String>, ApiError> {
        let collection = collections::find(view, &id)?;
        visibility::require_visible(view, &asker, &collection)?;
        let Some(logo) = view.get(&COLLECTION_LOGO, &collection.id.to_string())? else { return Ok(None) };
        Ok(logo.json()?["blob"].as_str().map(str::to_owned))
    };
    let blob = call.db().read(Weight::Point, read).await?;
    let picture = match &blob {
        Some(blob) => thumbnails::of_blob(&call, blob, thumbnails::CARD_WIDTH).await?,
        None => None,
    };
    Ok(match picture {
        Some(bytes) => thumbnails::png(bytes),
        None => pinakes_http::answer::empty(StatusCode::NOT_FOUND),
    })
}

/// `PUT …/logo`: a form with an image under `file`.
async fn set(mut call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let read = move |view: &mut View<'_>| -> Result<i64, ApiError> {
        let collection = collections::find(view, &id)?;
        permissions::require(view, &asker, collection.place(), Permission::EditDataverse)?;
        Ok(collection.id)
    };
    let id = call.db().read(Weight::Point, read).await?;
    let (blob, _) = thumbnails::received(&mut call).await?;
    let asker = call.asker.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let collection = collections::find(txn, &id.to_string())?;
        permissions::require(txn, &asker, collection.place(), Permission::EditDataverse)?;
        txn.put(&COLLECTION_LOGO, &id.to_string(), &json!({"blob": blob}))?;
        Ok(())
    };
    call.db().write(write).await?;
    let logo = format!("{}/api/access/dvCardImage/{id}", call.site_url());
    envelope::ok(json!({"message": "The picture of the collection was replaced.", "logo": logo}))
}

async fn remove(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<bool, ApiError> {
        let collection = collections::find(txn, &id)?;
        permissions::require(txn, &asker, collection.place(), Permission::EditDataverse)?;
        Ok(txn.delete(&COLLECTION_LOGO, &collection.id.to_string())?.is_some())
    };
    match call.db().write(write).await? {
        true => envelope::message("The picture of the collection was deleted."),
        false => Err(ApiError::not_found("This collection has no picture.")),
    }
}
