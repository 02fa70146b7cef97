//! Roles: named sets of permissions (section 0.4 of the contract).

pub(crate) mod serve;

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::grants::Permission::{
    AddDataset, AddDataverse, DeleteDatasetDraft, DownloadFile, EditDataset, LinkDataset,
    ManageDatasetPermissions, ManageFilePermissions, PublishDataset, ViewUnpublishedDataset,
    ViewUnpublishedDataverse,
};
use crate::grants::{GRANT, Grant, Permission, grant_id};
use crate::stored;

/// Custom roles; the built-in ones are [`BUILT_IN`]. Body: a [`Role`].
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
    /// Its permissions, in their order.
    pub permissions: Vec<Permission>,
    /// Its purpose.
    #[serde(default)]
    pub description: String,
    /// Its number.
    pub id: i64,
    /// The collection that it belongs to; `None` for global roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<i64>,
}

impl Role {
    /// Returns the role as JSON.
    pub(crate) fn json(&self) -> Value {
        json!(self)
    }
}

/// A role of every installation.
struct BuiltIn {
    id: i64,
    alias: &'static str,
    name: &'static str,
    description: &'static str,
    permissions: &'static [Permission],
}

/// The roles of every installation; clients know their numbers.
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

/// The role that creators of collections get.
pub(crate) const ADMIN: i64 = 1;
/// The role that allows creating collections and datasets.
pub(crate) const FULL_CONTRIBUTOR: i64 = 3;
/// The role that creators of datasets get unless their collection specifies another.
pub(crate) const CONTRIBUTOR: i64 = 6;
/// The role of holders of a private URL.
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

/// Returns the built-in roles.
pub(crate) fn built_in() -> Vec<Role> {
    BUILT_IN.iter().map(BuiltIn::role).collect()
}

/// Returns the role with that number.
pub(crate) fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<Role>, ApiError> {
    if let Some(it) = BUILT_IN.iter().find(|it| it.id == id) {
        return Ok(Some(it.role()));
    }
    stored::get(view, &ROLE, &id.to_string())
}

/// Returns the role with that short name.
pub(crate) fn by_alias(view: &mut View<'_>, alias: &str) -> Result<Option<Role>, ApiError> {
    if let Some(it) = BUILT_IN.iter().find(|it| it.alias == alias) {
        return Ok(Some(it.role()));
    }
    let found = view.first(&ROLE, Expr::Is("alias".into(), alias.into()))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Returns the permissions of a role; none if it does not exist.
pub(crate) fn permissions_of(view: &mut View<'_>, id: i64) -> Result<Vec<Permission>, ApiError> {
    if let Some(it) = BUILT_IN.iter().find(|it| it.id == id) {
        return Ok(it.permissions.to_vec());
    }
    Ok(by_id(view, id)?.map(|it| it.permissions).unwrap_or_default())
}

/// Returns the numbers of the roles, among those that anybody has, with any of these permissions.
pub(crate) fn with_any_of(view: &mut View<'_>, permissions: &[Permission]) -> Result<Vec<i64>, ApiError> {
    let mut found = Vec::new();
    for id in view.distinct_values(&GRANT, &"roles.role".into(), usize::MAX, &|_| true)? {
        let Ok(id) = id.parse() else { continue };
        if permissions_of(view, id)?.iter().any(|it| permissions.contains(it)) {
            found.push(id);
        }
    }
    Ok(found)
}

/// Returns the roles that belong to a collection.
pub(crate) fn of_collection(view: &mut View<'_>, collection: i64) -> Result<Vec<Role>, ApiError> {
    stored::find_by(view, &ROLE, "ownerId", collection)
}

/// Removes the roles of a collection that is being deleted.
pub(crate) fn remove_of_collection(txn: &mut Txn<'_>, collection: i64) -> Result<(), ApiError> {
    for role in of_collection(txn, collection)? {
        remove(txn, &role)?;
    }
    Ok(())
}

/// Stores a new role. Errors: 403 if the short name is taken.
pub(crate) fn insert(txn: &mut Txn<'_>, role: &Role) -> Result<(), ApiError> {
    if by_alias(txn, &role.alias)?.is_some() {
        return Err(ApiError::forbidden(format!("Role with alias {} already exists", role.alias)));
    }
    stored::insert(txn, &ROLE, &role.id.to_string(), role)
}

/// Removes a role with its assignments.
pub(crate) fn remove(txn: &mut Txn<'_>, role: &Role) -> Result<(), ApiError> {
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

/// Parses a role without number and owner.
///
/// Errors: 400 for a missing field and for an unknown permission.
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
