//! A dialect in fifty lines: one kind, one route, served by the shell. It is also used to measure the shell's
//! own cost, next to the same answer from a bare server:
//!
//! ```text
//! cargo run --release -p pinakes-http --example hello            # http://127.0.0.1:8181/greetings/1
//! cargo run --release -p pinakes-http --example hello -- bare    # the same bytes, no shell, no store
//! wrk -t1 -c64 -d10 http://127.0.0.1:8181/greetings/1
//! ```

use std::convert::Infallible;
use std::error::Error;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use pinakes_accounts::{Accounts, Clock, Entropy, Secret, Settings};
use pinakes_http::etag::Tag;
use pinakes_http::{Context, Mount, Refusal, Shell, TenantChoice, answer};
use pinakes_store::{Catalogue, Kind, Limits, Location, StoreError, Weight};
use serde_json::json;

static GREETING: Kind = Kind::named("greeting");
static KINDS: &[&Kind] = &[&GREETING, &pinakes_accounts::USER, &pinakes_accounts::TOKEN];

const ADDRESS: &str = "127.0.0.1:8181";

/// The dialect's error, here in the shell's own shape.
struct Failure(Refusal);

impl<E: Into<Refusal>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.0.plain()
    }
}

/// Serves `GET /greetings/{id}`: stored bytes, or 304.
async fn read(
    State(context): State<Context>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let db = context.db(&headers).await?;
    let path = format!("/greetings/{id}");
    let found = db.read(Weight::Point, move |view| view.get(&GREETING, &id)).await?;
    let record = found.ok_or(Refusal::NotFound { path })?;
    let tag = Tag::of_record(record.version, record.sequence);
    if tag.is_known_to(&headers) {
        return Ok(tag.not_modified());
    }
    let mut answer = answer::stored_json(StatusCode::OK, record.body);
    tag.put(answer.headers_mut());
    Ok(answer)
}

async fn text() -> Response {
    answer::text(StatusCode::OK, "hello")
}

fn context(folder: &std::path::Path) -> Result<Context, Box<dyn Error>> {
    let limits = Limits::default();
    let catalogue = Catalogue::open(Location::Folder(folder.into()), KINDS, limits.clone())?;
    let tenant = catalogue.tenant_or_new("default")?;
    tenant.write_blocking(|txn| -> Result<(), StoreError> {
        txn.put(&GREETING, "1", &json!({"id": "1", "text": "hello".repeat(400)}))?;
        Ok(())
    })?;
    let (clock, entropy) = (Clock::System, Entropy::System);
    let secret = Secret::load_or_create(folder, &entropy)?;
    let settings = Settings { secret, everyone: Vec::new(), clock, entropy };
    Ok(Context::new(catalogue, Accounts::new(settings, &limits), limits, TenantChoice::default()))
}

async fn serve_shell(context: Context) -> Result<(), Box<dyn Error>> {
    let router = Router::new()
        .route("/greetings/{id}", get(read))
        .route("/text", get(text))
        .with_state(context.clone());
    let shell = Shell::new(context)?.mount(Mount::new("greeter", &["/"], router))?;
    let listener = pinakes_http::listen(ADDRESS.parse()?)?;
    shell.serve(listener, async { tokio::signal::ctrl_c().await.unwrap_or(()) }).await;
    Ok(())
}

/// Serves the same number of bytes from hyper alone.
async fn serve_bare() -> Result<(), Box<dyn Error>> {
    let listener = pinakes_http::listen(ADDRESS.parse()?)?;
    let body = bytes::Bytes::from(json!({"id": "1", "text": "hello".repeat(400)}).to_string());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let body = body.clone();
        let service = service_fn(move |_| {
            let body = Full::new(body.clone());
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let bare = std::env::args().nth(1).as_deref() == Some("bare");
    let context = context(folder.path())?;
    let runtime = tokio::runtime::Runtime::new()?;
    if bare { runtime.block_on(serve_bare()) } else { runtime.block_on(serve_shell(context)) }
}
