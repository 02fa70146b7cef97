//! Names of the kinds of inventory, by which its collections find each other: each of the three is about the others.

/// Kind of instances.
pub(crate) const INSTANCE: &str = "folio_instance";
/// Kind of holdings.
pub(crate) const HOLDINGS: &str = "folio_holdings";
/// Kind of items.
pub(crate) const ITEM: &str = "folio_item";
