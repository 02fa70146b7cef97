//! An entry in a list of tenants.

/// A tenant as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantInfo {
    /// Its name, also that of its file.
    pub name: String,
    /// The description given when it was created.
    pub description: String,
}
