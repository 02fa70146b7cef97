//! Cross-origin headers (the Fetch standard's CORS protocol), for programs that run in a browser.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

/// Methods that preflights allow.
const METHODS: HeaderValue = HeaderValue::from_static("GET,HEAD,PUT,PATCH,POST,DELETE,OPTIONS");
/// How long a browser may remember a preflight, in seconds.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("600");

/// The origins whose pages may read a dialect's answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cors {
    /// None: no headers are added, `OPTIONS` goes to the router.
    Off,
    /// Every page, without cookies: `Access-Control-Allow-Origin: *`.
    Anyone,
    /// Pages of these origins (`https://folio.example.org`), with cookies: the origin is repeated. All other pages
    /// without cookies.
    Listed(Vec<String>),
}

impl Cors {
    /// Adds the headers that every answer carries.
    pub fn put(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        match self {
            Self::Off => {}
            Self::Anyone => {
                answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            }
            Self::Listed(origins) => {
                let Some(origin) = request.get(ORIGIN) else { return };
                answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
                answer.append(VARY, HeaderValue::from_static("origin"));
                if origins.iter().any(|it| it.as_bytes() == origin.as_bytes()) {
                    answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                    answer.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
                } else {
                    answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
                }
            }
        }
    }

    /// Returns the answer to `OPTIONS`: 204, allowing what was requested. `None` if the router is to answer.
    pub fn preflight(&self, method: &Method, request: &HeaderMap) -> Option<Response> {
        if *self == Self::Off || *method != Method::OPTIONS {
            return None;
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
        if let Some(wanted) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
            headers.insert(VARY, HeaderValue::from_static("access-control-request-headers"));
        }
        Some(response)
    }
}

/// Headers that a page may read in addition to the usual ones.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("etag,location,server-timing,x-okapi-token,x-request-id");

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the two fields that say what a page of this origin may read.
    fn allowed(cors: &Cors, origin: &'static str) -> (Option<HeaderValue>, Option<HeaderValue>) {
        let request = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))]);
        let mut answer = HeaderMap::new();
        cors.put(&request, &mut answer);
        (answer.remove(ACCESS_CONTROL_ALLOW_ORIGIN), answer.remove(ACCESS_CONTROL_ALLOW_CREDENTIALS))
    }

    #[test]
    fn cookies_are_for_pages_of_listed_origins() {
        let is = HeaderValue::from_static;
        let listed = Cors::Listed(vec!["https://folio.example.org".to_owned()]);
        let own = (Some(is("https://folio.example.org")), Some(is("true")));
        assert_eq!(allowed(&listed, "https://folio.example.org"), own);
        for other in [
            "https://evil.example",
            "https://folio.example.org.evil.example",
            "http://folio.example.org",
            "null",
        ] {
            assert_eq!(allowed(&listed, other), (Some(is("*")), None), "{other}");
        }
        assert_eq!(allowed(&Cors::Anyone, "https://evil.example"), (Some(is("*")), None));
        assert_eq!(allowed(&Cors::Off, "https://evil.example"), (None, None));
    }
}
