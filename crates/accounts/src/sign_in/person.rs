//! A person as described by another server.

/// A person as described by another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// How they logged in: `ldap`, `msad`, `oidc`.
    pub strategy: &'static str,
    /// The server: a directory's URL, a provider's issuer.
    pub source: String,
    /// Their permanent identifier there.
    pub subject: String,
    /// The name of their account here.
    pub username: String,
    /// Mail address.
    pub email: Option<String>,
    /// The display name.
    pub display_name: Option<String>,
    /// Groups at that server.
    pub groups: Vec<String>,
}
