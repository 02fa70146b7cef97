//! What every handler starts from: the server's parts, who asks for which tenant, and the request's own parts.
//!
//! A [`Call`] is made by `Call::admit` alone, which checks the permission that the route names: a handler cannot
//! be reached without.

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
    /// Imports under way.
    pub imports: Imports,
    /// What is done from time to time.
    pub timers: Timers,
    /// Every collection.
    pub collections: Collections,
    /// Every permission that a route asks for, and the sets of them, as they are listed.
    pub permissions: Arc<[Value]>,
    /// Tenants whose reference data was found loaded.
    prepared: Arc<Mutex<HashSet<String>>>,
}

impl Folio {
    /// Of its parts.
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
