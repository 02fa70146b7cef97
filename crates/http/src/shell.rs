//! What happens to every request before and after its dialect: id, clock, limits, panics, compression,
//! `Server-Timing`, metrics, log. It is one plain function rather than a stack of layers: every request
//! passes through it, and it is read more often than changed.

use std::any::Any;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::response::Response;
use futures_util::FutureExt as _;
use http::header::{CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use pinakes_accounts::asked_from;
use pinakes_store::{StoreError, Weight};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::access_log::{self, AccessLog, Line};
use crate::answer;
use crate::body::Watched;
use crate::compress;
use crate::connection::ConnectionState;
use crate::context::Context;
use crate::etag::Tagged;
use crate::held::held;
use crate::inflate::inflate;
use crate::local::is_of_this_machine;
use crate::metrics::{Metrics, Names};
use crate::mount::{Mount, MountFault, MountPoint, Mounts};
use crate::openapi;
use crate::path::{self, AskedUri};
use crate::process;
use crate::public_url::{MountedAt, relocate};
use crate::refusal::Refusal;
use crate::request_id::{RequestIds, X_REQUEST_ID};
use crate::stages::{Exchange, RequestScope};
use crate::tls::Tls;
use crate::traces::Traces;

/// Header that says where the time of the request went.
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// Header that asks how a request is answered, and that carries the explanation; see
/// [`RequestScope::explanation`].
const EXPLAIN: HeaderName = HeaderName::from_static("pinakes-explain");
/// Name of the shell's own routes in metrics and logs.
const OWN: &str = "server";

/// Why a shell could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// Two metrics have the same name.
    #[error("metrics: {0}")]
    Metrics(prometheus::Error),
    /// A dialect has no place of its own.
    #[error(transparent)]
    Mount(#[from] MountFault),
}

/// The server around the dialects.
pub struct Shell {
    pub(crate) context: Context,
    pub(crate) metrics: Metrics,
    pub(crate) draining: AtomicBool,
    pub(crate) tls: Option<Tls>,
    traces: Option<Traces>,
    mounts: Mounts,
    access_log: AccessLog,
    request_ids: RequestIds,
    openapi: Value,
}

impl Shell {
    /// Creates a server without dialects: `/metrics`, `/health/live`, `/health/ready`, `/openapi.json`.
    pub fn new(context: Context) -> Result<Self, ShellError> {
        let metrics = Metrics::new().map_err(ShellError::Metrics)?;
        let request_ids = RequestIds::new(context.entropy());
        let openapi = openapi::merged(&[]);
        Ok(Self {
            context,
            metrics,
            draining: AtomicBool::new(false),
            tls: None,
            traces: None,
            mounts: Mounts::default(),
            access_log: AccessLog::default(),
            request_ids,
            openapi,
        })
    }

    /// Adds a dialect.
    ///
    /// Errors: [`ShellError::Mount`] if its place is taken by another, or is not valid.
    pub fn mount(mut self, mount: Mount) -> Result<Self, ShellError> {
        self.mounts.add(mount)?;
        let documents = self.mounts.all().iter().map(|it| (it.dialect, &it.openapi));
        self.openapi = openapi::merged(&documents.collect::<Vec<_>>());
        Ok(self)
    }

    /// Sets the level of access log lines.
    pub fn access_log(mut self, access_log: AccessLog) -> Self {
        self.access_log = access_log;
        self
    }

    /// Encrypts connections.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Enables a span for each traced request.
    pub fn traces(mut self, traces: Traces) -> Self {
        self.traces = Some(traces);
        self
    }

    /// Returns the metrics for Prometheus; dialects may add their own.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the dialects, where the site has mounted them, and their own paths, in the order they were
    /// mounted.
    pub fn mounted(&self) -> impl Iterator<Item = (&'static str, &MountPoint, &[String])> {
        self.mounts.all().iter().map(|it| (it.dialect, &it.point, it.base_paths.as_slice()))
    }

    /// Answers one request.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Arc<ConnectionState>,
    ) -> Response {
        let budget = self.context.catalogue().budget();
        let scope = RequestScope::new(Instant::now(), Arc::clone(connection), budget);
        let request_id = self.request_ids.of(request.headers());
        if request.headers().contains_key(EXPLAIN) {
            scope.ask_how();
        }
        let logged = self.access_log.is_on().then(|| Logged::of(&request));
        let method = request.method().clone();
        let traced = self.traces.as_ref().and_then(|it| Some((it, it.place(request.headers())?)));
        let mut response = self.routed(request, &scope, &request_id).await;

        let took = scope.started().elapsed();
        let (dialect, response_headers) = (response.dialect, response.answer.headers_mut());
        response_headers.insert(SERVER_TIMING, scope.server_timing(took));
        response_headers.insert(X_REQUEST_ID, request_id.clone());
        if let Some(explanation) = scope.explanation() {
            response_headers.insert(EXPLAIN, explanation);
        }
        guard(response_headers);
        // While the server drains, even if the connection has not been told yet: the answer may be ready before it
        // looks.
        if connection.is_to_linger() || self.draining.load(Ordering::Relaxed) {
            response_headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.metrics.observe(dialect, response.answer.status(), took, &scope);
        let status = response.answer.status().as_u16();
        let exchange = Exchange { method: &method, dialect, status, request_id: &request_id, took };
        if self.context.slow_requests().is_slow(took) {
            self.context.slow_requests().note(&exchange, &scope);
        }
        if let Some((traces, place)) = traced {
            traces.answered(place, &exchange, &scope);
        }
        if let Some(logged) = logged {
            logged.write(self.access_log, &request_id, &response, took, &scope);
        }
        response.answer
    }

    async fn routed(
        &self,
        request: Request<Incoming>,
        scope: &Arc<RequestScope>,
        id: &HeaderValue,
    ) -> Answered {
        if let Some(refusal) = host_fault(&request) {
            self.leave_unread(request, scope);
            return Answered { dialect: OWN, answer: refusal.plain() };
        }
        if let Some(answer) = self.own_route(&request, scope).await {
            self.leave_unread(request, scope);
            return Answered { dialect: OWN, answer };
        }
        let Some(mount) = self.mounts.find(request.headers(), request.uri().path()) else {
            let path = request.uri().path().to_owned();
            self.leave_unread(request, scope);
            return Answered { dialect: OWN, answer: Refusal::NotFound { path }.plain() };
        };
        let wish = compress::wish(request.headers());
        let origin = Origin::of(&request, mount);
        if let Some(mut answer) = mount.cors.preflight(request.method(), request.headers()) {
            scope.set_route("preflight");
            mount.cors.put(request.headers(), answer.headers_mut());
            self.leave_unread(request, scope);
            return Answered { dialect: mount.dialect, answer };
        }
        scope.set_entrance(mount.entrance);
        let tagged = Tagged::of(mount.tagging, request.method(), request.headers());
        let mut answer = self.dispatched(mount, request, scope, id).await;
        if let Some(tagged) = tagged {
            answer = tagged.tag(answer).await;
        }
        if let Some(wish) = wish {
            answer = compress::compress(wish, answer).await;
        }
        if !mount.point.prefix.is_empty() {
            relocate(&mount.point.prefix, &mut answer);
        }
        if let Some(origin) = origin {
            mount.cors.put(&origin.headers, answer.headers_mut());
        }
        Answered { dialect: mount.dialect, answer }
    }

    /// Reads and discards the body of a request that nobody handles, so that the next request on the connection is
    /// found.
    fn leave_unread(&self, request: Request<Incoming>, scope: &Arc<RequestScope>) {
        drop(Watched::wrap(request.into_body(), scope, self.context.limits()));
    }

    /// Returns the dialect's answer, or the dialect's rendering of a refusal.
    async fn dispatched(
        &self,
        mount: &Mount,
        mut request: Request<Incoming>,
        scope: &Arc<RequestScope>,
        id: &HeaderValue,
    ) -> Response {
        let mut asked = None;
        if !mount.point.prefix.is_empty() {
            let uri = path::without_prefix(request.uri(), &mount.point.prefix);
            asked = Some(std::mem::replace(request.uri_mut(), uri));
            request.extensions_mut().insert(MountedAt(mount.point.prefix.as_str().into()));
        }
        if let Some(uri) = mount.path_rules.rewrite(request.uri()) {
            let before = std::mem::replace(request.uri_mut(), uri);
            asked.get_or_insert(before);
        }
        if let Some(asked) = asked {
            request.extensions_mut().insert(AskedUri(asked));
        }
        let (limits, budget) = (self.context.limits(), self.context.catalogue().budget());
        let watched = request.map(|body| Watched::wrap(body, scope, limits));
        let request = match inflate(watched, budget).await {
            Ok(request) => request,
            Err(refusal) => return (mount.refuse)(refusal),
        };
        let handled = Arc::clone(scope).run(mount.router.clone().oneshot(request));
        let address = scope.peer().map_or(IpAddr::from([0; 4]), |it| it.ip());
        let work = asked_from(address, handled);
        match self.in_time(AssertUnwindSafe(work).catch_unwind(), scope).await {
            Some(Ok(Ok(answer))) => {
                held(answer, budget).unwrap_or_else(|crowded| (mount.refuse)(Refusal::Store(crowded)))
            }
            Some(Ok(Err(never))) => match never {},
            Some(Err(panic)) => {
                self.metrics.count_panic();
                let reason = reason_of(&*panic);
                tracing::error!(request_id = ?id, route = scope.route(), reason, "a handler panicked");
                (mount.refuse)(Refusal::Panic)
            }
            None => (mount.refuse)(Refusal::Timeout { timeout_ms: limits.request_timeout_ms }),
        }
    }

    /// Returns the result of `work`, unless it makes no progress for longer than the limit: each part of a
    /// body that arrives restarts the time, so that an upload may take as long as it needs.
    async fn in_time<F: Future>(&self, work: F, scope: &RequestScope) -> Option<F::Output> {
        let limit = Duration::from_millis(self.context.limits().request_timeout_ms);
        let mut work = pin!(work);
        let mut deadline = scope.started() + limit;
        loop {
            if let Ok(done) = tokio::time::timeout_at(deadline.into(), &mut work).await {
                return Some(done);
            }
            let later = scope.progressed() + limit;
            if later <= deadline {
                return None;
            }
            deadline = later;
        }
    }

    async fn own_route(&self, request: &Request<Incoming>, scope: &RequestScope) -> Option<Response> {
        let route = match request.uri().path() {
            "/metrics" => "/metrics",
            "/health/live" => "/health/live",
            "/health/ready" => "/health/ready",
            "/openapi.json" => "/openapi.json",
            _ => return None,
        };
        scope.set_route(route);
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Some(answer::with_header(
                answer::empty(StatusCode::METHOD_NOT_ALLOWED),
                http::header::ALLOW,
                "GET, HEAD",
            ));
        }
        Some(match route {
            "/metrics" => self.metrics.answer(self.context.catalogue(), names_for(request, scope)),
            "/health/live" => answer::json(StatusCode::OK, &json!({"status": "live"})),
            "/health/ready" => self.ready().await,
            _ => answer::json(StatusCode::OK, &self.openapi),
        })
    }

    /// Answers 200 if a read of the store works, the files can be reached, and the server is not shutting down,
    /// otherwise 503 with the reason, in bounded time.
    async fn ready(&self) -> Response {
        let reason = if self.draining.load(Ordering::Relaxed) {
            Some("the server is shutting down".to_owned())
        } else {
            let tried = async {
                if cfg!(target_os = "linux") && !has_descriptors() {
                    return Err(
                        "hardly a file descriptor is left; raise the limit on open files (ulimit -n)"
                            .to_owned(),
                    );
                }
                self.try_store().await.map_err(|error| format!("the store: {error}"))?;
                if let Some(failure) = self.context.catalogue().failure() {
                    return Err(format!("the store: {}", StoreError::Halted(failure)));
                }
                self.context.blobs().probe().await.map_err(|error| format!("the files: {error}"))
            };
            let timeout_ms = self.context.limits().ready_timeout_ms;
            match tokio::time::timeout(Duration::from_millis(timeout_ms), tried).await {
                Ok(tried) => tried.err(),
                Err(_) => Some(format!("the store or the files did not answer within {timeout_ms} ms")),
            }
        };
        match reason {
            None => answer::json(StatusCode::OK, &json!({"status": "ready"})),
            Some(reason) => {
                let body = json!({"status": "not ready", "reason": reason});
                answer::json(StatusCode::SERVICE_UNAVAILABLE, &body)
            }
        }
    }

    /// Reads one number from the default tenant, or from the first there is.
    async fn try_store(&self) -> Result<(), StoreError> {
        let catalogue = self.context.catalogue().clone();
        let default = self.context.tenants().default.clone();
        let name = match catalogue.tenant_aside(&default).await {
            Err(StoreError::UnknownTenant(_)) => {
                let all = catalogue.clone();
                let listed = tokio::task::spawn_blocking(move || all.tenants()).await;
                let first = listed.unwrap_or(Err(StoreError::Closed))?.into_iter().next();
                let Some(first) = first else { return Ok(()) };
                first.name
            }
            other => {
                other?;
                default
            }
        };
        let tenant = catalogue.tenant_aside(&name).await?;
        tenant.read(Weight::Point, |view| view.sequence()).await?;
        Ok(())
    }
}

/// Returns what is wrong with the naming of the host; HTTP/1.1 requires one field (RFC 9112, section 3.2).
fn host_fault(request: &Request<Incoming>) -> Option<Refusal> {
    let n_found = request.headers().get_all(http::header::HOST).iter().count();
    let is_right = n_found == 1 || (n_found == 0 && request.version() < http::Version::HTTP_11);
    (!is_right).then_some(Refusal::Host { n_found })
}

/// Requests from this machine that are not forwarded are told the names of tenants.
fn names_for(request: &Request<Incoming>, scope: &RequestScope) -> Names {
    let peer = scope.peer().map(|it| it.ip());
    match is_of_this_machine(peer, request.version(), request.headers()) {
        true => Names::Told,
        false => Names::Hidden,
    }
}

/// A server with fewer descriptors left cannot answer reliably.
const SPARE_DESCRIPTORS: u64 = 32;

fn has_descriptors() -> bool {
    process::descriptors().is_some_and(|it| it.n_open + SPARE_DESCRIPTORS <= it.most)
}

/// Tells browsers to treat an answer only as its declared type: data is neither run nor framed.
fn guard(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let is_page = |it: &HeaderValue| it.as_bytes().starts_with(b"text/html");
    let policy = if headers.get(CONTENT_TYPE).is_some_and(is_page) { OF_PAGES } else { OF_DATA };
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(policy));
}

/// The policy for data in a browser.
const OF_DATA: &str = "default-src 'none'; frame-ancestors 'none'";
/// The policy for our pages: script and style from files of this server, requests to it.
const OF_PAGES: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// An answer and the dialect it belongs to.
struct Answered {
    dialect: &'static str,
    answer: Response,
}

/// The parts of a request that the cross-origin headers of its answer depend on.
struct Origin {
    headers: HeaderMap,
}

impl Origin {
    fn of(request: &Request<Incoming>, mount: &Mount) -> Option<Self> {
        if mount.cors == crate::cors::Cors::Off {
            return None;
        }
        let origin = request.headers().get(http::header::ORIGIN).cloned();
        Some(Self { headers: origin.map(|it| (http::header::ORIGIN, it)).into_iter().collect() })
    }
}

/// The parts of a request that its log line contains.
struct Logged {
    method: Method,
    path: String,
}

impl Logged {
    fn of(request: &Request<Incoming>) -> Self {
        let uri = request.uri();
        let path = uri.path_and_query().map_or(uri.path(), |it| it.as_str());
        Self { method: request.method().clone(), path: access_log::redacted(path).into_owned() }
    }

    fn write(
        &self,
        log: AccessLog,
        id: &HeaderValue,
        answered: &Answered,
        took: Duration,
        scope: &RequestScope,
    ) {
        log.write(&Line {
            request_id: id.to_str().unwrap_or(""),
            method: &self.method,
            path: &self.path,
            status: answered.answer.status(),
            bytes: http_body::Body::size_hint(answered.answer.body()).exact(),
            took,
            dialect: answered.dialect,
            scope,
        });
    }
}

fn reason_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
