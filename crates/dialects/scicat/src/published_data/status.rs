//! Steps of a publication, as v4 names them.

/// Seen by who has logged in.
pub(crate) const PRIVATE: &str = "private";
/// Seen by anyone.
pub(crate) const PUBLIC: &str = "public";
/// Its DOI is registered: it does not change.
pub(crate) const REGISTERED: &str = "registered";
/// Registered before, and being changed.
pub(crate) const AMENDED: &str = "amended";
