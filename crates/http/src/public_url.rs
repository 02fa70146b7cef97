//! The server as its client called it, for answers that hold whole URLs.

use std::sync::Arc;

use axum::response::Response;
use http::header::{HOST, LOCATION};
use http::{Extensions, HeaderMap, HeaderValue};

/// The path prefix under which the dialect is mounted, e.g. `/folio`, among a request's extensions. Absent where there
/// is none.
#[derive(Debug, Clone)]
pub struct MountedAt(pub Arc<str>);

/// Scheme, host and the mount's prefix, e.g. `https://example.org/folio`: what a dialect's own paths are put behind.
/// A proxy says what it was called by `X-Forwarded-Proto` and `X-Forwarded-Host`.
pub fn origin(headers: &HeaderMap, extensions: &Extensions) -> String {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
    let host = text("x-forwarded-host").or_else(|| text(HOST.as_str())).unwrap_or("localhost");
    let scheme = text("x-forwarded-proto").unwrap_or("http");
    let prefix = extensions.get::<MountedAt>().map_or("", |it| &it.0);
    format!("{scheme}://{host}{prefix}")
}

/// Puts the prefix in front of a `Location` that names a path.
pub(crate) fn relocate(prefix: &str, answer: &mut Response) {
    let Some(location) = answer.headers().get(LOCATION).and_then(|it| it.to_str().ok()) else { return };
    if !location.starts_with('/') || location.starts_with("//") {
        return;
    }
    if let Ok(moved) = HeaderValue::from_str(&format!("{prefix}{location}")) {
        answer.headers_mut().insert(LOCATION, moved);
    }
}
