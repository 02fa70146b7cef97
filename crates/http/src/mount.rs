//! A dialect as the shell sees it: its place, its routes, and how it renders refusals.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use http::HeaderMap;
use pinakes_store::Budget;
use serde::Deserialize;
use serde_json::Value;
use tower::{Layer, Service, ServiceExt as _};

use crate::cors::Cors;
use crate::entrance::Entrance;
use crate::etag::Tagging;
use crate::path::PathRules;
use crate::refusal::Refusal;
use crate::stages::RequestScope;
use crate::tenant::host_name;

/// A dialect, to be served.
pub struct Mount {
    /// Its name in settings, metrics and logs.
    pub dialect: &'static str,
    /// Its own paths, e.g. `/api/v3`; `/` for everything that no other dialect claims. The longest one that a
    /// path begins with (regardless of the case of ASCII letters, at a `/`) gets the request.
    pub base_paths: Vec<String>,
    /// Single paths that belong to it although the paths below them may be another's, e.g. `/` for a front page. They
    /// take precedence over base paths.
    pub whole_paths: Vec<String>,
    /// Where the site puts it.
    pub point: MountPoint,
    /// Where its clients put their token and the name of their tenant.
    pub entrance: Entrance,
    /// Its routes, with their full paths: base paths are not stripped, the prefix of the mount point is.
    pub router: Router,
    /// Its `OpenAPI` document; `null` for none.
    pub openapi: Value,
    /// Rewriting of its paths before routing.
    pub path_rules: PathRules,
    /// Which origins' pages may read its answers.
    pub cors: Cors,
    /// Which of its answers carry an entity tag.
    pub tagging: Tagging,
    /// Renders the shell's refusals (panics, timeouts) in the dialect's shape.
    pub refuse: fn(Refusal) -> Response,
}

impl Mount {
    /// Answers a request that does not come over a connection, as the shell does: within a scope of its own that knows
    /// the dialect's entrance. Paths are those after [`PathRules`]; panics and timeouts are not rendered.
    pub async fn answer(&self, request: Request, budget: &Budget) -> Response {
        let scope = RequestScope::new(Instant::now(), Arc::default(), budget);
        scope.set_entrance(self.entrance);
        match scope.run(self.router.clone().oneshot(request)).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        }
    }

    /// Creates a dialect with plain paths, no cross-origin headers and the shell's own error shape, to be
    /// completed by struct update syntax.
    pub fn new(dialect: &'static str, base_paths: &[&str], router: Router) -> Self {
        Self {
            dialect,
            base_paths: base_paths.iter().map(|&it| it.to_owned()).collect(),
            whole_paths: Vec::new(),
            point: MountPoint::default(),
            entrance: Entrance::default(),
            router,
            openapi: Value::Null,
            path_rules: PathRules::default(),
            cors: Cors::Off,
            tagging: Tagging::default(),
            refuse: Refusal::plain,
        }
    }
}

/// Where a site puts a dialect: the table `[mounts.<dialect>]` of `pinakes.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MountPoint {
    /// Host names, without port. A host that some mount names is served only by the mounts that name it; without any,
    /// the dialect is served on every other host.
    pub hosts: Vec<String>,
    /// Put in front of the dialect's own paths, e.g. `/folio`.
    pub prefix: String,
}

/// Why a dialect cannot be mounted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MountFault {
    /// Two dialects claim the same place.
    #[error(
        "{first} and {second} are both mounted at {base:?} on {host}; give one of them another prefix or host"
    )]
    Taken {
        /// The path, with its prefix.
        base: String,
        /// The host name, or `every host`.
        host: String,
        /// The dialect that has it.
        first: &'static str,
        /// The dialect that claims it.
        second: &'static str,
    },
    /// The prefix is not a path.
    #[error(
        "the prefix of {dialect} is {prefix:?}; expected a path such as \"/{dialect}\", without a slash at its end"
    )]
    Prefix {
        /// The dialect.
        dialect: &'static str,
        /// What was given.
        prefix: String,
    },
    /// The host name is not valid.
    #[error(
        "a host of {dialect} is {host:?}; expected a name such as \"{dialect}.example.org\", without scheme and port"
    )]
    Host {
        /// The dialect.
        dialect: &'static str,
        /// What was given.
        host: String,
    },
}

/// Mounts by host and base path, longest first.
#[derive(Default)]
pub(crate) struct Mounts {
    mounts: Vec<Arc<Mount>>,
    /// Host (`None` for those that no mount names), base path with its prefix, and the mount.
    by_base: Vec<(Option<String>, String, Arc<Mount>)>,
    /// The same for whole paths.
    whole: Vec<(Option<String>, String, Arc<Mount>)>,
    /// Hosts that some mount names, lower case.
    named_hosts: HashSet<String>,
}

impl Mounts {
    /// Adds a mount.
    ///
    /// Errors: its place is taken, or not valid.
    pub(crate) fn add(&mut self, mut mount: Mount) -> Result<(), MountFault> {
        let dialect = mount.dialect;
        let prefix = mount.point.prefix.trim_end_matches('/').to_owned();
        if !prefix.is_empty() && (!prefix.starts_with('/') || prefix.contains(['?', '#', '%', ' '])) {
            return Err(MountFault::Prefix { dialect, prefix: mount.point.prefix });
        }
        if let Some(host) = mount.point.hosts.iter().find(|it| it.is_empty() || it.contains(['/', ' '])) {
            return Err(MountFault::Host { dialect, host: host.clone() });
        }
        mount.point.prefix = prefix;
        mount.router = mount.router.layer(NoteRoute);
        let hosts: Vec<Option<String>> = match mount.point.hosts.as_slice() {
            [] => vec![None],
            named => named.iter().map(|it| Some(it.to_ascii_lowercase())).collect(),
        };
        let mount = Arc::new(mount);
        for host in hosts {
            for own in &mount.base_paths {
                let base = format!("{}{}", mount.point.prefix, own.trim_end_matches('/'));
                if let Some((_, _, first)) = self
                    .by_base
                    .iter()
                    .find(|(at, taken, _)| *at == host && taken.eq_ignore_ascii_case(&base))
                {
                    return Err(MountFault::Taken {
                        base: if base.is_empty() { "/".to_owned() } else { base },
                        host: host.unwrap_or_else(|| "every host".to_owned()),
                        first: first.dialect,
                        second: dialect,
                    });
                }
                self.by_base.push((host.clone(), base, Arc::clone(&mount)));
            }
            for own in &mount.whole_paths {
                let path = format!("{}{own}", mount.point.prefix);
                if let Some((_, _, first)) =
                    self.whole.iter().find(|(at, taken, _)| *at == host && *taken == path)
                {
                    return Err(MountFault::Taken {
                        base: path,
                        host: host.unwrap_or_else(|| "every host".to_owned()),
                        first: first.dialect,
                        second: dialect,
                    });
                }
                self.whole.push((host.clone(), path, Arc::clone(&mount)));
            }
            self.named_hosts.extend(host);
        }
        self.by_base.sort_by_key(|(_, base, _)| std::cmp::Reverse(base.len()));
        self.mounts.push(mount);
        Ok(())
    }

    /// Returns the dialect that serves `path` on the host of a request; doubled slashes at the front are
    /// ignored.
    pub(crate) fn find(&self, headers: &HeaderMap, path: &str) -> Option<&Arc<Mount>> {
        let host = match self.named_hosts.is_empty() {
            true => None,
            false => host_name(headers).filter(|it| self.named_hosts.contains(it)),
        };
        if let Some((_, _, mount)) = self.whole.iter().find(|(at, whole, _)| *at == host && whole == path) {
            return Some(mount);
        }
        let n_doubled = path.bytes().take_while(|it| *it == b'/').count().saturating_sub(1);
        let path = &path.as_bytes()[n_doubled..];
        let mut there = self.by_base.iter().filter(|(at, _, _)| *at == host);
        there.find(|(_, base, _)| is_below(path, base.as_bytes())).map(|(_, _, mount)| mount)
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

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    fn placed(name: &'static str, bases: &[&str], hosts: &[&str], prefix: &str) -> Mount {
        let hosts = hosts.iter().map(|&it| it.to_owned()).collect();
        let point = MountPoint { hosts, prefix: prefix.to_owned() };
        Mount { point, ..Mount::new(name, bases, Router::new()) }
    }

    fn found<'a>(mounts: &'a Mounts, host: &str, path: &str) -> Result<&'a str, Box<dyn std::error::Error>> {
        let headers = HeaderMap::from_iter([(http::header::HOST, host.parse()?)]);
        Ok(mounts.find(&headers, path).map_or("none", |it| it.dialect))
    }

    #[test]
    fn the_longest_base_at_a_slash_wins() -> Outcome {
        let mut mounts = Mounts::default();
        for (name, bases) in
            [("scicat", &["/api"][..]), ("v4", &["/api/v4/"]), ("labe", &["/"]), ("folio", &["/circulation"])]
        {
            mounts.add(Mount::new(name, bases, Router::new()))?;
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
            assert_eq!(found(&mounts, "any", path)?, name, "{path}");
        }
        Ok(())
    }

    #[test]
    fn a_named_host_is_served_by_those_that_name_it() -> Outcome {
        let mut mounts = Mounts::default();
        mounts.add(placed("labe", &["/"], &[], ""))?;
        mounts.add(placed("scicat", &["/api/v3"], &["scicat.example.org", "Old.example.org"], ""))?;
        mounts.add(placed("dataverse", &["/api"], &["data.example.org"], ""))?;
        mounts.add(placed("folio", &["/users"], &[], "/folio"))?;
        for (host, path, name) in [
            ("scicat.example.org", "/api/v3/datasets", "scicat"),
            ("old.EXAMPLE.org:8080", "/api/v3/datasets", "scicat"),
            ("scicat.example.org", "/", "none"),
            ("data.example.org", "/api/v3/datasets", "dataverse"),
            ("elsewhere", "/api/v3/datasets", "labe"),
            ("elsewhere", "/folio/users", "folio"),
            ("elsewhere", "/users", "labe"),
            ("data.example.org", "/folio/users", "none"),
        ] {
            assert_eq!(found(&mounts, host, path)?, name, "{host} {path}");
        }
        Ok(())
    }

    #[test]
    fn a_whole_path_goes_before_base_paths() -> Outcome {
        let mut mounts = Mounts::default();
        mounts.add(placed("labe", &["/"], &[], ""))?;
        let whole_paths = vec!["/".to_owned()];
        mounts.add(Mount { whole_paths, ..placed("site", &["/site"], &[], "") })?;
        mounts.add(placed("labe", &["/"], &["labe.example.org"], ""))?;
        for (host, path, name) in [
            ("any", "/", "site"),
            ("any", "/site/search", "site"),
            ("any", "/id/1", "labe"),
            ("any", "//", "labe"),
            ("labe.example.org", "/", "labe"),
        ] {
            assert_eq!(found(&mounts, host, path)?, name, "{host} {path}");
        }
        let second = Mount { whole_paths: vec!["/".to_owned()], ..placed("second", &[], &[], "") };
        assert!(mounts.add(second).is_err_and(|it| it.to_string().contains("site and second are both")));
        Ok(())
    }

    #[test]
    fn a_place_is_given_once() -> Outcome {
        for (hosts, prefix, expected) in [
            (&[][..], "", r#"first and second are both mounted at "/api/v3" on every host; "#),
            (&["b", "A"], "", r#"first and second are both mounted at "/api/v3" on a; "#),
            (&["b"], "", ""),
            (&[], "/second", ""),
            (&[], "second", r#"the prefix of second is "second"; "#),
            (&["http://a/"], "", r#"a host of second is "http://a/"; "#),
        ] {
            let mut mounts = Mounts::default();
            mounts.add(placed("first", &["/api/v3", "/api/v4"], &[], ""))?;
            mounts.add(placed("first", &["/api/v3"], &["a"], ""))?;
            let outcome = mounts.add(placed("second", &["/x", "/API/v3/"], hosts, prefix));
            let said = outcome.err().map(|it| it.to_string()).unwrap_or_default();
            let begins = said.to_ascii_lowercase().starts_with(&expected.to_ascii_lowercase());
            assert!(begins && said.is_empty() == expected.is_empty(), "{said:?} for {hosts:?} {prefix:?}");
        }
        Ok(())
    }
}
