//! Queries on requests by properties of item, title and requester: `item.barcode`, `requester.barcode`,
//! `instance.title`.

use pinakes_store::{Expr, View};

use crate::circulation::neighbours::{INSTANCES, ITEMS, USERS};
use crate::inventory::joins::{below, joined};
use crate::platform::collection::Collections;
use crate::platform::cql::Clause;
use crate::platform::error::FolioError;

/// The kind of requests.
pub(super) const KIND: &str = "folio_request";
/// Person fields shown with a request, and their paths in user records.
const OF_PERSONS: [(&str, &str); 4] = [
    ("lastName", "personal.lastName"),
    ("firstName", "personal.firstName"),
    ("middleName", "personal.middleName"),
    ("preferredFirstName", "personal.preferredFirstName"),
];

/// Translates a clause about a record related to requests.
pub(super) fn of_requests(
    view: &mut View<'_>,
    collections: Collections,
    clause: &Clause,
) -> Result<Option<Expr>, FolioError> {
    if let Some(inner) = below(clause, &["item"]) {
        return joined(view, collections, &inner, (ITEMS.kind.name, "id"), (KIND, "itemId")).map(Some);
    }
    if let Some(inner) = below(clause, &["instance"]) {
        return joined(view, collections, &inner, (INSTANCES.kind.name, "id"), (KIND, "instanceId"))
            .map(Some);
    }
    for (name, field) in [("requester", "requesterId"), ("proxy", "proxyUserId")] {
        let Some(mut inner) = below(clause, &[name]) else { continue };
        if let Some((_, path)) = OF_PERSONS.iter().find(|(it, _)| *it == inner.index) {
            inner.index = (*path).to_owned();
        }
        return joined(view, collections, &inner, (USERS.kind.name, "id"), (KIND, field)).map(Some);
    }
    Ok(None)
}
