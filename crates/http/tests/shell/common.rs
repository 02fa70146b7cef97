//! A tiny dialect behind a real socket, and a client that sends raw bytes.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use pinakes_accounts::{Accounts, Clock, Entropy, Secret, Settings};
use pinakes_http::etag::{self, Tag};
use pinakes_http::{
    Asking, Context, Cors, DoubleSlashes, Drained, Entrance, FinalSlash, Mount, MountPoint, PathRules,
    Refusal, Shell, TenantChoice, TokenPlace, answer, body,
};
use pinakes_store::{Catalogue, Kind, Limits, Location, StoreError, Weight};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;
pub(crate) type Outcome = Result<(), Failure>;

/// Longest time that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

static THING: Kind = Kind::named("toy_thing");
static KINDS: &[&Kind] = &[&THING, &pinakes_accounts::USER, &pinakes_accounts::TOKEN];

/// A running server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// A request to `/toy/slow` has begun.
    pub(crate) entered: Arc<Notify>,
    /// Lets such a request finish.
    pub(crate) release: Arc<Notify>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Drained>,
    _folder: tempfile::TempDir,
}

impl Server {
    pub(crate) async fn start(limits: Limits) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let place = Location::Folder(folder.path().into());
        let bounds = limits.clone();
        let catalogue = tokio::task::spawn_blocking(move || -> Result<Catalogue, StoreError> {
            let catalogue = Catalogue::open(place, KINDS, bounds)?;
            let tenant = catalogue.create_tenant("default", "")?;
            tenant.write_blocking(|txn| -> Result<(), StoreError> {
                txn.insert(&THING, "1", &json!({"id": "1", "name": "Ünïcode"}))?;
                Ok(())
            })?;
            Ok(catalogue)
        });
        let settings = Settings {
            secret: Secret::from_text("a secret of the tests")?,
            everyone: Vec::new(),
            clock: Clock::fixed(0),
            entropy: Entropy::seeded(1),
        };
        let accounts = Accounts::new(settings, &limits);
        let context = Context::new(catalogue.await??, accounts, limits, TenantChoice::default());
        let toy = Toy { context: context.clone(), entered: Arc::default(), release: Arc::default() };
        let (entered, release) = (Arc::clone(&toy.entered), Arc::clone(&toy.release));
        let shell = Shell::new(context)?.mount(greeter())?.mount(mount(toy))?;
        let listener = pinakes_http::listen("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(shell.serve(listener, async {
            let _ = stopped.await;
        }));
        Ok(Self { address, entered, release, stop, served, _folder: folder })
    }

    /// Waits until a metric is as expected.
    pub(crate) async fn until_metric(&self, name: &str, is_so: impl Fn(f64) -> bool) -> Outcome {
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let metrics = self.get("/metrics").await?;
            let line = metrics.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(' '));
            let value = line.ok_or("no such metric")?.parse()?;
            if is_so(value) {
                return Ok(());
            }
            if until < tokio::time::Instant::now() {
                return Err(format!("{name} is {value}").into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Begins to drain; the outcome comes when that is done.
    pub(crate) fn stop(self) -> JoinHandle<Drained> {
        let _ = self.stop.send(());
        self.served
    }

    /// Sends bytes and reads everything until the server closes.
    pub(crate) async fn exchange(&self, request: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut client = Client::connect(self.address).await?;
        client.send(request).await?;
        client.rest().await
    }

    /// Returns the answer to `GET path`, as text.
    pub(crate) async fn get(&self, path: &str) -> Result<String, Failure> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        Ok(String::from_utf8_lossy(&self.exchange(request.as_bytes()).await?).into_owned())
    }
}

/// A connection.
pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self, Failure> {
        Ok(Self(TcpStream::connect(address).await?))
    }

    /// Sends bytes; a server that no longer reads a refused body is not a failure.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Outcome {
        match timeout(PATIENCE, self.0.write_all(bytes)).await? {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Returns whether there is something to read within a time.
    pub(crate) async fn has_answer(&self, within: Duration) -> bool {
        timeout(within, self.0.readable()).await.is_ok()
    }

    /// Reads until the server closes.
    pub(crate) async fn rest(mut self) -> Result<Vec<u8>, Failure> {
        let mut all = Vec::new();
        timeout(PATIENCE, self.0.read_to_end(&mut all)).await??;
        Ok(all)
    }

    /// Reads until `end` has arrived.
    pub(crate) async fn until(&mut self, end: &str) -> Result<String, Failure> {
        let mut all = Vec::new();
        while !all.ends_with(end.as_bytes()) {
            all.push(timeout(PATIENCE, self.0.read_u8()).await??);
        }
        Ok(String::from_utf8(all)?)
    }
}

#[derive(Clone)]
struct Toy {
    context: Context,
    entered: Arc<Notify>,
    release: Arc<Notify>,
}

/// Returns a dialect on a host of its own, below a prefix; CONTRIBUTING.md says how one is added.
fn greeter() -> Mount {
    let router = Router::new()
        .route(
            "/greetings",
            post(|request: Request| async move {
                let home = pinakes_http::origin(request.headers(), request.extensions());
                let answer = answer::text(StatusCode::CREATED, "made");
                let answer = answer::with_header(answer, http::header::LOCATION, "/greetings/1");
                answer::with_header(answer, http::HeaderName::from_static("x-home"), &home)
            }),
        )
        .route(
            "/greetings/{name}",
            get(|Path(name): Path<String>| async move {
                let text = format!("hello {name}");
                ([(http::header::CONTENT_TYPE, "text/plain")], text).into_response()
            }),
        );
    let hosts = vec!["greeter.example.org".to_owned()];
    let point = MountPoint { hosts, prefix: "/sixth".to_owned() };
    Mount { point, ..Mount::new("greeter", &["/greetings"], router) }
}

fn mount(toy: Toy) -> Mount {
    let router = Router::new()
        .route("/toy/things", post(create))
        .route("/toy/things/{id}", get(read))
        .route("/toy/list", get(list))
        .route("/toy/stream/{n}", get(stream))
        .route("/toy/echo", post(echo))
        .route("/toy/etag", get(spelled_etag))
        .route("/toy/panic", get(panics))
        .route("/toy/slow", get(slow))
        .route("/toy/text", get(text))
        .route("/toy/whoami", get(who_am_i))
        .fallback(|request: Request| async move {
            refuse(Refusal::NotFound { path: request.uri().path().to_owned() })
        })
        .with_state(toy);
    Mount {
        entrance: Entrance {
            tokens: &[
                TokenPlace::Bearer,
                TokenPlace::Header("x-toy-token"),
                TokenPlace::Cookie("toyToken"),
                TokenPlace::Query("access_token"),
            ],
            tenant_headers: &["x-pinakes-tenant"],
        },
        openapi: json!({"paths": {"/toy/things/{id}": {"get": {"summary": "A thing"}}}}),
        path_rules: PathRules::default()
            .words(["toy", "things", "list"])
            .final_slash(FinalSlash::Drop)
            .double_slashes(DoubleSlashes::Collapse),
        cors: Cors::Anyone,
        refuse,
        ..Mount::new("toy", &["/toy"], router)
    }
}

/// Renders a refusal in the toy's own error shape.
fn refuse(refusal: Refusal) -> Response {
    let body = json!({"toy": refusal.message()});
    refusal.with_body(answer::JSON, body.to_string())
}

struct ToyError(Refusal);

impl std::fmt::Display for ToyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: Into<Refusal>> From<E> for ToyError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for ToyError {
    fn into_response(self) -> Response {
        refuse(self.0)
    }
}

async fn create(State(toy): State<Toy>, request: Request) -> Result<Response, ToyError> {
    let (parts, body) = request.into_parts();
    let db = toy.context.db(&parts.headers).await?;
    let thing: Value = body::receive_json(&parts.headers, body, toy.context.limits()).await?;
    let id = thing["id"].as_str().unwrap_or("none").to_owned();
    let stored = thing.clone();
    db.write(move |txn| txn.insert(&THING, &id, &stored).map(|_| ())).await?;
    Ok(answer::json(StatusCode::CREATED, &thing))
}

async fn read(
    State(toy): State<Toy>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ToyError> {
    let db = toy.context.db(&headers).await?;
    let path = format!("/toy/things/{id}");
    let found = db.read(Weight::Point, move |view| view.get(&THING, &id)).await?;
    let Some(record) = found else { return Err(Refusal::NotFound { path }.into()) };
    let tag = Tag::of_record(record.version, record.sequence);
    if tag.is_known_to(&headers) {
        return Ok(tag.not_modified());
    }
    let mut answer = answer::stored_json(StatusCode::OK, record.body);
    tag.put(answer.headers_mut());
    Ok(answer)
}

async fn list() -> Response {
    answer::json_array(StatusCode::OK, ["{\"a\":1}", "2", "\"x\""].map(Bytes::from).to_vec())
}

/// Streams `n` lines of 16 bytes; `n` over a million fails after a million, a negative one at once.
async fn stream(
    State(toy): State<Toy>,
    Path(n): Path<i64>,
    headers: HeaderMap,
) -> Result<Response, ToyError> {
    let db = toy.context.db(&headers).await?;
    let produce = move |_: &mut pinakes_store::View<'_>, sink: &mut pinakes_http::Sink| {
        if n < 0 {
            return Err(StoreError::Query("negative".into()));
        }
        for i in 0..n.min(1_000_000) {
            if sink.push(format!("{i:015}\n").as_bytes()).is_err() {
                return Ok(());
            }
        }
        if n <= 1_000_000 { Ok(()) } else { Err(StoreError::Query("too many".into())) }
    };
    let body = db
        .stream(toy.context.limits(), move |view, sink| produce(view, sink).map_err(ToyError::from))
        .await?;
    Ok(answer::with_body(StatusCode::OK, answer::TEXT, body))
}

async fn echo(State(toy): State<Toy>, request: Request) -> Result<Response, ToyError> {
    let (parts, body) = request.into_parts();
    let limits = toy.context.limits();
    let bytes = body::receive(&parts.headers, body, limits.body_bytes, limits).await?;
    Ok(answer::text(StatusCode::OK, bytes))
}

async fn spelled_etag() -> Response {
    etag::spell_headers();
    let mut answer = Response::new(Body::from("part"));
    Tag::of_bytes(b"part").put(answer.headers_mut());
    answer
}

async fn panics() -> Response {
    panic!("of the toy's own making")
}

async fn slow(State(toy): State<Toy>) -> Response {
    let released = toy.release.notified();
    toy.entered.notify_one();
    released.await;
    answer::text(StatusCode::OK, "done")
}

async fn text() -> Response {
    answer::text(StatusCode::OK, "all work and no play\n".repeat(500))
}

async fn who_am_i(State(toy): State<Toy>, request: Request) -> Result<Response, ToyError> {
    let (parts, _) = request.into_parts();
    let db = toy.context.db(&parts.headers).await?;
    let text = match toy.context.asking(&db, &parts).await? {
        Asking::Caller(caller) => caller.username().unwrap_or("nobody").to_owned(),
        other => format!("{other:?}"),
    };
    Ok(answer::text(StatusCode::OK, text))
}
