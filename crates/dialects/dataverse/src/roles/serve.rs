//! `/api/roles`, and global roles below `/api/admin/roles`.

use pinakes_store::{Expr, Query, Txn, View, Weight};
use serde_json::Value;

use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::grants::{self, Permission, Place};
use crate::roles::{self, BUILT_IN, ROLE, Role};
use crate::routing::Routes;
use crate::{envelope, permissions, stored};

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

/// Returns the role that a path names: by number, or `:alias` with the parameter `alias`.
fn wanted(view: &mut View<'_>, id: &str, alias: Option<&str>) -> Result<Role, ApiError> {
    if id == ":alias" {
        let alias = alias.unwrap_or_default();
        let missing = || ApiError::not_found(format!("Dataverse Role with alias {alias} not found."));
        return roles::by_alias(view, alias)?.ok_or_else(missing);
    }
    let Ok(number) = id.parse() else {
        let missing = || ApiError::bad_request(format!("Bad Dataverse Role ID number: {id}"));
        return roles::by_alias(view, id)?.ok_or_else(missing);
    };
    roles::by_id(view, number)?
        .ok_or_else(|| ApiError::not_found(format!("Dataverse Role with ID {id} not found.")))
}

/// Checks that the caller may manage roles in the collection of a role, or is a superuser for global roles.
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
        let is_hidden = match role.owner_id.map(Place::collection) {
            Some(place) => !permissions::may(view, &asker, place, Permission::ManageDataversePermissions)?,
            None => false,
        };
        if is_hidden {
            return Err(ApiError::unauthorized("Permission required to view roles."));
        }
        Ok(role)
    };
    envelope::ok(call.db().read(Weight::Point, find).await?.json())
}

/// Returns the refusal to remove a global role: whoever manages a collection may not.
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
        roles::remove(txn, &role)?;
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
        let mut all = roles::built_in();
        let own: Vec<Role> = stored::find(view, &ROLE, &Query::filter(Expr::All))?;
        all.extend(own.into_iter().filter(|it| it.owner_id.is_none()));
        Ok(all)
    };
    let all = call.db().read(Weight::Scan, all).await?;
    envelope::ok(all.iter().map(Role::json).collect::<Vec<Value>>())
}

/// Creates a global role.
async fn create_built_in(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (role, ids) = (roles::read(&body)?, call.ids(1).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<Role, ApiError> {
        let mut ids = ids;
        let role = Role { id: ids.next()?, ..role.clone() };
        roles::insert(txn, &role)?;
        Ok(role)
    };
    envelope::ok(call.db().write(write).await?.json())
}

/// Replaces name, description and permissions of a global role.
async fn replace_built_in(mut call: Call) -> Answer {
    let role = roles::read(&call.object().await?)?;
    let (id, alias) = (call.param("id").to_owned(), call.query.filled("alias").map(str::to_owned));
    let write = move |txn: &mut Txn<'_>| -> Result<Role, ApiError> {
        let before = wanted(txn, &id, alias.as_deref())?;
        if BUILT_IN.iter().any(|it| it.id == before.id) {
            return Err(ApiError::forbidden("May not change Built In Role"));
        }
        if roles::by_alias(txn, &role.alias)?.is_some_and(|it| it.id != before.id) {
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
        roles::remove(txn, &role)?;
        Ok(role.name)
    };
    let name = call.db().write(write).await?;
    envelope::message(format!("role {name} deleted."))
}

/// Lists the roles by which the caller can filter their data: those that they hold anywhere, or all for superusers.
async fn selectable(call: Call) -> Answer {
    call.asker.user()?;
    let asker = call.asker.clone();
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        if asker.is_superuser() {
            let own: Vec<Role> = stored::find(view, &ROLE, &Query::filter(Expr::All))?;
            let mut all: Vec<Role> = roles::built_in();
            all.extend(own.into_iter().filter(|it| BUILT_IN.iter().all(|built_in| built_in.id != it.id)));
            all.sort_by_key(|it| it.id);
            return Ok(all.iter().map(Role::json).collect());
        }
        let mut held: Vec<i64> = Vec::new();
        for grant in grants::grants_to(view, &[asker.identifier()])? {
            held.extend(grant.roles.iter().map(|it| it.role));
        }
        held.sort_unstable();
        held.dedup();
        let mut list = Vec::new();
        for id in held {
            list.extend(roles::by_id(view, id)?.map(|it| it.json()));
        }
        Ok(list)
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}
