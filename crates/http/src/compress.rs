//! Compresses answers: gzip, zstd or brotli, if the client asks for it and it is worthwhile.

use std::convert::Infallible;
use std::future::ready;

use axum::body::Body;
use axum::response::Response;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request};
use tower::{ServiceExt as _, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::{Compression, Predicate};

/// Answers up to this size are sent uncompressed, in bytes.
const SMALLEST_BYTES: u64 = 1024;
/// Encodings that make a closer look worthwhile.
const KNOWN: [&str; 4] = ["gzip", "zstd", "br", "*"];

/// Returns the encodings the client accepts, if one of ours may be among them.
pub(crate) fn wish(headers: &HeaderMap) -> Option<HeaderValue> {
    let wish = headers.get(ACCEPT_ENCODING)?;
    let text = wish.to_str().ok()?;
    KNOWN.iter().any(|it| text.contains(it)).then(|| wish.clone())
}

/// Compresses an answer that is longer than 1 KiB (or of unknown length) and of a compressible type. It uses
/// the fastest level: a server's cores are scarcer than network bandwidth.
pub(crate) async fn compress(wish: HeaderValue, response: Response) -> Response {
    let body = http_body::Body::size_hint(response.body());
    if body.upper().is_some_and(|it| it <= SMALLEST_BYTES) || !shrinks(response.headers()) {
        return response;
    }
    let mut request = Request::new(());
    request.headers_mut().insert(ACCEPT_ENCODING, wish);
    // The library compresses the answer of a service; this service returns the existing answer, once.
    let mut made = Some(response);
    let service =
        service_fn(move |_: Request<()>| ready(Ok::<_, Infallible>(made.take().unwrap_or_default())));
    let compressed = Compression::new(service).quality(CompressionLevel::Fastest).compress_when(Always);
    match compressed.oneshot(request).await {
        Ok(response) => response.map(Body::new),
        Err(never) => match never {},
    }
}

/// Returns whether a type is compressible: text, JSON, XML and formats based on them; pictures and archives
/// are compressed already.
fn shrinks(headers: &HeaderMap) -> bool {
    let Some(ty) = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()) else { return false };
    ty.starts_with("text/") || ["json", "xml", "javascript"].iter().any(|it| ty.contains(it))
}

/// Replaces the library's own conditions, which were checked before.
#[derive(Clone, Copy)]
struct Always;

impl Predicate for Always {
    fn should_compress<B: http_body::Body>(&self, _response: &http::Response<B>) -> bool {
        true
    }
}
