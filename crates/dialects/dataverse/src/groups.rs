//! Groups to which roles are assigned: explicit ones of a collection, ranges of addresses, and mail domains.

pub(crate) mod addresses;
pub(crate) mod domains;
pub(crate) mod explicit;

use std::collections::BTreeSet;

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View};
use serde::{Deserialize, Serialize};

use crate::asker::Asker;
use crate::error::ApiError;
use crate::{permissions, stored};

/// Explicit groups: body is a [`Group`].
pub(crate) static GROUP: Kind = Kind {
    columns: &[
        Column::one("owner", Type::Integer),
        Column::one("identifier", Type::Text),
        Column::many("members", Type::Text),
    ],
    indexes: &[Index::on(&["owner"]), Index::unique(&["identifier"])],
    ..Kind::named("dataverse_group")
};

/// Deepest nesting of groups in groups that is followed.
const DEPTH: usize = 8;

/// A group that a collection keeps.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Group {
    /// Its number.
    pub id: i64,
    /// The collection.
    pub owner: i64,
    /// Its short name in the collection.
    pub alias: String,
    /// `&explicit/{owner}-{alias}`.
    pub identifier: String,
    /// Its name.
    pub display_name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Assignees in it, other groups among them.
    #[serde(default)]
    pub members: Vec<String>,
}

/// The groups that the caller belongs to, directly or through other groups.
pub(crate) fn of(view: &mut View<'_>, asker: &Asker) -> Result<Vec<String>, ApiError> {
    let mut names = permissions::own_names(asker);
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

/// The name of a group of any kind.
pub(crate) fn name_of(view: &mut View<'_>, identifier: &str) -> Result<Option<String>, ApiError> {
    if let Some(alias) = identifier.strip_prefix("&ip/") {
        return Ok(addresses::by_alias(view, alias)?.map(|it| it.name));
    }
    if let Some(alias) = identifier.strip_prefix(domains::PREFIX) {
        return Ok(domains::by_alias(view, alias)?.map(|it| it.name));
    }
    Ok(by_identifier(view, identifier)?.map(|it| it.display_name))
}

/// The explicit group of that identifier.
pub(crate) fn by_identifier(view: &mut View<'_>, identifier: &str) -> Result<Option<Group>, ApiError> {
    let found = view.first(&GROUP, Expr::Is("identifier".into(), identifier.into()))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// The explicit groups that have an assignee among their members.
pub(crate) fn with_member(view: &mut View<'_>, assignee: &str) -> Result<Vec<Group>, ApiError> {
    stored::find_by(view, &GROUP, "members", assignee)
}

/// Stores a group.
pub(crate) fn put(txn: &mut Txn<'_>, group: &Group) -> Result<(), ApiError> {
    stored::put(txn, &GROUP, &group.id.to_string(), group)
}

/// An assignee has another name now.
pub(crate) fn rename_member(txn: &mut Txn<'_>, before: &str, after: &str) -> Result<(), ApiError> {
    for mut group in with_member(txn, before)? {
        for member in group.members.iter_mut().filter(|it| *it == before) {
            after.clone_into(member);
        }
        put(txn, &group)?;
    }
    Ok(())
}

/// An assignee goes away.
pub(crate) fn remove_member(txn: &mut Txn<'_>, assignee: &str) -> Result<(), ApiError> {
    for mut group in with_member(txn, assignee)? {
        group.members.retain(|it| it != assignee);
        put(txn, &group)?;
    }
    Ok(())
}

/// A group goes away: nothing is granted to it any more, and no other group has it.
fn forget(txn: &mut Txn<'_>, identifier: &str) -> Result<(), ApiError> {
    for grant in permissions::grants_to(txn, &[identifier.to_owned()])? {
        txn.delete(&permissions::GRANT, &permissions::grant_id(grant.object, &grant.assignee))?;
    }
    remove_member(txn, identifier)
}

/// Whether a text may be the short name of a group of addresses or mail domains.
fn is_alias(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'))
}

/// Removes the groups of a collection that goes away, with what was granted to them.
pub(crate) fn remove_of_collection(txn: &mut Txn<'_>, collection: i64) -> Result<(), ApiError> {
    for group in stored::find_by::<Group>(txn, &GROUP, "owner", collection)? {
        forget(txn, &group.identifier)?;
        txn.delete(&GROUP, &group.id.to_string())?;
    }
    Ok(())
}
