//! Checks whether a request was sent on purpose by a program on this machine.
//!
//! The address alone does not tell. A proxy on the same machine has it too, and so does a browser in which a page
//! from elsewhere sends a request: to `localhost`, or to a name of its own that resolves to this machine (DNS
//! rebinding).

use std::net::IpAddr;

use http::header::ORIGIN;
use http::{HeaderMap, Version};

use crate::tenant::host_name;

/// Header fields by which a proxy describes its client.
const FORWARDED: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Returns whether a request comes from a program on this machine: from its own address, to a name that means this
/// machine, without anything that a proxy or a page of another site would add. HTTP/1.0 counts as a proxy's, because
/// nginx speaks it by default without identifying itself otherwise.
pub fn is_of_this_machine(peer: Option<IpAddr>, version: Version, headers: &HeaderMap) -> bool {
    let is_near = peer.is_some_and(|it| it.to_canonical().is_loopback());
    let is_passed_on = version < Version::HTTP_11 || FORWARDED.iter().any(|it| headers.contains_key(*it));
    is_near && !is_passed_on && is_name_of_this_machine(headers) && !is_of_another_page(headers)
}

fn is_name_of_this_machine(headers: &HeaderMap) -> bool {
    let Some(name) = host_name(headers) else { return false };
    let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
    name == "localhost"
        || name.ends_with(".localhost")
        || address.is_ok_and(|it| it.to_canonical().is_loopback())
}

/// Returns whether a browser says that a page of another site sent this.
fn is_of_another_page(headers: &HeaderMap) -> bool {
    let said = |name: &str| headers.get(name).map(|it| it.to_str().unwrap_or("?"));
    let site = said("sec-fetch-site");
    let place = said(ORIGIN.as_str()).map(|it| it.split_once("://").map_or(it, |it| it.1));
    let is_own_page = place.is_none() || place == said("host");
    site.is_some_and(|it| !matches!(it, "same-origin" | "none")) || !is_own_page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(peer: &str, version: Version, named: &[(&'static str, &str)], expected: bool) {
        let headers: HeaderMap =
            named.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        assert_eq!(
            is_of_this_machine(peer.parse().ok(), version, &headers),
            expected,
            "{peer} {version:?} {named:?}"
        );
    }

    #[test]
    fn proxies_and_pages_of_elsewhere_are_not_this_machine() {
        let (new, old) = (Version::HTTP_11, Version::HTTP_10);
        for host in ["localhost:8080", "127.0.0.1", "127.0.1.1:80", "[::1]:8080", "data.localhost"] {
            check("127.0.0.1", new, &[("host", host)], true);
            check("::1", new, &[("host", host)], true);
            check("::ffff:127.0.0.1", new, &[("host", host)], true);
            check("192.0.2.7", new, &[("host", host)], false);
            check("nobody", new, &[("host", host)], false);
            check("127.0.0.1", old, &[("host", host)], false);
        }
        for host in ["data.example.org", "localhost.example.org", "127.0.0.1.example.org", "192.0.2.7", ""] {
            check("127.0.0.1", new, &[("host", host)], false);
        }
        check("127.0.0.1", new, &[], false);
        for header in FORWARDED {
            check("127.0.0.1", new, &[("host", "localhost"), (header, "x")], false);
        }
        for (name, value, expected) in [
            ("origin", "http://localhost:8080", true),
            ("origin", "http://elsewhere.example.org", false),
            ("origin", "null", false),
            ("sec-fetch-site", "none", true),
            ("sec-fetch-site", "same-origin", true),
            ("sec-fetch-site", "same-site", false),
            ("sec-fetch-site", "cross-site", false),
        ] {
            check("127.0.0.1", new, &[("host", "localhost:8080"), (name, value)], expected);
        }
    }
}
