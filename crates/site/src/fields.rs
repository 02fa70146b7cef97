//! The parameters of a query or form, and text in addresses.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pinakes_http::Parameters;

/// All characters except the unreserved ones.
const IN_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same without the slash, for the rest of a path. Identifiers keep their slashes.
const IN_REST: &AsciiSet = &IN_SEGMENT.remove(b'/');

/// Encodes text as one segment of a path, or as a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, IN_SEGMENT).to_string()
}

/// Encodes an identifier as the end of a path: slashes stay, unless they or dots would be interpreted as path
/// segments.
pub(crate) fn encoded_rest(text: &str) -> String {
    let is_step = |it: &str| matches!(it, "" | "." | "..");
    if text.split('/').any(is_step) {
        return encoded(text).replace('.', "%2E");
    }
    utf8_percent_encode(text, IN_REST).to_string()
}

/// The parameters of a query or form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(Parameters);

impl Fields {
    /// Parses the text after `?`, or the body of a form.
    pub(crate) fn parse(text: &str) -> Self {
        Self(Parameters::parse(text))
    }

    /// Returns the first value of a name, without surrounding white space; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.exact(name).trim()
    }

    /// Returns all values of a name, as they were sent.
    pub(crate) fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.0.all(name)
    }

    /// Says whether the name was sent, with or without a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// Returns the first value of a name as it was sent, for passwords.
    pub(crate) fn exact(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_default()
    }

    /// Returns the path of this server to continue at; anything else could redirect users to foreign sites.
    pub(crate) fn next(&self) -> String {
        let next = self.text("next");
        let is_plain = next.bytes().all(|it| it.is_ascii_graphic() && it != b'\\');
        let is_own = next.starts_with('/') && !next.starts_with("//") && is_plain;
        if is_own { next.to_owned() } else { "/".to_owned() }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Fields {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_paths_are_gone_on_at() {
        for (query, expected) in [
            ("next=%2Fsite%2Fdesk", "/site/desk"),
            ("next=//elsewhere.example.org", "/"),
            ("next=/%5Celsewhere.example.org", "/"),
            ("next=https://elsewhere.example.org", "/"),
            ("next=/a%0d%0aSet-Cookie:x=y", "/"),
            ("next=/a%09b", "/"),
            ("", "/"),
        ] {
            assert_eq!(Fields::parse(query).next(), expected, "{query}");
        }
    }

    #[test]
    fn identifiers_are_encoded_for_paths() {
        for (id, expected) in [
            ("20.500.demo/saxs-1", "20.500.demo/saxs-1"),
            ("a b/c?d#e%", "a%20b/c%3Fd%23e%25"),
            ("a//b", "a%2F%2Fb"),
            ("a/../b", "a%2F%2E%2E%2Fb"),
        ] {
            assert_eq!(encoded_rest(id), expected);
        }
    }
}
