//! The server's URL as its client knows it, for answers that contain absolute URLs.

use std::sync::Arc;

use axum::response::Response;
use http::header::{HOST, LOCATION};
use http::{Extensions, HeaderMap, HeaderValue};

/// The path prefix under which the dialect is mounted, e.g. `/folio`, in a request's extensions. Absent if there is
/// none.
#[derive(Debug, Clone)]
pub struct MountedAt(pub Arc<str>);

/// Returns scheme, host and the mount's prefix, e.g. `https://example.org/folio`: the part before a dialect's own
/// paths. A proxy passes on the requested name in `X-Forwarded-Proto` and `X-Forwarded-Host`; of a list of proxies the
/// first counts. Values that are not a web scheme, or not a valid host, are ignored: anybody can send these headers,
/// and the result is written into links.
pub fn origin(headers: &HeaderMap, extensions: &Extensions) -> String {
    let first = |name: &str| headers.get(name)?.to_str().ok()?.split(',').next().map(str::trim);
    let host = |name: &str| first(name).filter(|it| is_host(it));
    let host = host("x-forwarded-host").or_else(|| host(HOST.as_str())).unwrap_or("localhost");
    let scheme = if first("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    let prefix = extensions.get::<MountedAt>().map_or("", |it| &it.0);
    format!("{scheme}://{host}{prefix}")
}

/// Returns whether the text is a valid host with its port: names, addresses, IPv6 in brackets.
fn is_host(text: &str) -> bool {
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    !text.is_empty() && text.bytes().all(is_of_host)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares `origin` for a request with these headers.
    fn check(headers: &[(&'static str, &str)], wanted: &str) {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        assert_eq!(origin(&headers, &Extensions::new()), wanted);
    }

    #[test]
    fn only_hosts_and_schemes_of_the_web_are_put_into_links() {
        check(&[("host", "example.org:8080")], "http://example.org:8080");
        check(&[("host", "[::1]:80")], "http://[::1]:80");
        check(&[("host", "x"), ("x-forwarded-host", "a.example, b.example")], "http://a.example");
        check(&[("host", "x"), ("x-forwarded-proto", "https, http")], "https://x");
        check(&[("host", "x"), ("x-forwarded-proto", "javascript")], "http://x");
        check(&[("host", "x"), ("x-forwarded-host", "a\"><script>")], "http://x");
        check(&[("host", "a/b?c#d")], "http://localhost");
        check(&[], "http://localhost");
    }
}
