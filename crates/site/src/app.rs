//! What every handler needs: the server's shared parts, the other dialects, and the visitor.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use bytes::Bytes;
use http::header::{ACCEPT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use pinakes_accounts::{Caller, token};
use pinakes_http::{Context, Db, Neighbour, OnBehalf, Question, Said, body, entrance, host_name};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::deposit::descriptions::Descriptions;
use crate::error::{Result, SiteError};
use crate::fields::Fields;
use crate::language::Language;
use crate::settings::Settings;
use crate::templates::Pages;

/// The cookie of a sign-in.
pub(crate) const SESSION_COOKIE: &str = "pinakes";
/// The cookie with the chosen language.
pub(crate) const LANGUAGE_COOKIE: &str = "pinakes_language";

/// Maximum size of an answer whose headers are needed too, in bytes.
const HEARD_BYTES_MAX: usize = 8 << 20;

/// The site's state: cheap to clone.
#[derive(Clone)]
pub(crate) struct Site {
    /// The server's shared parts.
    pub(crate) context: Context,
    /// The settings.
    pub(crate) settings: Arc<Settings>,
    /// The dialects that are served.
    pub(crate) neighbours: Arc<[Neighbour]>,
    /// Templates and styles.
    pub(crate) pages: Arc<Pages>,
    /// Descriptions of metadata blocks that were read before.
    pub(crate) descriptions: Descriptions,
}

/// A dialect's answer with its headers.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Status and body.
    pub(crate) said: Said,
    /// The headers.
    pub(crate) headers: HeaderMap,
}

impl Heard {
    /// Receives an answer.
    async fn whole(answer: Response<Body>) -> Result<Self> {
        let (parts, body) = answer.into_parts();
        let body = axum::body::to_bytes(body, HEARD_BYTES_MAX).await;
        let body = body.map_err(|error| SiteError::Damaged(error.to_string()))?;
        Ok(Self { said: Said { status: parts.status, body }, headers: parts.headers })
    }

    /// Returns a header; empty if there is none.
    pub(crate) fn header(&self, name: &HeaderName) -> &str {
        self.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default()
    }
}

/// The visitor with their tenant and language.
pub(crate) struct Visitor {
    /// The tenant's data, for logins.
    pub(crate) db: Db,
    /// The caller; anonymous if nobody is signed in.
    pub(crate) caller: Caller,
    /// The language of the page.
    pub(crate) language: Language,
    /// Headers of the request.
    pub(crate) headers: HeaderMap,
    /// The requested path and query.
    pub(crate) asked: String,
    session: Option<String>,
    /// Part of the tokens of this page's forms.
    nonce: String,
}

impl FromRequestParts<Site> for Visitor {
    type Rejection = SiteError;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Self> {
        let db = site.context.db(&parts.headers).await?;
        // Only tokens from a sign-in are sessions: an API token may have fewer rights than its user, and cannot create
        // other tokens.
        let session = entrance::cookie(&parts.headers, SESSION_COOKIE)
            .filter(|it| !token::is_api_token(it))
            .map(str::to_owned);
        let caller = match &session {
            Some(token) => site.context.asking_with(&db, token).await?.or_anonymous(),
            None => Caller::anonymous(),
        };
        let session = session.filter(|_| !caller.is_anonymous());
        let chosen = entrance::cookie(&parts.headers, LANGUAGE_COOKIE).and_then(Language::named);
        let language = chosen.unwrap_or_else(|| {
            Language::wished(parts.headers.get(ACCEPT_LANGUAGE).and_then(|it| it.to_str().ok()))
        });
        let nonce = site.context.entropy().uuid_at(site.context.clock().now_ms()).simple().to_string();
        let asked = parts.uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
        Ok(Self { db, caller, language, headers: parts.headers.clone(), asked, session, nonce })
    }
}

impl Visitor {
    /// Returns the token that the forms of this session repeat. It is derived from the cookie, but does not reveal the
    /// cookie. It differs on every page, so that it cannot be guessed from how well pages compress.
    pub(crate) fn csrf(&self) -> Option<String> {
        self.csrf_with(&self.nonce)
    }

    fn csrf_with(&self, nonce: &str) -> Option<String> {
        let digest = Sha256::digest(format!("pinakes site form {nonce} {}", self.session.as_deref()?));
        let text: String = digest.iter().take(16).map(|it| format!("{it:02x}")).collect();
        Some(format!("{nonce}.{text}"))
    }

    /// Checks that a form comes from this site and this session.
    ///
    /// Errors: it does not.
    pub(crate) fn proven(&self, form: &Fields) -> Result<()> {
        self.proven_by(form.text("_csrf"))
    }

    /// Does the same with the token of a multipart form.
    pub(crate) fn proven_by(&self, given: &str) -> Result<()> {
        self.expect_own_page()?;
        match self.csrf_with(given.split('.').next().unwrap_or_default()) {
            Some(token) if token == given => Ok(()),
            Some(_) => Err(SiteError::ForeignForm),
            None => Err(SiteError::SignIn),
        }
    }

    /// Refuses a request that a page of another site sent. A request without both `Sec-Fetch-Site` and `Origin` is
    /// allowed: it comes from a program, as all supported browsers send one of them with a form.
    pub(crate) fn expect_own_page(&self) -> Result<()> {
        let said = |name: &str| self.headers.get(name).map(|it| it.to_str().unwrap_or("?"));
        let is_own = match (said("sec-fetch-site"), said("origin")) {
            (Some(site), _) => matches!(site, "same-origin" | "none"),
            (None, Some(origin)) => {
                let place = origin.split_once("://").map(|it| it.1);
                let called = said("x-forwarded-host").or_else(|| said("host"));
                place.is_some() && place == called
            }
            (None, None) => true,
        };
        if is_own { Ok(()) } else { Err(SiteError::ForeignForm) }
    }

    /// Returns the requested host name, without its port.
    pub(crate) fn host(&self) -> Option<String> {
        host_name(&self.headers)
    }

    /// Says whether the visitor's connection is encrypted, according to the proxy.
    pub(crate) fn is_secure(&self) -> bool {
        self.headers.get("x-forwarded-proto").is_some_and(|it| it.as_bytes() == b"https")
    }

    /// Returns the text of a key in the visitor's language, or the key itself if there is none.
    pub(crate) fn text(&self, key: &str) -> String {
        self.language.texts().get(key).copied().unwrap_or(key).to_owned()
    }

    fn on_behalf(&self) -> OnBehalf<'_> {
        OnBehalf { tenant: self.db.tenant().name(), token: self.session.as_deref(), headers: &self.headers }
    }
}

impl Site {
    /// Reads the form that was sent, within the ordinary size limit.
    pub(crate) async fn form(&self, visitor: &Visitor, sent: Body) -> Result<Fields> {
        let limits = self.context.limits();
        let bytes = body::receive(&visitor.headers, sent, limits.body_bytes, limits).await?;
        Ok(Fields::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Returns a dialect, if it is served.
    pub(crate) fn neighbour(&self, dialect: &str) -> Option<&Neighbour> {
        self.neighbours.iter().find(|it| it.dialect() == dialect)
    }

    /// Returns the address of a dialect's own path, if the dialect is served.
    pub(crate) fn href(&self, visitor: &Visitor, dialect: &str, path: &str) -> Option<String> {
        Some(self.neighbour(dialect)?.href(visitor.host().as_deref(), path))
    }

    /// Sends a request to a dialect on behalf of the visitor and returns its answer.
    ///
    /// Errors: it is not served ([`SiteError::NotFound`]), or could not be reached.
    pub(crate) async fn ask(
        &self,
        visitor: &Visitor,
        dialect: &str,
        method: Method,
        path: &str,
        sent: Option<&Value>,
    ) -> Result<Said> {
        let neighbour = self.neighbour(dialect).ok_or(SiteError::NotFound)?;
        let budget = self.context.catalogue().budget();
        neighbour.ask(method, path, sent, visitor.on_behalf(), budget).await.map_err(SiteError::Unheard)
    }

    /// Does the same with any body, and with an answer that is read as a stream.
    ///
    /// Errors: as [`Site::ask`].
    pub(crate) async fn open(
        &self,
        visitor: &Visitor,
        dialect: &str,
        question: Question<'_>,
    ) -> Result<Response<Body>> {
        self.open_for(visitor.on_behalf(), dialect, question).await
    }

    async fn open_for(
        &self,
        asker: OnBehalf<'_>,
        dialect: &str,
        question: Question<'_>,
    ) -> Result<Response<Body>> {
        let neighbour = self.neighbour(dialect).ok_or(SiteError::NotFound)?;
        let budget = self.context.catalogue().budget();
        neighbour.open(question, asker, budget).await.map_err(SiteError::Unheard)
    }

    /// Does the same as [`Site::ask`] with an additional header, and returns the headers of the answer: for records
    /// that are read in order to be changed, and are changed only if they are still as they were read. The request is
    /// not repeated anonymously if the dialect refuses the session.
    ///
    /// Errors: as [`Site::ask`].
    pub(crate) async fn hear(
        &self,
        visitor: &Visitor,
        dialect: &str,
        (method, path): (Method, &str),
        sent: Option<&Value>,
        condition: Option<(HeaderName, &str)>,
    ) -> Result<Heard> {
        let mut headers = Vec::new();
        let content = sent.map(|it| Bytes::from(it.to_string()));
        if let Some(content) = &content {
            headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
            headers.push((CONTENT_LENGTH, HeaderValue::from(content.len())));
        }
        if let Some((name, value)) = condition {
            let value = HeaderValue::from_str(value).map_err(|_| SiteError::ForeignForm)?;
            headers.push((name, value));
        }
        let body = content.map_or_else(Body::empty, Body::from);
        let answer = self.open(visitor, dialect, Question { method, path, headers, body }).await?;
        Heard::whole(answer).await
    }

    /// Reads from a dialect as [`Site::read`] does, unless the answer still has the tag that is known: then it returns
    /// `None`. Returns the answer with its tag; empty if the dialect gave none.
    ///
    /// Errors: as [`Site::read`].
    pub(crate) async fn read_changed(
        &self,
        visitor: &Visitor,
        dialect: &str,
        path: &str,
        known: &str,
    ) -> Result<Option<(Value, String)>> {
        let heard = async |asker: OnBehalf<'_>| {
            let condition = HeaderValue::from_str(known).ok().filter(|it| !it.is_empty());
            let headers = condition.into_iter().map(|it| (IF_NONE_MATCH, it)).collect();
            let question = Question { method: Method::GET, path, headers, body: Body::empty() };
            Heard::whole(self.open_for(asker, dialect, question).await?).await
        };
        let mut it = heard(visitor.on_behalf()).await?;
        if it.said.status == http::StatusCode::UNAUTHORIZED && visitor.session.is_some() {
            it = heard(OnBehalf { token: None, ..visitor.on_behalf() }).await?;
        }
        if it.said.status == http::StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let said = it.said.json().ok_or_else(|| SiteError::of_status(it.said.status))?;
        Ok(Some((said, it.header(&ETAG).to_owned())))
    }

    /// Reads from a dialect. If the dialect refuses the session, the request is repeated anonymously, with the least
    /// access.
    ///
    /// Errors: as [`Site::ask`]; the dialect refused.
    pub(crate) async fn read(&self, visitor: &Visitor, dialect: &str, path: &str) -> Result<Value> {
        let mut said = self.ask(visitor, dialect, Method::GET, path, None).await?;
        if said.status == http::StatusCode::UNAUTHORIZED && visitor.session.is_some() {
            let neighbour = self.neighbour(dialect).ok_or(SiteError::NotFound)?;
            let nobody = OnBehalf { token: None, ..visitor.on_behalf() };
            let budget = self.context.catalogue().budget();
            said = neighbour.get(path, nobody, budget).await.map_err(SiteError::Unheard)?;
        }
        said.json().ok_or_else(|| SiteError::of_status(said.status))
    }
}
