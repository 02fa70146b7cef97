//! A dialect as another one on the same server sees it: only by its answers.
//!
//! A page that shows records of several dialects asks each of them as a client would, with the visitor's token. So each
//! dialect's own place for rights decides what is shown, and no dialect's inner modules are known outside of it. No
//! connection is made and nothing is compressed.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use pinakes_store::Budget;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::entrance::{Entrance, TokenPlace};
use crate::mount::{Mount, MountPoint};
use crate::public_url::MountedAt;
use crate::stages::RequestScope;

/// Maximum size of a neighbour's answer (8 MiB); longer ones are [`Unheard::TooLong`].
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Headers of the visitor that tell the server's name as seen from outside.
const OF_ADDRESS: [HeaderName; 3] =
    [HOST, HeaderName::from_static("x-forwarded-host"), HeaderName::from_static("x-forwarded-proto")];

/// Mark of a request that comes from another part of the server: its token is one that this server signed for the
/// signed-in visitor. No request from outside carries it, because extensions of a request are never read from a
/// connection.
#[derive(Debug, Clone, Copy)]
pub struct Inside;

/// A dialect that can be queried from inside the server. Cheap to clone.
#[derive(Clone)]
pub struct Neighbour(Arc<Inner>);

struct Inner {
    dialect: &'static str,
    point: MountPoint,
    entrance: Entrance,
    router: Router,
}

/// On whose behalf a neighbour is queried.
#[derive(Debug, Clone, Copy)]
pub struct OnBehalf<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The visitor's token; without one the request is anonymous.
    pub token: Option<&'a str>,
    /// The headers of the visitor's request, used only for the name of the server.
    pub headers: &'a HeaderMap,
}

/// A request to a neighbour that is more than a JSON body.
#[derive(Debug)]
pub struct Question<'a> {
    /// The method.
    pub method: Method,
    /// The path with its query, as routes spell it.
    pub path: &'a str,
    /// Further headers: the type of the body, a range of bytes.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Body,
}

/// The answer of a neighbour.
#[derive(Debug, Clone)]
pub struct Said {
    /// Its status.
    pub status: StatusCode,
    /// The complete body.
    pub body: Bytes,
}

impl Said {
    /// Returns the body as JSON, unless the answer is a refusal.
    pub fn json(&self) -> Option<Value> {
        if !self.status.is_success() {
            return None;
        }
        serde_json::from_slice(&self.body).ok()
    }
}

/// Why a neighbour gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unheard {
    /// The path, the token or the tenant's name is not valid in a request.
    #[error("the requested value cannot be sent in a request")]
    Unsayable,
    /// Its clients have no way to name a tenant, so another tenant's records might be shown.
    #[error("the dialect's requests cannot name a tenant")]
    NoTenant,
    /// The answer was cut off, or is longer than 8 MiB.
    #[error("the answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
}

impl Neighbour {
    /// Creates the neighbour of a mount.
    pub fn of(mount: &Mount) -> Self {
        Self(Arc::new(Inner {
            dialect: mount.dialect,
            point: mount.point.clone(),
            entrance: mount.entrance,
            router: mount.router.clone(),
        }))
    }

    /// Returns its name in settings.
    pub fn dialect(&self) -> &'static str {
        self.0.dialect
    }

    /// Returns the address of one of its paths for a page that was requested on `host`.
    pub fn href(&self, host: Option<&str>, path: &str) -> String {
        let MountPoint { hosts, prefix } = &self.0.point;
        let prefix = prefix.trim_end_matches('/');
        let is_here = host.is_some_and(|it| hosts.iter().any(|own| own.eq_ignore_ascii_case(it)));
        match hosts.first() {
            Some(other) if !is_here => format!("//{other}{prefix}{path}"),
            _ => format!("{prefix}{path}"),
        }
    }

    /// Sends `GET` to one of its paths, with query, as routes spell it.
    ///
    /// # Errors
    /// See [`Unheard`]; a refusal of the dialect is not an error.
    pub async fn get(
        &self,
        path: &str,
        asker: OnBehalf<'_>,
        budget: &Budget,
    ) -> std::result::Result<Said, Unheard> {
        self.ask(Method::GET, path, None, asker, budget).await
    }

    /// Sends a request with or without a JSON body.
    ///
    /// # Errors
    /// See [`Unheard`]; a refusal of the dialect is not an error.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        asker: OnBehalf<'_>,
        budget: &Budget,
    ) -> std::result::Result<Said, Unheard> {
        let mut headers = Vec::new();
        let content = body.map(|it| Bytes::from(it.to_string()));
        if let Some(content) = &content {
            headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
            headers.push((http::header::CONTENT_LENGTH, HeaderValue::from(content.len())));
        }
        let body = content.map_or_else(Body::empty, Body::from);
        let answer = self.open(Question { method, path, headers, body }, asker, budget).await?;
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), ANSWER_BYTES_MAX).await;
        Ok(Said { status, body: body.map_err(|_| Unheard::TooLong)? })
    }

    /// Sends a request with any body; the answer is streamed, without a bound on its length.
    ///
    /// # Errors
    /// See [`Unheard`]; a refusal of the dialect is not an error.
    pub async fn open(
        &self,
        question: Question<'_>,
        asker: OnBehalf<'_>,
        budget: &Budget,
    ) -> std::result::Result<Response<Body>, Unheard> {
        let request = self.request(question, asker)?;
        let scope = RequestScope::new(Instant::now(), Arc::default(), budget);
        scope.set_entrance(self.0.entrance);
        match scope.run(self.0.router.clone().oneshot(request)).await {
            Ok(answer) => Ok(answer),
            Err(never) => match never {},
        }
    }

    fn request(
        &self,
        question: Question<'_>,
        asker: OnBehalf<'_>,
    ) -> std::result::Result<Request<Body>, Unheard> {
        let request = Request::builder().method(question.method).uri(question.path).body(question.body);
        let mut request = request.map_err(|_| Unheard::Unsayable)?;
        let value = |text: &str| HeaderValue::from_str(text).map_err(|_| Unheard::Unsayable);
        request.extensions_mut().insert(Inside);
        let headers = request.headers_mut();
        for name in OF_ADDRESS {
            if let Some(said) = asker.headers.get(&name) {
                headers.insert(name, said.clone());
            }
        }
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.extend(question.headers);
        let tenant_header = self.0.entrance.tenant_headers.first().ok_or(Unheard::NoTenant)?;
        headers.insert(*tenant_header, value(asker.tenant)?);
        if let (Some(token), Some(place)) = (asker.token, self.0.entrance.tokens.first()) {
            match place {
                TokenPlace::Bearer => headers.insert(AUTHORIZATION, value(&format!("Bearer {token}"))?),
                TokenPlace::Header(name) => headers.insert(*name, value(token)?),
                // A cookie or a query as the first place would need a form of its own; the request is anonymous
                // instead.
                TokenPlace::Cookie(_) | TokenPlace::Query(_) => None,
            };
        }
        let prefix = self.0.point.prefix.trim_end_matches('/');
        if !prefix.is_empty() {
            request.extensions_mut().insert(MountedAt(prefix.into()));
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use axum::routing::post;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    /// Answers with the request it got.
    async fn echo(request: Request<Body>) -> String {
        let said = |name: &str| {
            request.headers().get(name).and_then(|it| it.to_str().ok()).unwrap_or("-").to_owned()
        };
        let heard = ["host", "authorization", "cookie", "x-pinakes-tenant", "content-length"].map(said);
        format!("{} {} {}", request.method(), request.uri(), heard.join(" "))
    }

    fn neighbour(entrance: Entrance, point: MountPoint) -> Neighbour {
        let router = Router::new().route("/echo", post(echo).get(echo));
        Neighbour::of(&Mount { entrance, point, ..Mount::new("echo", &["/echo"], router) })
    }

    #[test]
    fn a_neighbour_hears_tenant_token_and_host_and_no_more() -> Outcome {
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_static("example.org"));
        headers.insert("cookie", HeaderValue::from_static("pinakes=secret"));
        headers.insert("authorization", HeaderValue::from_static("Basic c2VjcmV0"));
        headers.insert("x-pinakes-tenant", HeaderValue::from_static("other"));
        let it = neighbour(Entrance::default(), MountPoint::default());
        let budget = Budget::new(1 << 20);
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let asked = |method: Method, token: Option<&'static str>, body: Option<Value>| {
            let asker = OnBehalf { tenant: "site", token, headers: &headers };
            match runtime.block_on(it.ask(method, "/echo?a=b", body.as_ref(), asker, &budget)) {
                Ok(said) => String::from_utf8_lossy(&said.body).into_owned(),
                Err(unheard) => unheard.to_string(),
            }
        };
        assert_eq!(asked(Method::GET, None, None), "GET /echo?a=b example.org - - site -");
        assert_eq!(asked(Method::GET, Some("t"), None), "GET /echo?a=b example.org Bearer t - site -");
        let body = Some(serde_json::json!({"a": 1}));
        assert_eq!(asked(Method::POST, None, body), "POST /echo?a=b example.org - - site 7");
        assert_eq!(asked(Method::GET, Some("a\nb"), None), "the requested value cannot be sent in a request");
        Ok(())
    }

    #[test]
    fn a_dialect_that_cannot_be_told_the_tenant_is_not_asked() {
        let it = neighbour(Entrance { tokens: &[], tenant_headers: &[] }, MountPoint::default());
        let asker = OnBehalf { tenant: "site", token: None, headers: &HeaderMap::new() };
        let question =
            Question { method: Method::GET, path: "/echo", headers: Vec::new(), body: Body::empty() };
        let refused = it.request(question, asker).map(|_| ());
        assert_eq!(refused, Err(Unheard::NoTenant));
    }

    #[test]
    fn addresses_lead_to_where_the_dialect_is_mounted() {
        for (hosts, prefix, host, expected) in [
            (&[][..], "", Some("a"), "/echo"),
            (&[], "/six", None, "/six/echo"),
            (&["data.example.org"], "", Some("a"), "//data.example.org/echo"),
            (&["data.example.org", "a"], "/six/", Some("A"), "/six/echo"),
        ] {
            let hosts = hosts.iter().map(|&it| it.to_owned()).collect();
            let point = MountPoint { hosts, prefix: prefix.to_owned() };
            assert_eq!(neighbour(Entrance::default(), point).href(host, "/echo"), expected);
        }
    }
}
