//! Memberships of the caller in groups of any kind, and the names of groups.

use std::collections::BTreeSet;

use pinakes_store::{Expr, Query, View};

use crate::asker::{self, Asker};
use crate::error::ApiError;
use crate::groups::domains::{self, PREFIX};
use crate::groups::{self, GROUP, Group, addresses};
use crate::stored;

/// Maximum nesting of groups that is followed.
const DEPTH: usize = 8;

/// Returns the groups that the caller belongs to, directly or through other groups.
pub(crate) fn of(view: &mut View<'_>, asker: &Asker) -> Result<Vec<String>, ApiError> {
    let mut names = asker::own_names(asker);
    let mut ruled = addresses::of(view, asker.peer)?;
    ruled.extend(domains::of(view, asker.user.as_deref())?);
    let mut found: BTreeSet<String> = ruled.iter().cloned().collect();
    names.extend(ruled);
    for _ in 0..DEPTH {
        let values = names.iter().map(|it| it.as_str().into()).collect();
        let query = Query::filter(Expr::In("members".into(), values));
        let groups: Vec<Group> = stored::find(view, &GROUP, &query)?;
        names = groups.into_iter().map(|it| it.identifier).filter(|it| found.insert(it.clone())).collect();
        if names.is_empty() {
            break;
        }
    }
    Ok(found.into_iter().collect())
}

/// Returns all names by which roles are assigned to the caller: the caller's own, and those of the groups.
pub(crate) fn names_of(view: &mut View<'_>, asker: &Asker) -> Result<Vec<String>, ApiError> {
    let mut names = asker::own_names(asker);
    names.extend(of(view, asker)?);
    Ok(names)
}

/// Returns the name of a group of any kind.
pub(crate) fn name_of(view: &mut View<'_>, identifier: &str) -> Result<Option<String>, ApiError> {
    if let Some(alias) = identifier.strip_prefix("&ip/") {
        return Ok(addresses::by_alias(view, alias)?.map(|it| it.name));
    }
    if let Some(alias) = identifier.strip_prefix(PREFIX) {
        return Ok(domains::by_alias(view, alias)?.map(|it| it.name));
    }
    Ok(groups::by_identifier(view, identifier)?.map(|it| it.display_name))
}
