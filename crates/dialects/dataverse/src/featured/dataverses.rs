//! Featured collections: those to which the page of a collection points, `/dataverses/{id}/featured`.

use pinakes_store::{Txn, View, Weight};
use serde_json::Value;

use super::{ITEMS, editable};
use crate::app::Call;
use crate::collections::{self, Collection, visibility};
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{changes, envelope, links};

/// Name of a setting of collections: the aliases of the collections that its page features.
pub(crate) const ALIASES: &str = "featured";

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let path = "/dataverses/{id}/featured";
    routes.get(path, list).post(path, add).delete(path, clear)
}

/// `GET /dataverses/{id}/featured`: lists the aliases of those that the caller may see.
async fn list(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = collections::find(view, &id)?;
        visibility::require_visible(view, &asker, &collection)?;
        let mut shown = Vec::new();
        for alias in aliases_of(&collection) {
            if let Some(it) = collections::by_alias(view, &alias)?
                && visibility::is_visible(view, &asker, &it)?
            {
                shown.push(it.alias.into());
            }
        }
        Ok(shown)
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

fn aliases_of(collection: &Collection) -> Vec<String> {
    let list = collection.more.get(ALIASES).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns whether a collection may be featured in another: it is published, and directly in it or linked to it.
fn may_be_featured(view: &mut View<'_>, it: &Collection, at: &Collection) -> Result<bool, ApiError> {
    let is_near =
        it.parent == Some(at.id) || links::of(view, it.id)?.iter().any(|link| link.collection == at.id);
    Ok(is_near && it.is_released())
}

/// Adds collections to those that the page of a collection features.
///
/// Errors: 400 for none, and for one that does not exist, is featured already, or may not be.
async fn feature(call: &Call, aliases: Vec<String>) -> Result<String, ApiError> {
    if aliases.is_empty() {
        let text = "Please provide a valid Json array of dataverse collection aliases to be featured.";
        return Err(ApiError::bad_request(text));
    }
    let (app, asker, id) = (call.app.clone(), call.asker.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let mut collection = editable(txn, &asker, &id)?;
        let mut featured = aliases_of(&collection);
        for alias in &aliases {
            let it = collections::by_alias(txn, alias)?.ok_or_else(|| {
                ApiError::bad_request(format!("Can't find dataverse collection with alias '{alias}'"))
            })?;
            let refusal = match featured.contains(&it.alias) {
                true => "is already featured",
                false if may_be_featured(txn, &it, &collection)? => {
                    featured.push(it.alias);
                    continue;
                }
                false => "may not be featured",
            };
            let (name, at) = (&it.name, &collection.name);
            let text = format!("Dataverse collection '{name}' {refusal} in Dataverse collection '{at}'.");
            return Err(ApiError::bad_request(text));
        }
        if ITEMS < featured.len() {
            return Err(ApiError::bad_request(format!("A dataverse features at most {ITEMS} dataverses.")));
        }
        collection.more.insert(ALIASES.to_owned(), featured.into());
        collections::put(txn, &collection)?;
        changes::collection(txn, &app, collection.id)?;
        Ok(collection.alias)
    };
    call.db().write(write).await
}

async fn add(mut call: Call) -> Answer {
    let body = call.json().await?;
    let text = |it: &Value| it.as_str().map(str::to_owned);
    let aliases: Option<Vec<String>> = body.as_array().and_then(|list| list.iter().map(text).collect());
    let aliases =
        aliases.ok_or_else(|| ApiError::bad_request("Error parsing Json: expected a list of aliases"))?;
    let alias = feature(&call, aliases).await?;
    envelope::message(format!("Featured Dataverses of dataverse {alias} updated."))
}

async fn clear(call: Call) -> Answer {
    let (app, asker, id) = (call.app.clone(), call.asker.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut collection = editable(txn, &asker, &id)?;
        collection.more.remove(ALIASES);
        collections::put(txn, &collection)?;
        changes::collection(txn, &app, collection.id)
    };
    call.db().write(write).await?;
    envelope::message("Featured dataverses have been removed")
}
