//! The measured server: parsed from its URL once, and refused unless it is on this machine or the operator
//! has allowed another one.

use std::net::{SocketAddr, ToSocketAddrs};

use http::Uri;

use crate::error::BenchError;

/// How far load may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Addresses of this machine's loopback interface only.
    LoopbackOnly,
    /// Any host: the operator said so with `--allow-remote`.
    AnyHost,
}

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Value of the `Host` header.
    pub authority: String,
    /// Address for connections; the name was resolved once, so no look-up falls into a measurement.
    pub address: SocketAddr,
    /// Path of the URL without a slash at its end; put before each path that a scenario requests.
    pub base_path: String,
}

impl Target {
    /// Reads `http://host:port/base`. A missing port is 80.
    ///
    /// Errors: not an absolute `http` URL, credentials inside it, an unknown name, or a host that `reach`
    /// forbids.
    pub fn parse(url: &str, reach: Reach) -> Result<Self, BenchError> {
        let bad = |reason: String| BenchError::BadUrl { url: url.to_owned(), reason };
        let uri: Uri = url.parse().map_err(|error| bad(format!("not a URL ({error})")))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(bad("https is not spoken here, so that the cost of TLS is not measured \
                     with the server's: name the port behind the proxy"
                    .to_owned()));
            }
            _ => return Err(bad("it does not begin with http://".to_owned())),
        }
        let authority = uri.authority().ok_or_else(|| bad("it names no host".to_owned()))?;
        if authority.as_str().contains('@') {
            return Err(bad("a URL must not carry a password".to_owned()));
        }
        if uri.query().is_some() {
            return Err(bad("it has a query; give paths and queries to the scenario".to_owned()));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let addresses: Vec<SocketAddr> = (host, authority.port_u16().unwrap_or(80))
            .to_socket_addrs()
            .map_err(|error| bad(format!("the host {host:?} is not known ({error})")))?
            .collect();
        // IPv4 first: servers that listen on "localhost" often mean only that one.
        let address = addresses
            .iter()
            .find(|it| it.is_ipv4())
            .or_else(|| addresses.first())
            .copied()
            .ok_or_else(|| bad(format!("the host {host:?} has no address")))?;
        if reach == Reach::LoopbackOnly && !address.ip().to_canonical().is_loopback() {
            return Err(BenchError::NotLoopback { url: url.to_owned(), address: address.to_string() });
        }
        let base_path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { authority: authority.as_str().to_owned(), address, base_path })
    }

    /// Returns the URL of `path` (which begins with `/`) for messages.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{}{path}", self.authority, self.base_path)
    }

    /// Returns the request target of `path` (which begins with `/`), prefixed by the base path.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Only digits and marks, so that no name is looked up.
        #[test]
        fn no_url_panics_and_only_loopback_passes(rest in "[0-9.:/@?#%\\[\\] é]{0,40}") {
            if let Ok(target) = Target::parse(&format!("http://{rest}"), Reach::LoopbackOnly) {
                prop_assert!(target.address.ip().to_canonical().is_loopback());
            }
        }
    }

    /// Checks that `url` with the loopback rule gives `expected`: an address, or the start of the message.
    fn check(url: &str, expected: &str) {
        let found = match Target::parse(url, Reach::LoopbackOnly) {
            Ok(target) => format!("{} {}", target.address, target.base_path),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expected), "{url}: found {found:?}, expected {expected:?}");
    }

    #[test]
    fn urls() {
        check("http://127.0.0.1:3000", "127.0.0.1:3000 ");
        check("http://127.0.0.1:3000/scicat/", "127.0.0.1:3000 /scicat");
        check("http://[::1]:80", "[::1]:80");
        check("http://192.0.2.7:3000", "only with --allow-remote");
        check("http://0.0.0.0:3000", "only with --allow-remote");
        check("https://127.0.0.1", "https is not spoken");
        check("127.0.0.1:3000", "does not begin with http://");
        check("http://u:p@127.0.0.1/", "must not carry a password");
        check("http://127.0.0.1/?a=b", "it has a query");
        check("http://[::/", "not a URL");
    }

    #[test]
    fn mapped_loopback_is_loopback() {
        check("http://[::ffff:127.0.0.1]:81", "81");
    }
}
