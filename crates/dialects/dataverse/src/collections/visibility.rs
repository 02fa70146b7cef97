//! Visibility of collections: unpublished ones, and locally FAIR ones, which only named assignees may see.

use pinakes_store::{Expr, View};
use serde_json::Value;

use crate::asker::Asker;
use crate::collections::{self, COLLECTION, Collection};
use crate::error::ApiError;
use crate::grants::Permission;
use crate::groups::membership;
use crate::{permissions, stored};

/// Returns whether the caller may see a collection.
pub(crate) fn is_visible(
    view: &mut View<'_>,
    asker: &Asker,
    collection: &Collection,
) -> Result<bool, ApiError> {
    if is_kept_from(view, asker, collection)? {
        return Ok(false);
    }
    Ok(collection.is_released()
        || permissions::may(view, asker, collection.place(), Permission::ViewUnpublishedDataverse)?)
}

/// Checks that the caller may see a collection. Errors: 404 for a locally FAIR collection that is hidden from the
/// caller, 401 for an unpublished one.
pub(crate) fn require_visible(
    view: &mut View<'_>,
    asker: &Asker,
    collection: &Collection,
) -> Result<(), ApiError> {
    if is_kept_from(view, asker, collection)? {
        let alias = &collection.alias;
        return Err(ApiError::not_found(format!("Can't find dataverse with identifier='{alias}'")));
    }
    if is_visible(view, asker, collection)? { Ok(()) } else { Err(permissions::refusal(asker)) }
}

/// Name of the setting of collections that lists the assignees.
pub(crate) const NAMED: &str = "locallyFairRoleAssignees";

/// Returns the assignees who may see a locally FAIR collection; an empty list for other collections.
pub(crate) fn named_in(collection: &Collection) -> Vec<String> {
    let list = collection.more.get(NAMED).and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns whether there are any locally FAIR collections.
pub(crate) fn is_any(view: &mut View<'_>) -> Result<bool, ApiError> {
    Ok(view.first(&COLLECTION, Expr::Is("isLocallyFair".into(), true.into()))?.is_some())
}

/// Returns the collections that are hidden from the caller, along with everything below them.
pub(crate) fn kept_from(view: &mut View<'_>, asker: &Asker) -> Result<Vec<i64>, ApiError> {
    if asker.is_superuser() {
        return Ok(Vec::new());
    }
    let all: Vec<Collection> = stored::find_by(view, &COLLECTION, "isLocallyFair", true)?;
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let names = membership::names_of(view, asker)?;
    let is_named = |it: &Collection| named_in(it).iter().any(|name| names.contains(name));
    Ok(all.iter().filter(|it| !is_named(it)).map(|it| it.id).collect())
}

/// Returns whether a collection, or an ancestor, is hidden from the caller.
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
        let names = membership::names_of(view, asker)?;
        if !names.iter().any(|name| named.contains(name)) {
            return Ok(true);
        }
    }
    Ok(false)
}
