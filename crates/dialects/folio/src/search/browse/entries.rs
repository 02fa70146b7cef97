//! Facets of the entries of lists (mod-search): how many contributors, subjects, classification numbers and call numbers
//! have each value.
//!
//! They are counted on the entries of the search index; call numbers by location on those of the items of each location.
//! Only where a condition concerns their texts, too, are items read for that.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use pinakes_store::{Expr, Kind, ListPlace, Query, View, Wanted, matches};
use serde_json::Value;

use super::lists::{ITEM_LOCATION, LISTS, LOCATION, List};
use crate::platform::cql::{self, Names, Node};
use crate::platform::error::FolioError;
use crate::platform::json::text_at;
use crate::platform::limits::LOCATIONS;

/// A kind for the entries of a list, which are not stored records.
static ENTRY: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_browse_entry") };

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
        let (rest, of) = list.separated(Some(condition.clone()))?;
        let names = Names { whole: list.whole, ..Names::PLAIN };
        let fits = match &rest {
            Some(rest) => cql::meaning(rest, &ENTRY, &names, &mut |_| Ok::<_, FolioError>(None))?,
            None => Expr::All,
        };
        let is_about_text = rest.as_ref().is_some_and(|it| list.has_to_look(it));
        let condition = Condition { fits, text: format!("{rest:?}"), is_about_text, of };
        let count = |field: &&'static str| match *field {
            LOCATION => by_location(view, list, &condition),
            field => counted(view, list, &condition, field),
        };
        wanted.iter().map(count).collect()
    }
}

/// A condition on entries.
struct Condition {
    fits: Expr,
    /// Identifies it.
    text: String,
    /// Whether it depends on the text of an entry.
    is_about_text: bool,
    /// What the records that have an entry satisfy.
    of: Expr,
}

/// Counts the values of a field in the entries of a list that satisfy a condition.
fn counted(
    view: &mut View<'_>,
    list: &List,
    condition: &Condition,
    field: &str,
) -> Result<Counts, FolioError> {
    let kind = &(list.of)().kind;
    let by_traits = view.list_traits(kind, list.name, &condition.of)?;
    let value_of = |traits: &str| value_at(&list.shape.told_by_traits(traits), field);
    let mut counts = Counts::new();
    if !condition.is_about_text {
        for (traits, n_entries) in by_traits {
            let told = list.shape.told_by_traits(&traits);
            if let Some(value) = value_of(&traits).filter(|_| matches(&condition.fits, &told)) {
                *counts.entry(value).or_default() += n_entries;
            }
        }
        return Ok(counts);
    }
    let values: BTreeSet<String> = by_traits.keys().filter_map(|it| value_of(it)).collect();
    for value in values {
        let text = format!("{} and {field} {value}", condition.text);
        let mut fits = |apart: &str, traits: &str| {
            value_of(traits).as_ref() == Some(&value)
                && matches(&condition.fits, &list.shape.told(apart, traits))
        };
        let nowhere =
            ListPlace { key: String::new(), is_behind: true, n_before: 0, n_after: 0, n_skipped: 0 };
        let wanted = Wanted::Entries { condition: &text, fits: &mut fits };
        let n_entries = view.browse(kind, list.name, &condition.of, &nowhere, wanted)?.n_entries;
        counts.extend((0 < n_entries).then_some((value, n_entries)));
    }
    Ok(counts)
}

/// Counts the entries of items that satisfy a condition, by their location.
fn by_location(view: &mut View<'_>, list: &List, condition: &Condition) -> Result<Counts, FolioError> {
    if condition.is_about_text {
        return by_location_of_items(view, list, condition);
    }
    let kind = &(list.of)().kind;
    let mut counts = Counts::new();
    for location in view.distinct_values(kind, &ITEM_LOCATION.into(), LOCATIONS, &|_| true)? {
        let is_there = Expr::Is(ITEM_LOCATION.into(), location.as_str().into());
        let of = Expr::And(vec![condition.of.clone(), is_there]);
        let by_traits = view.list_traits(kind, list.name, &of)?.into_iter();
        let wanted = by_traits.filter(|it| matches(&condition.fits, &list.shape.told_by_traits(&it.0)));
        let n_entries: u64 = wanted.map(|it| it.1).sum();
        counts.extend((0 < n_entries).then_some((location, n_entries)));
    }
    Ok(counts)
}

/// As [`by_location`], by reading the items, instead of looking at each entry once for each location.
fn by_location_of_items(
    view: &mut View<'_>,
    list: &List,
    condition: &Condition,
) -> Result<Counts, FolioError> {
    let mut seen: BTreeSet<(String, String, String)> = BTreeSet::new();
    view.for_each_body(&(list.of)().kind, &Query::filter(condition.of.clone()), |_, body| {
        let Some(location) = text_at(&body, ITEM_LOCATION) else { return ControlFlow::Continue(()) };
        list.shape.hand_out((list.rows)(&body), &mut |entry| {
            if matches(&condition.fits, &list.shape.told(&entry.apart, &entry.traits)) {
                seen.insert((location.to_owned(), entry.apart, entry.traits));
            }
        });
        ControlFlow::Continue(())
    })?;
    let mut counts = Counts::new();
    seen.into_iter().for_each(|(location, ..)| *counts.entry(location).or_default() += 1);
    Ok(counts)
}

fn value_at(entry: &Value, field: &str) -> Option<String> {
    match field.split('.').try_fold(entry, |at, step| at.get(step))? {
        Value::String(text) => Some(text.clone()),
        Value::Bool(is) => Some(is.to_string()),
        _ => None,
    }
}
