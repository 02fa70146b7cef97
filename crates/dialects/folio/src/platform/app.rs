//! The starting point of every handler: the server's parts, the caller and the tenant, and the parts of the request.
//!
//! Only `Call::admit` creates a [`Call`], and it checks the permission that the route names: a handler cannot be
//! reached without it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};
use pinakes_accounts::{Caller, User};
use pinakes_http::{Asking, Context, Db, Refusal, Stage, body, stages};
use pinakes_store::{StoreError, View};
use serde_json::{Map, Value};

use crate::data_import::imports::Imports;
use crate::platform::coerce;
use crate::platform::collection::Collections;
use crate::platform::error::{Fault, FolioError};
use crate::platform::permissions::{self, Access};
use crate::platform::settings::Settings;
use crate::platform::values::{QueryText, parse_uuid};
use crate::reference;
use crate::timers::known::Timers;

/// The dialect's state: cheap to clone.
#[derive(Clone)]
pub struct Folio {
    /// The server's shared parts.
    pub context: Context,
    /// The site's settings.
    pub settings: Arc<Settings>,
    /// Imports in progress.
    pub imports: Imports,
    /// Timers of recurring work.
    pub timers: Timers,
    /// All collections.
    pub collections: Collections,
    /// All permissions that routes ask for, and the sets of them, as they are listed.
    pub permissions: Arc<[Value]>,
    /// Tenants whose reference data is known to be loaded.
    prepared: Arc<Mutex<HashSet<String>>>,
}

impl Folio {
    /// Assembles the state from its parts.
    pub fn new(
        context: Context,
        settings: Settings,
        collections: Collections,
        permissions: Arc<[Value]>,
    ) -> Self {
        let settings = Arc::new(settings);
        Self {
            imports: Imports::new(context.clone(), Arc::clone(&settings), collections),
            timers: Timers::new(context.clone(), collections),
            context,
            settings,
            collections,
            permissions,
            prepared: Arc::default(),
        }
    }

    /// Returns the current time in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.context.clock().now_ms()
    }

    /// Returns a new UUID, greater than those created before.
    pub fn new_uuid(&self) -> String {
        self.context.entropy().uuid_at(self.now_ms()).to_string()
    }

    /// Ensures that the tenant has its reference data; costs nothing once this is known.
    pub async fn prepare(&self, db: &Db) -> Result<(), FolioError> {
        let name = db.tenant().name();
        if self.seen().contains(name) {
            return Ok(());
        }
        let (now_ms, collections) = (self.now_ms(), self.collections);
        let settings = Arc::clone(&self.settings);
        let is_loaded = move |view: &mut View<'_>| reference::is_loaded(view, &settings, collections);
        if !db.read(pinakes_store::Weight::Point, is_loaded).await? {
            let settings = Arc::clone(&self.settings);
            db.write(move |txn| reference::load(txn, &settings, now_ms, collections)).await?;
        }
        self.seen().insert(name.to_owned());
        Ok(())
    }

    /// Forgets that a tenant was prepared, because it is being removed.
    pub fn forget(&self, tenant: &str) {
        self.timers.forget(tenant);
        self.seen().remove(tenant);
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The caller and the tenant of a request.
#[derive(Clone)]
pub struct Asker {
    /// The tenant's data.
    pub db: Db,
    /// The caller; anonymous on routes that need no token.
    pub caller: Caller,
}

impl Asker {
    /// Returns the tenant's name.
    pub fn tenant(&self) -> &str {
        self.db.tenant().name()
    }

    /// Returns the user's UUID, which goes into `createdByUserId`; `None` for an anonymous caller.
    pub fn user_id(&self) -> Option<String> {
        self.caller.user.as_deref().map(|it| it.uuid.to_string())
    }

    /// Returns the user.
    pub fn user(&self) -> Option<&User> {
        self.caller.user.as_deref()
    }
}

/// An admitted request.
pub struct Call {
    /// The dialect's state.
    pub app: Folio,
    /// The caller and the tenant.
    pub asker: Asker,
    /// The query parameters.
    pub query: QueryText,
    /// The request's header fields.
    pub headers: HeaderMap,
    /// The method.
    pub method: Method,
    /// The URI.
    pub uri: Uri,
    /// The server's URL as the client used it, with the prefix of the mount: `https://example.org/folio`.
    pub origin: String,
    params: Vec<(String, String)>,
    /// In a mutex only because bodies are not `Sync`; never contended.
    body: Mutex<Body>,
}

impl Call {
    /// Admits a request if its tenant, its token and the caller's permissions allow it.
    ///
    /// Errors, in this order: two different tokens or an unknown tenant (400; with a token 401), a token of another
    /// tenant (403), no token or an invalid one (401), a missing permission (403).
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

    /// Returns the tenant's data.
    pub fn db(&self) -> &Db {
        &self.asker.db
    }

    /// Returns a path parameter, decoded.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(it, _)| it == name).map_or("", |(_, value)| value)
    }

    /// Returns a path parameter that must be a UUID, in lower case.
    ///
    /// Errors: 400 `Invalid UUID string: …`.
    pub fn uuid_param(&self, name: &str) -> Result<String, FolioError> {
        let text = self.param(name);
        parse_uuid(text).ok_or_else(|| FolioError::bad_request(format!("Invalid UUID string: {text}")))
    }

    /// Takes the body as a stream.
    pub fn take_body(&mut self) -> Body {
        std::mem::replace(self.body.get_mut().unwrap_or_else(PoisonError::into_inner), Body::empty())
    }

    /// Reads the whole body, within the usual limit.
    pub async fn bytes(&mut self) -> Result<Bytes, FolioError> {
        let limits = self.app.context.limits().clone();
        let body = self.take_body();
        Ok(body::receive(&self.headers, body, limits.body_bytes, &limits).await?)
    }

    /// Reads the body as JSON. Errors: 400 in plain text with the position where it stops being JSON.
    pub async fn json(&mut self) -> Result<Value, FolioError> {
        let bytes = self.bytes().await?;
        let limits = self.app.context.limits();
        let mut value = stages::timed(Stage::Parse, || body::parse_json(&bytes, limits))
            .map_err(|fault| FolioError::bad_request(format!("Json content error: {fault}")))?;
        coerce::texts(&mut value);
        Ok(value)
    }

    /// Reads the body as a JSON object.
    pub async fn object(&mut self) -> Result<Map<String, Value>, FolioError> {
        match self.json().await? {
            Value::Object(map) => Ok(map),
            _ => Err(FolioError::bad_request("Json content error: expected an object")),
        }
    }
}

/// Checks whether the request carries a token.
fn has_token(headers: &HeaderMap) -> bool {
    headers.contains_key("x-okapi-token") || headers.contains_key(http::header::AUTHORIZATION)
}

/// Builds the answer for a token sent to an unknown tenant.
fn unauthorized() -> FolioError {
    let fault = Fault::new("Unauthorized").ty("UnauthorizedException").code("authorization_error");
    FolioError::faults(StatusCode::UNAUTHORIZED, vec![fault])
}

/// Authenticates the caller by a token of this tenant; if the request names no tenant, the one named by the token is
/// used.
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
