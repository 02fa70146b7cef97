//! The state every handler may use: the catalogue, accounts, limits, clock and randomness, in one cheap
//! value.

use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use http::request::Parts;
use pinakes_accounts::{Accounts, Caller, Clock, Entropy, Resolved};
use pinakes_blobs::Blobs;
use pinakes_store::{Catalogue, Limits, ReadJob, StoreError, Tenant, Txn, View, Weight, WriteTimes};

use crate::entrance::{self, Entrance};
use crate::refusal::Refusal;
use crate::slow::SlowRequests;
use crate::stages::{self, RequestScope, Stage};
use crate::tenant::TenantChoice;

/// The state every handler may use; part of each dialect's state. Cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    catalogue: Catalogue,
    accounts: Accounts,
    limits: Limits,
    tenants: TenantChoice,
    blobs: Blobs,
    slow: Arc<SlowRequests>,
}

/// The outcome of a request's credentials.
#[derive(Debug, Clone)]
pub enum Asking {
    /// A user, or nobody if no token was sent.
    Caller(Caller),
    /// An expired token.
    Expired,
    /// An unknown token. Some dialects treat it as no token.
    Invalid,
    /// A token of another tenant, whose name is given.
    OtherTenant(String),
}

impl Asking {
    /// Returns the caller, treating [`Asking::Invalid`] and the rest as anonymous.
    pub fn or_anonymous(self) -> Caller {
        match self {
            Self::Caller(caller) => caller,
            _ => Caller::anonymous(),
        }
    }
}

impl Context {
    /// Creates it from a server's parts. Files are kept in memory, see [`Context::with_blobs`].
    pub fn new(catalogue: Catalogue, accounts: Accounts, limits: Limits, tenants: TenantChoice) -> Self {
        let blobs = Blobs::in_memory();
        let slow = Arc::new(SlowRequests::new(limits.slow_request_ms, accounts.clock().clone()));
        Self(Arc::new(Inner { catalogue, accounts, limits, tenants, blobs, slow }))
    }

    /// Sets the place for files.
    #[must_use]
    pub fn with_blobs(self, blobs: Blobs) -> Self {
        let Inner { catalogue, accounts, limits, tenants, slow, .. } = &*self.0;
        Self(Arc::new(Inner {
            catalogue: catalogue.clone(),
            accounts: accounts.clone(),
            limits: limits.clone(),
            tenants: tenants.clone(),
            blobs,
            slow: Arc::clone(slow),
        }))
    }

    /// Returns the catalogue of all tenants.
    pub fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    /// Returns all accounts.
    pub fn accounts(&self) -> &Accounts {
        &self.0.accounts
    }

    /// Returns the store of files beside the records.
    pub fn blobs(&self) -> &Blobs {
        &self.0.blobs
    }

    /// Returns all limits.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Returns the slow requests.
    pub fn slow_requests(&self) -> &SlowRequests {
        &self.0.slow
    }

    /// Returns how tenants are chosen.
    pub fn tenants(&self) -> &TenantChoice {
        &self.0.tenants
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Clock {
        self.0.accounts.clock()
    }

    /// Returns the source of randomness and new identifiers.
    pub fn entropy(&self) -> &Entropy {
        self.0.accounts.entropy()
    }

    /// Returns the data of the request's tenant, opening it on another thread if it is not open. Records the stage
    /// `auth`.
    ///
    /// Errors: an unusable header; an unknown tenant ([`pinakes_store::StoreError::UnknownTenant`]).
    pub async fn db(&self, headers: &HeaderMap) -> Result<Db, Refusal> {
        let started = Instant::now();
        let name = self.tenant_name(headers)?;
        let tenant = self.0.catalogue.tenant_aside(name).await;
        if let Some(scope) = RequestScope::current() {
            scope.add(Stage::Auth, started.elapsed());
            scope.set_tenant(name);
        }
        Ok(Db::new(tenant?))
    }

    /// Returns the name of the request's tenant, by the header of the dialect's [`Entrance`], otherwise by host name.
    ///
    /// Errors: an unusable header.
    pub fn tenant_name<'a>(&'a self, headers: &'a HeaderMap) -> Result<&'a str, Refusal> {
        self.0.tenants.choose(headers, self::entrance().tenant_headers)
    }

    /// Returns whether the request itself says which tenant it is for: by a header of the dialect's [`Entrance`], or
    /// by a host that stands for one.
    pub fn is_tenant_named(&self, headers: &HeaderMap) -> bool {
        self::entrance().tenant_headers.iter().any(|it| headers.contains_key(*it))
            || self.0.tenants.is_of_host(headers)
    }

    /// Returns the data of a tenant that the request names in another way.
    ///
    /// Errors: an unknown tenant.
    pub async fn db_of(&self, name: &str) -> Result<Db, Refusal> {
        let tenant = self.0.catalogue.tenant_aside(name).await;
        if let Some(scope) = RequestScope::current() {
            scope.set_tenant(name);
        }
        Ok(Db::new(tenant?))
    }

    /// Authenticates the request: resolves its token, where the dialect's [`Entrance`] says it is, in the tenant.
    /// Records the stage `auth` and the user's name for the access log.
    ///
    /// Errors: two different tokens; the store.
    pub async fn asking(&self, db: &Db, parts: &Parts) -> Result<Asking, Refusal> {
        let Some(token) = entrance::token_of(parts, &self::entrance())? else {
            return Ok(Asking::Caller(Caller::anonymous()));
        };
        self.asking_with(db, &token).await
    }

    /// Authenticates with a token that a dialect has found by its own rules.
    pub async fn asking_with(&self, db: &Db, token: &str) -> Result<Asking, Refusal> {
        let resolved = stages::timed_async(Stage::Auth, self.0.accounts.resolve(&db.tenant, token)).await?;
        Ok(match resolved {
            Resolved::Caller(caller) => {
                if let (Some(scope), Some(name)) = (RequestScope::current(), caller.username()) {
                    scope.set_username(name);
                    if caller.is_in(EXPLAINED_TO) {
                        scope.allow_how();
                    }
                }
                Asking::Caller(caller)
            }
            Resolved::Expired => Asking::Expired,
            Resolved::Invalid => Asking::Invalid,
            Resolved::OtherTenant(name) => Asking::OtherTenant(name),
        })
    }
}

/// Returns the entrance of the dialect that answers now; the default outside of requests.
fn entrance() -> Entrance {
    RequestScope::current().map_or_else(Entrance::default, |it| it.entrance())
}

/// A tenant's data, with the stages of the current request being timed. Cheap to clone.
#[derive(Clone)]
pub struct Db {
    tenant: Tenant,
    freshness: Freshness,
}

/// The group whose members may have their requests explained.
const EXPLAINED_TO: &str = "admin";

/// How current a request's reads must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// Everything that is committed.
    Current,
    /// Scans may show the state of up to `limits.standby_lag_ms` ago.
    Lagging,
}

impl Db {
    /// Wraps a tenant.
    pub fn new(tenant: Tenant) -> Self {
        Self { tenant, freshness: Freshness::Current }
    }

    /// Allows scans to be answered by a standby, within the configured lag. For callers who write nothing and so
    /// cannot miss their own writes.
    pub fn lagging(self) -> Self {
        Self { freshness: Freshness::Lagging, ..self }
    }

    /// Returns the tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Runs [`Tenant::read`], recorded as `store`. The closure may run again.
    pub async fn read<R, E>(
        &self,
        weight: Weight,
        read: impl FnMut(&mut View<'_>) -> Result<R, E> + Send + 'static,
    ) -> Result<R, E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.run(weight, ReadJob::of(read)).await?.result()
    }

    /// Runs a read that keeps its result.
    async fn run(&self, weight: Weight, mut reading: ReadJob) -> Result<ReadJob, StoreError> {
        if let Some(scope) = RequestScope::current().filter(|it| it.is_explained()) {
            reading = reading.within(move |read| scope.explained(read));
        } else if (weight, self.freshness) == (Weight::Scan, Freshness::Lagging) {
            return stages::timed_async(Stage::Store, self.tenant.run_lagging(reading)).await;
        }
        stages::timed_async(Stage::Store, self.tenant.run(weight, reading)).await
    }

    /// Runs [`Tenant::write`], recorded as `wait`, `store` and `commit`. The closure may run again; its
    /// writes are on disk when this returns.
    pub async fn write<R, E>(
        &self,
        write: impl FnMut(&mut Txn<'_>) -> Result<R, E> + Send + 'static,
    ) -> Result<R, E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let started = Instant::now();
        match self.tenant.write(write).await {
            Ok((result, times)) => {
                record_write(&times);
                Ok(result)
            }
            Err(error) => {
                stages::record(Stage::Store, started.elapsed());
                Err(error)
            }
        }
    }
}

fn record_write(times: &WriteTimes) {
    if let Some(scope) = RequestScope::current() {
        scope.add(Stage::Wait, times.wait);
        scope.add(Stage::Store, times.run);
        scope.add(Stage::Commit, times.commit);
    }
}
