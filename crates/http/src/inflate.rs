//! Bodies that come compressed: gzip, deflate, brotli or zstd, as `Content-Encoding` says.

use std::future::ready;

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_ENCODING;
use http::{HeaderValue, Request};
use tower::{ServiceExt as _, service_fn};
use tower_http::decompression::{DecompressionBody, RequestDecompression};

use crate::refusal::Refusal;

/// Encodings that are understood.
const KNOWN: [&str; 4] = ["gzip", "deflate", "br", "zstd"];

/// The request with its body as it was before it was compressed. What bounds bodies counts those bytes.
///
/// Errors: [`Refusal::Encoding`].
pub(crate) async fn inflate(mut request: Request<Body>) -> Result<Request<Body>, Refusal> {
    let Some(encoding) = request.headers_mut().get_mut(CONTENT_ENCODING) else { return Ok(request) };
    let found = String::from_utf8_lossy(encoding.as_bytes()).to_ascii_lowercase();
    match KNOWN.into_iter().find(|it| *it == found) {
        // The library knows the names in this form.
        Some(name) => *encoding = HeaderValue::from_static(name),
        None if found.is_empty() || found == "identity" => return Ok(request),
        None => return Err(Refusal::Encoding { found }),
    }
    // It inflates what it hands to a service; this one only keeps it.
    let mut plain = None;
    let keep = service_fn(|request: Request<DecompressionBody<Body>>| {
        plain = Some(request.map(Body::new));
        ready(Ok::<_, Refusal>(Response::new(Body::empty())))
    });
    RequestDecompression::new(keep).oneshot(request).await?;
    plain.ok_or(Refusal::Encoding { found })
}
