//! The statuses of a publication, as v4 names them.

/// Visible only to its creator and to admins.
pub(crate) const PRIVATE: &str = "private";
/// Visible to everyone except anonymous callers of v3.
pub(crate) const PUBLIC: &str = "public";
/// Its DOI is registered, and it cannot be changed.
pub(crate) const REGISTERED: &str = "registered";
/// It was registered and is being changed.
pub(crate) const AMENDED: &str = "amended";
