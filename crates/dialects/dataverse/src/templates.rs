//! Templates: initial metadata and terms of new datasets in a collection (section 12 of the contract).

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::asker::Asker;
use crate::blocks::{Fields, edit};
use crate::collections::{self, Collection};
use crate::datasets::{Version, terms};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{envelope, permissions, stored};

/// Templates by number: body is a [`Template`].
pub(crate) static TEMPLATE: Kind = Kind {
    columns: &[Column::one("collection", Type::Integer)],
    indexes: &[Index::on(&["collection"])],
    ..Kind::named("dataverse_template")
};

/// A template.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Template {
    /// Number.
    pub id: i64,
    /// The collection that owns it.
    pub collection: i64,
    /// Name.
    pub name: String,
    /// When it was created.
    pub create_time: String,
    /// Number of datasets created from it.
    pub usage_count: i64,
    /// Metadata, as the object `metadataBlocks`.
    pub metadata_blocks: Map<String, Value>,
    /// Instructions for fields: `[{"instructionField","instructionText"}]`.
    pub instructions: Vec<Value>,
    /// Licence and terms.
    pub terms: Version,
}

/// Removes the templates of a collection that is being deleted.
pub(crate) fn remove_of_collection(txn: &mut Txn<'_>, collection: i64) -> Result<(), ApiError> {
    for record in txn.find(&TEMPLATE, &Query::filter(Expr::Is("collection".into(), collection.into())))? {
        txn.delete(&TEMPLATE, &record.id)?;
    }
    Ok(())
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/dataverses/{id}/templates", list)
        .post("/dataverses/{id}/templates", create)
        .get("/dataverses/{id}/template", show)
        .delete("/dataverses/{id}/template", delete)
        .post("/dataverses/{id}/template/default/{template}", set_default)
        .delete("/dataverses/{id}/template/default", remove_default)
        .get("/admin/templates", list_all)
        .get("/admin/templates/{id}", list_all)
        .get("/admin/template/{id}", show_for_admins)
        .delete("/admin/template/{id}", delete_for_admins)
        .put("/dataverses/{id}/metadata", edit_metadata)
        .put("/dataverses/{id}/licenseTerms", set_license)
        .put("/dataverses/{id}/access", set_access)
}

impl Template {
    fn json(&self, view: &mut View<'_>, collection: &Collection) -> Result<Value, ApiError> {
        let mut terms_map = Map::new();
        terms::put_json(view, &self.terms, &mut terms_map)?;
        Ok(json!({
            "id": self.id,
            "name": self.name,
            "isDefault": collection.default_template == Some(self.id),
            "usageCount": self.usage_count,
            "createTime": self.create_time,
            "createDate": self.create_time.get(..10).unwrap_or_default(),
            "termsOfUseAndAccess": terms_map,
            "datasetFields": self.metadata_blocks,
            "instructions": self.instructions,
            "dataverseAlias": collection.alias,
        }))
    }
}

fn editable(view: &mut View<'_>, asker: &Asker, collection: &Collection) -> Result<(), ApiError> {
    permissions::require(view, asker, collection.place(), Permission::EditDataverse)
}

/// Returns the template of a path, and its collection.
fn named(view: &mut View<'_>, text: &str) -> Result<(Template, Collection), ApiError> {
    let missing = || ApiError::not_found(format!("Template with id {text} - not found."));
    let template: Template = stored::get(view, &TEMPLATE, text)?.ok_or_else(missing)?;
    let collection = collections::named_by_record(view, template.collection)?;
    Ok((template, collection))
}

async fn list(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = collections::find(view, &id)?;
        permissions::require(view, &asker, collection.place(), Permission::AddDataset)?;
        let mut items = Vec::new();
        for above in collections::with_owners(view, collection.clone())? {
            for it in stored::find_by::<Template>(view, &TEMPLATE, "collection", above.id)? {
                let mut json = it.json(view, &above)?;
                json["isDefault"] = (collection.default_template == Some(it.id)).into();
                items.push(json);
            }
            if collection.template_root == Some(true) {
                break;
            }
        }
        Ok(items)
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let registry = call.app.registry(call.db()).await?;
    let parse = |text: String| {
        ApiError::bad_request(format!("Error parsing the POSTed template dataset fields: {text}"))
    };
    let name = body.get("name").and_then(Value::as_str).filter(|it| !it.trim().is_empty());
    let name = name.ok_or_else(|| {
        ApiError::bad_request("Error parsing the POSTed json into a template: Field 'name' is mandatory")
    })?;
    let name = name.to_owned();
    let fields = match body.contains_key("fields") {
        true => Fields::read_single(&registry, &Value::Object(body.clone())).map_err(parse)?,
        false => Fields::default(),
    };
    let instructions = body.get("instructions").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_default = body.get("isDefault").and_then(Value::as_bool).unwrap_or(false);
    let (asker, id, now, ids) =
        (call.asker.clone(), call.param("id").to_owned(), call.app.now(), call.ids(1).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let mut ids = ids;
        let mut collection = collections::find(txn, &id)?;
        editable(txn, &asker, &collection)?;
        let mut template = Template {
            id: ids.next()?,
            collection: collection.id,
            name: name.clone(),
            create_time: now.clone(),
            instructions: instructions.clone(),
            ..Template::default()
        };
        template.terms.file_access_request = true;
        if let Value::Object(blocks) = fields.to_json(&registry) {
            template.metadata_blocks = blocks;
        }
        terms::read(txn, &mut template.terms, &body)?;
        stored::put(txn, &TEMPLATE, &template.id.to_string(), &template)?;
        if is_default {
            collection.default_template = Some(template.id);
            collections::put(txn, &collection)?;
        }
        template.json(txn, &collection)
    };
    let json = call.db().write(write).await?;
    envelope::created(&format!("/dataverses/{}/template", json["id"]), json)
}

async fn show(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let (template, collection) = named(view, &id)?;
        permissions::require(view, &asker, collection.place(), Permission::AddDataset)?;
        template.json(view, &collection)
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

/// Removes a template of a collection.
fn remove(txn: &mut Txn<'_>, template: &Template, mut collection: Collection) -> Result<(), ApiError> {
    if collection.default_template == Some(template.id) {
        collection.default_template = None;
        collections::put(txn, &collection)?;
    }
    txn.delete(&TEMPLATE, &template.id.to_string())?;
    Ok(())
}

async fn delete(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let (template, collection) = named(txn, &id)?;
        editable(txn, &asker, &collection)?;
        remove(txn, &template, collection)
    };
    call.db().write(write).await?;
    envelope::message("The template has been deleted")
}

/// `GET /admin/templates` and `/admin/templates/{collection}`: lists names and owners.
async fn list_all(call: Call) -> Answer {
    let of = call.param("id").to_owned();
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let templates: Vec<Template> = match of.as_str() {
            "" => stored::find(view, &TEMPLATE, &Query::filter(Expr::All))?,
            of => {
                let collection = collections::find(view, of)?;
                stored::find_by(view, &TEMPLATE, "collection", collection.id)?
            }
        };
        let mut items = Vec::with_capacity(templates.len());
        for it in templates {
            let owner = collections::named_by_record(view, it.collection)?;
            items.push(json!({"templateId": it.id, "templateName": it.name, "owner": owner.name}));
        }
        Ok(items)
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

async fn show_for_admins(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let (template, collection) = named(view, &id)?;
        template.json(view, &collection)
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn delete_for_admins(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let (template, collection) = named(txn, &id)?;
        remove(txn, &template, collection)?;
        Ok(template.name)
    };
    let name = call.db().write(write).await?;
    envelope::message(format!("Template {name} deleted."))
}

async fn set_default(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let wanted = call.param("template").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut collection = collections::find(txn, &id)?;
        editable(txn, &asker, &collection)?;
        let (template, _) = named(txn, &wanted)?;
        collection.default_template = Some(template.id);
        collections::put(txn, &collection)
    };
    call.db().write(write).await?;
    envelope::message("The default dataset template has been successfully set for this dataverse.")
}

async fn remove_default(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut collection = collections::find(txn, &id)?;
        editable(txn, &asker, &collection)?;
        collection.default_template = None;
        collections::put(txn, &collection)
    };
    call.db().write(write).await?;
    envelope::message("The default dataset template has been successfully removed from this dataverse.")
}

/// Changes a template after checking that the caller may edit it.
async fn changed(
    call: &Call,
    mut change: impl FnMut(&mut Txn<'_>, &mut Template) -> Result<(), ApiError> + Send + 'static,
) -> Result<Value, ApiError> {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let (mut template, collection) = named(txn, &id)?;
        editable(txn, &asker, &collection)?;
        change(txn, &mut template)?;
        stored::put(txn, &TEMPLATE, &id, &template)?;
        template.json(txn, &collection)
    };
    call.db().write(write).await
}

async fn edit_metadata(mut call: Call) -> Answer {
    let body = call.json().await?;
    let registry = call.app.registry(call.db()).await?;
    let parse = |text: String| ApiError::bad_request(format!("Error parsing template update: {text}"));
    let update = match body.get("fields").is_some() || body.get("typeName").is_some() {
        true => Some(Fields::read_single(&registry, &body).map_err(parse)?),
        false => None,
    };
    let replaces = call.query.is_true("replace");
    let change = move |_: &mut Txn<'_>, template: &mut Template| {
        if let Some(name) = body["name"].as_str() {
            name.clone_into(&mut template.name);
        }
        if let Some(list) = body["instructions"].as_array() {
            template.instructions.clone_from(list);
        }
        // An update without fields removes all of them.
        if update.is_none() {
            template.metadata_blocks.clear();
        }
        if let Some(update) = &update {
            let mut fields = Fields::stored(&registry, &Value::Object(template.metadata_blocks.clone()));
            match replaces {
                true => edit::replace(&registry, &mut fields, update.clone()),
                false => edit::add(&registry, &mut fields, update.clone()),
            }
            if let Value::Object(blocks) = fields.to_json(&registry) {
                template.metadata_blocks = blocks;
            }
        }
        Ok(())
    };
    let json = changed(&call, change).await?;
    envelope::created(&format!("/dataverses/{}/template", json["id"]), json)
}

async fn set_license(mut call: Call) -> Answer {
    let body = call.object().await?;
    let change = move |txn: &mut Txn<'_>, template: &mut Template| {
        let given = match body.get("customTerms").and_then(Value::as_object) {
            Some(custom) => custom.clone(),
            None => {
                [("license".to_owned(), body.get("name").cloned().unwrap_or_default())].into_iter().collect()
            }
        };
        let access: Vec<(String, Value)> = template
            .terms
            .terms
            .iter()
            .filter(|it| terms::ACCESS.contains(&it.0.as_str()))
            .map(|it| (it.0.clone(), it.1.clone()))
            .collect();
        terms::read(txn, &mut template.terms, &given)?;
        template.terms.terms.extend(access);
        Ok(())
    };
    changed(&call, change).await?;
    envelope::message("Template license updated")
}

async fn set_access(mut call: Call) -> Answer {
    let body = call.object().await?;
    let given = body.get("customTermsOfAccess").and_then(Value::as_object).cloned().unwrap_or(body);
    let change = move |_: &mut Txn<'_>, template: &mut Template| {
        terms::put_texts(&mut template.terms, &given, &terms::ACCESS);
        if let Some(asked) = given.get("fileAccessRequest").and_then(Value::as_bool) {
            template.terms.file_access_request = asked;
        }
        Ok(())
    };
    changed(&call, change).await?;
    envelope::message("Template Terms of Access updated")
}
