//! Facets of the entries of lists (mod-search): how many contributors, subjects, classification numbers and call numbers
//! have each value.
//!
//! They are counted on the entries of the search index; call numbers by location with the locations of the items that
//! have them.

use std::collections::BTreeMap;

use pinakes_store::{Expr, Kind, View, Wanted, matches};
use serde_json::Value;

use super::lists::{ITEM_LOCATION, LISTS, LOCATION, List};
use crate::platform::cql::{self, Names, Node};
use crate::platform::error::FolioError;

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
        let kind = &(list.of)().kind;
        let mut count = |field: &&'static str| -> Result<Counts, FolioError> {
            if *field == LOCATION {
                let path = ITEM_LOCATION.into();
                let by_location = condition.asked(list, |wanted| {
                    view.count_entries_by(kind, list.name, &condition.of, &path, wanted)
                })?;
                return Ok(by_location);
            }
            let by_traits =
                condition.asked(list, |wanted| view.list_traits(kind, list.name, &condition.of, wanted))?;
            let mut counts = Counts::new();
            for (traits, n_entries) in by_traits {
                if let Some(value) = value_at(&list.shape.told_by_traits(&traits), field) {
                    *counts.entry(value).or_default() += n_entries;
                }
            }
            Ok(counts)
        };
        wanted.iter().map(&mut count).collect()
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

impl Condition {
    /// Asks for the entries that satisfy it.
    fn asked<T>(&self, list: &List, ask: impl FnOnce(Wanted<'_>) -> T) -> T {
        if self.is_about_text {
            let fits = &mut |apart: &str, traits: &str| matches(&self.fits, &list.shape.told(apart, traits));
            return ask(Wanted::Entries { condition: &self.text, fits });
        }
        ask(Wanted::Traits(&mut |traits| matches(&self.fits, &list.shape.told_by_traits(traits))))
    }
}

fn value_at(entry: &Value, field: &str) -> Option<String> {
    match field.split('.').try_fold(entry, |at, step| at.get(step))? {
        Value::String(text) => Some(text.clone()),
        Value::Bool(is) => Some(is.to_string()),
        _ => None,
    }
}
