//! Queries about related records: items by fields of their holdings and instance, and the like.
//!
//! `instance.title=x` on items finds instances first, then their holdings, then items; the number of records in
//! between is bounded.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use pinakes_store::{Expr, Query, Value, View};

use super::isbn;
use super::kinds::{HOLDINGS, INSTANCE, ITEM, MATERIAL_TYPE};
use crate::platform::collection::{Collection, Collections, by_kind, condition_of};
use crate::platform::cql::{Clause, Node};
use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// Maximum number of records that a condition on a related kind may find.
pub(crate) const JOINED_RECORDS: usize = 50_000;

/// Evaluates `instance.…`, `holdingsRecords.…` and `materialType.…` on items.
pub(super) fn of_items(
    view: &mut View<'_>,
    collections: Collections,
    clause: &Clause,
) -> Result<Option<Expr>, FolioError> {
    if let Some(inner) = below(clause, &["instance"]) {
        let instances = ids(view, collections, INSTANCE, &inner, "id")?;
        let holdings = linked(view, by_kind(collections, HOLDINGS)?, "instanceId", instances, "id")?;
        return Ok(Some(within("holdingsRecordId", holdings)));
    }
    if let Some(inner) = below(clause, &["holdingsRecords", "holdings"]) {
        let holdings = ids(view, collections, HOLDINGS, &inner, "id")?;
        return Ok(Some(within("holdingsRecordId", holdings)));
    }
    if let Some(inner) = below(clause, &["materialType"]) {
        return Ok(Some(within("materialTypeId", ids(view, collections, MATERIAL_TYPE, &inner, "id")?)));
    }
    Ok(None)
}

/// Evaluates `instance.…` and `item.…` on holdings.
pub(super) fn of_holdings(
    view: &mut View<'_>,
    collections: Collections,
    clause: &Clause,
) -> Result<Option<Expr>, FolioError> {
    if let Some(inner) = below(clause, &["instance"]) {
        let instances = ids(view, collections, INSTANCE, &inner, "id")?;
        return Ok(Some(within("instanceId", instances)));
    }
    if let Some(inner) = below(clause, &["item", "items"]) {
        return Ok(Some(Expr::Ids(
            ids(view, collections, ITEM, &inner, "holdingsRecordId")?.into_iter().collect(),
        )));
    }
    Ok(None)
}

/// Evaluates `holdingsRecords.…` and `item.…` on instances; `isbn` in any of its forms.
pub(super) fn of_instances(
    view: &mut View<'_>,
    collections: Collections,
    clause: &Clause,
) -> Result<Option<Expr>, FolioError> {
    if clause.index.eq_ignore_ascii_case("isbn") {
        return Ok(isbn::condition(clause));
    }
    if let Some(inner) = below(clause, &["holdingsRecords", "holdings"]) {
        return Ok(Some(Expr::Ids(
            ids(view, collections, HOLDINGS, &inner, "instanceId")?.into_iter().collect(),
        )));
    }
    if let Some(inner) = below(clause, &["item", "items"]) {
        let holdings = ids(view, collections, ITEM, &inner, "holdingsRecordId")?;
        let instances = instances_of(view, by_kind(collections, HOLDINGS)?, holdings)?;
        return Ok(Some(Expr::Ids(instances.into_iter().collect())));
    }
    Ok(None)
}

/// Returns the ids of the instances of holdings.
pub(crate) fn instances_of(
    view: &mut View<'_>,
    collection: &'static Collection,
    holdings: BTreeSet<String>,
) -> Result<BTreeSet<String>, FolioError> {
    let holdings: Vec<String> = holdings.into_iter().collect();
    let mut instances = BTreeSet::new();
    for record in view.get_many(&collection.kind, &holdings)?.iter().flatten() {
        instances.extend(text_at(&record.json()?, "instanceId").map(str::to_owned));
    }
    Ok(instances)
}

/// Returns the clause without its first step, if that is one of `prefixes`.
pub(crate) fn below(clause: &Clause, prefixes: &[&str]) -> Option<Clause> {
    let (first, rest) = clause.index.split_once('.')?;
    let is_one = prefixes.iter().any(|it| it.eq_ignore_ascii_case(first));
    is_one.then(|| Clause { index: rest.to_owned(), ..clause.clone() })
}

/// Returns the values of `field` in the records of a kind that satisfy a clause.
pub(crate) fn ids(
    view: &mut View<'_>,
    collections: Collections,
    kind: &str,
    clause: &Clause,
    field: &str,
) -> Result<BTreeSet<String>, FolioError> {
    let collection = by_kind(collections, kind)?;
    let node = Node::Clause(clause.clone());
    let filter = condition_of(view, collections, collection, &collection.names, &node)?;
    gathered(view, collection, filter, field)
}

/// Returns the values of `field` in the records whose `path` is one of `values`.
fn linked(
    view: &mut View<'_>,
    collection: &'static Collection,
    path: &str,
    values: BTreeSet<String>,
    field: &str,
) -> Result<BTreeSet<String>, FolioError> {
    gathered(view, collection, within(path, values), field)
}

/// Returns the values of `field` in the records that satisfy a condition.
///
/// Errors: 400 if there are more than [`JOINED_RECORDS`].
pub(crate) fn gathered(
    view: &mut View<'_>,
    collection: &'static Collection,
    filter: Expr,
    field: &str,
) -> Result<BTreeSet<String>, FolioError> {
    let mut found = BTreeSet::new();
    let next = |n: usize| if JOINED_RECORDS < n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    if field == "id" {
        view.for_each(&collection.kind, &Query::filter(filter), |record| {
            found.insert(record.id);
            next(found.len())
        })?;
    } else {
        view.for_each_body(&collection.kind, &Query::filter(filter), |_, body| {
            found.extend(text_at(&body, field).map(str::to_owned));
            next(found.len())
        })?;
    }
    if JOINED_RECORDS < found.len() {
        return Err(FolioError::bad_request(format!(
            "CQLParseException: the condition on {} holds for more than {JOINED_RECORDS} of them; narrow it",
            collection.list
        )));
    }
    Ok(found)
}

pub(crate) fn within(path: &str, values: BTreeSet<String>) -> Expr {
    Expr::In(path.into(), values.into_iter().map(Value::Text).collect())
}
