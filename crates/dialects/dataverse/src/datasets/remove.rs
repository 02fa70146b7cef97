//! Deleting datasets and drafts (section 5.3 of the contract).

use pinakes_store::Txn;

use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::datasets::edit::check_changeable;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, DATASET, Dataset, VERSION, version};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{assignments, changes, envelope, featured, files, links, permissions, tokens, usage};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .delete("/datasets/{id}", delete)
        .delete("/datasets/{id}/versions/{version}", delete_version)
        .delete("/datasets/{id}/destroy", destroy)
}

/// Returns a dataset after checking that the caller may delete its draft.
fn droppable(txn: &mut Txn<'_>, asker: &Asker, wanted: &Wanted) -> Result<Dataset, ApiError> {
    let dataset = wanted.find(txn)?;
    permissions::require(txn, asker, dataset.place(), Permission::DeleteDatasetDraft)?;
    check_changeable(txn, asker, &dataset)?;
    Ok(dataset)
}

async fn delete(call: Call) -> Answer {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(&call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let dataset = wanted.find(txn)?;
        if dataset.draft.is_none() {
            let is_single = dataset.last_ordinal <= 1;
            if !is_single {
                return Err(ApiError::unauthorized(
                    "This is a published dataset with multiple versions. This API can only delete the latest version if it is a DRAFT",
                ));
            }
            if !asker.is_superuser() {
                return Err(ApiError::unauthorized("Only superusers can delete published datasets"));
            }
            return remove(txn, &app, &dataset);
        }
        let dataset = droppable(txn, &asker, &wanted)?;
        match dataset.last {
            None => remove(txn, &app, &dataset),
            Some(_) => drop_draft(txn, &app, dataset),
        }
    };
    call.db().write(write).await?;
    envelope::message(format!("Dataset {} deleted", call.param("id")))
}

async fn delete_version(call: Call) -> Answer {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(&call)?);
    let spec = call.param("version").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<i64, ApiError> {
        let dataset = wanted.find(txn)?;
        let found = version::find(txn, &asker, &dataset, &spec, version::Withdrawn::Shown)?;
        if found.state != version::State::Draft {
            return Err(ApiError::unauthorized("This is NOT a DRAFT version"));
        }
        let dataset = droppable(txn, &asker, &wanted)?;
        let id = dataset.id;
        match dataset.last {
            None => remove(txn, &app, &dataset)?,
            Some(_) => drop_draft(txn, &app, dataset)?,
        }
        Ok(id)
    };
    let id = call.db().write(write).await?;
    envelope::message(format!("Draft version of dataset {id} deleted"))
}

/// Deletes the draft, so that the newest release is the current version again.
pub(crate) fn drop_draft(txn: &mut Txn<'_>, app: &Dataverse, mut dataset: Dataset) -> Result<(), ApiError> {
    if let Some(draft) = dataset.draft.take() {
        files::discard_draft(txn, dataset.id, draft.ordinal)?;
        version::remove(txn, draft.version)?;
        dataset.last_ordinal = dataset.last.as_ref().map_or(0, |it| it.ordinal);
    }
    dataset.locks.retain(|it| it.lock_type != "InReview");
    datasets::publish::drop_preview(txn, &mut dataset)?;
    datasets::put(txn, &dataset)?;
    changes::dataset(txn, app, dataset.id)
}

async fn destroy(call: Call) -> Answer {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(&call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let dataset = wanted.find(txn)?;
        if dataset.last.is_some() && !asker.is_superuser() {
            return Err(ApiError::unauthorized("Destroy can only be called by superusers."));
        }
        if dataset.last.is_none() {
            droppable(txn, &asker, &wanted)?;
        }
        remove(txn, &app, &dataset)?;
        Ok(dataset.pid)
    };
    let pid = call.db().write(write).await?;
    envelope::message(format!("Dataset {pid} destroyed"))
}

/// Removes a dataset with everything that belongs to it.
pub(crate) fn remove(txn: &mut Txn<'_>, app: &Dataverse, dataset: &Dataset) -> Result<(), ApiError> {
    let mut versions = vec![dataset.draft.as_ref().map(|it| it.version)];
    if dataset.last.is_some() {
        versions = version::newest_first(txn, dataset)?.iter().map(|it| Some(it.id)).collect();
    }
    for id in versions.into_iter().flatten() {
        txn.delete(&VERSION, &id.to_string())?;
    }
    files::remove_all(txn, dataset.id)?;
    assignments::remove_all(txn, dataset.id)?;
    if dataset.preview_anonymized.is_some() {
        tokens::remove(txn, "dataset", dataset.id)?;
    }
    links::remove_of(txn, dataset.id)?;
    featured::remove_of_object(txn, dataset.id)?;
    usage::remove_of_dataset(txn, dataset.id)?;
    txn.delete(&DATASET, &dataset.id.to_string())?;
    changes::removed(txn, app, dataset.id)
}
