//! What every handler starts from: the server's parts, who asks for which tenant, and the request's own parts.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Uri, Version};
use pinakes_accounts::{Password, PasswordChecks, PasswordHash};
use pinakes_http::{Context, Db, Stage, body, stages};
use serde_json::{Map, Value};

use crate::asker::Asker;
use crate::blocks::Registry;
use crate::clock;
use crate::error::ApiError;
use crate::feedback::Feedback;
use crate::ids::{Ids, Ranges};
use crate::query::Query;
use crate::registry::Registries;
use crate::settings::Settings;

/// The dialect's state: cheap to clone.
#[derive(Clone)]
pub struct Dataverse {
    /// The server's shared parts.
    pub context: Context,
    /// The operator's settings.
    pub settings: Arc<Settings>,
    ranges: Ranges,
    registries: Registries,
    /// How often who sent feedback.
    pub(crate) feedback: Feedback,
    /// Where passwords of new users are hashed.
    checks: PasswordChecks,
    /// Tenants that were found to hold what a new server must have.
    prepared: Arc<Mutex<HashSet<String>>>,
}

impl Dataverse {
    /// Of its parts.
    pub fn new(context: Context, settings: Settings) -> Self {
        let checks = PasswordChecks::new(context.limits());
        let settings = Arc::new(settings);
        Self {
            context,
            settings,
            ranges: Ranges::default(),
            registries: Registries::default(),
            feedback: Feedback::default(),
            checks,
            prepared: Arc::default(),
        }
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.context.clock().now_ms()
    }

    /// Now, as Dataverse writes it: `2026-01-31T10:20:30Z`.
    pub fn now(&self) -> String {
        clock::instant(self.now_ms())
    }

    /// A password's hash, made aside from the server's threads.
    pub(crate) async fn hash(&self, password: Password) -> Result<PasswordHash, ApiError> {
        let checks = self.checks.clone();
        Ok(checks.hash(password, self.context.entropy().clone()).await?)
    }

    /// The metadata blocks of a tenant.
    pub async fn registry(&self, db: &Db) -> Result<Arc<Registry>, ApiError> {
        self.registries.of(db).await
    }

    /// Numbers for new objects, see `Ids`.
    pub async fn ids(&self, db: &Db, n: i64) -> Result<Ids, ApiError> {
        self.ranges.take(db, n).await
    }

    /// Whether the tenant of this name was found to hold what a new server must have.
    pub(crate) fn is_prepared(&self, tenant: &str) -> bool {
        self.seen().contains(tenant)
    }

    /// The tenant of this name holds what a new server must have.
    pub(crate) fn note_prepared(&self, tenant: &str) {
        self.seen().insert(tenant.to_owned());
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request.
pub struct Call {
    /// The dialect's state.
    pub app: Dataverse,
    /// Who asks.
    pub asker: Asker,
    /// The parameters behind `?`.
    pub query: Query,
    /// The request's header fields.
    pub headers: HeaderMap,
    /// The method.
    pub method: Method,
    /// The URI as the client sent it.
    pub uri: Uri,
    /// The version of HTTP.
    pub version: Version,
    db: Db,
    params: Vec<(String, String)>,
    /// Behind a lock only because bodies are not `Sync`; never contended.
    body: Mutex<Body>,
}

impl Call {
    /// Of a request whose tenant and caller are known.
    pub(crate) fn new(
        (app, db, asker): (Dataverse, Db, Asker),
        (params, query): (Vec<(String, String)>, Query),
        parts: Parts,
        body: Body,
    ) -> Self {
        let (headers, method, uri, version) = (parts.headers, parts.method, parts.uri, parts.version);
        Self { app, asker, query, headers, method, uri, version, db, params, body: Mutex::new(body) }
    }

    /// The tenant's data.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The tenant's name.
    pub fn tenant(&self) -> &str {
        self.db.tenant().name()
    }

    /// A part of the path, decoded; empty when the route has none of that name.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(it, _)| it == name).map_or("", |(_, value)| value)
    }

    /// Numbers for new objects, see `Ids`. Ask for as many as the write may need at most.
    pub async fn ids(&self, n: i64) -> Result<Ids, ApiError> {
        self.app.ids(&self.db, n).await
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Where clients reach the server, without a slash at the end.
    pub fn site_url(&self) -> String {
        let configured = self.app.settings.site_url.trim_end_matches('/');
        if !configured.is_empty() {
            return configured.to_owned();
        }
        format!("http://{}", self.header("host").unwrap_or("localhost"))
    }

    /// The body as it comes, for what is streamed.
    pub fn take_body(&mut self) -> Body {
        std::mem::replace(self.body.get_mut().unwrap_or_else(PoisonError::into_inner), Body::empty())
    }

    /// The whole body within the ordinary bound.
    pub async fn bytes(&mut self) -> Result<Bytes, ApiError> {
        let limits = self.app.context.limits().clone();
        let body = self.take_body();
        Ok(body::receive(&self.headers, body, limits.body_bytes, &limits).await?)
    }

    /// The whole body as text, without blanks around it.
    pub async fn text(&mut self) -> Result<String, ApiError> {
        let bytes = self.bytes().await?;
        let text = std::str::from_utf8(&bytes);
        let text = text.map_err(|error| ApiError::bad_request(format!("The body is not UTF-8: {error}")))?;
        Ok(text.trim().to_owned())
    }

    /// The body as JSON. Errors: 400 `Error parsing Json: …`.
    pub async fn json(&mut self) -> Result<Value, ApiError> {
        let bytes = self.bytes().await?;
        let limits = self.app.context.limits();
        let parsed = stages::timed(Stage::Parse, || body::parse_json(&bytes, limits));
        parsed.map_err(|fault| ApiError::bad_request(format!("Error parsing Json: {fault}")))
    }

    /// The body as a JSON object. Errors: 400 `Error parsing Json: …`.
    pub async fn object(&mut self) -> Result<Map<String, Value>, ApiError> {
        match self.json().await? {
            Value::Object(map) => Ok(map),
            _ => Err(ApiError::bad_request("Error parsing Json: expected an object")),
        }
    }
}
