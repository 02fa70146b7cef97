//! Roles: named sets of permissions (section 0.4 of the contract).

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::permissions::Permission::{
    AddDataset, AddDataverse, DeleteDatasetDraft, DownloadFile, EditDataset, LinkDataset,
    ManageDatasetPermissions, ManageFilePermissions, PublishDataset, ViewUnpublishedDataset,
    ViewUnpublishedDataverse,
};
use crate::permissions::{self, GRANT, Grant, Permission, Place, grant_id};
use crate::routing::Routes;
use crate::{envelope, stored};

/// Roles that were made here; the built-in ones are [`BUILT_IN`]. Body: a [`Role`].
pub(crate) static ROLE: Kind = Kind {
    columns: &[Column::one("alias", Type::Text), Column::one("ownerId", Type::Integer)],
    indexes: &[Index::unique(&["alias"]), Index::on(&["ownerId"])],
    ..Kind::named("dataverse_role")
};

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Role {
    /// Its short name, unique.
    pub alias: String,
    /// Its name.
    pub name: String,
    /// What it lets its holders do, in the order of the permissions.
    pub permissions: Vec<Permission>,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Its number.
    pub id: i64,
    /// The collection that it belongs to; none for those that hold everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<i64>,
}

impl Role {
    /// As it is sent.
    pub(crate) fn json(&self) -> Value {
        json!(self)
    }
}

/// A role that every installation has.
struct BuiltIn {
    id: i64,
    alias: &'static str,
    name: &'static str,
    description: &'static str,
    permissions: &'static [Permission],
}

/// The roles of every installation; their numbers are known to clients.
const BUILT_IN: [BuiltIn; 8] = [
    BuiltIn {
        id: 1,
        alias: "admin",
        name: "Admin",
        description: "A person who has all permissions for dataverses, datasets, and files.",
        permissions: &Permission::ALL,
    },
    BuiltIn {
        id: 2,
        alias: "fileDownloader",
        name: "File Downloader",
        description: "A person who can download a published file.",
        permissions: &[DownloadFile],
    },
    BuiltIn {
        id: 3,
        alias: "fullContributor",
        name: "Dataverse + Dataset Creator",
        description: "A person who can add subdataverses and datasets within a dataverse.",
        permissions: &[AddDataverse, AddDataset],
    },
    BuiltIn {
        id: 4,
        alias: "dvContributor",
        name: "Dataverse Creator",
        description: "A person who can add subdataverses within a dataverse.",
        permissions: &[AddDataverse],
    },
    BuiltIn {
        id: 5,
        alias: "dsContributor",
        name: "Dataset Creator",
        description: "A person who can add datasets within a dataverse.",
        permissions: &[AddDataset],
    },
    BuiltIn {
        id: CONTRIBUTOR,
        alias: "contributor",
        name: "Contributor",
        description: "For datasets, a person who can edit License + Terms, and then submit them for review.",
        permissions: &[ViewUnpublishedDataset, DownloadFile, EditDataset, DeleteDatasetDraft],
    },
    BuiltIn {
        id: 7,
        alias: "curator",
        name: "Curator",
        description: "For datasets, a person who can edit License + Terms, edit Permissions, and publish datasets.",
        permissions: &[
            AddDataverse,
            AddDataset,
            ViewUnpublishedDataverse,
            ViewUnpublishedDataset,
            DownloadFile,
            EditDataset,
            ManageDatasetPermissions,
            ManageFilePermissions,
            PublishDataset,
            LinkDataset,
            DeleteDatasetDraft,
        ],
    },
    BuiltIn {
        id: MEMBER,
        alias: "member",
        name: "Member",
        description: "A person who can view both unpublished dataverses and datasets.",
        permissions: &[ViewUnpublishedDataverse, ViewUnpublishedDataset, DownloadFile],
    },
];

/// The role that makers of collections get.
pub(crate) const ADMIN: i64 = 1;
/// The role that lets its holders make collections and datasets.
pub(crate) const FULL_CONTRIBUTOR: i64 = 3;
/// The role that makers of datasets get unless their collection says otherwise.
pub(crate) const CONTRIBUTOR: i64 = 6;
/// The role that holders of a private URL have.
pub(crate) const MEMBER: i64 = 8;

impl BuiltIn {
    fn role(&self) -> Role {
        Role {
            id: self.id,
            alias: self.alias.to_owned(),
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            permissions: self.permissions.to_vec(),
            owner_id: None,
        }
    }
}

/// The built-in roles.
pub(crate) fn built_in() -> Vec<Role> {
    BUILT_IN.iter().map(BuiltIn::role).collect()
}

/// The role of that number.
pub(crate) fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<Role>, ApiError> {
    if let Some(it) = BUILT_IN.iter().find(|it| it.id == id) {
        return Ok(Some(it.role()));
    }
    stored::get(view, &ROLE, &id.to_string())
}

/// The role of that short name.
pub(crate) fn by_alias(view: &mut View<'_>, alias: &str) -> Result<Option<Role>, ApiError> {
    if let Some(it) = BUILT_IN.iter().find(|it| it.alias == alias) {
        return Ok(Some(it.role()));
    }
    let found = view.first(&ROLE, Expr::Is("alias".into(), alias.into()))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// What a role lets its holders do; nothing when it is gone.
pub(crate) fn permissions_of(view: &mut View<'_>, id: i64) -> Result<Vec<Permission>, ApiError> {
    if let Some(it) = BUILT_IN.iter().find(|it| it.id == id) {
        return Ok(it.permissions.to_vec());
    }
    Ok(by_id(view, id)?.map(|it| it.permissions).unwrap_or_default())
}

/// The roles that belong to a collection.
pub(crate) fn of_collection(view: &mut View<'_>, collection: i64) -> Result<Vec<Role>, ApiError> {
    stored::find_by(view, &ROLE, "ownerId", collection)
}

/// Removes the roles of a collection that goes away.
pub(crate) fn remove_of_collection(txn: &mut Txn<'_>, collection: i64) -> Result<(), ApiError> {
    for role in of_collection(txn, collection)? {
        remove(txn, &role)?;
    }
    Ok(())
}

/// Stores a new role. Errors: 403 when the short name is taken.
pub(crate) fn insert(txn: &mut Txn<'_>, role: &Role) -> Result<(), ApiError> {
    if by_alias(txn, &role.alias)?.is_some() {
        return Err(ApiError::forbidden(format!("Role with alias {} already exists", role.alias)));
    }
    stored::insert(txn, &ROLE, &role.id.to_string(), role)
}

/// Removes a role with its assignments.
fn remove(txn: &mut Txn<'_>, role: &Role) -> Result<(), ApiError> {
    let query = Query::filter(Expr::Is("roles.role".into(), role.id.into()));
    for mut grant in stored::find::<Grant>(txn, &GRANT, &query)? {
        grant.roles.retain(|it| it.role != role.id);
        let id = grant_id(grant.object, &grant.assignee);
        match grant.roles.is_empty() {
            true => drop(txn.delete(&GRANT, &id)?),
            false => stored::put(txn, &GRANT, &id, &grant)?,
        }
    }
    txn.delete(&ROLE, &role.id.to_string())?;
    Ok(())
}

/// A role from a body; number and owner are still to be set.
///
/// Errors: 400 for a missing field and for a permission that there is not.
pub(crate) fn read(body: &Map<String, Value>) -> Result<Role, ApiError> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let alias = text("alias").filter(|it| !it.trim().is_empty());
    let alias = alias.ok_or_else(|| ApiError::bad_request("Field 'alias' is mandatory"))?;
    let mut permissions = Vec::new();
    for it in body.get("permissions").and_then(Value::as_array).into_iter().flatten() {
        let name = it.as_str().unwrap_or_default();
        match Permission::named(name) {
            Some(permission) => permissions.push(permission),
            None if name == "ALL" => permissions.extend(Permission::ALL),
            None => return Err(ApiError::bad_request(format!("Invalid permission: {name}"))),
        }
    }
    permissions.sort_unstable();
    permissions.dedup();
    Ok(Role {
        name: text("name").unwrap_or_else(|| alias.clone()),
        description: text("description").unwrap_or_default(),
        alias,
        permissions,
        id: 0,
        owner_id: None,
    })
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/roles/userSelectable", selectable)
        .get("/roles/{id}", show)
        .delete("/roles/{id}", delete)
        .post("/roles", create)
        .get("/admin/roles", list_built_in)
        .post("/admin/roles", create_built_in)
        .put("/admin/roles/{id}", replace_built_in)
        .delete("/admin/roles/{id}", delete_built_in)
}

/// The role that a path names: by number, or `:alias` with the parameter `alias`.
fn wanted(view: &mut View<'_>, id: &str, alias: Option<&str>) -> Result<Role, ApiError> {
    if id == ":alias" {
        let alias = alias.unwrap_or_default();
        let missing = || ApiError::not_found(format!("Dataverse Role with alias {alias} not found."));
        return by_alias(view, alias)?.ok_or_else(missing);
    }
    let Ok(number) = id.parse() else {
        let missing = || ApiError::bad_request(format!("Bad Dataverse Role ID number: {id}"));
        return by_alias(view, id)?.ok_or_else(missing);
    };
    by_id(view, number)?.ok_or_else(|| ApiError::not_found(format!("Dataverse Role with ID {id} not found.")))
}

/// The collection of a role, for a caller who may manage roles there; superusers for general roles.
fn check_manages(view: &mut View<'_>, asker: &crate::asker::Asker, role: &Role) -> Result<(), ApiError> {
    match role.owner_id {
        Some(owner) => {
            let place = Place::collection(owner);
            permissions::require(view, asker, place, Permission::ManageDataversePermissions)
        }
        None if asker.is_superuser() => Ok(()),
        None => Err(permissions::refusal(asker)),
    }
}

async fn show(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let alias = call.query.filled("alias").map(str::to_owned);
    call.asker.user()?;
    let find = move |view: &mut View<'_>| -> Result<Role, ApiError> {
        let role = wanted(view, &id, alias.as_deref())?;
        if role.owner_id.is_some() {
            check_manages(view, &asker, &role)?;
        }
        Ok(role)
    };
    envelope::ok(call.db().read(Weight::Point, find).await?.json())
}

/// A role of the whole installation is not removed by who manages a collection.
fn kept(role: &Role) -> ApiError {
    ApiError::forbidden(format!("May not delete Built In Role {}.", role.name))
}

async fn delete(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let alias = call.query.filled("alias").map(str::to_owned);
    call.asker.user()?;
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let role = wanted(txn, &id, alias.as_deref())?;
        if role.owner_id.is_none() {
            return Err(kept(&role));
        }
        check_manages(txn, &asker, &role)?;
        remove(txn, &role)?;
        Ok(role.name)
    };
    let name = call.db().write(write).await?;
    envelope::message(format!("role {name} deleted."))
}

/// `POST /api/roles?dvo={collection}`.
async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let dvo = call.query.filled("dvo").map(str::to_owned);
    let dvo = dvo.ok_or_else(|| ApiError::bad_request("The parameter dvo is missing"))?;
    crate::collections::people::create_role(&call, body, dvo).await
}

async fn list_built_in(call: Call) -> Answer {
    let all = |view: &mut View<'_>| -> Result<Vec<Role>, ApiError> {
        let mut all = built_in();
        let own: Vec<Role> = stored::find(view, &ROLE, &Query::filter(Expr::All))?;
        all.extend(own.into_iter().filter(|it| it.owner_id.is_none()));
        Ok(all)
    };
    let all = call.db().read(Weight::Scan, all).await?;
    envelope::ok(all.iter().map(Role::json).collect::<Vec<Value>>())
}

/// Makes a role that holds everywhere.
async fn create_built_in(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (role, ids) = (read(&body)?, call.ids(1).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<Role, ApiError> {
        let mut ids = ids;
        let role = Role { id: ids.next()?, ..role.clone() };
        insert(txn, &role)?;
        Ok(role)
    };
    envelope::ok(call.db().write(write).await?.json())
}

/// Another name, description or set of permissions for a role of the installation.
async fn replace_built_in(mut call: Call) -> Answer {
    let role = read(&call.object().await?)?;
    let (id, alias) = (call.param("id").to_owned(), call.query.filled("alias").map(str::to_owned));
    let write = move |txn: &mut Txn<'_>| -> Result<Role, ApiError> {
        let before = wanted(txn, &id, alias.as_deref())?;
        if BUILT_IN.iter().any(|it| it.id == before.id) {
            return Err(ApiError::forbidden("May not change Built In Role"));
        }
        if by_alias(txn, &role.alias)?.is_some_and(|it| it.id != before.id) {
            return Err(ApiError::forbidden(format!("Role with alias {} already exists", role.alias)));
        }
        let role = Role { id: before.id, owner_id: before.owner_id, ..role.clone() };
        stored::put(txn, &ROLE, &role.id.to_string(), &role)?;
        Ok(role)
    };
    envelope::ok(call.db().write(write).await?.json())
}

async fn delete_built_in(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let alias = call.query.filled("alias").map(str::to_owned);
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let role = wanted(txn, &id, alias.as_deref())?;
        if BUILT_IN.iter().any(|it| it.id == role.id) {
            return Err(kept(&role));
        }
        remove(txn, &role)?;
        Ok(role.name)
    };
    let name = call.db().write(write).await?;
    envelope::message(format!("role {name} deleted."))
}

/// The roles that the caller may look for among their data: those they hold somewhere, all for superusers.
async fn selectable(call: Call) -> Answer {
    call.asker.user()?;
    let asker = call.asker.clone();
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        if asker.is_superuser() {
            return Ok(built_in().iter().map(Role::json).collect());
        }
        let mut held: Vec<i64> = Vec::new();
        for grant in permissions::grants_to(view, &[asker.identifier()])? {
            held.extend(grant.roles.iter().map(|it| it.role));
        }
        held.sort_unstable();
        held.dedup();
        let mut list = Vec::new();
        for id in held {
            list.extend(by_id(view, id)?.map(|it| it.json()));
        }
        Ok(list)
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}
