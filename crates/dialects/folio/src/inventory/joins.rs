//! Queries about related records: items by fields of their holdings and instance, and the like.
//!
//! `instance.title=x` on items finds instances first, then their holdings, then items. Few records in between are named
//! by their ids, which an index of the store finds; many are joined by its search indexes.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use pinakes_store::{Expr, Query, Value, View};

use super::call_numbers;
use super::isbn;
use super::kinds::{HOLDINGS, INSTANCE, ITEM, MATERIAL_TYPE};
use crate::platform::collection::{Collections, by_kind, condition_of};
use crate::platform::cql::{Clause, Node};
use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// Maximum number of records in between that are named by their ids where a search index joins more.
const NAMED_RECORDS: u64 = 1_000;
/// The same where none does: with more, the bodies of all records are looked at.
const NAMED_RECORDS_MAX: u64 = 50_000;

/// Evaluates `instance.…`, `holdingsRecords.…` and `materialType.…` on items.
pub(super) fn of_items(
    view: &mut View<'_>,
    collections: Collections,
    clause: &Clause,
) -> Result<Option<Expr>, FolioError> {
    if let Some(inner) = below(clause, &["instance"]) {
        let holdings = joined(view, collections, &inner, (INSTANCE, "id"), (HOLDINGS, "instanceId"))?;
        return linked(view, collections, holdings, (HOLDINGS, "id"), (ITEM, "holdingsRecordId")).map(Some);
    }
    if let Some(inner) = below(clause, &["holdingsRecords", "holdings"]) {
        return joined(view, collections, &inner, (HOLDINGS, "id"), (ITEM, "holdingsRecordId")).map(Some);
    }
    if let Some(inner) = below(clause, &["materialType"]) {
        return joined(view, collections, &inner, (MATERIAL_TYPE, "id"), (ITEM, "materialTypeId")).map(Some);
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
        return joined(view, collections, &inner, (INSTANCE, "id"), (HOLDINGS, "instanceId")).map(Some);
    }
    if let Some(inner) = below(clause, &["item", "items"]) {
        return joined(view, collections, &inner, (ITEM, "holdingsRecordId"), (HOLDINGS, "id")).map(Some);
    }
    Ok(None)
}

/// Evaluates `holdingsRecords.…` and `item.…` on instances; call numbers of both without regard to what is between
/// letters and digits; `isbn` in any of its forms.
pub(super) fn of_instances(
    view: &mut View<'_>,
    collections: Collections,
    clause: &Clause,
) -> Result<Option<Expr>, FolioError> {
    const OF_HOLDINGS: End = (HOLDINGS, "instanceId");
    if clause.index.eq_ignore_ascii_case("isbn") {
        return Ok(isbn::condition(clause));
    }
    if let Some((kind, filter)) = call_numbers::normalized(clause)? {
        let above = match kind {
            HOLDINGS => filter,
            _ => linked(view, collections, filter, (ITEM, "holdingsRecordId"), (HOLDINGS, "id"))?,
        };
        return linked(view, collections, above, OF_HOLDINGS, (INSTANCE, "id")).map(Some);
    }
    if let Some(inner) = below(clause, &["holdingsRecords", "holdings"]) {
        return joined(view, collections, &inner, (HOLDINGS, "instanceId"), (INSTANCE, "id")).map(Some);
    }
    if let Some(inner) = below(clause, &["item", "items"]) {
        let above = joined(view, collections, &inner, (ITEM, "holdingsRecordId"), (HOLDINGS, "id"))?;
        return linked(view, collections, above, OF_HOLDINGS, (INSTANCE, "id")).map(Some);
    }
    Ok(None)
}

/// Returns the clause without its first step, if that is one of `prefixes`.
pub(crate) fn below(clause: &Clause, prefixes: &[&str]) -> Option<Clause> {
    let (first, rest) = clause.index.split_once('.')?;
    let is_one = prefixes.iter().any(|it| it.eq_ignore_ascii_case(first));
    is_one.then(|| Clause { index: rest.to_owned(), ..clause.clone() })
}

/// One end of a join: a kind, and the path at which its records have the text that joins them.
pub(crate) type End = (&'static str, &'static str);

/// Returns the condition on records of `to` that they are joined with one of `from` which satisfies a clause.
pub(crate) fn joined(
    view: &mut View<'_>,
    collections: Collections,
    clause: &Clause,
    from: End,
    to: End,
) -> Result<Expr, FolioError> {
    let collection = by_kind(collections, from.0)?;
    let node = Node::Clause(clause.clone());
    let filter = condition_of(view, collections, collection, &collection.names, &node)?;
    linked(view, collections, filter, from, to)
}

/// Returns the condition on records of `to` that they are joined with one of `from` which satisfies a condition.
fn linked(
    view: &mut View<'_>,
    collections: Collections,
    filter: Expr,
    (kind, field): End,
    (to, path): End,
) -> Result<Expr, FolioError> {
    let collection = by_kind(collections, kind)?;
    let is_indexed = by_kind(collections, to)?.kind.joins.contains(&path);
    let n_named = if is_indexed { NAMED_RECORDS } else { NAMED_RECORDS_MAX };
    if n_named < view.count(&collection.kind, &filter)? {
        let keys = view.join_keys(&collection.kind, &filter, &field.into())?;
        return Ok(Expr::Joined(path.into(), keys));
    }
    let mut found = BTreeSet::new();
    if field == "id" {
        view.for_each(&collection.kind, &Query::filter(filter), |record| {
            found.insert(record.id);
            ControlFlow::Continue(())
        })?;
    } else {
        view.for_each_body(&collection.kind, &Query::filter(filter), |_, body| {
            found.extend(text_at(&body, field).map(str::to_owned));
            ControlFlow::Continue(())
        })?;
    }
    Ok(if path == "id" { Expr::Ids(found.into_iter().collect()) } else { within(path, found) })
}

fn within(path: &str, values: BTreeSet<String>) -> Expr {
    Expr::In(path.into(), values.into_iter().map(Value::Text).collect())
}
