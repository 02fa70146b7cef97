//! Explicit groups of a collection: `/api/dataverses/{id}/groups`.

use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::assignments::find_assignee;
use crate::collections::{self, Collection};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::groups::{self, GROUP, Group};
use crate::routing::Routes;
use crate::{envelope, permissions, stored};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/dataverses/{id}/groups", list)
        .post("/dataverses/{id}/groups", create)
        .get("/dataverses/{id}/groups/{alias}", show)
        .put("/dataverses/{id}/groups/{alias}", change)
        .delete("/dataverses/{id}/groups/{alias}", delete)
        .post("/dataverses/{id}/groups/{alias}/roleAssignees", add_members)
        .put("/dataverses/{id}/groups/{alias}/roleAssignees/{member}", add_member)
        .delete("/dataverses/{id}/groups/{alias}/roleAssignees/{member}", remove_member)
}

/// Returns the collection, after checking that the caller may manage its permissions.
fn managed(view: &mut View<'_>, call: &Asked) -> Result<Collection, ApiError> {
    let collection = collections::find(view, &call.collection)?;
    permissions::require(view, &call.asker, collection.place(), Permission::ManageDataversePermissions)?;
    Ok(collection)
}

/// The caller of a request about groups, and the names in its path.
#[derive(Clone)]
struct Asked {
    asker: crate::asker::Asker,
    collection: String,
    alias: String,
}

fn asked(call: &Call) -> Asked {
    Asked {
        asker: call.asker.clone(),
        collection: call.param("id").to_owned(),
        alias: call.param("alias").to_owned(),
    }
}

/// Returns the identifier: `&explicit/{owner}-{alias}`.
pub(crate) fn identifier(owner: i64, alias: &str) -> String {
    format!("&explicit/{owner}-{alias}")
}

fn find(view: &mut View<'_>, collection: &Collection, alias: &str) -> Result<Group, ApiError> {
    let found = groups::by_identifier(view, &identifier(collection.id, alias))?;
    let missing =
        || ApiError::not_found(format!("Can't find group {alias} in dataverse {}", collection.alias));
    found.ok_or_else(missing)
}

impl Group {
    fn json(&self) -> Value {
        json!({
            "identifier": self.identifier,
            "groupAliasInOwner": self.alias,
            "owner": self.owner,
            "description": self.description,
            "displayName": self.display_name,
            "containedRoleAssignees": self.members,
        })
    }
}

async fn list(call: Call) -> Answer {
    let asked = asked(&call);
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = managed(view, &asked)?;
        let all: Vec<Group> = stored::find_by(view, &GROUP, "owner", collection.id)?;
        Ok(all.iter().map(Group::json).collect())
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (asked, ids) = (asked(&call), call.ids(1).await?);
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (alias, display_name, description) = (text("aliasInOwner"), text("displayName"), text("description"));
    let is_part = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
    if alias.is_empty() || !alias.bytes().all(is_part) {
        return Err(ApiError::bad_request("A group needs an aliasInOwner of letters, digits, '-' and '_'."));
    }
    let write = move |txn: &mut Txn<'_>| -> Result<Group, ApiError> {
        let (collection, mut ids) = (managed(txn, &asked)?, ids);
        let identifier = identifier(collection.id, &alias);
        if groups::by_identifier(txn, &identifier)?.is_some() {
            return Err(ApiError::bad_request(format!(
                "The alias {alias} is already in use in this dataverse."
            )));
        }
        let group = Group {
            id: ids.next()?,
            owner: collection.id,
            alias: alias.clone(),
            identifier,
            display_name: display_name.clone(),
            description: description.clone(),
            members: Vec::new(),
        };
        groups::put(txn, &group)?;
        Ok(group)
    };
    let group = call.db().write(write).await?;
    envelope::created(&format!("/groups/{}", group.alias), group.json())
}

async fn show(call: Call) -> Answer {
    let asked = asked(&call);
    let read = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let collection = managed(view, &asked)?;
        Ok(find(view, &collection, &asked.alias)?.json())
    };
    envelope::ok(call.db().read(Weight::Point, read).await?)
}

/// Changes a group with `change`, and answers with it.
async fn changed(
    call: &Call,
    mut change: impl FnMut(&mut Txn<'_>, &mut Group) -> Result<(), ApiError> + Send + 'static,
) -> Result<Group, ApiError> {
    let asked = asked(call);
    let write = move |txn: &mut Txn<'_>| -> Result<Group, ApiError> {
        let collection = managed(txn, &asked)?;
        let mut group = find(txn, &collection, &asked.alias)?;
        change(txn, &mut group)?;
        groups::put(txn, &group)?;
        Ok(group)
    };
    call.db().write(write).await
}

async fn change(mut call: Call) -> Answer {
    let body = call.object().await?;
    let group = changed(&call, move |_, group| {
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        group.display_name = text("displayName").unwrap_or_else(|| group.display_name.clone());
        group.description = text("description").unwrap_or_else(|| group.description.clone());
        Ok(())
    });
    envelope::ok(group.await?.json())
}

async fn delete(call: Call) -> Answer {
    let asked = asked(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let collection = managed(txn, &asked)?;
        let group = find(txn, &collection, &asked.alias)?;
        groups::forget(txn, &group.identifier)?;
        txn.delete(&GROUP, &group.id.to_string())?;
        Ok(format!("Group {}/{} deleted", collection.alias, group.alias))
    };
    envelope::message(call.db().write(write).await?)
}

fn add(txn: &mut Txn<'_>, group: &mut Group, members: &[String]) -> Result<(), ApiError> {
    for member in members {
        let member = find_assignee(txn, member, "added to a group")?;
        if !group.members.contains(&member) {
            group.members.push(member);
        }
    }
    Ok(())
}

async fn add_members(mut call: Call) -> Answer {
    let body = call.json().await?;
    let members: Vec<String> = match body.as_array() {
        Some(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => return Err(ApiError::bad_request("Error parsing Json: expected a list of assignees")),
    };
    let group = changed(&call, move |txn, group| add(txn, group, &members)).await?;
    envelope::ok(group.json())
}

async fn add_member(call: Call) -> Answer {
    let member = call.param("member").to_owned();
    let group = changed(&call, move |txn, group| add(txn, group, std::slice::from_ref(&member))).await?;
    envelope::ok(group.json())
}

async fn remove_member(call: Call) -> Answer {
    let member = call.param("member").to_owned();
    let group = changed(&call, move |_, group| {
        group.members.retain(|it| *it != member);
        Ok(())
    });
    let group = group.await?;
    envelope::message(format!("Role assignee {} removed from group {}", call.param("member"), group.alias))
}
