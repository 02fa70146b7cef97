//! Encoding of text for pages and addresses, and parsing of parameters.

use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pinakes_http::Parameters;

/// Everything but the unreserved characters and `/` (section 7 of the contract).
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Escapes text for HTML elements and double-quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    push_escaped(&mut out, text);
    out
}

/// Appends text, escaped for HTML.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(entity);
        from = at + 1;
    }
    out.push_str(&text[from..]);
}

/// Returns the address of a topic's page: `base` and the encoded id. Safe in an attribute.
pub(crate) fn topic_href(base: &str, id: &str) -> String {
    escape(&topic_href_raw(base, id))
}

/// Returns the address before it is escaped for HTML. Encodes dots that would be taken for steps in a path.
pub(crate) fn topic_href_raw(base: &str, id: &str) -> String {
    let mut out = String::with_capacity(base.len() + id.len() + 8);
    out.push_str(base);
    push_encoded(&mut out, id);
    out
}

/// Returns whether an id needs no encoding, as most: only letters, digits and `-`, `_`, `~`, in single slashes.
fn is_plain(id: &str) -> bool {
    let mut before = b'/';
    for it in id.bytes() {
        let is_known =
            it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'~') || it == b'/' && before != b'/';
        if !is_known {
            return false;
        }
        before = it;
    }
    before != b'/'
}

/// Appends an id, encoded for a path.
pub(crate) fn push_encoded(out: &mut String, id: &str) {
    if is_plain(id) {
        out.push_str(id);
        return;
    }
    let is_step = |part: &str| part == "." || part == "..";
    if id.contains("//") || id.starts_with('/') || id.ends_with('/') || id.split('/').any(is_step) {
        // Such an id is sent as one path segment, with its slashes and dots encoded.
        for it in id.bytes() {
            match it {
                b'/' => out.push_str("%2F"),
                b'.' => out.push_str("%2E"),
                it if it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'~') => {
                    out.push(char::from(it))
                }
                it => out.push_str(&format!("%{it:02X}")),
            }
        }
        return;
    }
    out.extend(utf8_percent_encode(id, IN_PATH));
}

/// Returns the FNV-1a hash, which only serves to distinguish versions and formats.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, it| (hash ^ u64::from(*it)).wrapping_mul(0x0100_0000_01b3))
}

/// The parameters of a query string or a form.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Parameters);

impl Fields {
    /// Parses a query string or the body of a form.
    pub(crate) fn parse(text: &str) -> Fields {
        Fields(Parameters::parse(text))
    }

    /// Returns all names and values, in order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.0.pairs()
    }

    /// Returns these parameters, followed by others.
    pub(crate) fn followed_by(self, others: &Fields) -> Fields {
        Fields(self.0.followed_by(&others.0))
    }

    /// Returns all values of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.all(name)
    }

    /// Returns the first value of a name, if it is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.filled(name)
    }

    /// Returns the first value of a name, or an empty text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Returns whether a flag is set: the name is present, with `1`, `true` or no value.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.0.all(name).any(|it| matches!(it, "" | "1" | "true" | "yes"))
    }
}

/// Returns the first text that sorts after all that begin with `prefix`.
pub(crate) fn after_prefix(prefix: &str) -> String {
    let mut out = prefix.to_owned();
    out.push(char::MAX);
    out
}

/// `text/html; charset=utf-8`.
pub(crate) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
