//! Stored grants: permissions by name, the places at which they apply, the roles of an assignee there.

use pinakes_store::{Column, Expr, Index, JoinKeys, Kind, Query, Search, Type, View};
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::stored;

/// Grants: body is a [`Grant`].
pub(crate) static GRANT: Kind = Kind {
    columns: &[
        Column::one("object", Type::Integer),
        Column::one("assignee", Type::Text),
        Column {
            name: "held_role",
            path: "roles.role",
            ty: Type::Integer,
            arity: pinakes_store::Arity::Many,
        },
    ],
    indexes: &[Index::on(&["object"]), Index::on(&["assignee"])],
    search: Search::Declared,
    joins: &["object"],
    ..Kind::named("dataverse_grant")
};

/// A permission, in the order of the bits of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Permission {
    /// Create collections in a collection.
    AddDataverse,
    /// Create datasets in a collection.
    AddDataset,
    /// See an unpublished collection.
    ViewUnpublishedDataverse,
    /// See drafts.
    ViewUnpublishedDataset,
    /// Download restricted and unpublished files.
    DownloadFile,
    /// Change a collection.
    EditDataverse,
    /// Change a dataset.
    EditDataset,
    /// Assign roles on a collection.
    ManageDataversePermissions,
    /// Assign roles on a dataset.
    ManageDatasetPermissions,
    /// Grant others access to files.
    ManageFilePermissions,
    /// Publish a collection.
    PublishDataverse,
    /// Publish a dataset.
    PublishDataset,
    /// Link a collection.
    LinkDataverse,
    /// Link a dataset.
    LinkDataset,
    /// Delete an unpublished collection.
    DeleteDataverse,
    /// Delete a draft.
    DeleteDatasetDraft,
}

impl Permission {
    /// All permissions, in order.
    pub(crate) const ALL: [Self; 16] = [
        Self::AddDataverse,
        Self::AddDataset,
        Self::ViewUnpublishedDataverse,
        Self::ViewUnpublishedDataset,
        Self::DownloadFile,
        Self::EditDataverse,
        Self::EditDataset,
        Self::ManageDataversePermissions,
        Self::ManageDatasetPermissions,
        Self::ManageFilePermissions,
        Self::PublishDataverse,
        Self::PublishDataset,
        Self::LinkDataverse,
        Self::LinkDataset,
        Self::DeleteDataverse,
        Self::DeleteDatasetDraft,
    ];

    /// Returns the name in JSON: `AddDataverse`.
    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    /// Returns the permission with that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// The place of an action: an object, with those above it whose roles apply as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file, if the action is about one.
    pub file: Option<i64>,
    /// The dataset, if the action is about one or a file of it.
    pub dataset: Option<i64>,
    /// The collection, or that of the dataset.
    pub collection: i64,
}

impl Place {
    /// Returns the place of a collection.
    pub(crate) fn collection(collection: i64) -> Self {
        Self { file: None, dataset: None, collection }
    }

    /// Returns the place of a dataset in a collection.
    pub(crate) fn dataset(dataset: i64, collection: i64) -> Self {
        Self { file: None, dataset: Some(dataset), collection }
    }

    /// Returns the place of a file of a dataset in a collection.
    pub(crate) fn file(file: i64, dataset: i64, collection: i64) -> Self {
        Self { file: Some(file), dataset: Some(dataset), collection }
    }

    pub(crate) fn objects(self) -> impl Iterator<Item = i64> {
        self.file.into_iter().chain(self.dataset).chain([self.collection])
    }
}

/// The roles of one assignee on one object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// The object: a collection, a dataset or a file.
    pub object: i64,
    /// `@user`, `&explicit/1-readers`, `&ip/lab`, `:guest`, `:authenticated-users`, `:AllUsers`, `#42`.
    pub assignee: String,
    /// The roles, each with the number of its assignment.
    pub roles: Vec<Assigned>,
}

/// An assigned role.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Assigned {
    /// Number of the assignment.
    pub id: i64,
    /// Number of the role.
    pub role: i64,
}

/// Returns the id of a grant.
pub(crate) fn grant_id(object: i64, assignee: &str) -> String {
    format!("{object}/{assignee}")
}

/// Returns the grants on an object, one per assignee.
pub(crate) fn grants_on(view: &mut View<'_>, object: i64) -> Result<Vec<Grant>, ApiError> {
    stored::find_by(view, &GRANT, "object", object)
}

/// Returns all grants to any of these assignees.
pub(crate) fn grants_to(view: &mut View<'_>, assignees: &[String]) -> Result<Vec<Grant>, ApiError> {
    stored::find(view, &GRANT, &Query::filter(is_to(assignees)))
}

/// Returns at most so many grants to any of these assignees.
pub(crate) fn some_grants_to(
    view: &mut View<'_>,
    assignees: &[String],
    limit: u64,
) -> Result<Vec<Grant>, ApiError> {
    stored::find(view, &GRANT, &Query::filter(is_to(assignees)).window(0, limit))
}

/// Returns the grants of any of these roles to any of these assignees.
pub(crate) fn grants_of(
    view: &mut View<'_>,
    assignees: &[String],
    roles: &[i64],
) -> Result<Vec<Grant>, ApiError> {
    stored::find(view, &GRANT, &Query::filter(is_to(assignees).and(is_of(roles))))
}

/// Returns the numbers of the objects on which any of these assignees has any of these roles; there may be as many as
/// there are datasets.
pub(crate) fn objects_of(
    view: &mut View<'_>,
    assignees: &[String],
    roles: &[i64],
) -> Result<JoinKeys, ApiError> {
    Ok(view.join_keys(&GRANT, &is_to(assignees).and(is_of(roles)), &"object".into())?)
}

fn is_to(assignees: &[String]) -> Expr {
    Expr::In("assignee".into(), assignees.iter().map(|it| it.as_str().into()).collect())
}

fn is_of(roles: &[i64]) -> Expr {
    Expr::In("roles.role".into(), roles.iter().map(|it| (*it).into()).collect())
}
