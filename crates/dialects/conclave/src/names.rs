//! Names with a meaning in every map.

/// The map that is meant by addresses without one.
pub const DEFAULT_MAP: &str = "default";

/// The scope of everything that states none.
pub const DEFAULT_SCOPE: &str = "default";

/// The name of the metadata entry that holds the label.
pub const LABEL: &str = "label";

/// The reference that stands for the data of the occurrence itself.
pub const SELF: &str = "self";

/// The name of the metadata entry that says when a topic is from, such as an entry of a blog or a comment.
pub(crate) const TIMESTAMP: &str = "timestamp";
