//! Names that mean something in every map.

/// The map of addresses that name none.
pub const DEFAULT_MAP: &str = "default";

/// The scope of everything that states none.
pub const DEFAULT_SCOPE: &str = "default";

/// The metadata that a label is.
pub const LABEL: &str = "label";

/// A reference that means: the data of the occurrence itself.
pub const SELF: &str = "self";
