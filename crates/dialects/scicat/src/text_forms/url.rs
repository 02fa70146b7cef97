//! URLs of `http`, `https` and `ftp`, or of any protocol; the protocol may be left out.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::email::is_host_name;

/// Maximum length of a URL in UTF-16 units, the limit of the original.
const MAX_URL_CHARS: usize = 2084;

const PROTOCOLS: [&str; 3] = ["http", "https", "ftp"];

/// Says whether `text` is a URL with a fully qualified host name or an address: `https://a.ch/x?y#z`,
/// `a.ch:8080`.
pub fn is_url(text: &str) -> bool {
    is_url_of(text, |protocol| PROTOCOLS.iter().any(|it| it.eq_ignore_ascii_case(protocol)))
}

/// Does the same for any protocol: `nfs://a.ch/x`, `smb://a.ch`; validator.js with `require_valid_protocol:
/// false`.
pub fn is_url_of_any_protocol(text: &str) -> bool {
    is_url_of(text, |_| true)
}

fn is_url_of(text: &str, is_allowed: impl Fn(&str) -> bool) -> bool {
    let is_refused = |it: char| it.is_whitespace() || matches!(it, '<' | '>' | '\u{feff}');
    if text.is_empty() || text.contains(is_refused) || text.starts_with("mailto:") {
        return false;
    }
    if MAX_URL_CHARS < text.chars().map(char::len_utf16).sum() {
        return false;
    }
    let path = text.split(['#', '?']).next().unwrap_or_default();
    let Some(rest) = without_protocol(path, is_allowed) else { return false };
    let authority = rest.split('/').next().unwrap_or_default();
    host_and_port(authority).is_some_and(|(host, port)| port.is_none_or(is_port) && is_host(host))
}

/// Returns what follows the protocol and its slashes; `None` if the protocol is not allowed.
fn without_protocol(url: &str, is_allowed: impl Fn(&str) -> bool) -> Option<&str> {
    let Some((protocol, rest)) = url.split_once(':').filter(|it| is_protocol_name(it.0)) else {
        return (!url.starts_with("//")).then_some(url);
    };
    if !rest.starts_with("//") && is_user_or_port(rest) {
        return Some(url);
    }
    is_allowed(protocol).then(|| rest.strip_prefix("//").unwrap_or(rest))
}

fn is_protocol_name(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_alphabetic())
        && text.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '+' | '-' | '.'))
}

/// Says whether the text after the colon shows that there was no protocol before it: `user:password@host`,
/// `host:80`.
fn is_user_or_port(after_colon: &str) -> bool {
    let authority = after_colon.split('/').next().unwrap_or_default();
    match authority.split_once('@') {
        Some((password, _)) => {
            let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.%:".contains(it);
            password.chars().all(is_plain) && !has_escape(password)
        }
        None => after_colon.starts_with(|it: char| it.is_ascii_digit()),
    }
}

fn has_escape(text: &str) -> bool {
    text.as_bytes()
        .windows(3)
        .any(|it| it[0] == b'%' && it[1].is_ascii_hexdigit() && it[2].is_ascii_hexdigit())
}

/// The host of a URL.
enum Host<'a> {
    /// A name or an IPv4 address.
    Bare(&'a str),
    /// The text in brackets.
    Bracketed(&'a str),
}

/// Splits `[user[:password]@]host[:port]`. `None` if the user part is empty or has several colons.
fn host_and_port(authority: &str) -> Option<(Host<'_>, Option<&str>)> {
    let host_port = match authority.split_once('@') {
        None => authority,
        Some((user, rest)) => {
            let is_user = !user.is_empty() && user.matches(':').count() < 2 && user != ":";
            is_user.then_some(rest)?
        }
    };
    if let Some((address, port)) = host_port.strip_prefix('[').and_then(|it| it.split_once(']')) {
        let host = Host::Bracketed(address);
        return match port.strip_prefix(':') {
            Some(port) => (!port.is_empty()).then_some((host, Some(port))),
            None => port.is_empty().then_some((host, None)),
        };
    }
    Some(match host_port.split_once(':') {
        Some((host, port)) => (Host::Bare(host), Some(port).filter(|it| !it.is_empty())),
        None => (Host::Bare(host_port), None),
    })
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_digit())
        && text.parse::<u32>().is_ok_and(|it| (1..=65535).contains(&it))
}

fn is_host(host: Host<'_>) -> bool {
    match host {
        Host::Bare(name) => is_host_name(name) || name.parse::<Ipv4Addr>().is_ok(),
        // The address may be followed by a zone (`%eth0`).
        Host::Bracketed(address) => {
            address.split('%').next().is_some_and(|it| it.parse::<Ipv6Addr>().is_ok())
        }
    }
}
