//! What a list of tenants says of each.

/// A tenant, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantInfo {
    /// Its name, also that of its file.
    pub name: String,
    /// What was said of it when it was made.
    pub description: String,
}
