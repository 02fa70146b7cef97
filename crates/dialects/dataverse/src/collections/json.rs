//! Collections as JSON.

use pinakes_store::{Expr, View};
use serde_json::{Map, Value, json};

use crate::collections::{self, COLLECTION, Collection, InputLevel};
use crate::datasets::DATASET;
use crate::error::ApiError;
use crate::{dataset_types, envelope, site_settings};

/// Optional members of a collection's JSON.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Showing {
    /// `isPartOf`.
    pub owners: bool,
    /// `childCount`.
    pub child_count: bool,
    /// Contacts, even if the site hides mail addresses.
    pub hidden_contacts: bool,
}

/// Returns a collection as JSON (section 2.1 of the contract).
pub(crate) fn json(view: &mut View<'_>, it: &Collection, showing: &Showing) -> Result<Value, ApiError> {
    let hides_mail =
        !showing.hidden_contacts && site_settings::is_true(view, ":ExcludeEmailFromExport", false)?;
    let contacts = it.contacts.iter().enumerate();
    let contacts = contacts.map(|(place, mail)| json!({"displayOrder": place, "contactEmail": mail}));
    let contacts: Option<Vec<Value>> = (!hides_mail && !it.contacts.is_empty()).then(|| contacts.collect());
    let above = collections::with_owners(view, it.clone())?;
    let effective_limit = above.iter().find_map(|it| it.file_count_limit);
    let requires_files = above.iter().find_map(|it| it.requires_files).unwrap_or(false);
    let levels = Some(levels_json(it)).filter(|it| !it.is_empty());
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

/// Returns the `isPartOf` member for the ancestors of a collection, nearest first.
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

/// Returns the number of collections and datasets directly in a collection.
pub(crate) fn n_children(view: &mut View<'_>, id: i64) -> Result<u64, ApiError> {
    let collections = view.count(&COLLECTION, &Expr::Is("parent".into(), id.into()))?;
    let datasets = view.count(&DATASET, &Expr::Is("owner".into(), id.into()))?;
    Ok(collections + datasets)
}

/// Returns the field levels as JSON.
pub(crate) fn levels_json(collection: &Collection) -> Vec<Value> {
    let level = |it: &InputLevel| {
        let map = json!({
            "datasetFieldTypeName": it.dataset_field_type_name,
            "required": it.required,
            "include": it.include,
            "displayOnCreate": it.display_on_create,
        });
        Value::Object(envelope::object(map))
    };
    collection.input_levels.iter().map(level).collect()
}
