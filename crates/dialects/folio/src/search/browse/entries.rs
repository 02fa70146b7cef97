//! Facets of the entries of lists (mod-search): how many contributors, subjects, classification numbers and call numbers
//! have each value.
//!
//! They are counted on the entries of the search index. Only locations of call numbers are not in these: for them, items
//! with call numbers are read.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use pinakes_store::{Expr, Kind, ListPlace, Path, Query, View, Wanted, matches};
use serde_json::Value;

use super::lists::{LISTS, List, mentions};
use crate::inventory::items::ITEMS;
use crate::platform::cql::{self, Names, Node};
use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// A kind for the entries of a list, which are not stored records.
static ENTRY: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_browse_entry") };

/// The path of the location of a call number.
const LOCATION: &str = "instances.locationId";

/// Facets of a list's entries.
pub(crate) struct EntryFacets {
    /// Name of the entries in paths.
    pub(crate) name: &'static str,
    /// Permission that is required.
    pub(crate) permission: &'static str,
    /// Fields that are counted; the name of each is that of its facet.
    pub(crate) fields: &'static [&'static str],
    list: usize,
}

/// All of them.
pub(crate) static ENTRY_FACETS: [EntryFacets; 4] = [
    EntryFacets {
        name: "contributors",
        permission: "search.contributors.facets.collection.get",
        fields: &["contributorNameTypeId", "instances.shared"],
        list: 1,
    },
    EntryFacets {
        name: "subjects",
        permission: "search.subjects.facets.collection.get",
        fields: &["sourceId", "typeId", "instances.shared"],
        list: 2,
    },
    EntryFacets {
        name: "classifications",
        permission: "search.classifications.facets.collection.get",
        fields: &["classificationTypeId", "instances.shared"],
        list: 3,
    },
    EntryFacets {
        name: "call-numbers",
        permission: "search.call-numbers.facets.collection.get",
        fields: &["callNumberTypeId", LOCATION, "instances.shared"],
        list: 4,
    },
];

/// The values of a facet and the number of entries with each.
pub(crate) type Counts = BTreeMap<String, u64>;

impl EntryFacets {
    /// Counts the values of each of `wanted` in the entries that satisfy a condition.
    pub(crate) fn counts(
        &self,
        view: &mut View<'_>,
        condition: &Node,
        wanted: &[&'static str],
    ) -> Result<Vec<Counts>, FolioError> {
        let list = &LISTS[self.list];
        let names = Names { whole: list.whole, ..Names::PLAIN };
        let fits = cql::meaning(condition, &ENTRY, &names, &mut |_| Ok::<_, FolioError>(None))?;
        if wanted.contains(&LOCATION) || mentions(condition, &[LOCATION]) {
            return of_items(view, list, &fits, wanted);
        }
        let condition =
            Condition { fits, text: format!("{condition:?}"), is_about_text: list.has_to_look(condition) };
        wanted.iter().map(|field| counted(view, list, &condition, field)).collect()
    }
}

/// A condition on entries.
struct Condition {
    fits: Expr,
    /// Identifies it.
    text: String,
    /// Whether it depends on the text of an entry.
    is_about_text: bool,
}

/// Counts the values of a field in the entries of a list that satisfy a condition.
fn counted(
    view: &mut View<'_>,
    list: &List,
    condition: &Condition,
    field: &str,
) -> Result<Counts, FolioError> {
    let kind = &(list.of)().kind;
    let by_traits = view.list_traits(kind, list.name)?;
    let mut counts = Counts::new();
    if !condition.is_about_text {
        for (traits, n_entries) in by_traits {
            let told = list.shape.told_by_traits(&traits);
            if let Some(value) = value_at(&told, field).filter(|_| matches(&condition.fits, &told)) {
                *counts.entry(value).or_default() += n_entries;
            }
        }
        return Ok(counts);
    }
    let value_of = |traits: &str| value_at(&list.shape.told_by_traits(traits), field);
    let values: BTreeSet<String> = by_traits.keys().filter_map(|it| value_of(it)).collect();
    for value in values {
        let mut fits = |apart: &str, traits: &str| {
            value_of(traits).as_ref() == Some(&value)
                && matches(&condition.fits, &list.shape.told(apart, traits))
        };
        let text = format!("{} and {field} {value}", condition.text);
        let nowhere =
            ListPlace { key: String::new(), is_behind: true, n_before: 0, n_after: 0, n_skipped: 0 };
        let wanted = Wanted::Entries { condition: &text, fits: &mut fits };
        let n_entries = view.browse(kind, list.name, &nowhere, wanted)?.n_entries;
        counts.extend((0 < n_entries).then_some((value, n_entries)));
    }
    Ok(counts)
}

/// Counts the values of fields in the call numbers of items, which have a location each.
fn of_items(
    view: &mut View<'_>,
    list: &List,
    fits: &Expr,
    wanted: &[&'static str],
) -> Result<Vec<Counts>, FolioError> {
    let mut seen: Vec<BTreeSet<(String, String, String)>> = vec![BTreeSet::new(); wanted.len()];
    let has_number = Expr::Exists(Path::dotted("effectiveCallNumberComponents.callNumber"));
    view.for_each_body(&ITEMS.kind, &Query::filter(has_number), |_, body| {
        list.shape.hand_out((list.rows)(&body), &mut |entry| {
            let mut told = list.shape.told(&entry.apart, &entry.traits);
            if let Some(location) = text_at(&body, "effectiveLocationId") {
                told["instances"]["locationId"] = location.into();
            }
            if matches(fits, &told) {
                for (seen, field) in seen.iter_mut().zip(wanted) {
                    let value = value_at(&told, field);
                    seen.extend(value.map(|it| (it, entry.apart.clone(), entry.traits.clone())));
                }
            }
        });
        ControlFlow::Continue(())
    })?;
    let counts = seen.into_iter().map(|seen| {
        let mut counts = Counts::new();
        seen.into_iter().for_each(|(value, ..)| *counts.entry(value).or_default() += 1);
        counts
    });
    Ok(counts.collect())
}

fn value_at(entry: &Value, field: &str) -> Option<String> {
    match field.split('.').try_fold(entry, |at, step| at.get(step))? {
        Value::String(text) => Some(text.clone()),
        Value::Bool(is) => Some(is.to_string()),
        _ => None,
    }
}
