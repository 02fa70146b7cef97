//! Moving a dataset to another collection, and other changes of its context (section 5.5 of the contract).

use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::asker::Asker;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset, version};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::ids::Ids;
use crate::notifications::{self, Notice};
use crate::routing::Routes;
use crate::{changes, collections, envelope, guestbooks, links, permissions, site_settings};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/datasets/{id}/move/{target}", relocate)
        .put("/datasets/{id}/guestbook", set_guestbook)
        .delete("/datasets/{id}/guestbook", remove_guestbook)
        .post("/datasets/{id}/modifyRegistration", update_target)
        .post("/datasets/{id}/modifyRegistrationMetadata", update_registration)
        .get("/datasets/{id}/modifyRegistrationMetadata", update_registration)
        .post("/datasets/modifyRegistrationAll", update_all_targets)
        .post("/datasets/modifyRegistrationPIDMetadataAll", update_all_registrations)
}

async fn relocate(call: Call) -> Answer {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(&call)?);
    let (target, force) = (call.param("target").to_owned(), call.query.is_true("forceMove"));
    let ids = call.ids(100).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut dataset = wanted.find(txn)?;
        let target = collections::find(txn, &target)
            .map_err(|_| ApiError::bad_request("Target dataverse not found."))?;
        permissions::require(txn, &asker, dataset.place(), Permission::PublishDataset)?;
        permissions::require(txn, &asker, target.place(), Permission::AddDataset)?;
        if dataset.owner == target.id {
            return Err(ApiError::forbidden("This dataset is already in this dataverse."));
        }
        if dataset.last.is_some() && !target.is_released() {
            return Err(ApiError::forbidden(format!(
                "A published dataset may not be moved to an unpublished dataverse. You can retry the move after publishing {}.",
                target.name
            )));
        }
        let mut reasons = String::new();
        let loses_guestbook = match dataset.guestbook {
            Some(id) => !guestbooks::is_available(txn, id, &target)?,
            None => false,
        };
        if loses_guestbook {
            reasons.push_str("The guestbook would be removed from this dataset if you moved it because the guestbook is not in the new host dataverse. ");
        }
        let is_linked = links::of_collection_into(txn, dataset.id, &target)?;
        if is_linked {
            reasons.push_str("This dataset is linked to the new host dataverse or one of its parents. This move would remove the link to this dataset. ");
        }
        if !reasons.is_empty() && !force {
            return Err(ApiError::forbidden(format!(
                "Use the query parameter forceMove=true to complete the move. {reasons}"
            )));
        }
        if loses_guestbook {
            dataset.guestbook = None;
        }
        if is_linked {
            links::unlink_collection_from(txn, dataset.id, &target)?;
        }
        let before = dataset.owner;
        dataset.owner = target.id;
        datasets::put(txn, &dataset)?;
        tell_of_move(txn, &app.now(), &asker, &dataset, before, ids)?;
        changes::dataset(txn, &app, dataset.id)
    };
    call.db().write(write).await?;
    envelope::message("Dataset moved successfully.")
}

/// Maximum number of users who are notified of one move.
const TOLD: usize = 100;

/// Notifies users who may see or change the dataset by a role on it or on either collection, if the setting
/// `:SendNotificationOnDatasetMove` is on.
fn tell_of_move(
    txn: &mut Txn<'_>,
    now: &str,
    asker: &Asker,
    dataset: &Dataset,
    before: i64,
    mut ids: Ids,
) -> Result<(), ApiError> {
    if !site_settings::is_true(txn, ":SendNotificationOnDatasetMove", false)? {
        return Ok(());
    }
    let (from, to) =
        (collections::named_by_record(txn, before)?, collections::named_by_record(txn, dataset.owner)?);
    let newest = dataset.draft.as_ref().map(|it| it.version).or(dataset.last.as_ref().map(|it| it.version));
    let title = match newest {
        Some(id) => version::title_of(&datasets::version::of_dataset(txn, dataset, id)?),
        None => dataset.pid.clone(),
    };
    let who = asker.user.as_ref().map_or_else(|| asker.identifier(), |it| it.display_name());
    let text = format!(
        "{title} ({}) was moved from {} ({}) to {} ({}) by {who}.",
        dataset.persistent_url(),
        from.name,
        from.alias,
        to.name,
        to.alias
    );
    let any = [Permission::EditDataset, Permission::PublishDataset, Permission::ViewUnpublishedDataset];
    let told = permissions::holders_of(txn, &[dataset.id, from.id, to.id], &any)?;
    for user in told.into_iter().take(TOLD) {
        let notice = Notice::of("DATASETMOVED")
            .with("datasetPersistentIdentifier", dataset.pid.as_str())
            .with("datasetDisplayName", title.as_str())
            .with("ownerAlias", to.alias.as_str())
            .with("ownerDisplayName", to.name.as_str())
            .with("text", text.as_str());
        notifications::send(txn, ids.next()?, now, user, notice)?;
    }
    Ok(())
}

/// Sets the guestbook; the body is its number.
async fn set_guestbook(mut call: Call) -> Answer {
    let text = call.text().await?;
    let refuse = |what: String| ApiError::bad_request(format!("Failed to update dataset guestbook: {what}"));
    let id: i64 = text.trim_matches('"').parse().map_err(|_| refuse(format!("{text} is no number")))?;
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let mut dataset = wanted.find(txn)?;
        permissions::require(txn, &asker, dataset.place(), Permission::EditDataset)?;
        let owner = collections::named_by_record(txn, dataset.owner)?;
        if guestbooks::by_id(txn, id)?.is_some_and(|it| !it.enabled) {
            return Err(refuse(format!("The guestbook with id {id} is disabled")));
        }
        if !guestbooks::is_available(txn, id, &owner)? {
            let message = format!(
                "Failed to update dataset guestbook: Could not find an available guestbook with id {id}"
            );
            return Err(ApiError::not_found(message));
        }
        dataset.guestbook = Some(id);
        datasets::put(txn, &dataset)?;
        Ok(format!("Guestbook {id} set"))
    };
    envelope::message(call.db().write(write).await?)
}

async fn remove_guestbook(call: Call) -> Answer {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let mut dataset = wanted.find(txn)?;
        permissions::require(txn, &asker, dataset.place(), Permission::EditDataset)?;
        if dataset.guestbook.take().is_none() {
            return Ok("No Guestbook to remove".to_owned());
        }
        datasets::put(txn, &dataset)?;
        Ok("Guestbook removed".to_owned())
    };
    envelope::message(call.db().write(write).await?)
}

/// Message for callers who are not superusers.
const NO_SUPERUSER: &str = "Forbidden. You must be a superuser.";

/// Does nothing: identifiers are registered when a dataset is published.
async fn update_all_targets(call: Call) -> Answer {
    call.asker.superuser(NO_SUPERUSER)?;
    envelope::message("Update All Dataset target url completed.")
}

async fn update_all_registrations(call: Call) -> Answer {
    call.asker.superuser(NO_SUPERUSER)?;
    envelope::message("All Dataset PID Metadata update completed. See log for any issues.")
}

async fn update_target(call: Call) -> Answer {
    call.asker.superuser(NO_SUPERUSER)?;
    let wanted = Wanted::of(&call)?;
    let dataset = call.db().read(Weight::Point, move |view| wanted.find(view)).await?;
    envelope::message(format!("Dataset {} target url updated.", dataset.id))
}

async fn update_registration(call: Call) -> Answer {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let find = move |view: &mut View<'_>| -> Result<(Value, bool), ApiError> {
        let dataset = wanted.find(view)?;
        Ok((json!(dataset.id), dataset.was_released()))
    };
    let (id, is_released) = call.db().read(Weight::Point, find).await?;
    if !is_released {
        return Err(ApiError::bad_request(
            "Modify Registration Metadata must be run on a published dataset.",
        ));
    }
    if !asker.is_superuser() {
        return Err(permissions::refusal(&asker));
    }
    envelope::message(format!("Dataset {id} PID Metadata updated successfully."))
}
