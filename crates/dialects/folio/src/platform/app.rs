//! What every handler starts from: the server's parts, who asks for which tenant, and the request's own parts.
//!
//! A [`Call`] is made by `Call::admit` alone, which checks the permission that the route names: a handler cannot
//! be reached without.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};
use pinakes_accounts::{Caller, User};
use pinakes_http::{Asking, Context, Db, Parameters, Refusal, Stage, answer, body, stages};
use pinakes_store::{StoreError, View};
use serde_json::{Map, Value};

use crate::data_import::Imports;
use crate::platform::error::{Fault, FolioError};
use crate::platform::permissions::{self, Access};
use crate::platform::settings::Settings;
use crate::platform::{coerce, json};
use crate::reference;
use crate::timers::Timers;

/// The dialect's state: cheap to clone.
#[derive(Clone)]
pub struct Folio {
    /// The server's shared parts.
    pub context: Context,
    /// The site's settings.
    pub settings: Arc<Settings>,
    /// Imports under way.
    pub imports: Imports,
    /// What is done from time to time.
    pub timers: Timers,
    /// Tenants whose reference data was found loaded.
    prepared: Arc<Mutex<HashSet<String>>>,
}

impl Folio {
    /// Of its parts.
    pub fn new(context: Context, settings: Settings) -> Self {
        let settings = Arc::new(settings);
        Self {
            imports: Imports::start(context.clone(), Arc::clone(&settings)),
            timers: Timers::start(context.clone()),
            context,
            settings,
            prepared: Arc::default(),
        }
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.context.clock().now_ms()
    }

    /// A new UUID, greater than those made before.
    pub fn new_uuid(&self) -> String {
        self.context.entropy().uuid_at(self.now_ms()).to_string()
    }

    /// Sees to it that the tenant has its reference data; free once it was seen.
    pub async fn prepare(&self, db: &Db) -> Result<(), FolioError> {
        let name = db.tenant().name();
        if self.seen().contains(name) {
            return Ok(());
        }
        let now_ms = self.now_ms();
        let settings = Arc::clone(&self.settings);
        let is_loaded = move |view: &mut View<'_>| reference::is_loaded(view, &settings);
        if !db.read(pinakes_store::Weight::Point, is_loaded).await? {
            let settings = Arc::clone(&self.settings);
            db.write(move |txn| reference::load(txn, &settings, now_ms)).await?;
        }
        self.seen().insert(name.to_owned());
        Ok(())
    }

    /// Forgets that a tenant was prepared, because it goes away.
    pub fn forget(&self, tenant: &str) {
        self.timers.forget(tenant);
        self.seen().remove(tenant);
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who asks, and for which tenant.
#[derive(Clone)]
pub struct Asker {
    /// The tenant's data.
    pub db: Db,
    /// The caller; nobody on routes that need no token.
    pub caller: Caller,
}

impl Asker {
    /// The tenant's name.
    pub fn tenant(&self) -> &str {
        self.db.tenant().name()
    }

    /// The user's UUID, which goes into `createdByUserId`; none for nobody.
    pub fn user_id(&self) -> Option<String> {
        self.caller.user.as_deref().map(|it| it.uuid.to_string())
    }

    /// The user.
    pub fn user(&self) -> Option<&User> {
        self.caller.user.as_deref()
    }
}

/// A request that was let in.
pub struct Call {
    /// The dialect's state.
    pub app: Folio,
    /// Who asks.
    pub asker: Asker,
    /// The parameters behind `?`.
    pub query: QueryText,
    /// The request's header fields.
    pub headers: HeaderMap,
    /// The method.
    pub method: Method,
    /// The URI.
    pub uri: Uri,
    /// The server as the client called it, with the prefix of the mount: `https://example.org/folio`.
    pub origin: String,
    params: Vec<(String, String)>,
    /// Behind a lock only because bodies are not `Sync`; never contended.
    body: Mutex<Body>,
}

impl Call {
    /// Lets a request in when its tenant, its token and the caller's permissions allow.
    ///
    /// Errors, in this order: two different tokens or an unknown tenant (400; with a token 401), a token of another tenant (403), none or
    /// an invalid one (401), a permission that is not held (403).
    pub(crate) async fn admit(
        app: Folio,
        params: Vec<(String, String)>,
        parts: Parts,
        body: Body,
        access: &Access,
    ) -> Result<Self, FolioError> {
        let db = match app.context.db(&parts.headers).await {
            Err(Refusal::Store(StoreError::UnknownTenant(_) | StoreError::TenantName(_)))
                if *access != Access::Anybody && has_token(&parts.headers) =>
            {
                return Err(unauthorized());
            }
            found => found?,
        };
        let (db, caller) = match access {
            Access::Anybody => (db, Caller::anonymous()),
            _ => caller(&app, db, &parts).await?,
        };
        stages::timed(Stage::Auth, || {
            permissions::check(
                &app.settings,
                &caller,
                db.tenant().name(),
                &app.context.tenants().default,
                access,
            )
        })?;
        app.prepare(&db).await?;
        if parts.method != Method::GET {
            app.timers.meet(db.tenant().name());
        }
        let query = QueryText::parse(parts.uri.query().unwrap_or_default());
        let asker = Asker { db, caller };
        let origin = pinakes_http::origin(&parts.headers, &parts.extensions);
        let (headers, method, uri) = (parts.headers, parts.method, parts.uri);
        Ok(Self { app, asker, query, headers, method, uri, origin, params, body: Mutex::new(body) })
    }

    /// The tenant's data.
    pub fn db(&self) -> &Db {
        &self.asker.db
    }

    /// A part of the path, decoded.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(it, _)| it == name).map_or("", |(_, value)| value)
    }

    /// A part of the path that must be a UUID, in lower case.
    ///
    /// Errors: 400 `Invalid UUID string: …`.
    pub fn uuid_param(&self, name: &str) -> Result<String, FolioError> {
        let text = self.param(name);
        parse_uuid(text).ok_or_else(|| FolioError::bad_request(format!("Invalid UUID string: {text}")))
    }

    /// The body as it comes, for what is streamed.
    pub fn take_body(&mut self) -> Body {
        std::mem::replace(self.body.get_mut().unwrap_or_else(PoisonError::into_inner), Body::empty())
    }

    /// The whole body within the ordinary bound.
    pub async fn bytes(&mut self) -> Result<Bytes, FolioError> {
        let limits = self.app.context.limits().clone();
        let body = self.take_body();
        Ok(body::receive(&self.headers, body, limits.body_bytes, &limits).await?)
    }

    /// The body as JSON. Errors: 400 in plain text that says where it stops being JSON.
    pub async fn json(&mut self) -> Result<Value, FolioError> {
        let bytes = self.bytes().await?;
        let limits = self.app.context.limits();
        let mut value = stages::timed(Stage::Parse, || body::parse_json(&bytes, limits))
            .map_err(|fault| FolioError::bad_request(format!("Json content error: {fault}")))?;
        coerce::texts(&mut value);
        Ok(value)
    }

    /// The body as a JSON object.
    pub async fn object(&mut self) -> Result<Map<String, Value>, FolioError> {
        match self.json().await? {
            Value::Object(map) => Ok(map),
            _ => Err(FolioError::bad_request("Json content error: expected an object")),
        }
    }
}

/// Whether a header carries a token.
fn has_token(headers: &HeaderMap) -> bool {
    headers.contains_key("x-okapi-token") || headers.contains_key(http::header::AUTHORIZATION)
}

/// No token is good for a tenant that is not there.
fn unauthorized() -> FolioError {
    let fault = Fault::new("Unauthorized").ty("UnauthorizedException").code("authorization_error");
    FolioError::faults(StatusCode::UNAUTHORIZED, vec![fault])
}

/// The caller, proven by a token of this tenant; where the request names none, of the tenant that the token names.
async fn caller(app: &Folio, db: Db, parts: &Parts) -> Result<(Db, Caller), FolioError> {
    let mut db = db;
    let mut asking = app.context.asking(&db, parts).await?;
    if let Asking::OtherTenant(name) = &asking
        && !app.context.is_tenant_named(&parts.headers)
    {
        db = app.context.db_of(name).await?;
        asking = app.context.asking(&db, parts).await?;
    }
    match asking {
        Asking::Caller(caller) if !caller.is_anonymous() => Ok((db, caller)),
        Asking::Caller(_) => {
            Err(FolioError::text(StatusCode::UNAUTHORIZED, "Token missing, access requires a login"))
        }
        Asking::Expired => Err(FolioError::text(StatusCode::UNAUTHORIZED, "Token is expired")),
        Asking::Invalid => Err(FolioError::text(StatusCode::UNAUTHORIZED, "Invalid token")),
        Asking::OtherTenant(_) => {
            let message = format!("Invalid token: it is not for tenant {}", db.tenant().name());
            Err(FolioError::text(StatusCode::FORBIDDEN, message))
        }
    }
}

/// A UUID in its usual form of five groups, in lower case.
pub fn parse_uuid(text: &str) -> Option<String> {
    (text.len() == 36).then(|| uuid::Uuid::parse_str(text).ok())?.map(|it| it.to_string())
}

/// JSON in this dialect's spacing.
pub fn json_answer(status: StatusCode, value: &Value) -> axum::response::Response {
    let body = stages::timed(Stage::Render, || json::bytes(value));
    answer::bytes(status, http::HeaderValue::from_static("application/json"), body)
}

/// A field of a body that must be a text. Errors: 422 as for any property that is missing.
pub fn required_text<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a str, FolioError> {
    body.get(name).and_then(Value::as_str).ok_or_else(|| FolioError::unprocessable(Fault::missing(name)))
}

/// The query of a request.
#[derive(Debug, Clone, Default)]
pub struct QueryText(Parameters);

impl Deref for QueryText {
    type Target = Parameters;

    fn deref(&self) -> &Parameters {
        &self.0
    }
}

impl QueryText {
    /// From the text behind `?`.
    pub fn parse(query: &str) -> Self {
        Self(Parameters::parse(query))
    }

    /// A whole number, or what stands for it when it is not given.
    ///
    /// Errors: 400 as Java says it, `For input string: "abc"`.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, FolioError> {
        match self.get(name) {
            None | Some("") => Ok(default),
            Some(text) => text
                .parse::<i64>()
                .ok()
                .filter(|it| 0 <= *it)
                .map(i64::unsigned_abs)
                .ok_or_else(|| FolioError::bad_request(format!("For input string: \"{text}\""))),
        }
    }
}
