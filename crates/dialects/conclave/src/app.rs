//! What every handler starts from: the server's parts, the tenant, the caller and their rights.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::Method;
use http::request::Parts;
use pinakes_accounts::Caller;
use pinakes_http::{Context, Db, entrance};
use sha2::{Digest as _, Sha256};

use crate::basic::Remembered;
use crate::edit::{Author, Found};
use crate::error::{ConclaveError, Result};
use crate::pages::templates::Templates;
use crate::settings::Settings;
use crate::text::Fields;

/// The cookie of a sign-in.
pub(crate) const COOKIE_NAME: &str = "ConclaveCookie";
/// Header in which clients that authenticate by cookie repeat the token of their session.
const CSRF_HEADER: &str = "x-csrf-token";

/// The dialect's state: cheap to clone.
#[derive(Clone)]
pub(crate) struct Conclave {
    /// The server's shared parts.
    pub(crate) context: Context,
    /// The site's settings.
    pub(crate) settings: Arc<Settings>,
    /// Templates.
    pub(crate) pages: Arc<Templates>,
    /// Pairs of name and password that were recently verified.
    pub(crate) remembered: Remembered,
}

impl Conclave {
    /// Returns milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        self.context.clock().now_ms()
    }

    /// Returns a new UUID, greater than those made before.
    pub(crate) fn new_uuid(&self) -> String {
        self.context.entropy().uuid_at(self.now_ms()).to_string()
    }
}

/// The caller and the tenant: taken by every handler, so that no handler can forget to check them.
#[derive(Clone)]
pub(crate) struct Asker {
    /// The tenant's data.
    pub(crate) db: Db,
    /// The caller; anonymous if nobody is signed in.
    pub(crate) caller: Caller,
    /// The token in the cookie, if the caller authenticates by cookie.
    session: Option<String>,
    settings: Arc<Settings>,
    is_csrf_checked: bool,
}

impl Asker {
    /// Checks that the caller may read.
    pub(crate) fn may_read(&self) -> Result<()> {
        if self.settings.public || !self.caller.is_anonymous() {
            return Ok(());
        }
        Err(ConclaveError::unauthenticated())
    }

    /// Checks that the caller may edit and, if they use a cookie, that the request carries the session's token.
    pub(crate) fn may_edit(&self) -> Result<()> {
        if self.caller.is_anonymous() {
            return Err(ConclaveError::unauthenticated());
        }
        if !self.is_editor() {
            return Err(ConclaveError::forbidden("editing needs one of the groups of editors"));
        }
        self.proven()
    }

    /// Checks that the caller is an administrator, with the same check of the token.
    pub(crate) fn may_administer(&self) -> Result<()> {
        if self.caller.is_anonymous() {
            return Err(ConclaveError::unauthenticated());
        }
        if !self.caller.is_in_any(&self.settings.admin_groups) {
            return Err(ConclaveError::forbidden("this needs one of the groups of administrators"));
        }
        self.proven()
    }

    /// Returns whether the caller may edit.
    pub(crate) fn is_editor(&self) -> bool {
        let groups = &self.settings.editor_groups;
        !self.caller.is_anonymous()
            && (groups.is_empty()
                || self.caller.is_in_any(groups)
                || self.caller.is_in_any(&self.settings.admin_groups))
    }

    /// Returns whether the caller may fill and empty maps.
    pub(crate) fn is_administrator(&self) -> bool {
        !self.caller.is_anonymous() && self.caller.is_in_any(&self.settings.admin_groups)
    }

    /// Protects against cross-site request forgery: browsers send the cookie with requests that foreign pages trigger,
    /// so a request with a cookie must also carry the session's token, which no foreign page can know.
    fn proven(&self) -> Result<()> {
        if self.session.is_some() && !self.is_csrf_checked {
            return Err(ConclaveError::forbidden(
                "the request carries a cookie but not the token of the session (field _csrf or header x-csrf-token)",
            ));
        }
        Ok(())
    }

    /// Checks the token in a form.
    pub(crate) fn with_form(mut self, form: &Fields) -> Self {
        self.is_csrf_checked |= self.csrf().is_some_and(|it| it == form.text("_csrf"));
        self
    }

    /// Returns the token that the forms of this session must repeat.
    pub(crate) fn csrf(&self) -> Option<String> {
        self.session.as_deref().map(csrf_of)
    }

    /// Returns whether the reader may see members of a scope.
    pub(crate) fn sees(&self, scope: &str) -> bool {
        let group = self.settings.scopes.get(scope);
        group.is_none_or(|it| self.caller.is_in(it) || self.caller.is_in_any(&self.settings.admin_groups))
    }

    /// Removes what the reader may not see.
    pub(crate) fn filtered(&self, mut found: Found) -> Found {
        if !self.settings.scopes.is_empty() {
            found.topic.retain(|it| self.sees(it));
            found.topic.label = found.topic.label_in(crate::names::DEFAULT_SCOPE).to_owned();
        }
        found
    }

    /// Returns the scopes that the caller may not see.
    fn hidden(&self) -> Vec<String> {
        self.settings.scopes.keys().filter(|it| !self.sees(it)).cloned().collect()
    }

    /// Returns whether the caller may see every scope.
    pub(crate) fn sees_all(&self) -> bool {
        self.settings.scopes.keys().all(|it| self.sees(it))
    }

    /// Returns which scopes the reader may see, as text for validators.
    pub(crate) fn sight(&self) -> String {
        let seen = self.settings.scopes.keys().map(|it| if self.sees(it) { '1' } else { '0' });
        seen.collect()
    }

    /// Returns the author of a change.
    pub(crate) fn author(&self, now_ms: i64) -> Author {
        let name = self.caller.username().unwrap_or("anonymous").to_owned();
        Author { name, now_ms, hidden: self.hidden() }
    }
}

/// Returns the token of a session's forms. It is derived from the cookie; the cookie cannot be derived from it.
fn csrf_of(session: &str) -> String {
    let digest = Sha256::digest(format!("conclave form {session}"));
    digest.iter().take(16).map(|it| format!("{it:02x}")).collect()
}

impl FromRequestParts<Conclave> for Asker {
    type Rejection = ConclaveError;

    async fn from_request_parts(parts: &mut Parts, app: &Conclave) -> Result<Self> {
        let db = app.context.db(&parts.headers).await?;
        let session = entrance::cookie(&parts.headers, COOKIE_NAME).map(str::to_owned);
        // Credentials in a header take precedence over a cookie, which browsers send unasked.
        let has_header = parts.headers.contains_key(http::header::AUTHORIZATION);
        let accounts = app.context.accounts();
        let (asking, session) = match session.filter(|_| !has_header) {
            Some(token) => (app.context.asking_with(&db, &token).await?, Some(token)),
            None => match app.remembered.token(accounts, &db, &parts.headers).await? {
                Some(token) => (app.context.asking_with(&db, &token).await?, None),
                None => (app.context.asking(&db, parts).await?, None),
            },
        };
        let caller = asking.or_anonymous();
        let session = session.filter(|_| !caller.is_anonymous());
        let repeated = parts.headers.get(CSRF_HEADER).and_then(|it| it.to_str().ok());
        let is_csrf_checked = session.as_deref().is_some_and(|it| Some(csrf_of(it).as_str()) == repeated);
        let is_reading = parts.method == Method::GET || parts.method == Method::HEAD;
        let db = if caller.is_anonymous() && is_reading { db.lagging() } else { db };
        Ok(Self { db, caller, session, settings: Arc::clone(&app.settings), is_csrf_checked })
    }
}

/// The query parameters.
#[derive(Clone)]
pub(crate) struct Params(pub(crate) Fields);

impl Params {
    /// Returns a required parameter.
    pub(crate) fn required(&self, name: &str) -> Result<&str> {
        self.0.get(name).ok_or_else(|| ConclaveError::bad_request(format!("the parameter {name} is missing")))
    }

    /// Returns the maximum number of items of a list: 1 to 1,000, by default 100.
    pub(crate) fn limit(&self) -> Result<u32> {
        match self.0.get("limit") {
            None => Ok(100),
            Some(text) => {
                let number = text.parse().ok().filter(|it| (1..=1000).contains(it));
                number.ok_or_else(|| {
                    ConclaveError::bad_request(format!("limit is {text:?}; expected a number from 1 to 1000"))
                })
            }
        }
    }
}

/// Returns the name of a map from a path, checked.
pub(crate) fn map_name(name: &str) -> Result<&str> {
    let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-' || it == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
        return Err(ConclaveError::bad_request(format!(
            "{name:?} is not a name of a map; expected 1 to 64 of a-z, 0-9, - and _"
        )));
    }
    Ok(name)
}
