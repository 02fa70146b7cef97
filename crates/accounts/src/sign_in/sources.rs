//! Where people log in besides the passwords kept here.

use serde::Deserialize;

use crate::sign_in::{directory, provider};

/// Where people log in besides the passwords kept here: the tables `[accounts.ldap]` and `[accounts.oidc]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sources {
    /// A directory; none while its `url` is empty.
    pub ldap: directory::Settings,
    /// A provider; none while its `issuer` is empty.
    pub oidc: provider::Settings,
}

impl Sources {
    /// Replaces what the environment sets, by `SciCat`'s names. `variable` looks one up.
    pub fn with_environment(mut self, variable: &impl Fn(&str) -> Option<String>) -> Self {
        self.ldap = self.ldap.with_environment(variable);
        self.oidc = self.oidc.with_environment(variable);
        self
    }

    /// Refuses what cannot be used, so that it is said at the start.
    ///
    /// Errors: which setting, and why.
    pub fn check(&self) -> std::result::Result<(), String> {
        self.ldap.check()
    }
}
