//! What every handler needs: the server's shared parts, the tenant, and the caller with their rights.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method};
use pinakes_accounts::Caller;
use pinakes_http::body::{self, JsonCategory};
use pinakes_http::{Asking, Context, Db, Parameters, Stage, stages};
use pinakes_store::Kind;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::datasets::incoming::Incoming;
use crate::datasets::schemas::Schemas;
use crate::error::ScicatError;
use crate::jobs::outbox::Outbox;
use crate::json_error;
use crate::policies::seen::SeenPolicies;
use crate::rights::Rights;
use crate::settings::Settings;
use crate::tracking::{Subsystem, Tracking};

/// The dialect's state: cheap to clone.
#[derive(Clone)]
pub struct Scicat {
    /// The server's shared parts.
    pub context: Context,
    /// The site's settings.
    pub settings: Arc<Settings>,
    /// Cached policies of owner groups.
    pub(crate) policies: SeenPolicies,
    /// Metadata schemas that are kept on other servers.
    pub(crate) schemas: Schemas,
    /// The session at the logbook service.
    pub(crate) logbook_session: crate::logbooks::session::Session,
    /// Actions of jobs that have not been carried out yet.
    pub(crate) outbox: Outbox,
}

impl Scicat {
    /// Creates the dialect from the server's shared parts and the site's settings.
    pub fn new(context: Context, settings: impl Into<Arc<Settings>>) -> Self {
        let settings = settings.into();
        Self {
            outbox: Outbox::new(context.clone(), Arc::clone(&settings)),
            context,
            settings,
            policies: SeenPolicies::default(),
            schemas: Schemas::default(),
            logbook_session: crate::logbooks::session::Session::default(),
        }
    }

    /// Returns the current time in the format of dates in answers.
    pub fn now(&self) -> String {
        crate::dates::format_ms(self.context.clock().now_ms())
    }

    /// Returns a new pid with the site's prefix.
    pub fn new_pid(&self) -> String {
        let prefix = self.settings.pid_prefix.strip_suffix('/').unwrap_or(&self.settings.pid_prefix);
        format!("{prefix}/{}", self.new_uuid())
    }

    /// Returns a new id of 24 hexadecimal digits.
    pub fn new_object_id(&self) -> String {
        let entropy = self.context.entropy();
        crate::ids::object_id(self.context.clock().now_ms(), &mut |bytes| entropy.fill(bytes))
    }

    /// Returns a new UUID that is greater than all made before.
    pub fn new_uuid(&self) -> String {
        self.context.entropy().uuid_at(self.context.clock().now_ms()).to_string()
    }

    /// Reads the body of a request as a JSON object, within the ordinary size limit.
    ///
    /// Errors: 413 if it is larger; 400 in shape E1 if it is not a JSON object.
    pub async fn object(&self, headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, ScicatError> {
        let bytes = self.received(headers, body).await?;
        stages::timed(Stage::Parse, || self.parse_object(&bytes))
    }

    /// Reads the body of a request, within the ordinary size limit.
    ///
    /// Errors: 413 if it is larger.
    pub(crate) async fn received(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, ScicatError> {
        let limits = self.context.limits();
        Ok(body::receive(headers, body, limits.body_bytes, limits).await?)
    }

    /// Parses a received body as a dataset.
    ///
    /// Errors: 400 in shape E1 if it is not a JSON object.
    pub(crate) fn parse_dataset<'b>(&self, bytes: &'b Bytes) -> Result<Incoming<'b>, ScicatError> {
        match body::parse_json(bytes, self.context.limits()) {
            Ok(dataset) => Ok(dataset),
            // Parsed again as a whole, so that the error describes the whole body.
            Err(_) => Ok(Incoming { rest: self.parse_object(bytes)?, metadata: None }),
        }
    }

    /// Reads a body as [`object`](Self::object) does; a missing body counts as `{}`.
    pub async fn optional_object(
        &self,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Map<String, Value>, ScicatError> {
        let bytes = self.received(headers, body).await?;
        if bytes.is_empty() { Ok(Map::new()) } else { self.parse_object(&bytes) }
    }

    /// Parses a received body as a JSON object.
    pub fn parse_object(&self, bytes: &Bytes) -> Result<Map<String, Value>, ScicatError> {
        if bytes.is_empty() {
            return Err(ScicatError::bad_request("the request has no body; expected a JSON object"));
        }
        match body::parse_json(bytes, self.context.limits()) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(_) => Err(ScicatError::bad_request("the body must be a JSON object")),
            Err(fault) if fault.category == JsonCategory::Depth => {
                Err(ScicatError::bad_request(fault.to_string()))
            }
            Err(fault) => Err(ScicatError::bad_request(json_fault(bytes, &fault))),
        }
    }
}

/// The tenant's data and the caller's rights. Every handler takes it, so that none forgets to check them.
pub struct Asker {
    /// The tenant's data.
    pub db: Db,
    /// The caller's rights.
    pub rights: Rights,
    settings: Arc<Settings>,
}

impl Asker {
    /// Says whether changes of a kind's records are entered in the history.
    pub(crate) fn tracking(&self, kind: &Kind) -> Tracking {
        Tracking::of(&self.settings.trackables, &self.settings.trackable_strategy, Subsystem::of(kind))
    }

    /// Returns the site's settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the caller.
    pub fn caller(&self) -> &Caller {
        self.rights.caller()
    }

    /// Returns the name for `createdBy` and `updatedBy`.
    pub fn username(&self) -> String {
        self.caller().username().unwrap_or("anonymous").to_owned()
    }

    /// Refuses an anonymous caller with 401, as `/users`, `/samples` and others do.
    pub fn require_user(&self) -> Result<(), ScicatError> {
        if self.caller().is_anonymous() { Err(ScicatError::unauthenticated()) } else { Ok(()) }
    }

    /// Refuses an anonymous caller with 403, as jobs, policies, logbooks and published data of v3 do.
    pub fn forbid_anonymous(&self) -> Result<(), ScicatError> {
        if self.caller().is_anonymous() { Err(ScicatError::forbidden_resource()) } else { Ok(()) }
    }
}

impl FromRequestParts<Scicat> for Asker {
    type Rejection = ScicatError;

    async fn from_request_parts(parts: &mut Parts, app: &Scicat) -> Result<Self, ScicatError> {
        let db = app.context.db(&parts.headers).await?;
        let caller = match app.context.asking(&db, parts).await? {
            Asking::Expired => return Err(ScicatError::session_expired()),
            asking => asking.or_anonymous(),
        };
        // An anonymous caller has written nothing, so a lagging replica cannot miss a write of theirs.
        let is_reading = parts.method == Method::GET || parts.method == Method::HEAD;
        let db = if caller.is_anonymous() && is_reading { db.lagging() } else { db };
        let rights = stages::timed(Stage::Auth, || Rights::of(caller, &app.settings));
        Ok(Self { db, rights, settings: Arc::clone(&app.settings) })
    }
}

/// The parameters of a path. A path that cannot be decoded is refused with an error in SciCat's shape.
#[derive(Debug, Clone)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ScicatError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ScicatError> {
        let taken = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        taken.map(|it| Self(it.0)).map_err(|_| {
            ScicatError::bad_request(format!("Failed to decode the parameters of {}", parts.uri.path()))
        })
    }
}

/// The query of a request.
#[derive(Debug, Clone, Default)]
pub struct QueryText(Parameters);

impl QueryText {
    /// Parses the text after `?`.
    pub fn parse(query: &str) -> Self {
        Self(Parameters::parse(query))
    }

    /// Returns the first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)
    }

    /// Returns all values of a name, also if it is written `name[]` or `name[0]`.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.pairs().filter(move |it| it.0.split('[').next() == Some(name)).map(|it| it.1)
    }
}

impl<S: Sync> FromRequestParts<S> for QueryText {
    type Rejection = ScicatError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ScicatError> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

/// Parses the JSON text of a query parameter. Errors: 400 in shape E1 that names the parameter.
pub fn json_parameter(name: &str, text: &str) -> Result<Value, ScicatError> {
    serde_json::from_str(text).map_err(|error| {
        let reason = json_error::parse_error(text).unwrap_or_else(|| error.to_string());
        ScicatError::bad_request(format!("Invalid JSON in {name}: {reason}"))
    })
}

/// Explains why a body is not JSON, in the original's words. Faults that only this parser refuses (a number out of
/// range, a lone surrogate) are described in the parser's own words.
pub fn json_fault(body: &[u8], fault: &dyn std::fmt::Display) -> String {
    let text = String::from_utf8_lossy(body);
    json_error::body_error(&text).unwrap_or_else(|| fault.to_string())
}

/// Returns a parameter that must be a JSON object; a missing parameter counts as `{}`.
pub(crate) fn object_parameter(query: &QueryText, name: &str) -> Result<Map<String, Value>, ScicatError> {
    match query.get(name).filter(|it| !it.is_empty()) {
        None => Ok(Map::new()),
        Some(text) => match json_parameter(name, text)? {
            Value::Object(map) => Ok(map),
            other => Err(ScicatError::bad_request(format!("{name} must be a JSON object, found {other}"))),
        },
    }
}
