//! What every handler starts from: the server's parts, the caller and tenant, and the parts of the request.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Uri, Version};
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
    /// Rate limit of feedback.
    pub(crate) feedback: Feedback,
    /// Threads that hash the passwords of new users.
    checks: PasswordChecks,
    /// Tenants that are known to be initialised.
    prepared: Arc<Mutex<HashSet<String>>>,
}

impl Dataverse {
    /// Creates the state.
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

    /// Returns milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.context.clock().now_ms()
    }

    /// Returns the current time in Dataverse's format: `2026-01-31T10:20:30Z`.
    pub fn now(&self) -> String {
        clock::instant(self.now_ms())
    }

    /// Returns the hash of a password, computed off the server's threads.
    pub(crate) async fn hash(&self, password: Password) -> Result<PasswordHash, ApiError> {
        let checks = self.checks.clone();
        Ok(checks.hash(password, self.context.entropy().clone()).await?)
    }

    /// Returns the metadata blocks of a tenant.
    pub async fn registry(&self, db: &Db) -> Result<Arc<Registry>, ApiError> {
        self.registries.of(db).await
    }

    /// Reserves numbers for new objects, see `Ids`.
    pub async fn ids(&self, db: &Db, n: i64) -> Result<Ids, ApiError> {
        self.ranges.take(db, n).await
    }

    /// Returns whether the tenant of this name is known to be initialised.
    pub(crate) fn is_prepared(&self, tenant: &str) -> bool {
        self.seen().contains(tenant)
    }

    /// Records that the tenant of this name is initialised.
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
    /// The caller.
    pub asker: Asker,
    /// The query parameters.
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
    /// What the shell says of the request: where the dialect is mounted.
    extensions: Extensions,
    /// Behind a lock only because bodies are not `Sync`; never contended.
    body: Mutex<Body>,
}

impl Call {
    /// Creates the call of a request whose tenant and caller are known.
    pub(crate) fn new(
        (app, db, asker): (Dataverse, Db, Asker),
        (params, query): (Vec<(String, String)>, Query),
        parts: Parts,
        body: Body,
    ) -> Self {
        let Parts { headers, method, uri, version, extensions, .. } = parts;
        let body = Mutex::new(body);
        Self { app, asker, query, headers, method, uri, version, db, params, extensions, body }
    }

    /// Returns the tenant's data.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Returns the tenant's name.
    pub fn tenant(&self) -> &str {
        self.db.tenant().name()
    }

    /// Returns a part of the path, decoded; empty if the route has no part of that name.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(it, _)| it == name).map_or("", |(_, value)| value)
    }

    /// Reserves numbers for new objects, see `Ids`. Ask for the maximum that the write may need.
    pub async fn ids(&self, n: i64) -> Result<Ids, ApiError> {
        self.app.ids(&self.db, n).await
    }

    /// Returns a header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the URL at which clients reach the dialect, without a slash at the end: the setting, or what the request
    /// and the proxies before the server say, with the prefix below which the dialect is mounted.
    pub fn site_url(&self) -> String {
        match self.app.settings.site_url.trim_end_matches('/') {
            "" => pinakes_http::origin(&self.headers, &self.extensions),
            configured => configured.to_owned(),
        }
    }

    /// Takes the unread body, for streaming.
    pub fn take_body(&mut self) -> Body {
        std::mem::replace(self.body.get_mut().unwrap_or_else(PoisonError::into_inner), Body::empty())
    }

    /// Returns the whole body within the ordinary size limit.
    pub async fn bytes(&mut self) -> Result<Bytes, ApiError> {
        let limits = self.app.context.limits().clone();
        let body = self.take_body();
        Ok(body::receive(&self.headers, body, limits.body_bytes, &limits).await?)
    }

    /// Returns the whole body as text, trimmed.
    pub async fn text(&mut self) -> Result<String, ApiError> {
        let bytes = self.bytes().await?;
        let text = std::str::from_utf8(&bytes);
        let text = text.map_err(|error| ApiError::bad_request(format!("The body is not UTF-8: {error}")))?;
        Ok(text.trim().to_owned())
    }

    /// Returns the body as JSON. Errors: 400 `Error parsing Json: …`.
    pub async fn json(&mut self) -> Result<Value, ApiError> {
        let bytes = self.bytes().await?;
        let limits = self.app.context.limits();
        let parsed = stages::timed(Stage::Parse, || body::parse_json(&bytes, limits));
        parsed.map_err(|fault| ApiError::bad_request(format!("Error parsing Json: {fault}")))
    }

    /// Returns the body as a JSON object. Errors: 400 `Error parsing Json: …`.
    pub async fn object(&mut self) -> Result<Map<String, Value>, ApiError> {
        match self.json().await? {
            Value::Object(map) => Ok(map),
            _ => Err(ApiError::bad_request("Error parsing Json: expected an object")),
        }
    }
}
