//! Traces of a user in other objects: shown before the user is deleted, and reasons why they cannot be deleted.

use pinakes_store::{Expr, Kind, Query, Txn, View};
use serde_json::{Map, Value, json};

use crate::collections::{self, Collection};
use crate::csv::cell;
use crate::datasets::{self, DATASET, Dataset};
use crate::error::ApiError;
use crate::files::kinds::DATA_FILE;
use crate::files::{DataFile, rows};
use crate::users::User;
use crate::{grants, groups, guestbooks, roles, saved_searches, stored};

/// A kind of traces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    RoleAssignments,
    DataverseCreator,
    /// Who published collections is not stored.
    DataversePublisher,
    DatasetCreator,
    /// Who published datasets is not stored.
    DatasetPublisher,
    /// Shown only on request, because it takes a scan of all files.
    DataFileCreator,
    /// Who published files is not stored.
    DataFilePublisher,
    /// Versions of datasets to which the user contributed.
    DatasetVersionUsers,
    ExplicitGroups,
    GuestbookEntries,
    SavedSearches,
}

/// The elements and their names, in the order in which they are shown.
const ELEMENTS: [(Element, &str); 11] = [
    (Element::RoleAssignments, "roleAssignments"),
    (Element::DataverseCreator, "dataverseCreator"),
    (Element::DataversePublisher, "dataversePublisher"),
    (Element::DatasetCreator, "datasetCreator"),
    (Element::DatasetPublisher, "datasetPublisher"),
    (Element::DataFileCreator, "dataFileCreator"),
    (Element::DataFilePublisher, "dataFilePublisher"),
    (Element::DatasetVersionUsers, "datasetVersionUsers"),
    (Element::ExplicitGroups, "explicitGroups"),
    (Element::GuestbookEntries, "guestbookEntries"),
    (Element::SavedSearches, "savedSearches"),
];

impl Element {
    /// Returns the element of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        ELEMENTS.iter().find(|it| it.1 == name).map(|it| it.0)
    }

    /// Returns the traces of this kind.
    fn items(self, view: &mut View<'_>, user: &User) -> Result<Vec<Value>, ApiError> {
        match self {
            Self::RoleAssignments => role_assignments(view, user),
            Self::DataverseCreator => {
                let made = collections_of(view, user)?;
                Ok(made.iter().map(|it| json!({"id": it.id, "alias": it.alias})).collect())
            }
            Self::DatasetCreator => {
                let made: Vec<Dataset> = stored::find_by(view, &DATASET, "creator", user.id)?;
                Ok(made.iter().map(|it| json!({"id": it.id, "pid": it.pid})).collect())
            }
            Self::DataFileCreator => files_of(view, user),
            Self::DatasetVersionUsers => numbers_of(view, &datasets::VERSION, "contributorIds", user),
            Self::ExplicitGroups => {
                let groups = groups::with_member(view, &user.identifier())?;
                Ok(groups.iter().map(|it| json!({"id": it.id, "name": it.display_name})).collect())
            }
            Self::GuestbookEntries => numbers_of(view, &guestbooks::ENTRY, "user", user),
            Self::SavedSearches => saved_searches::ids_of(view, user.id),
            Self::DataversePublisher | Self::DatasetPublisher | Self::DataFilePublisher => Ok(Vec::new()),
        }
    }
}

/// Returns `{"user":…,"traces":{…}}`, with a member for each kind of traces that exist; of one kind if it is named.
pub(crate) fn json(view: &mut View<'_>, user: &User, only: Option<Element>) -> Result<Value, ApiError> {
    let mut traces = Map::new();
    for (element, name) in ELEMENTS {
        if only.is_some_and(|it| it != element) || (only.is_none() && element == Element::DataFileCreator) {
            continue;
        }
        let trace = if only.is_none() && element == Element::GuestbookEntries {
            // They may be many, so they are only counted unless asked for.
            json!({"count": guestbooks::n_responses_of(view, user.id)?})
        } else {
            let items = element.items(view, user)?;
            json!({"count": items.len(), "items": items})
        };
        if trace["count"] != 0 {
            traces.insert(name.to_owned(), trace);
        }
    }
    let id = json!({"id": user.id, "identifier": user.identifier(), "name": user.display_name()});
    Ok(json!({"user": id, "traces": traces}))
}

/// Returns the traces of one kind as CSV; the members of the items are the columns.
pub(crate) fn csv(view: &mut View<'_>, user: &User, element: Element) -> Result<String, ApiError> {
    let items = element.items(view, user)?;
    let Some(columns) =
        items.first().and_then(Value::as_object).map(|it| it.keys().cloned().collect::<Vec<_>>())
    else {
        return Ok(String::new());
    };
    let mut text = format!("{}\n", columns.join(","));
    for item in &items {
        let cells: Vec<String> = columns.iter().map(|it| cell_of(&item[it.as_str()])).collect();
        text.push_str(&format!("{}\n", cells.join(",")));
    }
    Ok(text)
}

fn cell_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => cell(text),
        other => other.to_string(),
    }
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

/// Returns the name of a collection, or the identifier of a dataset.
fn object_name(view: &mut View<'_>, object: i64) -> Result<String, ApiError> {
    if let Some(collection) = collections::by_id(view, object)? {
        return Ok(collection.name);
    }
    Ok(datasets::by_id(view, object)?.map(|it| it.pid).unwrap_or_default())
}

fn collections_of(view: &mut View<'_>, user: &User) -> Result<Vec<Collection>, ApiError> {
    stored::find_by(view, &collections::COLLECTION, "creator", user.id)
}

/// Returns the numbers of the records that name a user at `path`, as `{"id": …}`.
fn numbers_of(
    view: &mut View<'_>,
    kind: &'static Kind,
    path: &str,
    user: &User,
) -> Result<Vec<Value>, ApiError> {
    let ids = rows::ids_of(view, kind, Expr::Is(path.into(), user.id.into()))?;
    Ok(ids.iter().filter_map(|id| id.parse::<i64>().ok()).map(|id| json!({"id": id})).collect())
}

/// Returns the files that a user deposited. Reads all files.
fn files_of(view: &mut View<'_>, user: &User) -> Result<Vec<Value>, ApiError> {
    let mut items = Vec::new();
    view.try_for_each(&DATA_FILE, &Query::filter(Expr::All), |record| -> Result<(), ApiError> {
        let file: DataFile = stored::parsed(&record)?;
        if file.creator == user.id {
            items.push(json!({"id": file.id, "pid": file.pid}));
        }
        Ok(())
    })?;
    Ok(items)
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
    if !saved_searches::ids_of(view, user.id)?.is_empty() {
        reasons.push("the user has created saved searches".to_owned());
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
    guestbooks::hand_over(txn, from.id, into.id)?;
    saved_searches::hand_over(txn, from.id, into.id)?;
    for mut collection in collections_of(txn, from)? {
        collection.creator = Some(into.id);
        collections::put(txn, &collection)?;
    }
    Ok(())
}
