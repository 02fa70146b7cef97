//! Traces of a user in other objects: shown before the user is deleted, and reasons why they cannot be deleted.

use pinakes_store::{Expr, Kind, Query, Txn, View};
use serde_json::{Map, Value, json};

use crate::access::requests;
use crate::collections::{self, COLLECTION, Collection};
use crate::csv::cell;
use crate::datasets::version::{self, Version};
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
    DataversePublisher,
    DatasetCreator,
    DatasetPublisher,
    /// Shown only on request, because they may be many.
    DataFileCreator,
    /// Files are published with their dataset; nobody is named.
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
            Self::DataverseCreator => collections_of(view, "creator", user),
            Self::DataversePublisher => collections_of(view, "publisher", user),
            Self::DatasetCreator => datasets_of(view, "creator", user),
            Self::DatasetPublisher => datasets_of(view, "publisher", user),
            Self::DataFileCreator => {
                let made: Vec<DataFile> = stored::find_by(view, &DATA_FILE, "creator", user.id)?;
                Ok(made.iter().map(|it| json!({"id": it.id, "pid": it.pid})).collect())
            }
            Self::DataFilePublisher => Ok(Vec::new()),
            Self::DatasetVersionUsers => numbers_of(view, &datasets::VERSION, "contributorIds", user),
            Self::ExplicitGroups => {
                let groups = groups::with_member(view, &user.identifier())?;
                Ok(groups.iter().map(|it| json!({"id": it.id, "name": it.display_name})).collect())
            }
            Self::GuestbookEntries => numbers_of(view, &guestbooks::ENTRY, "user", user),
            Self::SavedSearches => saved_searches::ids_of(view, user.id),
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

fn collections_of(view: &mut View<'_>, member: &str, user: &User) -> Result<Vec<Value>, ApiError> {
    let found: Vec<Collection> = stored::find_by(view, &COLLECTION, member, user.id)?;
    Ok(found.iter().map(|it| json!({"id": it.id, "alias": it.alias})).collect())
}

fn datasets_of(view: &mut View<'_>, member: &str, user: &User) -> Result<Vec<Value>, ApiError> {
    let found: Vec<Dataset> = stored::find_by(view, &DATASET, member, user.id)?;
    Ok(found.iter().map(|it| json!({"id": it.id, "pid": it.pid})).collect())
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

/// Where the creators and publishers of objects are stored.
static MADE: [(&Kind, &str); 5] = [
    (&COLLECTION, "creator"),
    (&COLLECTION, "publisher"),
    (&DATASET, "creator"),
    (&DATASET, "publisher"),
    (&DATA_FILE, "creator"),
];

/// Returns the reasons why a user cannot be deleted; empty if there are none.
pub(crate) fn what_keeps(view: &mut View<'_>, user: &User) -> Result<Vec<String>, ApiError> {
    let mut reasons = Vec::new();
    let mut has_made_any = false;
    for (kind, member) in MADE {
        has_made_any = has_made_any || view.count(kind, &Expr::Is(member.into(), user.id.into()))? != 0;
    }
    if has_made_any {
        reasons.push("the user has created Dataverse object(s)".to_owned());
    }
    if guestbooks::has_responses_of(view, user.id)? {
        reasons.push("the user is associated with file download (Guestbook Response) record(s)".to_owned());
    }
    if !grants::grants_to(view, &[user.identifier()])?.is_empty() {
        reasons.push("the user is associated with role assignment record(s)".to_owned());
    }
    if view.count(&datasets::VERSION, &Expr::Is("contributorIds".into(), user.id.into()))? != 0 {
        reasons.push("the user has contributed to dataset version(s)".to_owned());
    }
    if !saved_searches::ids_of(view, user.id)?.is_empty() {
        reasons.push("the user has created saved searches".to_owned());
    }
    Ok(reasons)
}

/// Transfers what one user left in other objects to another.
pub(crate) fn hand_over(txn: &mut Txn<'_>, from: &User, into: &User) -> Result<(), ApiError> {
    for (kind, member) in MADE {
        for record in txn.find(kind, &Query::filter(Expr::Is(member.into(), from.id.into())))? {
            let mut object = record.json()?;
            object[member] = into.id.into();
            txn.update(kind, &record.id, &object)?;
        }
    }
    for mut version in stored::find_by::<Version>(txn, &datasets::VERSION, "contributorIds", from.id)? {
        version.replace_contributor(from.id, into);
        version::put(txn, &version)?;
    }
    requests::hand_over(txn, from.id, into.id)?;
    guestbooks::hand_over(txn, from.id, into.id)?;
    saved_searches::hand_over(txn, from.id, into.id)
}
