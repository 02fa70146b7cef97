//! Creating and changing collections (section 2.1 of the contract).

use std::sync::Arc;

use pinakes_store::{Txn, Weight};
use serde_json::{Map, Value};

use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::assignments::{self, Actor, Point};
use crate::blocks::Registry;
use crate::blocks::validate::is_email;
use crate::collections::json::{self, Showing};
use crate::collections::{self, Collection, structure};
use crate::error::{Answer, ApiError};
use crate::grants::{self, Permission};
use crate::ids::Ids;
use crate::notifications::{self, Notice};
use crate::routing::Routes;
use crate::{changes, envelope, permissions, roles, site_settings};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/dataverses", create_root)
        .post("/dataverses/{id}", create)
        .put("/dataverses/{id}", update)
        .put("/dataverses/{id}/attribute/{name}", set_attribute)
}

/// Maximum length of a short name.
const ALIAS_CHARACTERS: usize = 60;
/// The types of collections.
const TYPES: [&str; 9] = [
    "RESEARCHERS",
    "RESEARCH_PROJECTS",
    "JOURNALS",
    "ORGANIZATIONS_INSTITUTIONS",
    "TEACHING_COURSES",
    "UNCATEGORIZED",
    "LABORATORY",
    "RESEARCH_GROUP",
    "DEPARTMENT",
];

/// The fields of a collection that a body states; absent ones stay as they are.
#[derive(Debug, Clone, Default)]
struct Given {
    body: Map<String, Value>,
}

impl Given {
    fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str)
    }

    fn contacts(&self) -> Option<Vec<String>> {
        let list = self.body.get("dataverseContacts")?.as_array()?;
        let mut contacts: Vec<(i64, String)> = list
            .iter()
            .enumerate()
            .map(|(place, it)| {
                let place = i64::try_from(place).unwrap_or(i64::MAX);
                let order = it["displayOrder"].as_i64().unwrap_or(place);
                (order, it["contactEmail"].as_str().unwrap_or_default().trim().to_owned())
            })
            .collect();
        contacts.sort_by_key(|it| it.0);
        Some(contacts.into_iter().map(|it| it.1).collect())
    }

    /// Copies the stated fields into the collection. Does not check them.
    fn put_into(&self, collection: &mut Collection) {
        let set = |field: &mut Option<String>, name: &str| {
            if let Some(text) = self.text(name) {
                *field = Some(text.to_owned());
            }
        };
        if let Some(alias) = self.text("alias") {
            alias.clone_into(&mut collection.alias);
        }
        if let Some(name) = self.text("name") {
            name.clone_into(&mut collection.name);
        }
        set(&mut collection.affiliation, "affiliation");
        set(&mut collection.description, "description");
        set(&mut collection.metadata_language, "metadataLanguage");
        set(&mut collection.storage_driver, "storageDriver");
        if let Some(ty) = self.text("dataverseType") {
            // As in the original, an unknown type is not an error.
            collection.dataverse_type =
                TYPES.iter().find(|it| **it == ty).copied().unwrap_or("UNCATEGORIZED").to_owned();
        }
        if let Some(contacts) = self.contacts() {
            collection.contacts = contacts;
        }
        if let Some(theme) = self.body.get("theme").filter(|it| it.is_object()) {
            collection.theme = Some(theme.clone());
        }
        if let Some(requires) = self.body.get("requireFilesToPublishDataset").and_then(Value::as_bool) {
            collection.requires_files = Some(requires);
        }
        if let Some(Value::Array(types)) = self.body.get("allowedDatasetTypes") {
            collection.more.insert("allowedDatasetTypes".to_owned(), Value::Array(types.clone()));
        }
    }
}

/// Checks the fields of a collection as the original does. Errors: 500 with the field and its constraint.
pub(crate) fn check(collection: &Collection) -> Result<(), ApiError> {
    let refuse = |field: &str, value: &str, what: &str| {
        Err(ApiError::internal(format!(
            "Error creating dataverse: Command failed: [{field}: \"{value}\" - {what}]"
        )))
    };
    let alias = collection.alias.as_str();
    let is_part = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
    if alias.trim().is_empty() {
        return refuse("alias", alias, "Please enter an alias.");
    }
    if ALIAS_CHARACTERS < alias.chars().count() {
        return refuse("alias", alias, "Alias must be at most 60 characters.");
    }
    if !alias.bytes().all(is_part) {
        let what = "Found an illegal character(s). Valid characters are a-Z, 0-9, '_', and '-'.";
        return refuse("alias", alias, what);
    }
    if alias.bytes().all(|it| it.is_ascii_digit()) {
        return refuse("alias", alias, "Alias should not be a number");
    }
    if collection.name.trim().is_empty() {
        return refuse("name", &collection.name, "Please enter a name.");
    }
    if collection.contacts.is_empty() {
        return refuse("dataverseContacts", "", "At least one contact is required.");
    }
    for contact in &collection.contacts {
        if !is_email(contact) {
            return refuse("contactEmail", contact, "Please enter a valid email address.");
        }
    }
    Ok(())
}

async fn create_root(_: Call) -> Answer {
    Err(ApiError::forbidden("Root dataverse already exists. Cannot create another one."))
}

/// `POST /api/dataverses/{parent}` → 201.
async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (collection, json) = make(&call, call.param("id"), body).await?;
    envelope::created(&format!("{}/api/dataverses/{}", call.site_url(), collection.alias), json)
}

/// Creates the collection that a body describes, below `parent`, and also returns it as JSON.
pub(crate) async fn make(
    call: &Call,
    parent: &str,
    body: Map<String, Value>,
) -> Result<(Collection, Value), ApiError> {
    for field in ["alias", "name"] {
        if !body.contains_key(field) {
            return Err(ApiError::bad_request(format!(
                "Error parsing the POSTed json into a dataverse: Field '{field}' is mandatory"
            )));
        }
    }
    check_file_pids(call, &body).await?;
    let given = Given { body };
    let registry = call.app.registry(call.db()).await?;
    let plan = structure::Plan::read(&registry, given.body.get("metadataBlocks"))?;
    let ids = call.ids(3).await?;
    let (app, asker, actor) = (call.app.clone(), call.asker.clone(), assignments::actor(call));
    let parent = parent.to_owned();
    let make = move |txn: &mut Txn<'_>| -> Result<(Collection, Value), ApiError> {
        let collection = insert(txn, &app, &registry, &asker, &actor, &parent, &given, &plan, ids)?;
        let json = json::json(txn, &collection, &Showing::default())?;
        Ok((collection, json))
    };
    call.db().write(make).await
}

/// Checks that persistent identifiers of files may be configured per collection. Errors: 403.
async fn check_file_pids(call: &Call, body: &Map<String, Value>) -> Result<(), ApiError> {
    if body.get("filePIDsEnabled").is_none_or(Value::is_null) {
        return Ok(());
    }
    let name = ":AllowEnablingFilePIDsPerCollection";
    let allowed = call.db().read(Weight::Point, move |view| site_settings::is_true(view, name, false));
    if allowed.await? || call.asker.is_superuser() {
        return Ok(());
    }
    Err(ApiError::forbidden("File PIDs cannot be enabled per collection"))
}

#[allow(clippy::too_many_arguments, reason = "one call, of what one request brings")]
fn insert(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    registry: &Arc<Registry>,
    asker: &Asker,
    actor: &Actor,
    parent: &str,
    given: &Given,
    plan: &structure::Plan,
    mut ids: Ids,
) -> Result<Collection, ApiError> {
    let parent = collections::find(txn, parent)?;
    permissions::require(txn, asker, parent.place(), Permission::AddDataverse)?;
    let user = asker.user()?;
    let mut collection = Collection {
        id: ids.next()?,
        parent: Some(parent.id),
        dataverse_type: "UNCATEGORIZED".to_owned(),
        creation_date: actor.now.clone(),
        creator: Some(user.id),
        default_contributor_role: Some(roles::CONTRIBUTOR),
        ..Collection::default()
    };
    given.put_into(&mut collection);
    collection.file_pids_enabled = given.body.get("filePIDsEnabled").and_then(Value::as_bool);
    if asker.is_superuser() {
        collection.file_count_limit = limit(&given.body);
    }
    check(&collection)?;
    check_language(txn, &collection)?;
    if collections::by_alias(txn, &collection.alias)?.is_some() {
        return Err(taken(&collection.alias));
    }
    plan.put_into(txn, registry, &mut collection)?;
    collections::put(txn, &collection)?;
    let point = point(&collection);
    let silent = Actor { keeps_history: false, ..actor.clone() };
    let admin = roles::by_id(txn, roles::ADMIN)?;
    if let Some(admin) = admin {
        assignments::assign(txn, &silent, &point, &asker.identifier(), &admin, ids.next()?)?;
    }
    inherit_assignments(txn, &silent, &parent, &collection, &asker.identifier())?;
    let notice = Notice::of("CREATEDV")
        .with("collectionAlias", collection.alias.as_str())
        .with("ownerAlias", parent.alias.as_str());
    notifications::send(txn, ids.next()?, &actor.now, user.id, notice)?;
    changes::collection(txn, app, collection.id)?;
    Ok(collection)
}

/// Copies the assignments of the roles in `:InheritParentRoleAssignments` (`*` for all) from the parent collection.
pub(crate) fn inherit_assignments(
    txn: &mut Txn<'_>,
    actor: &Actor,
    parent: &Collection,
    collection: &Collection,
    creator: &str,
) -> Result<(), ApiError> {
    let Some(setting) = site_settings::get(txn, ":InheritParentRoleAssignments")? else { return Ok(()) };
    let wanted: Vec<&str> = setting.split(',').map(str::trim).collect();
    for grant in grants::grants_on(txn, parent.id)? {
        for assigned in &grant.roles {
            let Some(role) = roles::by_id(txn, assigned.role)? else { continue };
            let is_creators = grant.assignee == creator && role.id == roles::ADMIN;
            if !is_creators && (wanted.contains(&"*") || wanted.contains(&role.alias.as_str())) {
                // The negated number of the parent's assignment: unique, and recognisable.
                let id = -assigned.id;
                match assignments::assign(txn, actor, &point(collection), &grant.assignee, &role, id) {
                    Err(error) if error.status == http::StatusCode::CONFLICT => {}
                    other => {
                        other?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns a collection as the object of role assignments.
pub(crate) fn point(collection: &Collection) -> Point {
    Point { id: collection.id, name: collection.name.clone(), ty: "Dataverse", pid: None, dataset: None }
}

fn taken(alias: &str) -> ApiError {
    ApiError::forbidden(format!("A dataverse with alias {alias} already exists"))
}

fn limit(body: &Map<String, Value>) -> Option<i64> {
    body.get("datasetFileCountLimit").and_then(Value::as_i64).filter(|it| 0 < *it)
}

/// Checks that the site lists the collection's metadata language. Errors: 400.
fn check_language(txn: &mut Txn<'_>, collection: &Collection) -> Result<(), ApiError> {
    let Some(language) = collection.metadata_language.as_deref() else { return Ok(()) };
    let Some(listed) = site_settings::get(txn, ":MetadataLanguages")? else { return Ok(()) };
    let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
    let known = listed.as_array().is_some_and(|all| all.iter().any(|it| it["locale"] == language));
    if known || language == "undefined" {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "Specified metadatalanguage ({language}) is not one of the languages listed"
    )))
}

/// `PUT /api/dataverses/{id}`.
async fn update(mut call: Call) -> Answer {
    let body = call.object().await?;
    check_file_pids(&call, &body).await?;
    let given = Given { body };
    let registry = call.app.registry(call.db()).await?;
    let plan = structure::Plan::read(&registry, given.body.get("metadataBlocks"))?;
    let (app, asker, id) = (call.app.clone(), call.asker.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let before = collections::find(txn, &id)?;
        permissions::require(txn, &asker, before.place(), Permission::EditDataverse)?;
        let mut collection = before.clone();
        given.put_into(&mut collection);
        if given.body.contains_key("datasetFileCountLimit") {
            let limit = limit(&given.body);
            if limit != collection.file_count_limit && !asker.is_superuser() {
                return Err(ApiError::forbidden("Only Superuser can set the Dataset File Count Limit."));
            }
            collection.file_count_limit = limit;
        }
        if let Some(enabled) = given.body.get("filePIDsEnabled").and_then(Value::as_bool) {
            collection.file_pids_enabled = Some(enabled);
        }
        check(&collection)?;
        check_language(txn, &collection)?;
        if collections::by_alias(txn, &collection.alias)?.is_some_and(|it| it.id != collection.id) {
            return Err(taken(&collection.alias));
        }
        plan.put_into(txn, &registry, &mut collection)?;
        collections::put(txn, &collection)?;
        changes::collection(txn, &app, collection.id)?;
        json::json(txn, &collection, &Showing::default())
    };
    envelope::ok(call.db().write(write).await?)
}

/// `PUT /api/dataverses/{id}/attribute/{name}?value=`.
async fn set_attribute(call: Call) -> Answer {
    let (name, id) = (call.param("name").to_owned(), call.param("id").to_owned());
    let value = call.query.get("value").unwrap_or_default().to_owned();
    let (app, asker) = (call.app.clone(), call.asker.clone());
    let mut boolean = Map::new();
    if name == "filePIDsEnabled" {
        boolean.insert(name.clone(), true.into());
    }
    check_file_pids(&call, &boolean).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let mut collection = collections::find(txn, &id)?;
        permissions::require(txn, &asker, collection.place(), Permission::EditDataverse)?;
        let yes = value.eq_ignore_ascii_case("true");
        match name.as_str() {
            "alias" => collection.alias.clone_from(&value),
            "name" => collection.name.clone_from(&value),
            "description" => collection.description = Some(value.clone()),
            "affiliation" => collection.affiliation = Some(value.clone()),
            "filePIDsEnabled" => collection.file_pids_enabled = Some(yes),
            "requireFilesToPublishDataset" => {
                if !asker.is_superuser() {
                    return Err(ApiError::forbidden("You must be a superuser to change this setting"));
                }
                collection.requires_files = Some(yes);
            }
            "allowedDatasetTypes" => {
                let names: Vec<&str> = value.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
                for name in &names {
                    crate::dataset_types::named(txn, name)?;
                }
                collection.more.insert("allowedDatasetTypes".to_owned(), names.into());
            }
            _ => {
                return Err(ApiError::bad_request(format!("'{name}' is not a supported attribute")));
            }
        }
        check(&collection)?;
        if collections::by_alias(txn, &collection.alias)?.is_some_and(|it| it.id != collection.id) {
            return Err(taken(&collection.alias));
        }
        collections::put(txn, &collection)?;
        changes::collection(txn, &app, collection.id)?;
        json::json(txn, &collection, &Showing::default())
    };
    envelope::message_and_data("Update successful", call.db().write(write).await?)
}
