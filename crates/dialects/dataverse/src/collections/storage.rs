//! Storage use and quota of a collection.

use pinakes_store::{Expr, Txn, View, Weight};

use crate::app::Call;
use crate::collections::{self, Collection};
use crate::datasets::DATASET;
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{envelope, files, permissions};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/dataverses/{id}/storage/use", show_use)
        .get("/dataverses/{id}/storage/quota", show_quota)
        .put("/dataverses/{id}/storage/quota", set_quota)
        .post("/dataverses/{id}/storage/quota/{bytes}", set_quota)
        .delete("/dataverses/{id}/storage/quota", remove_quota)
}

/// Returns the total size of all files below a collection, in bytes.
pub(crate) fn used_bytes(view: &mut View<'_>, collection: &Collection) -> Result<u64, ApiError> {
    let owners = collections::below(view, collection.clone())?;
    let inside = Expr::In("owner".into(), owners.into_iter().map(|it| it.id.into()).collect());
    let datasets = view.join_keys(&DATASET, &inside, &"id".into())?;
    files::bytes_of(view, &Expr::Joined("dataset".into(), datasets))
}

async fn show_use(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<u64, ApiError> {
        let collection = collections::find(view, &id)?;
        permissions::require(view, &asker, collection.place(), Permission::ManageDataversePermissions)?;
        used_bytes(view, &collection)
    };
    let bytes = call.db().read(Weight::Scan, find).await?;
    let text = crate::amounts::with_commas(bytes);
    envelope::message(format!(
        "Total recorded size of the files stored in this collection (user-uploaded files plus the versions in the archival tab-delimited format and/or auxiliary files, when applicable): {text} bytes"
    ))
}

async fn show_quota(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Option<i64>, ApiError> {
        let collection = collections::find(view, &id)?;
        permissions::require(view, &asker, collection.place(), Permission::ManageDataversePermissions)?;
        Ok(collection.quota_bytes)
    };
    match call.db().read(Weight::Point, find).await? {
        Some(bytes) => {
            let text = crate::amounts::with_commas(bytes.unsigned_abs());
            envelope::message(format!("Total quota allocation for this collection: {text} bytes"))
        }
        None => envelope::message("No quota defined for this collection"),
    }
}

async fn set_quota(mut call: Call) -> Answer {
    let text = call.text().await?;
    let text = if text.is_empty() { call.param("bytes").to_owned() } else { text };
    call.asker.superuser("Only superusers can change storage quotas.")?;
    let bytes: i64 = text
        .trim_matches('"')
        .parse()
        .map_err(|_| ApiError::bad_request(format!("{text} is not a valid number of bytes")))?;
    change(&call, Some(bytes)).await?;
    envelope::message("Storage quota successfully set for the collection")
}

async fn remove_quota(call: Call) -> Answer {
    call.asker.superuser("Only superusers can change storage quotas.")?;
    change(&call, None).await?;
    envelope::message("Storage quota successfully disabled for the collection")
}

async fn change(call: &Call, bytes: Option<i64>) -> Result<(), ApiError> {
    let id = call.param("id").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut collection = collections::find(txn, &id)?;
        collection.quota_bytes = bytes;
        collections::put(txn, &collection)
    };
    call.db().write(write).await
}
