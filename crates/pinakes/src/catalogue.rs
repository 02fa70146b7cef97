//! A catalogue and its accounts, open: the starting point of every command that touches records.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::Context as _;
use pinakes_accounts::{Accounts, Clock, Entropy, Secret, Settings};
use pinakes_blobs::{BlobError, Blobs};
use pinakes_http::Context;
use pinakes_store::{Catalogue, Kind, Location};

use crate::config::{Config, Misuse};
use crate::dialect;

/// Every kind of every dialect.
static KINDS: LazyLock<Vec<&'static Kind>> =
    LazyLock::new(|| pinakes_accounts::KINDS.iter().copied().chain(dialect::kinds()).collect());

/// Name of the secret that a database keeps for all servers that use it.
pub(crate) const SIGNING_SECRET: &str = "signing secret";

/// Folder of this server's search indexes of tenants in a database.
const SEARCH: &str = "search";

/// A catalogue that closes when this is dropped, whatever the way out of a command.
///
/// A thread of the store may be the last to hold a tenant, and a program ends without waiting for its threads: the log
/// of changes would then stay beside the file.
pub(crate) struct OpenCatalogue(Catalogue);

impl OpenCatalogue {
    /// Takes over an open catalogue.
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self(catalogue)
    }
}

impl Deref for OpenCatalogue {
    type Target = Catalogue;

    fn deref(&self) -> &Catalogue {
        &self.0
    }
}

impl Drop for OpenCatalogue {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A catalogue and its accounts, open.
pub(crate) struct House {
    /// The settings it was opened with.
    pub(crate) config: Config,
    /// All tenants.
    pub(crate) catalogue: OpenCatalogue,
    /// All accounts.
    pub(crate) accounts: Accounts,
    /// The files beside the records.
    pub(crate) blobs: Blobs,
}

impl House {
    /// Opens the folder that the settings name, creating it if necessary, with its default tenant.
    pub(crate) fn open(config: Config) -> anyhow::Result<Self> {
        let data = &config.server.data;
        make_folder(data)?;
        let location = match config.server.database.as_str() {
            "" => Location::Folder(data.clone()),
            url => url.parse().map_err(|error| Misuse(format!("server.database: {error}")))?,
        };
        let own = own_places(&config)?;
        let search = Some(data.join(SEARCH));
        let catalogue = Catalogue::open_spread(location, &own, search, Self::kinds(), config.limits.clone())?;
        let catalogue = OpenCatalogue::new(catalogue);
        catalogue.tenant_or_new(&config.tenants.default)?;
        let entropy = Entropy::System;
        let secret = match config.accounts.secret.as_str() {
            "" => secret(&catalogue, data, &entropy)?,
            text => Secret::of_site(text).map_err(|error| Misuse(error.to_string()))?,
        };
        let everyone = config.accounts.everyone.clone();
        let settings = Settings { secret, everyone, clock: Clock::System, entropy };
        let accounts = Accounts::with_sources(settings, &config.limits, config.accounts.sources());
        let blobs = Blobs::open(&config.blobs, data).map_err(|error| match error {
            BlobError::Settings(_) => Misuse(error.to_string()).into(),
            other => anyhow::Error::from(other),
        })?;
        Ok(Self { config, catalogue, accounts, blobs })
    }

    /// Every kind that the catalogue knows.
    pub(crate) fn kinds() -> &'static [&'static Kind] {
        KINDS.as_slice()
    }

    /// Returns the context that the dialects work with.
    pub(crate) fn context(&self) -> Context {
        let Config { limits, tenants, .. } = &self.config;
        let (catalogue, accounts) = (Catalogue::clone(&self.catalogue), self.accounts.clone());
        Context::new(catalogue, accounts, limits.clone(), tenants.clone()).with_blobs(self.blobs.clone())
    }
}

/// Returns the locations of tenants that have one of their own, by name.
///
/// Errors: a location cannot be parsed.
pub(crate) fn own_places(config: &Config) -> Result<BTreeMap<String, Location>, Misuse> {
    let own = config.databases.iter().map(|(tenant, url)| {
        let location = url.parse().map_err(|error| Misuse(format!("databases.{tenant}: {error}")))?;
        Ok((tenant.clone(), location))
    });
    own.collect()
}

/// Creates a catalogue's folder. Only its owner may read it: the files contain password hashes.
pub(crate) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let made = pinakes_store::make_folder(folder);
    made.with_context(|| format!("the folder {} cannot be created", folder.display()))
}

/// Returns the secret that web tokens are signed with: the database's, so that all servers over it accept each other's
/// tokens, or the folder's.
fn secret(catalogue: &Catalogue, folder: &Path, entropy: &Entropy) -> anyhow::Result<Secret> {
    let earlier = Secret::text_in(folder)?;
    let make = || Some(earlier.unwrap_or_else(|| Secret::made(entropy)));
    match catalogue.constant(SIGNING_SECRET, make)? {
        Some(text) => Ok(Secret::from_text(&text)?),
        None => Ok(Secret::load_or_create(folder, entropy)?),
    }
}

/// Runs asynchronous work for a command that does one thing.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
