//! Queries on requests by what is asked for and by whom: `item.barcode`, `requester.barcode`, `instance.title`.

use pinakes_store::{Expr, View};

use crate::circulation::neighbours::{INSTANCES, ITEMS, USERS};
use crate::inventory::joins::{below, ids, within};
use crate::platform::collection::Collections;
use crate::platform::cql::Clause;
use crate::platform::error::FolioError;

/// Names of a person's fields that are shown beside a request, and where users have them.
const OF_PERSONS: [(&str, &str); 4] = [
    ("lastName", "personal.lastName"),
    ("firstName", "personal.firstName"),
    ("middleName", "personal.middleName"),
    ("preferredFirstName", "personal.preferredFirstName"),
];

/// A clause about a neighbour of requests.
pub(super) fn of_requests(
    view: &mut View<'_>,
    collections: Collections,
    clause: &Clause,
) -> Result<Option<Expr>, FolioError> {
    if let Some(inner) = below(clause, &["item"]) {
        return Ok(Some(within("itemId", ids(view, collections, ITEMS.kind.name, &inner, "id")?)));
    }
    if let Some(inner) = below(clause, &["instance"]) {
        return Ok(Some(within("instanceId", ids(view, collections, INSTANCES.kind.name, &inner, "id")?)));
    }
    for (name, field) in [("requester", "requesterId"), ("proxy", "proxyUserId")] {
        let Some(mut inner) = below(clause, &[name]) else { continue };
        if let Some((_, path)) = OF_PERSONS.iter().find(|(it, _)| *it == inner.index) {
            inner.index = (*path).to_owned();
        }
        return Ok(Some(within(field, ids(view, collections, USERS.kind.name, &inner, "id")?)));
    }
    Ok(None)
}
