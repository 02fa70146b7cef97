//! What every handler starts from: the server's parts, the tenant, who asks and what they may.

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
/// Header in which programs repeat the token of their session, where a cookie says who they are.
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
    /// Names and passwords that were right a moment ago.
    pub(crate) remembered: Remembered,
}

impl Conclave {
    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        self.context.clock().now_ms()
    }

    /// A new UUID, greater than those made before.
    pub(crate) fn new_uuid(&self) -> String {
        self.context.entropy().uuid_at(self.now_ms()).to_string()
    }
}

/// Who asks, and for which tenant: taken by every handler, so that none forgets to ask.
#[derive(Clone)]
pub(crate) struct Asker {
    /// The tenant's data.
    pub(crate) db: Db,
    /// The caller; nobody where nobody is signed in.
    pub(crate) caller: Caller,
    /// The token of the cookie, where a cookie says who asks.
    session: Option<String>,
    settings: Arc<Settings>,
    is_csrf_checked: bool,
}

impl Asker {
    /// Lets a reader in.
    pub(crate) fn may_read(&self) -> Result<()> {
        if self.settings.public || !self.caller.is_anonymous() {
            return Ok(());
        }
        Err(ConclaveError::unauthenticated())
    }

    /// Lets an editor in, whose request is proven to be their own.
    pub(crate) fn may_edit(&self) -> Result<()> {
        if self.caller.is_anonymous() {
            return Err(ConclaveError::unauthenticated());
        }
        if !self.is_editor() {
            return Err(ConclaveError::forbidden("editing needs one of the groups of editors"));
        }
        self.proven()
    }

    /// Lets an administrator in, likewise.
    pub(crate) fn may_administer(&self) -> Result<()> {
        if self.caller.is_anonymous() {
            return Err(ConclaveError::unauthenticated());
        }
        if !self.caller.is_in_any(&self.settings.admin_groups) {
            return Err(ConclaveError::forbidden("this needs one of the groups of administrators"));
        }
        self.proven()
    }

    /// Whether the caller may edit.
    pub(crate) fn is_editor(&self) -> bool {
        let groups = &self.settings.editor_groups;
        !self.caller.is_anonymous()
            && (groups.is_empty()
                || self.caller.is_in_any(groups)
                || self.caller.is_in_any(&self.settings.admin_groups))
    }

    /// Whether the caller may fill and empty maps.
    pub(crate) fn is_administrator(&self) -> bool {
        !self.caller.is_anonymous() && self.caller.is_in_any(&self.settings.admin_groups)
    }

    /// A browser sends a cookie along with whatever a foreign page makes it send: such a request must repeat the
    /// session's token, which no foreign page can know.
    fn proven(&self) -> Result<()> {
        if self.session.is_some() && !self.is_csrf_checked {
            return Err(ConclaveError::forbidden(
                "the request carries a cookie but not the token of the session (field _csrf or header x-csrf-token)",
            ));
        }
        Ok(())
    }

    /// Takes the token of a form.
    pub(crate) fn with_form(mut self, form: &Fields) -> Self {
        self.is_csrf_checked |= self.csrf().is_some_and(|it| it == form.text("_csrf"));
        self
    }

    /// The token that forms of this session repeat.
    pub(crate) fn csrf(&self) -> Option<String> {
        self.session.as_deref().map(csrf_of)
    }

    /// Whether a reader may see what lies in a scope.
    pub(crate) fn sees(&self, scope: &str) -> bool {
        let group = self.settings.scopes.get(scope);
        group.is_none_or(|it| self.caller.is_in(it) || self.caller.is_in_any(&self.settings.admin_groups))
    }

    /// Leaves out what the reader may not see.
    pub(crate) fn filtered(&self, mut found: Found) -> Found {
        if !self.settings.scopes.is_empty() {
            found.topic.retain(|it| self.sees(it));
            found.topic.label = found.topic.label_in(crate::names::DEFAULT_SCOPE).to_owned();
        }
        found
    }

    /// Scopes that the caller may not see.
    fn hidden(&self) -> Vec<String> {
        self.settings.scopes.keys().filter(|it| !self.sees(it)).cloned().collect()
    }

    /// Whether everything there is may be seen.
    pub(crate) fn sees_all(&self) -> bool {
        self.settings.scopes.keys().all(|it| self.sees(it))
    }

    /// What of the reader decides what is seen, for validators.
    pub(crate) fn sight(&self) -> String {
        let seen = self.settings.scopes.keys().map(|it| if self.sees(it) { '1' } else { '0' });
        seen.collect()
    }

    /// Who makes a change.
    pub(crate) fn author(&self, now_ms: i64) -> Author {
        let name = self.caller.username().unwrap_or("anonymous").to_owned();
        Author { name, now_ms, hidden: self.hidden() }
    }
}

/// The token of a session's forms: it follows from the cookie, and the cookie does not follow from it.
fn csrf_of(session: &str) -> String {
    let digest = Sha256::digest(format!("conclave form {session}"));
    digest.iter().take(16).map(|it| format!("{it:02x}")).collect()
}

impl FromRequestParts<Conclave> for Asker {
    type Rejection = ConclaveError;

    async fn from_request_parts(parts: &mut Parts, app: &Conclave) -> Result<Self> {
        let db = app.context.db(&parts.headers).await?;
        let session = entrance::cookie(&parts.headers, COOKIE_NAME).map(str::to_owned);
        // What stands in a header is meant; a cookie comes along.
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

/// The parameters behind `?`.
#[derive(Clone)]
pub(crate) struct Params(pub(crate) Fields);

impl Params {
    /// A parameter that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<&str> {
        self.0.get(name).ok_or_else(|| ConclaveError::bad_request(format!("the parameter {name} is missing")))
    }

    /// How many items a list may have: 1 to 1,000, else 100.
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

/// The name of a map in a path, checked.
pub(crate) fn map_name(name: &str) -> Result<&str> {
    let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-' || it == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
        return Err(ConclaveError::bad_request(format!(
            "{name:?} names no map: 1 to 64 of a-z, 0-9, - and _"
        )));
    }
    Ok(name)
}
