//! Reading collections: one, its contents, what the caller may do there.

use pinakes_store::{Direction, Expr, Query, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::collections::{self, COLLECTION, Collection, structure};
use crate::datasets::{self, DATASET, Dataset};
use crate::error::{Answer, ApiError};
use crate::permissions::{self, Permission};
use crate::routing::Routes;
use crate::{dataset_types, envelope, site_settings, stored};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/dataverses/{id}", show)
        .get("/dataverses/{id}/contents", contents)
        .get("/dataverses/{id}/userPermissions", user_permissions)
        .get("/dataverses/{id}/storagesize", storage_size)
}

/// What is shown of a collection beside what is always there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Showing {
    /// `isPartOf`.
    pub owners: bool,
    /// `childCount`.
    pub child_count: bool,
    /// Contacts, although the site hides mail addresses.
    pub hidden_contacts: bool,
}

/// A collection as it is sent (section 2.1 of the contract).
pub(crate) fn json(view: &mut View<'_>, it: &Collection, showing: &Showing) -> Result<Value, ApiError> {
    let hides_mail =
        !showing.hidden_contacts && site_settings::is_true(view, ":ExcludeEmailFromExport", false)?;
    let contacts = it.contacts.iter().enumerate();
    let contacts = contacts.map(|(place, mail)| json!({"displayOrder": place, "contactEmail": mail}));
    let contacts: Option<Vec<Value>> = (!hides_mail && !it.contacts.is_empty()).then(|| contacts.collect());
    let above = collections::with_owners(view, it.clone())?;
    let effective_limit = above.iter().find_map(|it| it.file_count_limit);
    let requires_files = above.iter().find_map(|it| it.requires_files).unwrap_or(false);
    let levels = Some(structure::levels_json(it)).filter(|it| !it.is_empty());
    let mut map = envelope::object(json!({
        "id": it.id,
        "alias": it.alias,
        "name": it.name,
        "affiliation": it.affiliation,
        "dataverseContacts": contacts,
        "permissionRoot": true,
        "description": it.description,
        "dataverseType": it.dataverse_type,
        "isMetadataBlockRoot": it.metadata_blocks.is_some(),
        "isFacetRoot": it.facets.is_some(),
        "ownerId": it.parent,
        "creationDate": it.creation_date,
        "theme": it.theme,
        "storageDriverLabel": it.storage_driver,
        "filePIDsEnabled": it.file_pids_enabled,
        "requireFilesToPublishDataset": it.requires_files,
        "effectiveRequiresFilesToPublishDataset": requires_files,
        "isReleased": it.is_released(),
        "inputLevels": levels,
        "effectiveDatasetFileCountLimit": effective_limit,
        "datasetFileCountLimit": it.file_count_limit,
        "allowedDatasetTypes": dataset_types::allowed_json(view, it)?,
        "metadataLanguage": it.metadata_language,
    }));
    if showing.owners && 1 < above.len() {
        map.insert("isPartOf".into(), owner_json(&above[1..]));
    }
    if showing.child_count {
        map.insert("childCount".into(), n_children(view, it.id)?.into());
    }
    Ok(Value::Object(map))
}

/// `isPartOf` of collections, the nearest one first.
pub(crate) fn owner_json(owners: &[Collection]) -> Value {
    let Some((nearest, above)) = owners.split_first() else { return Value::Null };
    let mut map = Map::new();
    map.insert("type".into(), "DATAVERSE".into());
    map.insert("identifier".into(), nearest.alias.as_str().into());
    map.insert("isReleased".into(), nearest.is_released().into());
    map.insert("displayName".into(), nearest.name.as_str().into());
    if !above.is_empty() {
        map.insert("isPartOf".into(), owner_json(above));
    }
    Value::Object(map)
}

/// How many collections and datasets lie directly in a collection.
pub(crate) fn n_children(view: &mut View<'_>, id: i64) -> Result<u64, ApiError> {
    let collections = view.count(&COLLECTION, &Expr::Is("parent".into(), id.into()))?;
    let datasets = view.count(&DATASET, &Expr::Is("owner".into(), id.into()))?;
    Ok(collections + datasets)
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
        collections::require_visible(view, &asker, &collection)?;
        let mut showing = showing;
        showing.hidden_contacts &=
            permissions::may(view, &asker, collection.place(), Permission::EditDataverse)?;
        json(view, &collection, &showing)
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

/// What lies in a collection, without what the caller may not see.
async fn contents(call: Call) -> Answer {
    let (app, asker, id) = (call.app.clone(), call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = collections::find(view, &id)?;
        collections::require_visible(view, &asker, &collection)?;
        let mut items = Vec::new();
        let by_name =
            Query::filter(Expr::Is("parent".into(), collection.id.into())).sorted("id", Direction::Ascending);
        for child in stored::find::<Collection>(view, &COLLECTION, &by_name)? {
            if collections::is_visible(view, &asker, &child)? {
                items.push(json!({"type": "dataverse", "id": child.id, "title": child.name}));
            }
        }
        let sees_drafts =
            permissions::may(view, &asker, collection.place(), Permission::ViewUnpublishedDataset)?;
        let own = Query::filter(Expr::Is("owner".into(), collection.id.into()));
        for dataset in stored::find::<Dataset>(view, &DATASET, &own)? {
            let is_seen = sees_drafts
                || dataset.released.is_some()
                || permissions::may(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
            if is_seen {
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

/// Bytes of the files below a collection, in words.
async fn storage_size(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<u64, ApiError> {
        let collection = collections::find(view, &id)?;
        permissions::require(view, &asker, collection.place(), Permission::ViewUnpublishedDataverse)?;
        collections::storage::used_bytes(view, &collection)
    };
    let bytes = call.db().read(Weight::Scan, find).await?;
    let text = datasets::storage::with_commas(bytes);
    envelope::message(format!("Total size of the files stored in this dataverse: {text} bytes"))
}
