//! Which tenant a request is for: by a header, else the host name, else the default.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::HOST;
use serde::Deserialize;

use crate::refusal::Refusal;

/// How the tenant of a request is found: the `[tenants]` table of `pinakes.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantChoice {
    /// The tenant of requests that name none (`default`).
    pub default: String,
    /// Tenants by host name, lower case, without port.
    pub hosts: BTreeMap<String, String>,
}

impl Default for TenantChoice {
    fn default() -> Self {
        Self { default: "default".into(), hosts: BTreeMap::new() }
    }
}

impl TenantChoice {
    /// Returns the name of the request's tenant: by the first header of `from` that is present, else by its host name,
    /// else the default. Whether it exists is for the catalogue to say.
    ///
    /// Errors: [`Refusal::TenantHeader`] if a header is present and empty or not text.
    pub fn choose<'a>(
        &'a self,
        headers: &'a HeaderMap,
        from: &'static [&'static str],
    ) -> Result<&'a str, Refusal> {
        for &header in from {
            if let Some(value) = headers.get(header) {
                let name = value.to_str().ok().map(str::trim).filter(|it| !it.is_empty());
                return name.ok_or(Refusal::TenantHeader { header });
            }
        }
        Ok(self.by_host(headers).unwrap_or(&self.default))
    }

    /// Returns whether the host name stands for a tenant.
    pub fn is_of_host(&self, headers: &HeaderMap) -> bool {
        self.by_host(headers).is_some()
    }

    fn by_host(&self, headers: &HeaderMap) -> Option<&str> {
        if self.hosts.is_empty() {
            return None;
        }
        self.hosts.get(&host_name(headers)?).map(String::as_str)
    }
}

/// Returns the host name that a request was sent to, lower case, without port.
pub fn host_name(headers: &HeaderMap) -> Option<String> {
    Some(without_port(headers.get(HOST)?.to_str().ok()?).to_ascii_lowercase())
}

/// Removes the port; `[::1]:8080` has the host `[::1]`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(headers: &[(&'static str, &str)]) -> Option<String> {
        let choice = TenantChoice {
            default: "site".into(),
            hosts: BTreeMap::from([("a.example.org".into(), "a".into()), ("[::1]".into(), "six".into())]),
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().ok()?);
        }
        choice.choose(&map, &["x-okapi-tenant", "x-pinakes-tenant"]).ok().map(str::to_owned)
    }

    #[test]
    fn header_goes_before_host_and_host_before_default() {
        assert_eq!(chosen(&[("host", "A.example.org:80"), ("x-pinakes-tenant", "b")]).as_deref(), Some("b"));
        assert_eq!(chosen(&[("x-okapi-tenant", " c "), ("x-pinakes-tenant", "b")]).as_deref(), Some("c"));
        assert_eq!(chosen(&[("host", "A.example.org:80")]).as_deref(), Some("a"));
        assert_eq!(chosen(&[("host", "[::1]:80")]).as_deref(), Some("six"));
        assert_eq!(chosen(&[("host", "elsewhere")]).as_deref(), Some("site"));
        assert_eq!(chosen(&[]).as_deref(), Some("site"));
        assert_eq!(chosen(&[("x-okapi-tenant", "")]), None);
    }
}
