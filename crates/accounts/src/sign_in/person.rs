//! Somebody as another server describes them.

/// Somebody as another server describes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// How they logged in: `ldap`, `msad`, `oidc`.
    pub strategy: &'static str,
    /// The server: a directory's URL, a provider's issuer.
    pub source: String,
    /// What they are called there for ever.
    pub subject: String,
    /// The name of their account here.
    pub username: String,
    /// Mail address.
    pub email: Option<String>,
    /// The name to show.
    pub display_name: Option<String>,
    /// Groups there.
    pub groups: Vec<String>,
}
