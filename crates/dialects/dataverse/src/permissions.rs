//! Who may do what: the one place where it is decided (section 0.4 of the contract). What is granted nowhere is denied.
//!
//! A *grant* is what one assignee holds on one object: a record by `{object}/{assignee}`, so that a check reads a handful
//! of records by their ids, however many assignments there are. Every collection is its own permission root: what counts
//! for a file is granted on the file, its dataset, or the dataset's collection, and nowhere above.

use std::collections::BTreeSet;

use pinakes_store::{Column, Expr, Index, Kind, Type, View};
use serde::{Deserialize, Serialize};

use crate::asker::Asker;
use crate::error::ApiError;
use crate::{groups, roles, stored};

/// What is granted: body is a [`Grant`].
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
    ..Kind::named("dataverse_grant")
};

/// A permission, in the order in which bits of roles are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Permission {
    /// Make collections in a collection.
    AddDataverse,
    /// Make datasets in a collection.
    AddDataset,
    /// See a collection that is not published.
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
    /// Let others download files.
    ManageFilePermissions,
    /// Publish a collection.
    PublishDataverse,
    /// Publish a dataset.
    PublishDataset,
    /// Link a collection.
    LinkDataverse,
    /// Link a dataset.
    LinkDataset,
    /// Delete a collection that is not published.
    DeleteDataverse,
    /// Delete a draft.
    DeleteDatasetDraft,
}

impl Permission {
    /// All of them, in order.
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

    /// As it is written: `AddDataverse`.
    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    /// The permission of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// Where something is to be done: an object with those above it that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file, if it is about one.
    pub file: Option<i64>,
    /// The dataset, if it is about one or a file of it.
    pub dataset: Option<i64>,
    /// The collection, or the one that the dataset is in.
    pub collection: i64,
}

impl Place {
    /// A collection.
    pub(crate) fn collection(collection: i64) -> Self {
        Self { file: None, dataset: None, collection }
    }

    /// A dataset in a collection.
    pub(crate) fn dataset(dataset: i64, collection: i64) -> Self {
        Self { file: None, dataset: Some(dataset), collection }
    }

    /// A file of a dataset in a collection.
    pub(crate) fn file(file: i64, dataset: i64, collection: i64) -> Self {
        Self { file: Some(file), dataset: Some(dataset), collection }
    }

    fn objects(self) -> impl Iterator<Item = i64> {
        self.file.into_iter().chain(self.dataset).chain([self.collection])
    }
}

/// What one assignee holds on one object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// The object: a collection, a dataset or a file.
    pub object: i64,
    /// `@user`, `&explicit/1-readers`, `&ip/lab`, `:guest`, `:authenticated-users`, `:AllUsers`, `#42`.
    pub assignee: String,
    /// The roles, each with the number of its assignment.
    pub roles: Vec<Assigned>,
}

/// One role that was assigned.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Assigned {
    /// Number of the assignment.
    pub id: i64,
    /// Number of the role.
    pub role: i64,
}

/// The id of a grant.
pub(crate) fn grant_id(object: i64, assignee: &str) -> String {
    format!("{object}/{assignee}")
}

/// Permissions as a set.
pub(crate) type Permissions = BTreeSet<Permission>;

/// What the caller may do at a place.
///
/// Two reads: the grants of the caller's own names, then the roles, if there are any that were made here. Groups are looked
/// at when the names alone do not do.
pub(crate) fn held(view: &mut View<'_>, asker: &Asker, place: Place) -> Result<Permissions, ApiError> {
    if asker.is_superuser() {
        return Ok(Permission::ALL.into_iter().collect());
    }
    let mut held = granted(view, &own_names(asker), place)?;
    let groups = groups::of(view, asker)?;
    if !groups.is_empty() {
        held.extend(granted(view, &groups, place)?);
    }
    Ok(held)
}

/// Whether the caller may do one thing at a place.
pub(crate) fn may(
    view: &mut View<'_>,
    asker: &Asker,
    place: Place,
    permission: Permission,
) -> Result<bool, ApiError> {
    if asker.is_superuser() || granted(view, &own_names(asker), place)?.contains(&permission) {
        return Ok(true);
    }
    let groups = groups::of(view, asker)?;
    Ok(!groups.is_empty() && granted(view, &groups, place)?.contains(&permission))
}

/// Lets the caller do one thing at a place. Errors: 401.
pub(crate) fn require(
    view: &mut View<'_>,
    asker: &Asker,
    place: Place,
    permission: Permission,
) -> Result<(), ApiError> {
    if may(view, asker, place, permission)? { Ok(()) } else { Err(refusal(asker)) }
}

/// 401 `User @name is not permitted to perform requested action.`
pub(crate) fn refusal(asker: &Asker) -> ApiError {
    ApiError::unauthorized(format!(
        "User {} is not permitted to perform requested action.",
        asker.identifier()
    ))
}

/// The names under which roles may be assigned to the caller, without groups that were made here.
pub(crate) fn own_names(asker: &Asker) -> Vec<String> {
    let mut names = vec![asker.identifier(), ":AllUsers".to_owned()];
    if asker.user.is_some() {
        names.push(":authenticated-users".to_owned());
    } else if asker.preview.is_some() {
        names.push(":guest".to_owned());
    }
    names
}

fn granted(view: &mut View<'_>, assignees: &[String], place: Place) -> Result<Permissions, ApiError> {
    let ids: Vec<String> =
        place.objects().flat_map(|object| assignees.iter().map(move |it| grant_id(object, it))).collect();
    let mut assigned = BTreeSet::new();
    for record in view.get_many(&GRANT, &ids)?.into_iter().flatten() {
        let grant: Grant = stored::parsed(&record)?;
        assigned.extend(grant.roles.iter().map(|it| it.role));
    }
    let mut held = Permissions::new();
    for role in assigned {
        held.extend(roles::permissions_of(view, role)?);
    }
    Ok(held)
}

/// What is granted on an object, each with its assignee.
pub(crate) fn grants_on(view: &mut View<'_>, object: i64) -> Result<Vec<Grant>, ApiError> {
    stored::find_by(view, &GRANT, "object", object)
}

/// What is granted to any of these assignees, anywhere.
pub(crate) fn grants_to(view: &mut View<'_>, assignees: &[String]) -> Result<Vec<Grant>, ApiError> {
    let values = assignees.iter().map(|it| it.as_str().into()).collect();
    stored::find(view, &GRANT, &pinakes_store::Query::filter(Expr::In("assignee".into(), values)))
}
