//! Logins at a directory: the entry is searched for by name, then bound to with the password (RFC 4511, 4513).

mod settings;

use std::path::Path;
use std::time::Duration;

use ldap3::{Ldap, LdapConnAsync, LdapConnSettings, Scope, SearchEntry, SearchOptions};
use pinakes_store::Tenant;

use crate::accounts::{Accounts, Login};
use crate::error::{Result, failed};
use crate::password::Password;
use crate::sign_in::person::Person;

pub use self::settings::Settings;
use self::settings::{GROUPS, values};

/// Timeout of one step at the directory, in seconds.
const STEP_TIMEOUT_S: u64 = 10;
/// Maximum length of a name that is searched for, in bytes.
const NAME_BYTES: usize = 255;

impl Accounts {
    /// Logs a user in at the configured directory. `strategy` is recorded in the account: `ldap` or `msad`. Without a
    /// directory every login is refused.
    ///
    /// Errors: the directory cannot be reached, too many failed logins, the store.
    pub async fn log_in_at_directory(
        &self,
        tenant: &Tenant,
        strategy: &'static str,
        username: &str,
        password: Password,
    ) -> Result<Login> {
        let settings = &self.sources().ldap;
        if !settings.is_configured() || username.is_empty() || NAME_BYTES < username.len() {
            return Ok(Login::Refused);
        }
        let attempt = self.throttle().enter(tenant.name(), username)?;
        let Some(person) = person(settings, strategy, username, &password).await? else {
            attempt.failed();
            return Ok(Login::Refused);
        };
        attempt.succeeded();
        self.arrive(tenant, person).await
    }
}

/// Returns the person with this name and password; `None` if one of them is wrong, or the name matches several entries.
async fn person(
    settings: &Settings,
    strategy: &'static str,
    username: &str,
    password: &Password,
) -> Result<Option<Person>> {
    let mut ldap = connected(settings).await.map_err(|reason| failed(settings.server(), reason))?;
    let found = found(&mut ldap, settings, strategy, username, password).await;
    // Regardless of the outcome.
    if let Err(error) = ldap.unbind().await {
        tracing::debug!(%error, "the directory was not taken leave of; the connection is closed all the same");
    }
    found.map_err(|error| failed(settings.server(), reason(&error)))
}

async fn found(
    ldap: &mut Ldap,
    settings: &Settings,
    strategy: &'static str,
    username: &str,
    password: &Password,
) -> ldap3::result::Result<Option<Person>> {
    bind(ldap, &settings.bind_dn, settings.bind_password.reveal()).await?;
    let attributes = [
        settings.username_attribute.as_str(),
        &settings.email_attribute,
        &settings.display_name_attribute,
        &settings.groups_attribute,
        "cn",
    ];
    let attributes: Vec<&str> = attributes.into_iter().filter(|it| !it.is_empty()).collect();
    let filter = settings.search_filter(username);
    let found = search(ldap, &settings.search_base, &filter, attributes, 2).await?;
    let [entry] = found.as_slice() else { return Ok(None) };
    let mut groups = Vec::new();
    if !settings.group_base.is_empty() {
        let name = settings.group_name_attribute.as_str();
        let filter = settings.group_filter(username, &entry.dn);
        let found = search(ldap, &settings.group_base, &filter, vec![name], GROUPS).await?;
        groups = found.iter().flat_map(|it| values(it, name)).map(str::to_owned).collect();
    }
    // The password comes last: nothing is read with the person's own rights.
    let bound = ldap.with_timeout(step()).simple_bind(&entry.dn, password.reveal()).await?;
    Ok((bound.rc == 0).then(|| settings.person(strategy, username, entry, groups)))
}

fn step() -> Duration {
    Duration::from_secs(STEP_TIMEOUT_S)
}

/// Opens a connection. Errors: the reason for the failure.
async fn connected(settings: &Settings) -> std::result::Result<Ldap, String> {
    pinakes_tls::provider();
    let mut options = LdapConnSettings::new().set_conn_timeout(step()).set_starttls(settings.starttls);
    if !settings.ca_file.is_empty() {
        let config = pinakes_tls::client_config(Path::new(&settings.ca_file));
        options = options.set_config(config.map_err(|error| format!("ca_file: {error}"))?);
    }
    let connected = LdapConnAsync::with_settings(options, &settings.url).await;
    let (connection, ldap) = connected.map_err(|error| reason(&error))?;
    // Ends when the last handle is dropped.
    tokio::spawn(async move {
        if let Err(error) = connection.drive().await {
            tracing::debug!(%error, "the connection to the directory broke");
        }
    });
    Ok(ldap)
}

async fn bind(ldap: &mut Ldap, dn: &str, password: &str) -> ldap3::result::Result<()> {
    if dn.is_empty() {
        return Ok(());
    }
    ldap.with_timeout(step()).simple_bind(dn, password).await?.success()?;
    Ok(())
}

async fn search(
    ldap: &mut Ldap,
    base: &str,
    filter: &str,
    attributes: Vec<&str>,
    most: usize,
) -> ldap3::result::Result<Vec<SearchEntry>> {
    let bounds = SearchOptions::new()
        .sizelimit(i32::try_from(most).unwrap_or(i32::MAX))
        .timelimit(i32::try_from(STEP_TIMEOUT_S).unwrap_or(i32::MAX));
    let ldap = ldap.with_search_options(bounds).with_timeout(step());
    let found = ldap.search(base, Scope::Subtree, filter, attributes).await?;
    // Referrals are not followed; a list that was cut at the limit is long enough to show that there are several
    // entries.
    let ldap3::SearchResult(entries, outcome) = found;
    if outcome.rc != 4 {
        outcome.success()?;
    }
    Ok(entries.into_iter().filter(|it| !it.is_ref()).map(SearchEntry::construct).collect())
}

/// Describes the kind of failure, without what was sent.
fn reason(error: &ldap3::LdapError) -> String {
    match error {
        ldap3::LdapError::LdapResult { result } => format!("it refused the search with code {}", result.rc),
        ldap3::LdapError::Timeout { .. } => format!("it did not answer within {STEP_TIMEOUT_S} s"),
        ldap3::LdapError::Io { .. } => "no connection".to_owned(),
        ldap3::LdapError::FilterParsing => "the search filter of the settings cannot be read".to_owned(),
        _ => "the exchange failed".to_owned(),
    }
}
