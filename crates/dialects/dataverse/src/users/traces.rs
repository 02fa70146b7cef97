//! Traces of a user in other objects: shown before the user is deleted, and reasons why they cannot be deleted.

use pinakes_store::{Expr, Query, Txn, View};
use serde_json::{Map, Value, json};

use crate::collections::{self, Collection};
use crate::datasets::{self, DATASET, Dataset};
use crate::error::ApiError;
use crate::users::User;
use crate::{grants, groups, roles, stored};

/// Returns `{"user":…,"traces":{…}}`, with a member for each kind of traces that exist.
pub(crate) fn json(view: &mut View<'_>, user: &User) -> Result<Value, ApiError> {
    let mut traces = Map::new();
    let mut add = |name: &str, items: Vec<Value>| {
        if !items.is_empty() {
            traces.insert(name.to_owned(), json!({"count": items.len(), "items": items}));
        }
    };
    add("roleAssignments", role_assignments(view, user)?);
    let made: Vec<Dataset> = stored::find_by(view, &DATASET, "creator", user.id)?;
    let objects: Vec<Value> = made
        .iter()
        .map(|it| json!({"id": it.id, "identifier": it.pid, "type": "dataset"}))
        .chain(collections_of(view, user)?.iter().map(|it| json!({"id": it.id, "alias": it.alias})))
        .collect();
    add("dvObjectCreator", objects);
    let groups = groups::with_member(view, &user.identifier())?;
    add("explicitGroups", groups.iter().map(|it| json!({"id": it.id, "name": it.display_name})).collect());
    let n_entries = crate::guestbooks::n_responses_of(view, user.id)?;
    if n_entries != 0 {
        traces.insert("guestbookEntries".to_owned(), json!({"count": n_entries}));
    }
    let id = json!({"id": user.id, "identifier": user.identifier(), "name": user.display_name()});
    Ok(json!({"user": id, "traces": traces}))
}

fn role_assignments(view: &mut View<'_>, user: &User) -> Result<Vec<Value>, ApiError> {
    let mut items = Vec::new();
    for grant in grants::grants_to(view, &[user.identifier()])? {
        let name = object_name(view, grant.object)?;
        for assigned in &grant.roles {
            let role = roles::by_id(view, assigned.role)?.map(|it| it.name);
            items.push(json!({
                "id": assigned.id,
                "definitionPointName": name,
                "definitionPointId": grant.object,
                "roleName": role,
            }));
        }
    }
    Ok(items)
}

/// Returns the name of a collection, or the title of a dataset.
fn object_name(view: &mut View<'_>, object: i64) -> Result<String, ApiError> {
    if let Some(collection) = collections::by_id(view, object)? {
        return Ok(collection.name);
    }
    Ok(datasets::by_id(view, object)?.map(|it| it.pid).unwrap_or_default())
}

fn collections_of(view: &mut View<'_>, user: &User) -> Result<Vec<Collection>, ApiError> {
    stored::find_by(view, &collections::COLLECTION, "creator", user.id)
}

/// Returns the reasons why a user cannot be deleted; empty if there are none.
pub(crate) fn what_keeps(view: &mut View<'_>, user: &User) -> Result<Vec<String>, ApiError> {
    let mut reasons = Vec::new();
    let is_creator = view.count(&DATASET, &Expr::Is("creator".into(), user.id.into()))? != 0
        || !collections_of(view, user)?.is_empty();
    if is_creator {
        reasons.push("the user has created Dataverse object(s)".to_owned());
    }
    let n_versions = view.count(&datasets::VERSION, &Expr::Is("contributorIds".into(), user.id.into()))?;
    if !is_creator && n_versions != 0 {
        reasons.push("the user has contributed to dataset version(s)".to_owned());
    }
    if !grants::grants_to(view, &[user.identifier()])?.is_empty() {
        reasons.push("the user is associated with role assignment record(s)".to_owned());
    }
    Ok(reasons)
}

/// Transfers the objects that one user created to another.
pub(crate) fn hand_over(txn: &mut Txn<'_>, from: &User, into: &User) -> Result<(), ApiError> {
    let query = Query::filter(Expr::Is("creator".into(), from.id.into()));
    for mut dataset in stored::find::<Dataset>(txn, &DATASET, &query)? {
        dataset.creator = into.id;
        datasets::put(txn, &dataset)?;
    }
    crate::guestbooks::hand_over(txn, from.id, into.id)?;
    for mut collection in collections_of(txn, from)? {
        collection.creator = Some(into.id);
        collections::put(txn, &collection)?;
    }
    Ok(())
}
