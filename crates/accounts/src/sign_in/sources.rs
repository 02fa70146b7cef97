//! External login servers, in addition to the passwords kept here.

use serde::Deserialize;

use crate::sign_in::{directory, provider};

/// External login servers: the tables `[accounts.ldap]` and `[accounts.oidc]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sources {
    /// A directory; none if its `url` is empty.
    pub ldap: directory::Settings,
    /// A provider; none if its `issuer` is empty.
    pub oidc: provider::Settings,
}

impl Sources {
    /// Overrides settings with environment variables, under `SciCat`'s names. `variable` looks one up.
    pub fn with_environment(mut self, variable: &impl Fn(&str) -> Option<String>) -> Self {
        self.ldap = self.ldap.with_environment(variable);
        self.oidc = self.oidc.with_environment(variable);
        self
    }

    /// Refuses unusable settings, so that they are reported at the start.
    ///
    /// Errors: which setting, and why.
    pub fn check(&self) -> std::result::Result<(), String> {
        self.ldap.check()
    }
}
