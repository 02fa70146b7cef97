//! Groups to which roles are assigned: explicit ones of a collection, and ranges of addresses.

use std::collections::BTreeSet;

use pinakes_store::{Column, Expr, Index, Kind, Query, Type, View};
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
pub struct Group {
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
    let mut found = BTreeSet::new();
    let mut names = permissions::own_names(asker);
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
