//! A dialect as the shell sees it: where it lives, its routes, and how it says no.

use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use serde_json::Value;
use tower::{Layer, Service};

use crate::cors::Cors;
use crate::etag::Tagging;
use crate::path::PathRules;
use crate::refusal::Refusal;
use crate::stages::RequestScope;

/// A dialect, to be served.
pub struct Mount {
    /// Its name in metrics and logs.
    pub dialect: &'static str,
    /// Where it lives, e.g. `/api/v3`; `/` for all that nobody else takes. The longest one that a path begins
    /// with (whatever the case of ASCII letters, at a `/`) gets the request.
    pub base_paths: Vec<String>,
    /// Its routes, with their whole paths: base paths are not stripped.
    pub router: Router,
    /// Its `OpenAPI` document; `null` for none.
    pub openapi: Value,
    /// What is done to its paths before routing.
    pub path_rules: PathRules,
    /// Who may read its answers from pages of other origins.
    pub cors: Cors,
    /// Which of its answers carry an entity tag.
    pub tagging: Tagging,
    /// Renders what the shell refuses (panics, timeouts) in the dialect's shape.
    pub refuse: fn(Refusal) -> Response,
}

impl Mount {
    /// A dialect with plain paths, no cross-origin headers and the shell's own error shape, to be completed by
    /// struct update syntax.
    pub fn new(dialect: &'static str, base_paths: &[&str], router: Router) -> Self {
        Self {
            dialect,
            base_paths: base_paths.iter().map(|&it| it.to_owned()).collect(),
            router,
            openapi: Value::Null,
            path_rules: PathRules::default(),
            cors: Cors::Off,
            tagging: Tagging::default(),
            refuse: Refusal::plain,
        }
    }
}

/// Mounts by base path, longest first.
#[derive(Default)]
pub(crate) struct Mounts {
    mounts: Vec<Arc<Mount>>,
    by_base: Vec<(String, Arc<Mount>)>,
}

impl Mounts {
    pub(crate) fn add(&mut self, mut mount: Mount) {
        mount.router = mount.router.layer(NoteRoute);
        let mount = Arc::new(mount);
        let bases = mount.base_paths.iter().map(|it| it.trim_end_matches('/').to_owned());
        self.by_base.extend(bases.map(|base| (base, Arc::clone(&mount))));
        self.by_base.sort_by_key(|(base, _)| std::cmp::Reverse(base.len()));
        self.mounts.push(mount);
    }

    /// The dialect that serves `path`; slashes doubled at the front do not count.
    pub(crate) fn find(&self, path: &str) -> Option<&Arc<Mount>> {
        let n_doubled = path.bytes().take_while(|it| *it == b'/').count().saturating_sub(1);
        let path = &path.as_bytes()[n_doubled..];
        self.by_base.iter().find(|(base, _)| is_below(path, base.as_bytes())).map(|(_, mount)| mount)
    }

    pub(crate) fn all(&self) -> &[Arc<Mount>] {
        &self.mounts
    }
}

fn is_below(path: &[u8], base: &[u8]) -> bool {
    path.get(..base.len()).is_some_and(|it| it.eq_ignore_ascii_case(base))
        && path.get(base.len()).is_none_or(|it| *it == b'/')
}

/// Tells the request's scope which route was matched; runs inside the router, where that is known.
#[derive(Clone)]
struct NoteRoute;

impl<S> Layer<S> for NoteRoute {
    type Service = Noting<S>;

    fn layer(&self, inner: S) -> Noting<S> {
        Noting { inner }
    }
}

#[derive(Clone)]
struct Noting<S> {
    inner: S,
}

impl<S: Service<Request>> Service<Request> for Noting<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> S::Future {
        if let (Some(scope), Some(path)) =
            (RequestScope::current(), request.extensions().get::<MatchedPath>())
        {
            scope.set_matched(path.clone());
        }
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_base_at_a_slash_wins() {
        let mut mounts = Mounts::default();
        for (name, bases) in
            [("scicat", &["/api"][..]), ("v4", &["/api/v4/"]), ("labe", &["/"]), ("folio", &["/circulation"])]
        {
            mounts.add(Mount::new(name, bases, Router::new()));
        }
        for (path, name) in [
            ("/api/v3/datasets", "scicat"),
            ("/API/V4/datasets", "v4"),
            ("/api/v4", "v4"),
            ("/apiary", "labe"),
            ("/", "labe"),
            ("*", "none"),
            ("//circulation/loans", "folio"),
        ] {
            assert_eq!(mounts.find(path).map_or("none", |it| it.dialect), name, "{path}");
        }
    }
}
