//! Groups to which roles can be assigned: explicit groups of a collection, IP groups, and groups by mail domain.

pub(crate) mod addresses;
pub(crate) mod domains;
pub(crate) mod explicit;
pub(crate) mod membership;

use pinakes_store::{Column, Expr, Index, Kind, Txn, Type, View};
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::grants::{self, GRANT};
use crate::stored;

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

/// An explicit group of a collection.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Group {
    /// Its number.
    pub id: i64,
    /// The collection that owns it.
    pub owner: i64,
    /// Its short name in the collection.
    pub alias: String,
    /// Its identifier: `&explicit/{owner}-{alias}`.
    pub identifier: String,
    /// Its name.
    pub display_name: String,
    /// Its purpose.
    #[serde(default)]
    pub description: String,
    /// Its members: assignees, including other groups.
    #[serde(default)]
    pub members: Vec<String>,
}

/// Returns the explicit group with that identifier.
pub(crate) fn by_identifier(view: &mut View<'_>, identifier: &str) -> Result<Option<Group>, ApiError> {
    let found = view.first(&GROUP, Expr::Is("identifier".into(), identifier.into()))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Returns the explicit groups that an assignee is a direct member of.
pub(crate) fn with_member(view: &mut View<'_>, assignee: &str) -> Result<Vec<Group>, ApiError> {
    stored::find_by(view, &GROUP, "members", assignee)
}

/// Stores a group.
pub(crate) fn put(txn: &mut Txn<'_>, group: &Group) -> Result<(), ApiError> {
    stored::put(txn, &GROUP, &group.id.to_string(), group)
}

/// Renames an assignee in all groups.
pub(crate) fn rename_member(txn: &mut Txn<'_>, before: &str, after: &str) -> Result<(), ApiError> {
    for mut group in with_member(txn, before)? {
        for member in group.members.iter_mut().filter(|it| *it == before) {
            after.clone_into(member);
        }
        put(txn, &group)?;
    }
    Ok(())
}

/// Removes an assignee that is being deleted from all groups.
pub(crate) fn remove_member(txn: &mut Txn<'_>, assignee: &str) -> Result<(), ApiError> {
    for mut group in with_member(txn, assignee)? {
        group.members.retain(|it| it != assignee);
        put(txn, &group)?;
    }
    Ok(())
}

/// Removes everything granted to a group that is being deleted, and its memberships in other groups.
fn forget(txn: &mut Txn<'_>, identifier: &str) -> Result<(), ApiError> {
    for grant in grants::grants_to(txn, &[identifier.to_owned()])? {
        txn.delete(&GRANT, &grants::grant_id(grant.object, &grant.assignee))?;
    }
    remove_member(txn, identifier)
}

/// Returns whether a text is a valid short name of an IP group or a mail-domain group.
fn is_alias(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'))
}

/// Removes the groups of a collection that is being deleted, and everything granted to them.
pub(crate) fn remove_of_collection(txn: &mut Txn<'_>, collection: i64) -> Result<(), ApiError> {
    for group in stored::find_by::<Group>(txn, &GROUP, "owner", collection)? {
        forget(txn, &group.identifier)?;
        txn.delete(&GROUP, &group.id.to_string())?;
    }
    Ok(())
}
