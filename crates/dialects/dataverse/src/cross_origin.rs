//! Cross-origin headers of the original's filter: the same on every answer, for all origins.

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

const METHODS: HeaderValue = HeaderValue::from_static("GET,POST,PUT,DELETE,OPTIONS");
/// Allowed request headers, unless the request asks for specific ones.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static("range,content-type,x-dataverse-key,accept");
/// Response headers that pages of other origins may read, beyond the safelisted ones.
const EXPOSED: HeaderValue = HeaderValue::from_static("content-encoding,content-range,accept-ranges");
/// How long browsers may cache the answer to a preflight request, in seconds.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("600");

/// Sets the headers on an answer. They allow any origin, without cookies.
pub(crate) fn put(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.entry(ACCESS_CONTROL_ALLOW_HEADERS).or_insert(REQUEST_HEADERS);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}

/// Answers preflight requests (`OPTIONS`), and sets the headers on every other answer.
pub(crate) async fn with_headers(request: Request, next: Next) -> Response {
    let is_question = *request.method() == Method::OPTIONS;
    let asked = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS).filter(|_| is_question).cloned();
    let mut response = if is_question { Response::new(Body::empty()) } else { next.run(request).await };
    let headers = response.headers_mut();
    if is_question {
        headers.insert(ALLOW, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    }
    if let Some(asked) = asked {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked);
        headers.append(VARY, HeaderValue::from_static("access-control-request-headers"));
    }
    put(headers);
    response
}
