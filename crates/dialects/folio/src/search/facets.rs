//! Facets: how often each value of a field occurs among the results of a search (mod-search).
//!
//! Facets that a kind declares are counted by the store. Those of an instance's holdings and items are joined from
//! these: an instance counts once for each value, however many of its items have it.

mod below;

use pinakes_store::{Expr, View};
use serde_json::{Map, Value, json};

use self::below::{Below, Counts};
use super::browse::EntryFacets;
use super::refusals;
use crate::authorities::authority::AUTHORITIES;
use crate::authorities::headings;
use crate::inventory::instances::INSTANCES;
use crate::platform::app::Call;
use crate::platform::collection::Collection;
use crate::platform::cql::Node;
use crate::platform::error::FolioError;

/// What a facet counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// A facet that the kind declares, by its name.
    Declared(&'static str),
    /// A field of an instance's holdings or items.
    Below(Below),
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
    ("holdingsTypeId", Counted::Below(Below::Holdings("holdingsTypeId"))),
    ("holdingsTags", Counted::Below(Below::Holdings("tags.tagList"))),
    ("holdingTags", Counted::Below(Below::Holdings("tags.tagList"))),
    ("itemTags", Counted::Below(Below::Items("tags.tagList"))),
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
            Some(("holdings", field)) => known(&HOLDINGS_FIELDS, field).map(Below::Holdings).map(Self::Below),
            Some(("items" | "item", field)) => known(&ITEM_FIELDS, field).map(Below::Items).map(Self::Below),
            _ => OF_INSTANCES.iter().find(|it| it.0 == name).map(|it| it.1),
        }
    }
}

/// A facet that a request names.
#[derive(Debug, Clone)]
pub(super) struct Facet {
    name: String,
    counted: Counted,
    /// Maximum number of values shown.
    limit: usize,
}

/// Returns the names of the facets that a request names, `facet=sourceFileId:5`, repeatable, with the maximum number of
/// values of each.
fn named(call: &Call) -> Vec<(String, usize)> {
    let texts = call.query.all("facet").flat_map(|it| it.split(','));
    texts
        .map(|text| {
            let (name, limit) = text.split_once(':').unwrap_or((text, ""));
            (name.to_owned(), limit.parse().unwrap_or(usize::MAX))
        })
        .collect()
}

fn invalid(name: &str) -> FolioError {
    refusals::invalid("Invalid facet value", "facet", name)
}

/// Reads the facets that a request names.
///
/// Errors: 400 for a name that is none.
pub(super) fn asked(call: &Call, collection: &'static Collection) -> Result<Vec<Facet>, FolioError> {
    let facet = |(name, limit): (String, usize)| {
        let counted = Counted::of(collection, &name).ok_or_else(|| invalid(&name))?;
        Ok(Facet { name, counted, limit })
    };
    named(call).into_iter().map(facet).collect()
}

/// Returns the most frequent values of facets in the records that satisfy a condition.
pub(super) fn shown(
    view: &mut View<'_>,
    collection: &'static Collection,
    filter: &Expr,
    asked: &[Facet],
) -> Result<Value, FolioError> {
    let fields: Vec<Counted> = asked.iter().map(|it| it.counted).collect();
    let counts = counts(view, collection, filter, &fields)?;
    Ok(answered(asked.iter().zip(counts).map(|(facet, counts)| (facet.name.as_str(), facet.limit, counts))))
}

/// Facets of a list's entries that a request names: each field, and the maximum number of its values.
pub(super) type AskedOfEntries = Vec<(&'static str, usize)>;

/// Reads the facets of a list's entries that a request names.
///
/// Errors: 400 for a name that is none.
pub(super) fn asked_of_entries(
    call: &Call,
    facets: &'static EntryFacets,
) -> Result<AskedOfEntries, FolioError> {
    let field = |(name, limit): (String, usize)| {
        let field = facets.fields.iter().find(|it| **it == name).ok_or_else(|| invalid(&name))?;
        Ok((*field, limit))
    };
    named(call).into_iter().map(field).collect()
}

/// Returns the most frequent values of facets in the entries of a list that satisfy a condition.
pub(super) fn shown_of_entries(
    view: &mut View<'_>,
    facets: &'static EntryFacets,
    condition: &Node,
    asked: &AskedOfEntries,
) -> Result<Value, FolioError> {
    let fields: Vec<&'static str> = asked.iter().map(|it| it.0).collect();
    let counts = facets.counts(view, condition, &fields)?;
    Ok(answered(asked.iter().zip(counts).map(|(facet, counts)| (facet.0, facet.1, counts))))
}

/// Returns the answer: of each facet its name, the maximum number of its values, and their counts.
fn answered<'n>(facets: impl Iterator<Item = (&'n str, usize, Counts)>) -> Value {
    let mut shown = Map::new();
    for (name, limit, counts) in facets {
        let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let values: Vec<Value> =
            counts.iter().take(limit).map(|it| json!({"id": it.0, "totalRecords": it.1})).collect();
        shown.insert(name.to_owned(), json!({"values": values, "totalRecords": counts.len()}));
    }
    json!({"totalRecords": shown.len(), "facets": shown})
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
            Counted::Below(_) => {}
        }
    }
    let of_relatives: Vec<Below> =
        wanted.iter().filter_map(|it| if let Counted::Below(it) = it { Some(*it) } else { None }).collect();
    let mut joined = below::counts(view, filter, &of_relatives)?.into_iter();
    for (counts, _) in found.iter_mut().zip(wanted).filter(|it| matches!(it.1, Counted::Below(_))) {
        *counts = joined.next().unwrap_or_default();
    }
    Ok(found)
}
