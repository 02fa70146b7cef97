//! Signed URLs: `?until=&user=&method=&token=` allows whoever has one to call it on behalf of the user, until the given
//! time.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::request::Parts;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::app::{Call, Dataverse};
use crate::clock;
use crate::error::ApiError;
use crate::query::Query;

/// Characters that are encoded in values: as few as possible, because some clients encode URLs a second time.
const IN_VALUES: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'&')
    .add(b'+')
    .add(b'=')
    .add(b'%')
    .add(b'?');

/// Signs `url`, which begins with the site's address, for a method and a user.
pub(crate) fn sign(call: &Call, url: &str, method: &str, user: &str, minutes: i64) -> String {
    let until = clock::instant(call.app.now_ms() + minutes * 60_000);
    let separator = if url.contains('?') { '&' } else { '?' };
    let encoded = |text: &str| utf8_percent_encode(text, IN_VALUES).to_string();
    let url = format!("{url}{separator}until={}&user={}&method={method}", encoded(&until), encoded(user));
    let token = token(&call.app, call.tenant(), local_part(&url, &call.site_url()));
    format!("{url}&token={token}")
}

/// Returns the user for whom the request's URL was signed.
///
/// Errors: 401 if it was not signed, was signed for another method, or has expired.
pub(crate) fn verified_user(
    app: &Dataverse,
    tenant: &str,
    parts: &Parts,
    query: &Query,
) -> Result<String, ApiError> {
    let refused = || ApiError::unauthorized("Bad signed URL");
    let whole = parts.uri.path_and_query().map_or("", |it| it.as_str());
    let (signed, given) = whole.rsplit_once("&token=").ok_or_else(refused)?;
    let until_ms = query.get("until").and_then(clock::parse).ok_or_else(refused)?;
    let is_method = query.get("method").is_some_and(|it| it.eq_ignore_ascii_case(parts.method.as_str()));
    if until_ms < app.now_ms() || !is_method || !same(given, &token(app, tenant, signed)) {
        return Err(refused());
    }
    query.filled("user").map(str::to_owned).ok_or_else(refused)
}

/// Returns path and query of a URL, as requests have them: the signature depends neither on the server's host name nor on
/// the path below which the site is mounted.
fn local_part<'a>(url: &'a str, site_url: &str) -> &'a str {
    let (path, mounted_at) = (path_of(url), path_of(site_url).trim_end_matches('/'));
    path.strip_prefix(mounted_at).filter(|it| it.starts_with('/')).unwrap_or(path)
}

/// Returns what follows the host name of a URL; empty if nothing does.
fn path_of(url: &str) -> &str {
    let without_scheme = url.split_once("://").map_or(url, |it| it.1);
    without_scheme.find('/').map_or("", |start| &without_scheme[start..])
}

fn token(app: &Dataverse, tenant: &str, signed: &str) -> String {
    // Some clients encode more characters than necessary, so the signature covers the decoded values, each delimited.
    let (path, query) = signed.split_once('?').unwrap_or((signed, ""));
    let values = Query::parse(query);
    let path = percent_decode_str(path).decode_utf8_lossy();
    // A final and a doubled slash are dropped before a request gets here.
    let path: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let path = path.join("/");
    let signed: String = values.pairs().map(|(name, value)| format!("{name:?}={value:?};")).collect();
    let bytes = app.context.accounts().derived(tenant, &format!("dataverse signed URL {path}?{signed}"));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Compares texts in constant time.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |found, (a, b)| found | a ^ b) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_host_nor_mount_point_is_signed() {
        for (url, site_url, expected) in [
            ("http://localhost:8080/api/datasets/4?until=x", "", "/api/datasets/4?until=x"),
            ("https://data.example.org/api/x", "https://data.example.org", "/api/x"),
            ("https://data.example.org/api/x", "https://data.example.org/", "/api/x"),
            ("https://example.org/data/api/x", "https://example.org/data", "/api/x"),
            ("https://example.org/data/api/x", "https://example.org/data/", "/api/x"),
            ("https://example.org/database/api/x", "https://example.org/data", "/database/api/x"),
            ("http://localhost/api/x", "https://example.org/data", "/api/x"),
            ("http://localhost", "", ""),
        ] {
            assert_eq!(local_part(url, site_url), expected, "{url} {site_url}");
        }
    }
}
