//! The settings: `pinakes.toml`, then the environment by SciCat's names, then flags.
//!
//! `reference.toml`, which `pinakes config` prints, has every key with its default and meaning; a test
//! compares it with the defaults in the code, another with `docs/configuration.md`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use pinakes_accounts::sign_in::{Sources, directory, provider};
use pinakes_http::{AccessLog, MountPoint, TenantChoice, TraceSettings};
use pinakes_store::Limits;
use serde::Deserialize;

use crate::dialect;

/// Every key with its default and what it means.
pub(crate) const REFERENCE: &str = include_str!("../reference.toml");

/// The command line or the configuration is wrong: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misuse(pub(crate) String);

/// All settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Names of the dialects that are served.
    pub(crate) dialects: Vec<String>,
    /// Where dialects are mounted, by name.
    pub(crate) mounts: BTreeMap<String, MountPoint>,
    /// The process: address, folder, threads, logs.
    pub(crate) server: Server,
    /// Every bound.
    pub(crate) limits: Limits,
    /// How the tenant of a request is found.
    pub(crate) tenants: TenantChoice,
    /// URLs of the databases of tenants that have one of their own, by name.
    pub(crate) databases: BTreeMap<String, String>,
    /// Accounts, for all dialects.
    pub(crate) accounts: Accounts,
    /// The files beside the records.
    pub(crate) blobs: pinakes_blobs::Settings,
    /// The SciCat dialect.
    pub(crate) scicat: pinakes_scicat::Settings,
    /// The labe dialect.
    pub(crate) labe: pinakes_labe::Settings,
    /// The FOLIO dialect.
    pub(crate) folio: pinakes_folio::Settings,
    /// The Dataverse dialect.
    pub(crate) dataverse: pinakes_dataverse::Settings,
    /// The Conclave dialect.
    pub(crate) conclave: pinakes_conclave::Settings,
    /// The pages.
    pub(crate) site: pinakes_site::Settings,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dialects: dialect::names(),
            mounts: BTreeMap::new(),
            server: Server::default(),
            limits: Limits::default(),
            tenants: TenantChoice::default(),
            databases: BTreeMap::new(),
            accounts: Accounts::default(),
            blobs: pinakes_blobs::Settings::default(),
            scicat: pinakes_scicat::Settings::default(),
            labe: pinakes_labe::Settings::default(),
            folio: pinakes_folio::Settings::default(),
            dataverse: pinakes_dataverse::Settings::default(),
            conclave: pinakes_conclave::Settings::default(),
            site: pinakes_site::Settings::default(),
        }
    }
}

/// The table `[server]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Server {
    /// Where to listen; port 0 picks a free one.
    pub(crate) listen: SocketAddr,
    /// Folder of the catalogue.
    pub(crate) data: PathBuf,
    /// URL of the database that keeps the records; empty: they are in files in the folder.
    pub(crate) database: String,
    /// Threads that serve requests; 0 for one per core.
    pub(crate) threads: usize,
    /// What is logged to standard error.
    pub(crate) log: String,
    /// The form of log lines.
    pub(crate) log_format: LogFormat,
    /// The level of the log line for each request.
    pub(crate) access_log: AccessLog,
    /// TLS of the server's own connections.
    pub(crate) tls: TlsFiles,
    /// Where traces go.
    pub(crate) traces: TraceSettings,
}

/// The table `[server.tls]`: both files, or neither.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TlsFiles {
    /// The certificate chain; empty: connections are not encrypted.
    pub(crate) certificate: PathBuf,
    /// Its private key.
    pub(crate) key: PathBuf,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for programs.
    Json,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 3000)),
            data: PathBuf::from("pinakes-data"),
            database: String::new(),
            threads: 0,
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            access_log: AccessLog::Debug,
            tls: TlsFiles::default(),
            traces: TraceSettings::default(),
        }
    }
}

/// The table `[accounts]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Accounts {
    /// Signs web tokens; empty: one is generated and kept beside the data.
    pub(crate) secret: String,
    /// Groups that every user has.
    pub(crate) everyone: Vec<String>,
    /// A directory where people log in.
    pub(crate) ldap: directory::Settings,
    /// A provider where people log in.
    pub(crate) oidc: provider::Settings,
}

impl Accounts {
    /// Returns the sources of log-ins besides the passwords kept here.
    pub(crate) fn sources(&self) -> Sources {
        Sources { ldap: self.ldap.clone(), oidc: self.oidc.clone() }
    }
}

impl Config {
    pub(crate) fn with_environment(
        mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let text = |name: &str| variable(name).filter(|it| !it.trim().is_empty());
        if let Some(secret) = text("JWT_SECRET") {
            self.accounts.secret = secret;
        }
        if let Some(groups) = text("ACCESS_GROUPS_STATIC_VALUES") {
            self.accounts.everyone =
                groups.split(',').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect();
        }
        let sources = self.accounts.sources().with_environment(&variable);
        sources.check().map_err(Misuse)?;
        (self.accounts.ldap, self.accounts.oidc) = (sources.ldap, sources.oidc);
        self.blobs = self.blobs.with_environment(&variable);
        let scicat = self.scicat.with_environment(&variable);
        self.scicat = scicat.map_err(|error| Misuse(format!("settings of SciCat: {error}")))?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_states_the_defaults() -> Result<(), Box<dyn std::error::Error>> {
        let stated: Config = toml::from_str(REFERENCE)?;
        assert_eq!(format!("{stated:#?}"), format!("{:#?}", Config::default()));
        Ok(())
    }

    #[test]
    fn the_guide_shows_the_reference() -> Result<(), Box<dyn std::error::Error>> {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let shown = std::fs::read_to_string(page)?;
        assert!(
            shown.contains(REFERENCE),
            "docs/configuration.md differs from crates/pinakes/reference.toml"
        );
        Ok(())
    }

    /// Returns the keys that a table knows, taken from the error about an unknown one.
    fn keys_of(table: &str) -> Vec<String> {
        let text = format!(
            "{}no_such_key = 1",
            if table.is_empty() { String::new() } else { format!("[{table}]\n") }
        );
        let Err(error) = toml::from_str::<Config>(&text) else { return Vec::new() };
        let message = error.message().to_owned();
        let (_, keys) = message.split_once(", expected").unwrap_or((&message, &message));
        keys.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_reference_states_every_key() -> Result<(), Box<dyn std::error::Error>> {
        let stated: toml::Table = toml::from_str(REFERENCE)?;
        let tables = keys_of("");
        assert_eq!(
            tables,
            [
                "dialects",
                "mounts",
                "server",
                "limits",
                "tenants",
                "databases",
                "accounts",
                "blobs",
                "scicat",
                "labe",
                "folio",
                "dataverse",
                "conclave",
                "site"
            ]
        );
        // The keys of `[databases]` are names of tenants, those of `[mounts]` of dialects; `dialects` is a list.
        let free = ["dialects", "mounts", "databases"];
        for table in tables.into_iter().filter(|it| !free.contains(&it.as_str())) {
            let keys = keys_of(&table);
            assert!(!keys.is_empty(), "no keys found for [{table}]");
            let known = stated.get(&table).and_then(toml::Value::as_table);
            for key in keys {
                assert!(known.is_some_and(|it| it.contains_key(&key)), "reference.toml lacks {table}.{key}");
            }
        }
        Ok(())
    }

    #[test]
    fn the_environment_goes_over_the_file() -> anyhow::Result<()> {
        let variable = |name: &str| match name {
            "JWT_SECRET" => Some("a secret of the site".to_owned()),
            "ACCESS_GROUPS_STATIC_VALUES" => Some("staff, ess ,".to_owned()),
            "PID_PREFIX" => Some("20.500.12269".to_owned()),
            _ => None,
        };
        let config = Config::default().with_environment(variable)?;
        assert_eq!(config.accounts.everyone, ["staff", "ess"]);
        assert_eq!(config.scicat.pid_prefix, "20.500.12269");
        Ok(())
    }

    #[test]
    fn dialects_are_known_ones() -> Result<(), Box<dyn std::error::Error>> {
        for (text, expected) in [
            ("dialects = [\"folio\"]\n[mounts.folio]\nprefix = \"/folio\"", ""),
            ("dialects = [\"foli\"]", "dialects: there is no dialect \"foli\"; expected some of scicat, "),
            ("dialects = []", "dialects is empty"),
            ("[mounts.x]", "mounts.x: there is no such dialect"),
        ] {
            let checked = toml::from_str::<Config>(text)?.check_dialects();
            let said = checked.err().map(|it| it.to_string()).unwrap_or_default();
            assert!(
                said.starts_with(expected) && said.is_empty() == expected.is_empty(),
                "{said:?} for {text}"
            );
        }
        Ok(())
    }

    #[test]
    fn a_variable_that_does_not_fit_is_named() {
        let variable = |name: &str| (name == "JWT_EXPIRES_IN").then(|| "soon".to_owned());
        let refused = Config::default().with_environment(variable);
        assert!(refused.is_err_and(|error| error.to_string().contains("JWT_EXPIRES_IN=\"soon\"")));
    }
}
