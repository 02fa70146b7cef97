//! Facets: how often each value of a field occurs among the results of a search (mod-search).
//!
//! Facets that a kind declares are counted by the store. Those of an instance's holdings and items are counted from
//! the records below the results: an instance counts once for each value, however many of its items have it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_store::{Expr, Query, View};
use serde_json::{Map, Value, json};

use crate::authorities::authority::AUTHORITIES;
use crate::authorities::headings;
use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::inventory::joins;
use crate::platform::app::Call;
use crate::platform::collection::Collection;
use crate::platform::error::{Fault, FolioError};
use crate::platform::json::text_at;

/// What a facet counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// A facet that the kind declares, by its name.
    Declared(&'static str),
    /// A field of an instance's holdings.
    OfHoldings(&'static str),
    /// A field of an instance's items.
    OfItems(&'static str),
    /// The types of an authority's headings.
    Headings,
    /// Whether a record is shared between tenants; none is.
    Shared,
}

/// Other names of facets of instances.
const OF_INSTANCES: [(&str, Counted); 9] = [
    ("instanceFormatId", Counted::Declared("instanceFormatIds")),
    ("statisticalCodes", Counted::Declared("statisticalCodeIds")),
    ("dates.dateTypeId", Counted::Declared("instanceDateType")),
    ("instanceDateTypeId", Counted::Declared("instanceDateType")),
    ("holdingsTypeId", Counted::OfHoldings("holdingsTypeId")),
    ("holdingsTags", Counted::OfHoldings("tags.tagList")),
    ("holdingTags", Counted::OfHoldings("tags.tagList")),
    ("itemTags", Counted::OfItems("tags.tagList")),
    ("shared", Counted::Shared),
];

/// Fields of holdings that are counted, as `holdings.FIELD`.
const HOLDINGS_FIELDS: [&str; 8] = [
    "permanentLocationId",
    "temporaryLocationId",
    "effectiveLocationId",
    "holdingsTypeId",
    "sourceId",
    "discoverySuppress",
    "statisticalCodeIds",
    "tags.tagList",
];

/// Fields of items that are counted, as `items.FIELD` or `item.FIELD`.
const ITEM_FIELDS: [&str; 8] = [
    "effectiveLocationId",
    "permanentLocationId",
    "status.name",
    "materialTypeId",
    "discoverySuppress",
    "statisticalCodeIds",
    "effectiveCallNumberComponents.typeId",
    "tags.tagList",
];

/// Maximum number of records whose relatives are read at once.
const CHUNK: usize = 500;

impl Counted {
    fn of(collection: &'static Collection, name: &str) -> Option<Self> {
        if let Some(declared) = collection.kind.facets.iter().find(|it| it.name == name) {
            return Some(Self::Declared(declared.name));
        }
        if std::ptr::eq(collection, &AUTHORITIES) {
            return [("headingType", Self::Headings), ("shared", Self::Shared)]
                .into_iter()
                .find_map(|it| (it.0 == name).then_some(it.1));
        }
        if !std::ptr::eq(collection, &INSTANCES) {
            return None;
        }
        let known = |fields: &[&'static str], field: &str| fields.iter().find(|it| **it == field).copied();
        match name.split_once('.') {
            Some(("holdings", field)) => known(&HOLDINGS_FIELDS, field).map(Self::OfHoldings),
            Some(("items" | "item", field)) => known(&ITEM_FIELDS, field).map(Self::OfItems),
            _ => OF_INSTANCES.iter().find(|it| it.0 == name).map(|it| it.1),
        }
    }
}

/// The values of a facet and the number of records with each.
type Counts = BTreeMap<String, u64>;

/// A facet that a request names.
#[derive(Debug, Clone)]
pub(super) struct Facet {
    name: String,
    counted: Counted,
    /// Maximum number of values shown.
    limit: usize,
}

/// Reads the facets that a request names: `facet=sourceFileId:5`, repeatable.
///
/// Errors: 400 for a name that is none.
pub(super) fn asked(call: &Call, collection: &'static Collection) -> Result<Vec<Facet>, FolioError> {
    let mut asked = Vec::new();
    for text in call.query.all("facet").flat_map(|it| it.split(',')) {
        let (name, limit) = text.split_once(':').unwrap_or((text, ""));
        let limit = limit.parse::<usize>().unwrap_or(usize::MAX);
        let Some(counted) = Counted::of(collection, name) else {
            let fault = Fault::new("Invalid facet value").ty("ValidationException").code("validation_error");
            return Err(FolioError::faults(StatusCode::BAD_REQUEST, vec![fault.with("facet", name)]));
        };
        asked.push(Facet { name: name.to_owned(), counted, limit });
    }
    Ok(asked)
}

/// Returns the most frequent values of facets in the records that satisfy a condition.
pub(super) fn shown(
    view: &mut View<'_>,
    collection: &'static Collection,
    filter: &Expr,
    asked: &[Facet],
) -> Result<Value, FolioError> {
    let fields: Vec<Counted> = asked.iter().map(|it| it.counted).collect();
    let mut shown = Map::new();
    for (facet, counts) in asked.iter().zip(counts(view, collection, filter, &fields)?) {
        let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let values: Vec<Value> =
            counts.iter().take(facet.limit).map(|it| json!({"id": it.0, "totalRecords": it.1})).collect();
        shown.insert(facet.name.clone(), json!({"values": values, "totalRecords": counts.len()}));
    }
    Ok(json!({"totalRecords": shown.len(), "facets": shown}))
}

/// Counts the values of each of `wanted` in the records that satisfy a condition.
fn counts(
    view: &mut View<'_>,
    collection: &'static Collection,
    filter: &Expr,
    wanted: &[Counted],
) -> Result<Vec<Counts>, FolioError> {
    let declared: Vec<&str> = wanted
        .iter()
        .filter_map(|it| if let Counted::Declared(name) = it { Some(*name) } else { None })
        .collect();
    let mut by_store = view.facets(&collection.kind, filter, &declared)?.into_iter();
    let mut found = vec![Counts::new(); wanted.len()];
    for (counts, counted) in found.iter_mut().zip(wanted) {
        match counted {
            Counted::Declared(_) => {
                let listed = by_store.next().unwrap_or_default();
                counts.extend(listed.into_iter().map(|it| (it.value, it.n_records)));
            }
            Counted::Shared => {
                let n_records = view.count(&collection.kind, filter)?;
                counts.extend((0 < n_records).then(|| ("false".to_owned(), n_records)));
            }
            Counted::Headings => {
                for (heading_type, has_one) in headings::by_type() {
                    let of_type = Expr::And(vec![filter.clone(), has_one]);
                    let n_records = view.count(&collection.kind, &of_type)?;
                    counts.extend((0 < n_records).then(|| (heading_type.to_owned(), n_records)));
                }
            }
            Counted::OfHoldings(_) | Counted::OfItems(_) => {}
        }
    }
    if wanted.iter().any(|it| matches!(it, Counted::OfHoldings(_) | Counted::OfItems(_))) {
        below(view, filter, wanted, &mut found)?;
    }
    Ok(found)
}

/// Counts fields of the holdings and items of the instances that satisfy a condition.
///
/// Errors: 400 if there are more than [`joins::JOINED_RECORDS`] such instances.
fn below(
    view: &mut View<'_>,
    filter: &Expr,
    wanted: &[Counted],
    found: &mut [Counts],
) -> Result<(), FolioError> {
    let instances: Vec<String> =
        joins::gathered(view, &INSTANCES, filter.clone(), "id")?.into_iter().collect();
    for chunk in instances.chunks(CHUNK) {
        // The values of each facet with the instance that has them.
        let mut seen: Vec<BTreeSet<(String, String)>> = vec![BTreeSet::new(); wanted.len()];
        let mut instance_of: BTreeMap<String, String> = BTreeMap::new();
        let of_chunk = joins::within("instanceId", chunk.iter().cloned().collect());
        view.for_each_body(&HOLDINGS.kind, &Query::filter(of_chunk), |id, body| {
            let instance = text_at(&body, "instanceId").unwrap_or_default();
            instance_of.insert(id.to_owned(), instance.to_owned());
            for (seen, counted) in seen.iter_mut().zip(wanted) {
                if let Counted::OfHoldings(path) = counted {
                    seen.extend(values_at(&body, path).into_iter().map(|it| (it, instance.to_owned())));
                }
            }
            ControlFlow::Continue(())
        })?;
        if wanted.iter().any(|it| matches!(it, Counted::OfItems(_))) {
            let of_holdings = joins::within("holdingsRecordId", instance_of.keys().cloned().collect());
            view.for_each_body(&ITEMS.kind, &Query::filter(of_holdings), |_, body| {
                let holdings = text_at(&body, "holdingsRecordId").unwrap_or_default();
                let instance = instance_of.get(holdings).cloned().unwrap_or_default();
                for (seen, counted) in seen.iter_mut().zip(wanted) {
                    if let Counted::OfItems(path) = counted {
                        seen.extend(values_at(&body, path).into_iter().map(|it| (it, instance.clone())));
                    }
                }
                ControlFlow::Continue(())
            })?;
        }
        for (counts, seen) in found.iter_mut().zip(seen) {
            for (value, _) in seen {
                *counts.entry(value).or_default() += 1;
            }
        }
    }
    Ok(())
}

/// Returns the different values at a dotted path, which may lead through lists.
fn values_at(body: &Value, path: &str) -> BTreeSet<String> {
    let mut at = vec![body];
    for step in path.split('.') {
        at = at.into_iter().flat_map(elements).filter_map(|it| it.get(step)).collect();
    }
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    };
    at.into_iter().flat_map(elements).filter_map(text).collect()
}

/// Returns the elements of a list, or a value that is none by itself.
fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}
