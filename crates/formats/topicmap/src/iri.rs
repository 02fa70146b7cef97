//! IRIs as topic maps compare them: resolved against the document, escapes decoded, compared as strings
//! (RFC 3986, section 5.2; ISO 13250-2, locators).

/// The well-known identifiers of the data model (ISO 13250-2, section 7).
pub mod model {
    /// Prefix of the data model's identifiers.
    pub const BASE: &str = "http://psi.topicmaps.org/iso13250/model/";
    /// Default type of names.
    pub const TOPIC_NAME: &str = "http://psi.topicmaps.org/iso13250/model/topic-name";
    /// Type of associations between an instance and its type.
    pub const TYPE_INSTANCE: &str = "http://psi.topicmaps.org/iso13250/model/type-instance";
    /// Role of the type in a type-instance association.
    pub const TYPE: &str = "http://psi.topicmaps.org/iso13250/model/type";
    /// Role of the instance in a type-instance association.
    pub const INSTANCE: &str = "http://psi.topicmaps.org/iso13250/model/instance";
    /// Type of associations between a type and one that is more general.
    pub const SUPERTYPE_SUBTYPE: &str = "http://psi.topicmaps.org/iso13250/model/supertype-subtype";
    /// Role of the more general type.
    pub const SUPERTYPE: &str = "http://psi.topicmaps.org/iso13250/model/supertype";
    /// Role of the more special type.
    pub const SUBTYPE: &str = "http://psi.topicmaps.org/iso13250/model/subtype";
    /// Theme of variants by which names are sorted.
    pub const SORT: &str = "http://psi.topicmaps.org/iso13250/model/sort";
    /// Anything at all; the role type where a syntax allows it to be left out.
    pub const SUBJECT: &str = "http://psi.topicmaps.org/iso13250/model/subject";
}

/// Datatypes of values.
pub mod datatype {
    /// The datatypes of XML Schema begin with this.
    pub const BASE: &str = "http://www.w3.org/2001/XMLSchema#";
    /// Text, the default.
    pub const STRING: &str = "http://www.w3.org/2001/XMLSchema#string";
    /// An IRI, kept absolute.
    pub const ANY_URI: &str = "http://www.w3.org/2001/XMLSchema#anyURI";
    /// Embedded XML.
    pub const ANY_TYPE: &str = "http://www.w3.org/2001/XMLSchema#anyType";
    /// A whole number of any size.
    pub const INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";
    /// A decimal number.
    pub const DECIMAL: &str = "http://www.w3.org/2001/XMLSchema#decimal";
    /// A day.
    pub const DATE: &str = "http://www.w3.org/2001/XMLSchema#date";
    /// An instant.
    pub const DATE_TIME: &str = "http://www.w3.org/2001/XMLSchema#dateTime";
    /// The asterisk of CTM: a cardinality without bound.
    pub const CTM_INTEGER: &str = "http://psi.topicmaps.org/iso13250/ctm-integer";
}

/// Makes `reference` absolute against `base` and decodes its escapes: the form in which locators are kept.
///
/// The empty reference is the document itself, without a fragment. An absolute reference is kept as it is written.
pub fn locator(base: &str, reference: &str) -> String {
    decode(&resolve(base, reference.trim()))
}

/// Makes `reference` absolute against `base` (RFC 3986, section 5.2.2), leaving escapes untouched.
pub fn resolve(base: &str, reference: &str) -> String {
    if scheme(reference).is_some() {
        return reference.to_owned();
    }
    let base = Parts::of(base);
    let it = Parts::of(reference);
    let mut out = String::with_capacity(base.path.len() + reference.len() + 24);
    if let Some(scheme) = base.scheme {
        out.push_str(scheme);
        out.push(':');
    }
    let authority = it.authority.or(base.authority);
    if let Some(authority) = authority {
        out.push_str("//");
        out.push_str(authority);
    }
    let mut query = it.query;
    if it.authority.is_some() || it.path.starts_with('/') {
        out.push_str(&without_dots(it.path));
    } else if it.path.is_empty() {
        out.push_str(base.path);
        query = query.or(base.query);
    } else if base.authority.is_some() && base.path.is_empty() {
        out.push('/');
        out.push_str(&without_dots(it.path));
    } else {
        let folder = base.path.rfind('/').map_or("", |at| &base.path[..=at]);
        out.push_str(&without_dots(&format!("{folder}{}", it.path)));
    }
    if let Some(query) = query {
        out.push('?');
        out.push_str(query);
    }
    if let Some(fragment) = it.fragment {
        out.push('#');
        out.push_str(fragment);
    }
    out
}

/// Returns the scheme of an absolute IRI, without the colon; `None` for a relative reference.
pub fn scheme(iri: &str) -> Option<&str> {
    let colon = iri.find([':', '/', '?', '#']).filter(|&at| iri.as_bytes()[at] == b':')?;
    let scheme = &iri[..colon];
    let is_scheme = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b'.'));
    is_scheme.then_some(scheme)
}

/// Returns the document of an IRI: everything before the fragment.
pub fn document(iri: &str) -> &str {
    iri.split('#').next().unwrap_or(iri)
}

/// Decodes percent escapes to characters; those that are not UTF-8 stay as they are.
pub fn decode(iri: &str) -> String {
    if !iri.contains('%') {
        return iri.to_owned();
    }
    let bytes = iri.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%').then(|| bytes.get(at + 1..at + 3)).flatten().and_then(hex_byte);
        match escaped {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| iri.to_owned())
}

/// Encodes a locator for an IRI reference: characters that [`decode`] would change are escaped again.
pub fn encode(locator: &str) -> String {
    let mut out = String::with_capacity(locator.len());
    for it in locator.chars() {
        match it {
            '%' | ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' | '\0'..='\x1F' | '\x7F' => {
                let mut buffer = [0; 4];
                for byte in it.encode_utf8(&mut buffer).bytes() {
                    out.push_str(&format!("%{byte:02X}"));
                }
            }
            it => out.push(it),
        }
    }
    out
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |it: u8| char::from(it).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(iri: &'a str) -> Parts<'a> {
        let scheme = scheme(iri);
        let rest = scheme.map_or(iri, |it| &iri[it.len() + 1..]);
        let (rest, fragment) = cut(rest, '#');
        let (rest, query) = cut(rest, '?');
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
            None => (None, rest),
        };
        Parts { scheme, authority, path, query, fragment }
    }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// Removes dot segments (RFC 3986, section 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let last = path.rsplit('/').next().unwrap_or("");
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                if kept.len() > 1 || kept.first().is_some_and(|it| !it.is_empty()) {
                    kept.pop();
                }
            }
            part => kept.push(part),
        }
    }
    if matches!(last, "." | "..") {
        kept.push("");
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_rfc_3986_says() {
        let base = "http://a/b/c/d;p?q";
        for (reference, expected) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("g:h", "g:h"),
            ("g;x=1/../y", "http://a/b/c/y"),
        ] {
            assert_eq!(resolve(base, reference), expected, "{reference}");
        }
        assert_eq!(resolve("http://a/b#f", ""), "http://a/b");
        assert_eq!(resolve("http://a", "b"), "http://a/b");
    }

    #[test]
    fn escapes_are_decoded_and_come_back() {
        assert_eq!(locator("http://a/", "x%20y%C3%A9+z"), "http://a/x yé+z");
        assert_eq!(decode("%FF"), "%FF");
        for text in ["http://a/x y", "50% off", "é", "a%20b"] {
            assert_eq!(decode(&encode(text)), text);
        }
    }
}
