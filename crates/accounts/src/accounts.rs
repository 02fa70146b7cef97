//! Accounts as a server uses them: passwords are checked outside its threads, callers are cached, changes are noticed.

use std::sync::Arc;

use pinakes_store::{Limits, Tenant, Weight};
use serde_json::{Map, Value};

use crate::callers::Callers;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::error::{AccountsError, Result};
use crate::functional::{FunctionalAccount, Imported, Problem};
use crate::jwt::{self, Verified};
use crate::password::{Password, PasswordChecks, PasswordHash};
use crate::secret::Secret;
use crate::sign_in::Sources;
use crate::sign_in::provider::known::Known;
use crate::throttle::Throttle;
use crate::token::{self, Token, TokenText};
use crate::user::{self, User};

/// Settings of accounts.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The secret that signs web tokens.
    pub secret: Secret,
    /// Groups that every user has (SciCat's `ACCESS_GROUPS_STATIC_VALUES`).
    pub everyone: Vec<String>,
    /// The clock for the expiry of tokens.
    pub clock: Clock,
    /// The source of ids, salts and tokens.
    pub entropy: Entropy,
}

/// The accounts of all tenants of one server. Cheap to clone.
///
/// Changes should go through this type, so that cached callers are updated; code that calls the functions of
/// [`crate::user`] in a transaction of its own must call [`Accounts::changed`] afterwards.
#[derive(Debug, Clone)]
pub struct Accounts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Settings,
    checks: PasswordChecks,
    callers: Callers,
    sources: Sources,
    provider: Known,
    throttle: Throttle,
}

/// The outcome of a login.
#[derive(Debug, Clone)]
pub enum Login {
    /// Name and password are right.
    Welcome(Arc<User>),
    /// Unknown name, wrong password, or an inactive user: callers are not told which.
    Refused,
}

/// An API token to be created.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Id of its user.
    pub user: String,
    /// Its purpose; unique among the user's tokens.
    pub name: String,
    /// The groups to which it is restricted, out of the user's groups; `None` for all.
    pub groups: Option<Vec<String>>,
    /// When it expires, in milliseconds since 1970; `None` for never.
    pub expires_at_ms: Option<i64>,
}

impl Accounts {
    /// Creates the accounts of a server. Limits used: `password_checks`, `password_queue`, `cached_callers`,
    /// `sign_in_failures`, `sign_in_window_s`.
    pub fn new(settings: Settings, limits: &Limits) -> Self {
        Self::with_sources(settings, limits, Sources::default())
    }

    /// Creates the accounts of a server with external login servers.
    pub fn with_sources(settings: Settings, limits: &Limits, sources: Sources) -> Self {
        let checks = PasswordChecks::new(limits);
        let callers = Callers::new(limits.cached_callers);
        let throttle = Throttle::new(limits, settings.clock.clone());
        Self(Arc::new(Inner { settings, checks, callers, sources, provider: Known::default(), throttle }))
    }

    /// Returns the external login servers.
    pub fn sources(&self) -> &Sources {
        &self.0.sources
    }

    pub(crate) fn provider(&self) -> &Known {
        &self.0.provider
    }

    pub(crate) fn throttle(&self) -> &Throttle {
        &self.0.throttle
    }

    /// Returns the clock for the expiry of tokens.
    pub fn clock(&self) -> &Clock {
        &self.0.settings.clock
    }

    /// Returns the source of new ids.
    pub fn entropy(&self) -> &Entropy {
        &self.0.settings.entropy
    }

    /// Returns the groups that every user has.
    pub fn everyone(&self) -> &[String] {
        &self.0.settings.everyone
    }

    pub(crate) fn callers(&self) -> &Callers {
        &self.0.callers
    }

    /// Reports that accounts were changed by other means than this type: cached callers are checked again.
    pub fn changed(&self) {
        self.0.callers.changed();
    }

    /// Returns a user with new identifiers and the current time, to be completed and passed to [`Accounts::create`].
    pub fn new_user(&self, username: impl Into<String>) -> User {
        User::new(username, self.clock().now_ms(), self.entropy())
    }

    /// Stores a new user, with a password if one is given.
    ///
    /// Errors: name, id or UUID already used; an invalid name; too many waiting password checks.
    pub async fn create(&self, tenant: &Tenant, mut user: User, password: Option<Password>) -> Result<User> {
        if let Some(password) = password {
            user.password = Some(self.0.checks.hash(password, self.entropy().clone()).await?);
        }
        let id = user.id.clone();
        let written = tenant.write(move |txn| {
            user::insert(txn, &user)?;
            crate::user::by_id(txn, &user.id)?.ok_or_else(|| AccountsError::UnknownUser(id.clone()))
        });
        let (user, _) = written.await?;
        Ok(user)
    }

    /// Changes a user: `change` is applied to the stored user and may run more than once.
    ///
    /// Errors: unknown user; a name that is already used or invalid.
    pub async fn change(
        &self,
        tenant: &Tenant,
        id: &str,
        mut change: impl FnMut(&mut User) + Send + 'static,
    ) -> Result<User> {
        let (id, now_ms) = (id.to_owned(), self.clock().now_ms());
        let written = tenant.write(move |txn| user::change(txn, &id, now_ms, &mut change)).await;
        self.changed();
        Ok(written?.0)
    }

    /// Sets a new password of a user. Tokens stay valid.
    pub async fn set_password(&self, tenant: &Tenant, id: &str, password: Password) -> Result<User> {
        let hash = self.0.checks.hash(password, self.entropy().clone()).await?;
        self.change(tenant, id, move |user| user.password = Some(hash.clone())).await
    }

    /// Removes a user and its API tokens; the user's web tokens become invalid.
    pub async fn remove(&self, tenant: &Tenant, id: &str) -> Result<User> {
        let wanted = id.to_owned();
        let written = tenant.write(move |txn| user::remove(txn, &wanted)).await;
        self.changed();
        written?.0.ok_or_else(|| AccountsError::UnknownUser(id.into()))
    }

    /// Returns the user with this name.
    pub async fn by_username(&self, tenant: &Tenant, username: &str) -> Result<Option<User>> {
        let username = username.to_owned();
        tenant.read(Weight::Point, move |view| crate::user::by_username(view, &username)).await
    }

    /// Returns the user with this id.
    pub async fn by_id(&self, tenant: &Tenant, id: &str) -> Result<Option<User>> {
        let id = id.to_owned();
        tenant.read(Weight::Point, move |view| crate::user::by_id(view, &id)).await
    }

    /// Checks name and password. Does the same amount of work whether or not the user exists.
    ///
    /// Errors: too many waiting checks, too many failures; the store.
    pub async fn log_in(&self, tenant: &Tenant, username: &str, password: Password) -> Result<Login> {
        let attempt = self.throttle().enter(tenant.name(), username)?;
        let user = self.by_username(tenant, username).await?;
        let login = self.check_as(Some(format!("{}/{username}", tenant.name())), user, password).await?;
        match login {
            Login::Welcome(_) => attempt.succeeded(),
            Login::Refused => attempt.failed(),
        }
        Ok(login)
    }

    /// Hashes a secret other than an account's password, such as a PIN; the hash is stored by the caller.
    pub async fn hash(&self, secret: Password) -> Result<PasswordHash> {
        self.0.checks.hash(secret, self.entropy().clone()).await
    }

    /// Says whether this is the secret of a hash; `name` identifies its owner. Without a hash it returns false after
    /// the same amount of work.
    ///
    /// Errors: too many waiting checks, too many failures for that name.
    pub async fn is_secret(
        &self,
        tenant: &Tenant,
        name: &str,
        secret: Password,
        hash: Option<PasswordHash>,
    ) -> Result<bool> {
        let attempt = self.throttle().enter(tenant.name(), name)?;
        let matches = self.0.checks.matches(Some(format!("{}/{name}", tenant.name())), secret, hash).await?;
        match matches {
            true => attempt.succeeded(),
            false => attempt.failed(),
        }
        Ok(matches)
    }

    /// Checks the password of a user that was already read, e.g. by UUID; `None` is refused after the same amount of
    /// work.
    pub async fn check(&self, user: Option<User>, password: Password) -> Result<Login> {
        self.check_as(user.as_ref().map(|it| it.id.clone()), user, password).await
    }

    async fn check_as(
        &self,
        account: Option<String>,
        user: Option<User>,
        password: Password,
    ) -> Result<Login> {
        let hash = user.as_ref().and_then(|it| it.password.clone());
        let matches = self.0.checks.matches(account, password, hash).await?;
        match user {
            Some(user) if matches && user.active => Ok(Login::Welcome(Arc::new(user))),
            _ => Ok(Login::Refused),
        }
    }

    /// Creates an API token. Its text is not stored and must be shown now.
    ///
    /// Errors: unknown user; the user already has a token of that name.
    pub async fn create_token(&self, tenant: &Tenant, new: NewToken) -> Result<(TokenText, Token)> {
        let text = TokenText::random(self.entropy());
        let token = Token {
            id: text.id(),
            name: new.name,
            user: new.user,
            groups: new.groups,
            expires_at_ms: new.expires_at_ms,
            created_at_ms: self.clock().now_ms(),
        };
        let stored = token.clone();
        tenant.write(move |txn| token::insert(txn, &stored)).await?;
        Ok((text, token))
    }

    /// Removes an API token by its id.
    pub async fn remove_token(&self, tenant: &Tenant, id: &str) -> Result<Token> {
        let wanted = id.to_owned();
        let written = tenant.write(move |txn| token::remove(txn, &wanted)).await;
        self.changed();
        written?.0.ok_or_else(|| AccountsError::UnknownToken(id.into()))
    }

    /// Derives 32 bytes from the tenant's secret and `purpose`: for tokens whose text is computed rather than stored.
    /// They cannot be guessed without the secret, and no web token is signed with them.
    pub fn derived(&self, tenant: &str, purpose: &str) -> [u8; 32] {
        jwt::hmac(&self.0.settings.secret.key_of(tenant), format!("derived:{purpose}").as_bytes())
    }

    /// Signs claims as they are, for programs that set their own times.
    pub fn sign(&self, tenant: &str, claims: &Map<String, Value>) -> String {
        jwt::sign(&self.0.settings.secret.key_of(tenant), claims)
    }

    /// Signs claims after appending `iat` (now) and `exp` (`life_s` seconds later).
    pub fn sign_for(&self, tenant: &str, mut claims: Map<String, Value>, life_s: i64) -> String {
        let now_s = self.clock().now_s();
        claims.insert("iat".into(), now_s.into());
        claims.insert("exp".into(), now_s.saturating_add(life_s).into());
        self.sign(tenant, &claims)
    }

    /// Checks a web token of the tenant; see [`Accounts::resolve`] for the caller that it stands for.
    pub fn verify(&self, tenant: &str, token: &str) -> Verified {
        jwt::verify(&self.0.settings.secret.key_of(tenant), token, self.clock().now_s())
    }

    /// Creates or updates users from SciCat's functional accounts, see [`crate::functional::parse`]. The file takes
    /// precedence: e-mail, groups, `global` and a given password replace what is stored.
    pub async fn import_functional(
        &self,
        tenant: &Tenant,
        accounts: Vec<FunctionalAccount>,
    ) -> Result<Imported> {
        let mut imported = Imported::default();
        for (entry, account) in accounts.into_iter().enumerate() {
            match self.import_one(tenant, account).await {
                Ok(Change::Created) => imported.n_created += 1,
                Ok(Change::Changed) => imported.n_changed += 1,
                Ok(Change::Same) => imported.n_same += 1,
                Err(error @ AccountsError::Username { .. }) => {
                    imported.problems.push(Problem { entry, reason: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(imported)
    }

    async fn import_one(&self, tenant: &Tenant, account: FunctionalAccount) -> Result<Change> {
        let Some(stored) = self.by_username(tenant, &account.username).await? else {
            let mut user = self.new_user(account.username);
            (user.email, user.groups, user.global) = (account.email, account.groups, account.global);
            self.create(tenant, user, account.password).await?;
            return Ok(Change::Created);
        };
        let mut hash = stored.password.clone();
        if let Some(password) = account.password
            && !self.0.checks.matches(None, password.clone(), hash.clone()).await?
        {
            hash = Some(self.0.checks.hash(password, self.entropy().clone()).await?);
        }
        let (email, groups, global) = (account.email, account.groups, account.global);
        let refresh = move |user: &mut User| {
            (user.email, user.groups, user.global) = (email.clone(), groups.clone(), global);
            user.password = hash.clone();
        };
        let user = self.change(tenant, &stored.id, refresh).await?;
        Ok(if user.version == stored.version { Change::Same } else { Change::Changed })
    }
}

/// What an import did to one account.
enum Change {
    Created,
    Changed,
    Same,
}
