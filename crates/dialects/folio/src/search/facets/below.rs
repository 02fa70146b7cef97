//! Facets of an instance's holdings and items: how many of the instances found have each value in one of them.
//!
//! The instances are joined with their holdings and items by the search indexes.

use std::collections::BTreeMap;

use pinakes_store::{Expr, Owners, Path, View};

use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::platform::error::FolioError;

/// The values of a facet and the number of records with each.
pub(super) type Counts = BTreeMap<String, u64>;

/// A field of records below instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Below {
    /// A field of an instance's holdings.
    Holdings(&'static str),
    /// A field of an instance's items.
    Items(&'static str),
}

/// Counts fields of the holdings and items of the instances that satisfy a condition.
pub(super) fn counts(
    view: &mut View<'_>,
    filter: &Expr,
    wanted: &[Below],
) -> Result<Vec<Counts>, FolioError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let holdings =
        |it: &Below| if let Below::Holdings(field) = it { Some(Path::dotted(field)) } else { None };
    let items = |it: &Below| if let Below::Items(field) = it { Some(Path::dotted(field)) } else { None };
    let of_holdings: Vec<Path> = wanted.iter().filter_map(holdings).collect();
    let of_items: Vec<Path> = wanted.iter().filter_map(items).collect();
    let instances = view.owners(&INSTANCES.kind, filter, &"id".into())?;
    let link = "instanceId".into();
    let mut of_holdings = match of_holdings.as_slice() {
        [] => Vec::new(),
        fields => view.count_owners(&HOLDINGS.kind, &instances, &link, fields)?,
    }
    .into_iter();
    let mut of_items = match of_items.as_slice() {
        [] => Vec::new(),
        fields => {
            let by_holdings: Owners = view.owned(&HOLDINGS.kind, &instances, &link, &"id".into())?;
            view.count_owners(&ITEMS.kind, &by_holdings, &"holdingsRecordId".into(), fields)?
        }
    }
    .into_iter();
    let counts = wanted.iter().map(|it| match it {
        Below::Holdings(_) => of_holdings.next().unwrap_or_default(),
        Below::Items(_) => of_items.next().unwrap_or_default(),
    });
    Ok(counts.collect())
}
