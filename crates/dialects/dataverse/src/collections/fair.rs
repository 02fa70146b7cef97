//! Locally FAIR collections: what lies in one is there for those who are named, and for nobody else, published or not.

use pinakes_store::{Expr, Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::asker::Asker;
use crate::assignments::find_assignee;
use crate::collections::{self, COLLECTION, Collection};
use crate::datasets::Dataset;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{envelope, groups, permissions, stored};

/// Name of the collection's setting: a list of assignees.
const NAMED: &str = "locallyFairRoleAssignees";

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let path = "/dataverses/{id}/locallyFairRoleAssignees";
    let one = "/dataverses/{id}/locallyFairRoleAssignees/{assignee}";
    routes.get(path, list).put(path, replace).put(one, add).delete(one, remove)
}

fn named_in(collection: &Collection) -> Vec<String> {
    let list = collection.more.get(NAMED).and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether there is such a collection at all.
pub(crate) fn is_any(view: &mut View<'_>) -> Result<bool, ApiError> {
    Ok(view.first(&COLLECTION, Expr::Is("isLocallyFair".into(), true.into()))?.is_some())
}

/// Whether a dataset lies in a collection that is kept from the caller.
pub(crate) fn is_dataset_kept_from(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
) -> Result<bool, ApiError> {
    if asker.is_superuser() || !is_any(view)? {
        return Ok(false);
    }
    let owner = collections::named_by_record(view, dataset.owner)?;
    is_kept_from(view, asker, &owner)
}

/// The collections that are kept from the caller; what lies below them is, too.
pub(crate) fn kept_from(view: &mut View<'_>, asker: &Asker) -> Result<Vec<i64>, ApiError> {
    if asker.is_superuser() {
        return Ok(Vec::new());
    }
    let all: Vec<Collection> = stored::find_by(view, &COLLECTION, "isLocallyFair", true)?;
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let mut names = permissions::own_names(asker);
    names.extend(groups::of(view, asker)?);
    let is_named = |it: &Collection| named_in(it).iter().any(|name| names.contains(name));
    Ok(all.iter().filter(|it| !is_named(it)).map(|it| it.id).collect())
}

/// Whether a collection, or one above it, is kept from the caller.
pub(crate) fn is_kept_from(
    view: &mut View<'_>,
    asker: &Asker,
    collection: &Collection,
) -> Result<bool, ApiError> {
    if asker.is_superuser() {
        return Ok(false);
    }
    for it in collections::with_owners(view, collection.clone())? {
        let named = named_in(&it);
        if named.is_empty() {
            continue;
        }
        let mut names = permissions::own_names(asker);
        names.extend(groups::of(view, asker)?);
        if !names.iter().any(|name| named.contains(name)) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn list(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let id = call.param("id").to_owned();
    let find = move |view: &mut View<'_>| Ok::<_, ApiError>(named_in(&collections::find(view, &id)?));
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

/// Changes who is named, and gives who is named then.
async fn changed(
    call: &Call,
    mut change: impl FnMut(&mut Txn<'_>, &mut Vec<String>) -> Result<(), ApiError> + Send + 'static,
) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let id = call.param("id").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<Vec<String>, ApiError> {
        let mut collection = collections::find(txn, &id)?;
        let mut named = named_in(&collection);
        change(txn, &mut named)?;
        match named.is_empty() {
            true => drop(collection.more.remove(NAMED)),
            false => drop(collection.more.insert(NAMED.to_owned(), json!(named))),
        }
        collection.is_locally_fair = (!named.is_empty()).then_some(true);
        collections::put(txn, &collection)?;
        Ok(named)
    };
    let named = call.db().write(write).await?;
    envelope::ok(json!({ NAMED: named }))
}

async fn replace(mut call: Call) -> Answer {
    let body = call.json().await?;
    let wanted: Vec<String> =
        body.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let change = move |txn: &mut Txn<'_>, named: &mut Vec<String>| {
        named.clear();
        for it in &wanted {
            named.push(find_assignee(txn, it, "named here")?);
        }
        Ok(())
    };
    changed(&call, change).await
}

async fn add(call: Call) -> Answer {
    let wanted = call.param("assignee").to_owned();
    let change = move |txn: &mut Txn<'_>, named: &mut Vec<String>| {
        let assignee = find_assignee(txn, &wanted, "named here")?;
        if !named.contains(&assignee) {
            named.push(assignee);
        }
        Ok(())
    };
    changed(&call, change).await
}

async fn remove(call: Call) -> Answer {
    let wanted = call.param("assignee").to_owned();
    let change = move |_: &mut Txn<'_>, named: &mut Vec<String>| {
        named.retain(|it| *it != wanted);
        Ok(())
    };
    changed(&call, change).await
}
