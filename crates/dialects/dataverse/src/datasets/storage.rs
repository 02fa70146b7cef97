//! Storage of a dataset: size, location, quota and file limit.

use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::{Call, Dataverse};
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset, show};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{amounts, envelope, files, permissions};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/{id}/storagesize", storage_size)
        .get("/datasets/{id}/storage/use", storage_use)
        .get("/datasets/{id}/storage/quota", show_quota)
        .put("/datasets/{id}/storage/quota", set_quota)
        .delete("/datasets/{id}/storage/quota", remove_quota)
        .get("/datasets/{id}/storageDriver", show_driver)
        .put("/datasets/{id}/storageDriver", set_driver)
        .delete("/datasets/{id}/storageDriver", set_driver)
        .get("/datasets/{id}/uploadlimits", upload_limits)
        .post("/datasets/{id}/files/uploadlimit/{limit}", set_file_limit)
        .delete("/datasets/{id}/files/uploadlimit", remove_file_limit)
}

async fn read<R: Send + 'static>(
    call: &Call,
    permission: Permission,
    mut read: impl FnMut(&mut View<'_>, &Dataset) -> Result<R, ApiError> + Send + 'static,
) -> Result<R, ApiError> {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(call)?);
    let find = move |view: &mut View<'_>| -> Result<R, ApiError> {
        let dataset = wanted.find(view)?;
        permissions::require(view, &asker, dataset.place(), permission)?;
        read(view, &dataset)
    };
    call.db().read(Weight::Scan, find).await
}

async fn storage_size(call: Call) -> Answer {
    let bytes = read(&call, Permission::ViewUnpublishedDataset, |view, it| files::used_bytes(view, it.id));
    let text = amounts::with_commas(bytes.await?);
    envelope::message(format!("Total size of the files stored in this dataset: {text} bytes"))
}

async fn storage_use(call: Call) -> Answer {
    let bytes = read(&call, Permission::ManageDatasetPermissions, |view, it| files::used_bytes(view, it.id));
    let text = amounts::with_commas(bytes.await?);
    envelope::message(format!(
        "Total recorded size of the files stored in this dataset (user-uploaded files plus the versions in the archival tab-delimited format and/or auxiliary files, when applicable): {text} bytes"
    ))
}

async fn show_quota(call: Call) -> Answer {
    let quota = read(&call, Permission::ManageDatasetPermissions, |_, it| Ok(it.quota_bytes));
    match quota.await? {
        Some(bytes) => {
            let text = amounts::with_commas(bytes.unsigned_abs());
            envelope::message(format!("Total quota allocation for this dataset: {text} bytes"))
        }
        None => envelope::message("No quota defined for this dataset"),
    }
}

/// Changes a dataset's record, for superusers.
async fn change(
    call: &Call,
    refusal: &str,
    mut change: impl FnMut(&mut Dataset) + Send + 'static,
) -> Result<(), ApiError> {
    call.asker.superuser(refusal)?;
    let wanted = Wanted::of(call)?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut dataset = wanted.find(txn)?;
        change(&mut dataset);
        datasets::put(txn, &dataset)
    };
    call.db().write(write).await
}

const QUOTA_REFUSAL: &str = "Only superusers can change storage quotas.";

async fn set_quota(mut call: Call) -> Answer {
    let text = call.text().await?;
    let bytes: i64 = text
        .trim_matches('"')
        .parse()
        .map_err(|_| ApiError::bad_request(format!("{text} is not a valid number of bytes")))?;
    change(&call, QUOTA_REFUSAL, move |it| it.quota_bytes = Some(bytes)).await?;
    envelope::message("Storage quota successfully set for the dataset")
}

async fn remove_quota(call: Call) -> Answer {
    change(&call, QUOTA_REFUSAL, |it| it.quota_bytes = None).await?;
    envelope::message("Storage quota successfully disabled for the dataset")
}

/// Returns the description of the storage driver for clients.
pub(crate) fn driver_json(app: &Dataverse, label: Option<&str>) -> Value {
    json!({
        "name": app.settings.storage_driver,
        "type": "file",
        "label": label.unwrap_or(&app.settings.storage_label),
        "directUpload": false,
        "directDownload": false,
        "uploadOutOfBand": false,
    })
}

async fn show_driver(call: Call) -> Answer {
    let app = call.app.clone();
    let json = read(&call, Permission::ViewUnpublishedDataset, move |_, _| Ok(driver_json(&app, None)));
    envelope::ok(json.await?)
}

async fn set_driver(mut call: Call) -> Answer {
    call.asker.superuser("This API end point can be used by superusers only.")?;
    let label = call.text().await?;
    let settings = &call.app.settings;
    if !label.is_empty() && label != settings.storage_label {
        return Err(ApiError::bad_request(format!("No Storage Driver found for : {label}")));
    }
    envelope::message(match label.is_empty() {
        true => format!("Storage reset to default: {}", settings.storage_driver),
        false => format!("Storage set to: {}/{}", settings.storage_label, settings.storage_driver),
    })
}

async fn upload_limits(call: Call) -> Answer {
    let limits = read(&call, Permission::EditDataset, |view, dataset| {
        let mut limits = Map::new();
        if let Some(left) = files::room::bytes_left(view, dataset)? {
            limits.insert("storageQuotaRemaining".into(), left.into());
        }
        if let Some(limit) = show::effective_limit(view, dataset)? {
            let ordinal = dataset.draft.as_ref().map_or(dataset.last_ordinal, |it| it.ordinal);
            let n_files = i64::try_from(files::n_files(view, dataset.id, ordinal)?).unwrap_or(i64::MAX);
            limits.insert("numberOfFilesRemaining".into(), (limit - n_files).max(0).into());
        }
        Ok(limits)
    });
    envelope::ok(json!({"uploadLimits": limits.await?}))
}

const LIMIT_REFUSAL: &str = "Only superusers can change the limit of files.";

async fn set_file_limit(call: Call) -> Answer {
    let text = call.param("limit").to_owned();
    let limit: i64 =
        text.parse().map_err(|_| ApiError::bad_request(format!("{text} is not a valid number of files")))?;
    change(&call, LIMIT_REFUSAL, move |it| it.file_count_limit = Some(limit).filter(|it| 0 < *it)).await?;
    envelope::message(format!("Dataset file limit set to {limit}"))
}

async fn remove_file_limit(call: Call) -> Answer {
    change(&call, LIMIT_REFUSAL, |it| it.file_count_limit = None).await?;
    envelope::message("Dataset file limit removed")
}
