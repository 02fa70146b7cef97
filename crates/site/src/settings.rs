//! The settings of the site: the `[site]` table of `pinakes.toml`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::log::RecentLog;

/// Settings of the site.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Name of the site, shown on every page.
    pub name: String,
    /// Style sheet of the institution, appended to the built-in one: colours, fonts, a logo as a background. Empty for
    /// none. Read when the server starts.
    pub brand: PathBuf,
    /// Maps of the Conclave dialect that are searched.
    pub maps: Vec<String>,
    /// Groups of the default tenant whose members may see the operators' page.
    pub operator_groups: Vec<String>,
    /// Groups of the default tenant whose members manage its accounts.
    pub account_groups: Vec<String>,
    /// URL to which the OpenID Connect provider redirects browsers, e.g.
    /// `https://pinakes.example.org/site/sign-in/callback`; it must be registered there. If empty, that path at the
    /// host of `accounts.oidc.callback_url`.
    pub callback_url: String,
    /// How long a sign-in lasts, in seconds (12 h).
    pub session_s: i64,
    /// The effective settings, for the operators' page; filled by the command, never read from a file.
    #[serde(skip)]
    pub effective: Vec<Setting>,
    /// The latest lines of the log, for the same page; filled by the command.
    #[serde(skip)]
    pub log: RecentLog,
}

/// An effective setting. Secrets are not included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its key, e.g. `server.listen`.
    pub key: String,
    /// Its value in TOML.
    pub value: String,
    /// Its source: `default`, `file`, `environment` or `flag`.
    pub origin: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "Pinakes".to_owned(),
            brand: PathBuf::new(),
            maps: vec!["default".to_owned()],
            operator_groups: vec!["admin".to_owned()],
            account_groups: vec!["admin".to_owned()],
            callback_url: String::new(),
            session_s: 12 * 60 * 60,
            effective: Vec::new(),
            log: RecentLog::default(),
        }
    }
}
