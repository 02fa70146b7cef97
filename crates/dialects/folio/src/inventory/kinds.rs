//! Names of the inventory kinds. The three collections depend on each other and find each other by these names.

/// Kind of instances.
pub(crate) const INSTANCE: &str = "folio_instance";
/// Kind of holdings.
pub(crate) const HOLDINGS: &str = "folio_holdings";
/// Kind of items.
pub(crate) const ITEM: &str = "folio_item";
/// Kind of material types.
pub(crate) const MATERIAL_TYPE: &str = "folio_material_type";
