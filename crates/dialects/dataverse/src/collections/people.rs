//! Roles and assignments on a collection (section 8 of the contract).

use http::StatusCode;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::collections::write::point;
use crate::collections::{self, Collection};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::roles::{self, Role};
use crate::routing::Routes;
use crate::{assignments, envelope, permissions};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/dataverses/{id}/assignments", list)
        .post("/dataverses/{id}/assignments", assign)
        .get("/dataverses/{id}/assignments/history", history)
        .delete("/dataverses/{id}/assignments/{assignment}", revoke)
        .get("/dataverses/{id}/roles", list_roles)
        .post("/dataverses/{id}/roles", add_role)
        .get("/dataverses/{id}/defaultContributorRole", show_default_role)
        .put("/dataverses/{id}/defaultContributorRole/{role}", set_default_role)
}

/// Returns a collection after checking that the caller may manage its roles.
fn managed(view: &mut View<'_>, asker: &crate::asker::Asker, id: &str) -> Result<Collection, ApiError> {
    let collection = collections::find(view, id)?;
    permissions::require(view, asker, collection.place(), Permission::ManageDataversePermissions)?;
    Ok(collection)
}

async fn list(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = managed(view, &asker, &id)?;
        assignments::list(view, &point(&collection))
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

/// Returns a role that may be assigned in a collection: a global one, or one of the collection or its ancestors.
pub(crate) fn role_for(
    view: &mut View<'_>,
    collection: &Collection,
    alias: &str,
) -> Result<Option<Role>, ApiError> {
    let Some(role) = roles::by_alias(view, alias)? else { return Ok(None) };
    let Some(owner) = role.owner_id else { return Ok(Some(role)) };
    let above = collections::with_owners(view, collection.clone())?;
    Ok(Some(role).filter(|_| above.iter().any(|it| it.id == owner)))
}

async fn assign(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (assignee, alias) = assignments::read_body(&body)?;
    let (asker, id, actor) = (call.asker.clone(), call.param("id").to_owned(), assignments::actor(&call));
    let ids = call.ids(1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let mut ids = ids;
        let collection = managed(txn, &asker, &id)?;
        let assignee = assignments::find_assignee(txn, &assignee, "given a role")?;
        let role = role_for(txn, &collection, &alias)?;
        let unknown = || {
            let name = &collection.name;
            ApiError::bad_request(format!("Can't find role named '{alias}' in dataverse {name}"))
        };
        let role = role.ok_or_else(unknown)?;
        assignments::check_holds(txn, &asker, collection.place(), &role)?;
        let point = point(&collection);
        let assigned = assignments::assign(txn, &actor, &point, &assignee, &role, ids.next()?)?;
        assignments::json(txn, &point, &assignee, &assigned)
    };
    envelope::ok(call.db().write(write).await?)
}

async fn revoke(call: Call) -> Answer {
    let (asker, id, actor) = (call.asker.clone(), call.param("id").to_owned(), assignments::actor(&call));
    let text = call.param("assignment").to_owned();
    let number: i64 =
        text.parse().map_err(|_| ApiError::bad_request(format!("Bad assignment ID number: {text}.")))?;
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let collection = managed(txn, &asker, &id)?;
        let missing = || ApiError::not_found(format!("Role assignment {number} not found"));
        let (assignee, role) =
            assignments::revoke(txn, &actor, collection.id, number)?.ok_or_else(missing)?;
        let role = roles::by_id(txn, role)?.map(|it| it.name).unwrap_or_default();
        Ok(format!("Role {role} revoked for assignee {assignee} in {}", collection.alias))
    };
    envelope::message(call.db().write(write).await?)
}

async fn history(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    if !call.app.settings.role_assignment_history {
        return Err(ApiError::not_found("Role assignment history is not kept on this server."));
    }
    let find = move |view: &mut View<'_>| {
        let collection = managed(view, &asker, &id)?;
        assignments::history(view, "object", collection.id)
    };
    let changes = call.db().read(Weight::Scan, find).await?;
    assignments::history_answer(&call, &changes)
}

async fn list_roles(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = managed(view, &asker, &id)?;
        let own = roles::of_collection(view, collection.id)?;
        Ok(own.iter().map(Role::json).collect())
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

async fn add_role(mut call: Call) -> Answer {
    let body = call.object().await?;
    let id = call.param("id").to_owned();
    create_role(&call, body, id).await
}

/// Creates a role that belongs to a collection.
pub(crate) async fn create_role(call: &Call, body: Map<String, Value>, id: String) -> Answer {
    let (asker, ids) = (call.asker.clone(), call.ids(1).await?);
    let role = roles::read(&body)?;
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let mut ids = ids;
        let collection = managed(txn, &asker, &id)?;
        let role = Role { id: ids.next()?, owner_id: Some(collection.id), ..role.clone() };
        roles::insert(txn, &role)?;
        Ok(role.json())
    };
    envelope::ok(call.db().write(write).await?)
}

async fn show_default_role(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let collection = managed(view, &asker, &id)?;
        let role = match collection.default_contributor_role {
            Some(id) if id != 0 => roles::by_id(view, id)?,
            _ => None,
        };
        Ok(role.map_or_else(|| json!({}), |it| it.json()))
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn set_default_role(call: Call) -> Answer {
    let (asker, id, alias) = (call.asker.clone(), call.param("id").to_owned(), call.param("role").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let mut collection = managed(txn, &asker, &id)?;
        let (number, name) = match alias.as_str() {
            "none" => (0, "None".to_owned()),
            _ => {
                let missing = || ApiError::new(StatusCode::NOT_FOUND, format!("Role {alias} not found."));
                let role = role_for(txn, &collection, &alias)?.ok_or_else(missing)?;
                if !role.permissions.iter().any(|it| is_about_datasets(*it)) {
                    return Err(ApiError::bad_request(format!(
                        "Role {alias} does not have dataset permissions."
                    )));
                }
                (role.id, role.name)
            }
        };
        collection.default_contributor_role = Some(number);
        collections::put(txn, &collection)?;
        Ok(format!("Default contributor role for Dataverse {} has been set to {name}.", collection.name))
    };
    envelope::message(call.db().write(write).await?)
}

/// Returns whether a permission is about datasets.
fn is_about_datasets(permission: Permission) -> bool {
    matches!(
        permission,
        Permission::ViewUnpublishedDataset
            | Permission::DownloadFile
            | Permission::EditDataset
            | Permission::ManageDatasetPermissions
            | Permission::ManageFilePermissions
            | Permission::PublishDataset
            | Permission::LinkDataset
            | Permission::DeleteDatasetDraft
    )
}
