//! The files of galleries.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, ETAG, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;

use crate::call::Reading;
use crate::error::{ConclaveError, Result};
use crate::text::hash;
use crate::validators::{is_known, not_modified};

/// `GET /conclave/{map}/gallery/{scope}/{reference}/{name}`: sends a file to callers who may read the scope.
pub(super) async fn file(
    path: std::result::Result<Path<(String, String, String)>, PathRejection>,
    call: Reading,
) -> Result<Response> {
    let Path((_, scope, path)) =
        path.map_err(|error| ConclaveError::bad_request(format!("the path cannot be read: {error}")))?;
    let none = || ConclaveError::not_found(format!("there is no file {path:?} in a gallery of {scope:?}"));
    if !call.asker.sees(&scope) {
        return Err(none());
    }
    let (reader, at) = (call.clone(), (scope.clone(), path.clone()));
    let read = tokio::task::spawn_blocking(move || {
        let (file, place) = reader.galleries()?.file(&at.0, &at.1)?;
        let tag = format!("\"{:x}\"", hash(file.mark().as_bytes()));
        if is_known(&reader.headers, &tag) {
            return Some((file, tag, None));
        }
        Some((file, tag, Some(std::fs::read(place).ok()?)))
    });
    let Some((file, tag, bytes)) = read.await.ok().flatten() else { return Err(none()) };
    let Some(bytes) = bytes else { return Ok(not_modified(&tag)) };
    let response = answer::bytes(StatusCode::OK, HeaderValue::from_static(file.media_type), bytes);
    let shown = ["image/", "text/", "audio/", "video/", "application/pdf"];
    let is_shown = shown.iter().any(|it| file.media_type.starts_with(it));
    let disposition = if is_shown { "inline" } else { "attachment" };
    // Whatever a file contains, browsers must not execute it on this site.
    let response = answer::with_header(response, CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox");
    let response = answer::with_header(response, CONTENT_DISPOSITION, disposition);
    let response = answer::with_header(response, CACHE_CONTROL, "no-cache");
    let response = answer::with_header(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    Ok(answer::with_header(response, ETAG, &tag))
}
