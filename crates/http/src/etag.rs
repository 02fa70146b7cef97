//! Entity tags and `If-None-Match` (RFC 9110, sections 8.8.3 and 13.1.2).
//!
//! Tags are weak: what is compared is the record, not the bytes after compression.

use std::hash::{DefaultHasher, Hasher as _};

use axum::body::Body;
use axum::response::Response;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::stages::RequestScope;

/// A weak entity tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(String);

impl Tag {
    /// The tag of a record: its version and the sequence number of its last change, which no later record of
    /// that id shares.
    pub fn of_record(version: u64, sequence: u64) -> Self {
        Self(format!("W/\"{version:x}-{sequence:x}\""))
    }

    /// The tag of an answer that depends on more than one record.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Self(format!("W/\"{:x}-{:016x}\"", bytes.len(), hasher.finish()))
    }

    /// As it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the client has it already.
    pub fn is_known_to(&self, headers: &HeaderMap) -> bool {
        let lists = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
        lists.flat_map(|list| list.split(',')).any(|tag| matches_weakly(tag.trim(), &self.0))
    }

    /// Adds it to an answer.
    pub fn put(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            headers.insert(ETAG, value);
        }
    }

    /// The answer 304 with this tag.
    pub fn not_modified(&self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        self.put(response.headers_mut());
        response
    }
}

fn matches_weakly(given: &str, ours: &str) -> bool {
    let opaque = |tag: &'_ str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    given == "*" || opaque(given) == opaque(ours)
}

/// Has the answer to the current request spell the header `ETag`, as clients expect that compare names by
/// their case (FOLIO's upload tests). HTTP libraries write `etag`.
pub fn spell_as_etag() {
    if let Some(scope) = RequestScope::current() {
        scope.connection().spell_etag();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knows(header: &str, tag: &Tag) -> bool {
        let mut headers = HeaderMap::new();
        if let Ok(value) = header.parse() {
            headers.insert(IF_NONE_MATCH, value);
        }
        tag.is_known_to(&headers)
    }

    #[test]
    fn comparison_is_weak_and_over_lists() {
        let tag = Tag::of_record(2, 255);
        assert_eq!(tag.as_str(), "W/\"2-ff\"");
        for header in ["W/\"2-ff\"", "\"2-ff\"", "\"x\", W/\"2-ff\"", "*"] {
            assert!(knows(header, &tag), "{header}");
        }
        for header in ["W/\"2-fe\"", "2-ff", ""] {
            assert!(!knows(header, &tag), "{header}");
        }
    }
}
