//! Routes for linking and unlinking: `/api/dataverses/{id}/link`, `/api/datasets/{id}/link`.

use pinakes_store::{Expr, Query, Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::{Call, Dataverse};
use crate::collections::{self, Collection, visibility};
use crate::datasets::version::{self, title_of};
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset};
use crate::error::{Answer, ApiError};
use crate::grants::{self, Permission};
use crate::links::{self, LINK, Link};
use crate::routing::Routes;
use crate::{asker, changes, envelope, permissions, stored};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .put("/dataverses/{id}/link/{target}", link_collection)
        .delete("/dataverses/{id}/deleteLink/{target}", unlink_collection)
        .get("/dataverses/{id}/links", collection_links)
        .get("/dataverses/{id}/{type}/linkingDataverses", linkable)
        .put("/datasets/{id}/link/{target}", link_dataset)
        .delete("/datasets/{id}/deleteLink/{target}", unlink_dataset)
        .get("/datasets/{id}/links", dataset_links)
}

async fn link_collection(call: Call) -> Answer {
    let (app, asker) = (call.app.clone(), call.asker.clone());
    let (id, target) = (call.param("id").to_owned(), call.param("target").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let (linked, target) = (collections::find(txn, &id)?, collections::find(txn, &target)?);
        if !asker.is_superuser() {
            permissions::require(txn, &asker, target.place(), Permission::LinkDataverse)?;
        }
        show_collection_in(txn, &app, &linked, &target, None)?;
        Ok(format!("Dataverse {} linked successfully to {}", linked.alias, target.alias))
    };
    envelope::message(call.db().write(write).await?)
}

/// Links a collection to another one; `search` is the saved search that caused it. The caller must have checked the
/// rights.
///
/// Errors: 403 for a collection that is the same one, is contained in the other, or is linked already.
pub(crate) fn show_collection_in(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    linked: &Collection,
    target: &Collection,
    search: Option<i64>,
) -> Result<(), ApiError> {
    if linked.id == target.id {
        return Err(ApiError::forbidden("Can't link a dataverse to itself"));
    }
    let above = collections::with_owners(txn, linked.clone())?;
    if above.iter().skip(1).any(|it| it.id == target.id) {
        return Err(ApiError::forbidden("Can't link a dataverse to its parents"));
    }
    let link =
        Link { linked: linked.id, is_dataset: false, collection: target.id, created: app.now(), search };
    if !links::insert(txn, &link)? {
        return Err(ApiError::forbidden(format!(
            "{} has already been linked to {}.",
            linked.alias, target.alias
        )));
    }
    changes::collection(txn, app, linked.id)?;
    changes::below(txn, app, linked.id)
}

async fn unlink_collection(call: Call) -> Answer {
    let (app, asker) = (call.app.clone(), call.asker.clone());
    let (id, target) = (call.param("id").to_owned(), call.param("target").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let (linked, target) = (collections::find(txn, &id)?, collections::find(txn, &target)?);
        permissions::require(txn, &asker, target.place(), Permission::LinkDataverse)?;
        if txn.delete(&LINK, &links::id_of(linked.id, target.id))?.is_none() {
            return Err(ApiError::not_found(format!(
                "Dataverse linking dataverse with dataverse ID {} and dataverse linking dataverse ID {} not found.",
                linked.id, target.id
            )));
        }
        changes::collection(txn, &app, linked.id)?;
        changes::below(txn, &app, linked.id)?;
        Ok(format!("Link from Dataverse {} to linked Dataverse {} deleted", linked.alias, target.alias))
    };
    envelope::message(call.db().write(write).await?)
}

fn collection_json(it: &Collection) -> Value {
    json!({"id": it.id, "alias": it.alias, "displayName": it.name})
}

async fn collection_links(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let collection = collections::find(view, &id)?;
        visibility::require_visible(view, &asker, &collection)?;
        let (mut shown, mut showing, mut shown_datasets) = (Vec::new(), Vec::new(), Vec::new());
        for link in links::in_collection(view, collection.id)? {
            if link.is_dataset {
                let Some(dataset) = datasets::by_id(view, link.linked)? else { continue };
                let sees = dataset.released.is_some()
                    || permissions::may(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
                let newest = dataset.draft.as_ref().map(|it| it.version);
                let newest = newest.or(dataset.last.as_ref().map(|it| it.version));
                if let Some(id) = newest.filter(|_| sees) {
                    let title = title_of(&version::of_dataset(view, &dataset, id)?);
                    shown_datasets.push(json!({"identifier": dataset.pid, "title": title}));
                }
            } else if let Some(linked) = collections::by_id(view, link.linked)?
                && visibility::is_visible(view, &asker, &linked)?
            {
                shown.push(collection_json(&linked));
            }
        }
        for link in links::of(view, collection.id)? {
            if let Some(other) = collections::by_id(view, link.collection)?
                && visibility::is_visible(view, &asker, &other)?
            {
                showing.push(collection_json(&other));
            }
        }
        Ok(json!({
            "linkedDataverses": shown, "dataversesLinkingToThis": showing, "linkedDatasets": shown_datasets,
        }))
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

/// Lists the collections to which the caller may link an object; with `alreadyLinking`, those to which it is linked.
async fn linkable(call: Call) -> Answer {
    let user = call.asker.user()?.clone();
    let (asker, id, ty) = (call.asker.clone(), call.param("id").to_owned(), call.param("type").to_owned());
    let term = call.query.filled("searchTerm").unwrap_or_default().to_lowercase();
    let already = call.query.is_true("alreadyLinking") || call.query.is_true("alreadyLinked");
    let pid = call.query.filled("persistentId").map(str::to_owned);
    let is_dataset = match ty.as_str() {
        "dataset" => true,
        "dataverse" => false,
        _ => {
            return Err(ApiError::bad_request(format!(
                "{ty} is not a type of object; expected dataset or dataverse"
            )));
        }
    };
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let (object, owners) = if is_dataset {
            let dataset = Wanted::parse(&id, pid.as_deref(), &asker)?.find(view)?;
            let owner = collections::named_by_record(view, dataset.owner)?;
            (dataset.id, collections::with_owners(view, owner)?)
        } else {
            let collection = collections::find(view, &id)?;
            (collection.id, collections::with_owners(view, collection)?)
        };
        let linked: Vec<i64> = links::of(view, object)?.iter().map(|it| it.collection).collect();
        let needed = if is_dataset { Permission::LinkDataset } else { Permission::LinkDataverse };
        let candidates: Vec<Collection> = match user.superuser {
            true => stored::find(view, &collections::COLLECTION, &Query::filter(Expr::All))?,
            false => {
                let mut list = Vec::new();
                for grant in grants::grants_to(view, &asker::own_names(&asker))? {
                    list.extend(collections::by_id(view, grant.object)?);
                }
                list
            }
        };
        let mut items = Vec::new();
        for it in candidates {
            let is_found = it.name.to_lowercase().contains(&term) || it.alias.to_lowercase().contains(&term);
            let is_linked = linked.contains(&it.id);
            let is_above = owners.iter().any(|owner| owner.id == it.id);
            if is_found
                && is_linked == already
                && (already || !is_above)
                && permissions::may(view, &asker, it.place(), needed)?
            {
                items.push(json!({"id": it.id, "alias": it.alias, "name": it.name}));
            }
        }
        Ok(items)
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

async fn link_dataset(call: Call) -> Answer {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(&call)?);
    let target = call.param("target").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let (dataset, target) = (wanted.find(txn)?, collections::find(txn, &target)?);
        permissions::require(txn, &asker, target.place(), Permission::LinkDataset)?;
        if dataset.released.is_none() {
            permissions::require(txn, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
        }
        show_dataset_in(txn, &app, &dataset, &target, None)?;
        Ok(format!("Dataset {} linked successfully to {}", dataset.id, target.alias))
    };
    envelope::message(call.db().write(write).await?)
}

/// Links a dataset to another collection; as [`show_collection_in`].
///
/// Errors: 403 for a dataset that is deaccessioned, is contained in the collection, or is linked already.
pub(crate) fn show_dataset_in(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    dataset: &Dataset,
    target: &Collection,
    search: Option<i64>,
) -> Result<(), ApiError> {
    if dataset.released.is_none() && dataset.last.is_some() {
        return Err(ApiError::forbidden("Can't link a dataset that has been deaccessioned"));
    }
    if dataset.owner == target.id {
        return Err(ApiError::forbidden("Can't link a dataset to its dataverse"));
    }
    let owner = collections::named_by_record(txn, dataset.owner)?;
    let above = collections::with_owners(txn, owner)?;
    if above.iter().any(|it| it.id == target.id) {
        return Err(ApiError::forbidden("Can't link a dataset to its parent dataverses"));
    }
    let link =
        Link { linked: dataset.id, is_dataset: true, collection: target.id, created: app.now(), search };
    if !links::insert(txn, &link)? {
        return Err(ApiError::forbidden(
            "Can't link a dataset that has already been linked to this dataverse",
        ));
    }
    changes::dataset(txn, app, dataset.id)
}

async fn unlink_dataset(call: Call) -> Answer {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(&call)?);
    let target = call.param("target").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let (dataset, target) = (wanted.find(txn)?, collections::find(txn, &target)?);
        permissions::require(txn, &asker, target.place(), Permission::LinkDataset)?;
        if txn.delete(&LINK, &links::id_of(dataset.id, target.id))?.is_none() {
            return Err(ApiError::not_found(format!(
                "Dataset linking dataverse with dataset ID {} and dataset linking dataverse ID {} not found.",
                dataset.id, target.id
            )));
        }
        changes::dataset(txn, &app, dataset.id)?;
        Ok(format!("Link from Dataset {} to linked Dataverse {} deleted", dataset.id, target.alias))
    };
    envelope::message(call.db().write(write).await?)
}

async fn dataset_links(call: Call) -> Answer {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let dataset = wanted.find(view)?;
        if dataset.released.is_none() {
            permissions::require(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
        }
        let mut shown = Vec::new();
        for link in links::of(view, dataset.id)? {
            if let Some(other) = collections::by_id(view, link.collection)?
                && visibility::is_visible(view, &asker, &other)?
            {
                shown.push(collection_json(&other));
            }
        }
        Ok(json!({"id": dataset.id, "identifier": dataset.pid, "linked-dataverses": shown}))
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}
