//! Which catalogue, and which tenant of it, a command works on.

use std::path::PathBuf;

use anyhow::Context as _;
use pinakes_store::{Limits, Tenant};

use crate::catalogue::House;
use crate::config::{Config, Misuse};
use crate::effective::note_flag;

/// How long an operator's read may take: seven weeks stand for no limit.
const UNHURRIED_MS: u64 = u32::MAX as u64;

/// Flags that name a catalogue.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Place {
    /// Folder of the catalogue [default: key server.data, else pinakes-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// PostgreSQL database that stores the records instead of files in the folder, as a postgres URL; put a URL
    /// with a password into the key server.database, because other users can see command lines
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Configuration file; `pinakes config` prints one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Flags that name a tenant of a catalogue.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TenantPlace {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Tenant [default: key tenants.default, else default]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

/// What to do with a catalogue that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Create it with its folder and its default tenant.
    Begin,
    /// Report an error.
    Refuse,
}

impl Place {
    /// Returns the settings, with the flags applied.
    pub(crate) fn settings(&self) -> anyhow::Result<Config> {
        let mut config = Config::load(self.config.as_deref())?;
        if let Some(data) = &self.data {
            config.server.data.clone_from(data);
            note_flag(&mut config.site.effective, "server.data", &data.display().to_string());
        }
        if let Some(database) = &self.database {
            config.server.database.clone_from(database);
            note_flag(&mut config.site.effective, "server.database", database);
        }
        Ok(config)
    }

    /// Opens the catalogue for an operator's work; see [`unhurried`].
    pub(crate) fn open(&self, missing: Missing) -> anyhow::Result<House> {
        let mut config = self.settings()?;
        unhurried(&mut config.limits);
        open(config, missing)
    }
}

impl TenantPlace {
    /// Opens the catalogue and the tenant.
    pub(crate) fn open(&self, missing: Missing) -> anyhow::Result<(House, Tenant)> {
        let house = self.place.open(missing)?;
        let name = self.tenant.clone().unwrap_or_else(|| house.config.tenants.default.clone());
        let tenant = house.catalogue.tenant(&name)?;
        Ok((house, tenant))
    }
}

/// Sets limits for an operator's work: reads may take their time.
pub(crate) fn unhurried(limits: &mut Limits) {
    limits.read_timeout_ms = UNHURRIED_MS;
}

/// Opens the catalogue of some settings.
pub(crate) fn open(config: Config, missing: Missing) -> anyhow::Result<House> {
    let data = config.server.data.clone();
    if missing == Missing::Refuse && !data.is_dir() {
        let advice = "name its folder with --data, or begin one with `pinakes serve`";
        return Err(Misuse(format!("there is no catalogue in {}; {advice}", data.display())).into());
    }
    House::open(config).with_context(|| format!("the catalogue in {} cannot be opened", data.display()))
}
