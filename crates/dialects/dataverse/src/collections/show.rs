//! Reading collections: a single one, its contents, the caller's permissions.

use pinakes_store::{Direction, Expr, Query, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::collections::json::{self, Showing};
use crate::collections::{self, COLLECTION, Collection, visibility};
use crate::datasets::{self, DATASET, Dataset};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::permissions::{self, AtMany};
use crate::routing::Routes;
use crate::{amounts, envelope, stored};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/dataverses/{id}", show)
        .get("/dataverses/{id}/contents", contents)
        .get("/dataverses/{id}/userPermissions", user_permissions)
        .get("/dataverses/{id}/storagesize", storage_size)
}

async fn show(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let showing = Showing {
        owners: call.query.is_true("returnOwners"),
        child_count: call.query.is_true("returnChildCount"),
        hidden_contacts: call.query.is_true("ignoreSettingExcludeEmailFromExport"),
    };
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let collection = collections::find(view, &id)?;
        visibility::require_visible(view, &asker, &collection)?;
        let mut showing = showing;
        showing.hidden_contacts &=
            permissions::may(view, &asker, collection.place(), Permission::EditDataverse)?;
        json::json(view, &collection, &showing)
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

/// Lists the contents of a collection that the caller may see.
async fn contents(call: Call) -> Answer {
    let (app, asker, id) = (call.app.clone(), call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = collections::find(view, &id)?;
        visibility::require_visible(view, &asker, &collection)?;
        let mut items = Vec::new();
        let by_name =
            Query::filter(Expr::Is("parent".into(), collection.id.into())).sorted("id", Direction::Ascending);
        let at_collections = AtMany::of(view, &asker, Permission::ViewUnpublishedDataverse)?;
        for child in stored::find::<Collection>(view, &COLLECTION, &by_name)? {
            // What is above the child is visible to the caller: only the child itself can be kept from them.
            let is_kept =
                !visibility::named_in(&child).is_empty() && visibility::is_kept_from(view, &asker, &child)?;
            if !is_kept && (child.is_released() || at_collections.may(view, child.place())?) {
                items.push(json!({"type": "dataverse", "id": child.id, "title": child.name}));
            }
        }
        let at_datasets = AtMany::of(view, &asker, Permission::ViewUnpublishedDataset)?;
        let sees_drafts = at_datasets.may(view, collection.place())?;
        let own = Query::filter(Expr::Is("owner".into(), collection.id.into()));
        for dataset in stored::find::<Dataset>(view, &DATASET, &own)? {
            if sees_drafts || dataset.released.is_some() || at_datasets.may(view, dataset.place())? {
                let mut map = datasets::show::dataset_map(view, &app, &dataset)?;
                map.insert("type".into(), "dataset".into());
                items.push(Value::Object(map));
            }
        }
        Ok(items)
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

async fn user_permissions(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let collection = collections::find(view, &id)?;
        let held = permissions::held(view, &asker, collection.place())?;
        let has = |it| held.contains(&it);
        Ok(json!({
            "canAddDataverse": has(Permission::AddDataverse),
            "canAddDataset": has(Permission::AddDataset),
            "canViewUnpublishedDataverse": has(Permission::ViewUnpublishedDataverse),
            "canEditDataverse": has(Permission::EditDataverse),
            "canManageDataversePermissions": has(Permission::ManageDataversePermissions),
            "canPublishDataverse": has(Permission::PublishDataverse),
            "canDeleteDataverse": has(Permission::DeleteDataverse),
        }))
    };
    call.asker.user()?;
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

/// Answers with the storage size of all files below a collection, in words.
async fn storage_size(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<u64, ApiError> {
        let collection = collections::find(view, &id)?;
        permissions::require(view, &asker, collection.place(), Permission::ViewUnpublishedDataverse)?;
        collections::storage::used_bytes(view, &collection)
    };
    let bytes = call.db().read(Weight::Scan, find).await?;
    let text = amounts::with_commas(bytes);
    envelope::message(format!("Total size of the files stored in this dataverse: {text} bytes"))
}
