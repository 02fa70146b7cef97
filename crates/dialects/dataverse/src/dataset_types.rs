//! Types of datasets: `dataset`, and those added by the installation. `/api/datasets/datasetTypes`.

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::Call;
use crate::collections::{self, Collection};
use crate::datasets::DATASET;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{envelope, licenses, stored};

/// Types by number: body is a [`DatasetType`]. The default type has no record.
pub(crate) static DATASET_TYPE: Kind = Kind {
    columns: &[Column::one("name", Type::Text)],
    indexes: &[Index::unique(&["name"])],
    ..Kind::named("dataverse_dataset_type")
};

/// Name of the type that exists in every installation.
const DEFAULT: &str = "dataset";

/// A type.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DatasetType {
    /// Number.
    pub id: i64,
    /// `software`.
    pub name: String,
    /// `Software`.
    pub display_name: String,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Blocks that forms of the type include in addition to the collection's.
    pub linked_metadata_blocks: Vec<String>,
    /// Licences that forms of the type offer, by name; empty for all. The API accepts any.
    pub available_licenses: Vec<String>,
}

fn default_type() -> DatasetType {
    DatasetType {
        id: 1,
        name: DEFAULT.to_owned(),
        display_name: "Dataset".to_owned(),
        ..DatasetType::default()
    }
}

/// Returns the type with that name. Errors: 400 `Invalid dataset type: …`.
pub(crate) fn named(view: &mut View<'_>, name: &str) -> Result<DatasetType, ApiError> {
    let invalid = || ApiError::bad_request(format!("Error parsing Json: Invalid dataset type: {name}"));
    find(view, name)?.ok_or_else(invalid)
}

fn find(view: &mut View<'_>, name_or_id: &str) -> Result<Option<DatasetType>, ApiError> {
    if let Ok(id) = name_or_id.parse::<i64>() {
        if let Some(found) = stored::get(view, &DATASET_TYPE, name_or_id)? {
            return Ok(Some(found));
        }
        return Ok(Some(default_type()).filter(|it| it.id == id));
    }
    let found = view.first(&DATASET_TYPE, Expr::Is("name".into(), name_or_id.into()))?;
    match found {
        Some(record) => stored::parsed(&record).map(Some),
        None => Ok(Some(default_type()).filter(|it| it.name == name_or_id)),
    }
}

/// Returns the type of a new dataset in a collection.
///
/// Errors: 400 for an unknown type, and for one that the collection does not allow.
pub(crate) fn for_new(
    view: &mut View<'_>,
    collection: &Collection,
    name: Option<&str>,
) -> Result<DatasetType, ApiError> {
    let allowed = allowed_names(view, collection)?;
    let wanted = match name {
        Some(name) => named(view, name)?,
        None if allowed.iter().any(|it| it == DEFAULT) => named(view, DEFAULT)?,
        None => named(view, allowed.first().map_or(DEFAULT, String::as_str))?,
    };
    if allowed.contains(&wanted.name) {
        return Ok(wanted);
    }
    let (name, allowed) = (&wanted.name, allowed.join(", "));
    let text = format!("The dataset type {name} is not allowed in this collection. Allowed: {allowed}.");
    Err(ApiError::bad_request(text.clone()).with("fieldErrors", json!({"datasetType": text})))
}

/// Returns the types that a collection allows: those that it, or its nearest ancestor, states; otherwise only the
/// default type.
pub(crate) fn allowed_names(view: &mut View<'_>, collection: &Collection) -> Result<Vec<String>, ApiError> {
    let own = |it: &Collection| it.more.get("allowedDatasetTypes").and_then(Value::as_array).cloned();
    let names = match own(collection) {
        Some(names) => Some(names),
        None => collections::with_owners(view, collection.clone())?.iter().find_map(own),
    };
    let names = names.unwrap_or_else(|| vec![DEFAULT.into()]);
    Ok(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Returns the `allowedDatasetTypes` of a collection as JSON.
pub(crate) fn allowed_json(view: &mut View<'_>, collection: &Collection) -> Result<Value, ApiError> {
    let mut list = Vec::new();
    for name in allowed_names(view, collection)? {
        list.extend(find(view, &name)?.map(|it| it.json()));
    }
    Ok(list.into())
}

impl DatasetType {
    fn json(&self) -> Value {
        Value::Object(envelope::object(json!({
            "id": self.id,
            "name": self.name,
            "displayName": self.display_name,
            "description": self.description,
            "linkedMetadataBlocks": self.linked_metadata_blocks,
            "availableLicenses": self.available_licenses,
        })))
    }
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/datasetTypes", list)
        .post("/datasets/datasetTypes", create)
        .get("/datasets/datasetTypes/{type}", show)
        .delete("/datasets/datasetTypes/{type}", delete)
        .put("/datasets/datasetTypes/{type}", link_blocks)
        .put("/datasets/datasetTypes/{type}/licenses", set_licenses)
}

async fn list(call: Call) -> Answer {
    let all = |view: &mut View<'_>| -> Result<Vec<DatasetType>, ApiError> {
        let mut all = vec![default_type()];
        for it in stored::find::<DatasetType>(view, &DATASET_TYPE, &Query::filter(Expr::All))? {
            match it.name == DEFAULT {
                true => all[0] = it,
                false => all.push(it),
            }
        }
        Ok(all)
    };
    let all = call.db().read(Weight::Scan, all).await?;
    envelope::ok(all.iter().map(DatasetType::json).collect::<Vec<Value>>())
}

async fn show(call: Call) -> Answer {
    let wanted = call.param("type").to_owned();
    let found = call.db().read(Weight::Point, move |view| find(view, &wanted)).await?;
    let missing = || {
        ApiError::not_found(format!("Could not find a dataset type with name or id {}", call.param("type")))
    };
    envelope::ok(found.ok_or_else(missing)?.json())
}

async fn create(mut call: Call) -> Answer {
    let body = call.json().await?;
    call.asker.superuser("This endpoint is for superusers only.")?;
    let text = |name: &str| body[name].as_str().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned);
    let name =
        text("name").ok_or_else(|| ApiError::bad_request("A name for the dataset type is required."))?;
    if name.parse::<i64>().is_ok() {
        return Err(ApiError::bad_request("The name of the type cannot be only digits."));
    }
    let display_name = text("displayName")
        .ok_or_else(|| ApiError::bad_request("A displayName for the dataset type is required."))?;
    let names = |name: &str| -> Vec<String> {
        let list = body[name].as_array().cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let new = DatasetType {
        id: 0,
        name,
        display_name,
        description: text("description"),
        linked_metadata_blocks: names("linkedMetadataBlocks"),
        available_licenses: names("availableLicenses"),
    };
    let ids = call.ids(1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<DatasetType, ApiError> {
        let mut ids = ids;
        if find(txn, &new.name)?.is_some() {
            return Err(ApiError::bad_request(format!("A dataset type with name {} exists.", new.name)));
        }
        check_licenses(txn, &new.available_licenses)?;
        let new = DatasetType { id: ids.next()?, ..new.clone() };
        stored::put(txn, &DATASET_TYPE, &new.id.to_string(), &new)?;
        Ok(new)
    };
    envelope::ok(call.db().write(write).await?.json())
}

fn check_licenses(view: &mut View<'_>, names: &[String]) -> Result<(), ApiError> {
    for name in names {
        if licenses::by_name(view, name)?.is_none() {
            return Err(ApiError::bad_request(format!("License not found: {name}")));
        }
    }
    Ok(())
}

/// Returns whether any dataset has a type.
fn is_used(view: &mut View<'_>, name: &str) -> Result<bool, ApiError> {
    Ok(view.first(&DATASET, Expr::Is("datasetType".into(), name.into()))?.is_some())
}

async fn delete(call: Call) -> Answer {
    call.asker.superuser("This endpoint is for superusers only.")?;
    let text = call.param("type").to_owned();
    let id: i64 = text.parse().map_err(|_| ApiError::bad_request("ID must be a number"))?;
    if id == default_type().id {
        return Err(ApiError::forbidden(format!(
            "You cannot delete the default dataset type: {}",
            default_type().name
        )));
    }
    let write = move |txn: &mut Txn<'_>| -> Result<_, ApiError> {
        let Some(ty) = stored::get::<DatasetType>(txn, &DATASET_TYPE, &text)? else { return Ok(None) };
        if is_used(txn, &ty.name)? {
            return Err(ApiError::bad_request(format!(
                "The dataset type {} cannot be deleted, because datasets have it.",
                ty.name
            )));
        }
        Ok(txn.delete(&DATASET_TYPE, &text)?)
    };
    match call.db().write(write).await? {
        Some(_) => envelope::message("deleted"),
        None => Err(ApiError::not_found(format!("Could not find dataset type with id {id}"))),
    }
}

/// Changes a type, and answers with one of its lists before and after.
async fn changed(
    call: &Call,
    name: &'static str,
    mut change: impl FnMut(&mut Txn<'_>, &mut DatasetType) -> Result<(Vec<String>, Vec<String>), ApiError>
    + Send
    + 'static,
) -> Answer {
    call.asker.superuser("This endpoint is for superusers only.")?;
    let wanted = call.param("type").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let missing = || ApiError::not_found(format!("Could not find dataset type {wanted}"));
        let mut ty = find(txn, &wanted)?.ok_or_else(missing)?;
        let (before, after) = change(txn, &mut ty)?;
        stored::put(txn, &DATASET_TYPE, &ty.id.to_string(), &ty)?;
        Ok(json!({ name: {"before": before, "after": after} }))
    };
    envelope::ok(call.db().write(write).await?)
}

fn names_of(body: &Value) -> Vec<String> {
    body.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Parses a list of names; whatever follows its closing bracket is ignored, as by the original's parser.
async fn read_names(call: &mut Call) -> Result<Vec<String>, ApiError> {
    let bytes = call.bytes().await?;
    let mut values = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) if value.is_array() => Ok(names_of(&value)),
        _ => Err(ApiError::bad_request("Error parsing Json: expected a list of names")),
    }
}

async fn link_blocks(mut call: Call) -> Answer {
    let names = read_names(&mut call).await?;
    let registry = call.app.registry(call.db()).await?;
    if let Some(unknown) = names.iter().find(|it| registry.block(it).is_none()) {
        return Err(ApiError::bad_request(format!("Metadata block not found: {unknown}")));
    }
    let change = move |_: &mut Txn<'_>, ty: &mut DatasetType| {
        let before = std::mem::replace(&mut ty.linked_metadata_blocks, names.clone());
        Ok((before, names.clone()))
    };
    changed(&call, "linkedMetadataBlocks", change).await
}

async fn set_licenses(mut call: Call) -> Answer {
    let names = read_names(&mut call).await?;
    let change = move |txn: &mut Txn<'_>, ty: &mut DatasetType| {
        check_licenses(txn, &names)?;
        let before = std::mem::replace(&mut ty.available_licenses, names.clone());
        Ok((before, names.clone()))
    };
    changed(&call, "availableLicenses", change).await
}
