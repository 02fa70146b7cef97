//! Entity tags and `If-None-Match` (RFC 9110, sections 8.8.3 and 13.1.2).
//!
//! Tags are weak: they compare the record, not the bytes after compression.

use axum::body::Body;
use axum::response::Response;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use xxhash_rust::xxh3::xxh3_64;

use crate::refusal::Refusal;
use crate::stages::RequestScope;

/// Longest answer that gets a tag from its bytes; longer ones are sent in pieces and never held as a whole.
const TAGGED_BYTES: u64 = 64 << 10;

/// A weak entity tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(String);

impl Tag {
    /// Returns the tag of a record: its version and the sequence number of its last change, which no later
    /// record of the same id shares.
    pub fn of_record(version: u64, sequence: u64) -> Self {
        Self(format!("W/\"{version:x}-{sequence:x}\""))
    }

    /// Returns the tag of an answer that depends on more than one record.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(format!("W/\"{:x}-{:016x}\"", bytes.len(), xxh3_64(bytes)))
    }

    /// Returns the tag as it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the client has it already.
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

    /// Makes the answer 304 with this tag.
    pub fn not_modified(&self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        self.put(response.headers_mut());
        response
    }
}

/// Which answers of a dialect carry a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tagging {
    /// Those to which a handler gave one.
    #[default]
    ByHandlers,
    /// Every answer to a `GET` with a body of at most 64 KiB: if no handler gave one, the tag is computed from
    /// the bytes.
    EveryAnswer,
}

/// A request whose answer gets a tag from its bytes.
pub(crate) struct Tagged {
    /// The tags that the client knows.
    known: HeaderMap,
}

impl Tagged {
    pub(crate) fn of(tagging: Tagging, method: &Method, headers: &HeaderMap) -> Option<Self> {
        if tagging == Tagging::ByHandlers || *method != Method::GET {
            return None;
        }
        let known = headers.get_all(IF_NONE_MATCH).iter().map(|it| (IF_NONE_MATCH, it.clone()));
        Some(Self { known: known.collect() })
    }

    /// Returns the answer with its tag, or 304 if the client has it already.
    pub(crate) async fn tag(&self, answer: Response) -> Response {
        let n_bytes = http_body::Body::size_hint(answer.body()).exact();
        if answer.status() != StatusCode::OK
            || answer.headers().contains_key(ETAG)
            || !n_bytes.is_some_and(|it| (1..=TAGGED_BYTES).contains(&it))
        {
            return answer;
        }
        let (mut parts, body) = answer.into_parts();
        let bytes = match body.collect().await {
            Ok(whole) => whole.to_bytes(),
            Err(error) => {
                tracing::error!(%error, "an answer broke off");
                return Refusal::Panic.plain();
            }
        };
        let tag = Tag::of_bytes(&bytes);
        if tag.is_known_to(&self.known) {
            return tag.not_modified();
        }
        tag.put(&mut parts.headers);
        Response::from_parts(parts, Body::from(bytes))
    }
}

fn matches_weakly(given: &str, ours: &str) -> bool {
    let opaque = |tag: &'_ str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    given == "*" || opaque(given) == opaque(ours)
}

/// Makes the answer to the current request spell the headers `ETag`, `Location` and `Set-Cookie` this way, for
/// clients that compare names case-sensitively (FOLIO's tests). HTTP libraries write lower case.
pub fn spell_headers() {
    if let Some(scope) = RequestScope::current() {
        scope.connection().respell();
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

    #[tokio::test]
    async fn short_answers_get_the_tag_of_their_bytes() {
        let ask = async |method: Method, known: Option<&str>, body: Body| {
            let known = known.and_then(|it| HeaderValue::from_str(it).ok());
            let headers = known.into_iter().map(|it| (IF_NONE_MATCH, it)).collect();
            match Tagged::of(Tagging::EveryAnswer, &method, &headers) {
                Some(tagged) => tagged.tag(Response::new(body)).await,
                None => Response::new(body),
            }
        };
        let tag_of =
            |answer: &Response| answer.headers().get(ETAG).and_then(|it| it.to_str().ok()).map(str::to_owned);
        let tag = tag_of(&ask(Method::GET, None, Body::from("[1]")).await);
        assert_eq!(tag.as_deref(), Some(Tag::of_bytes(b"[1]").as_str()));
        let again = ask(Method::GET, tag.as_deref(), Body::from("[1]")).await;
        assert_eq!((again.status(), tag_of(&again)), (StatusCode::NOT_MODIFIED, tag.clone()));
        let changed = ask(Method::GET, tag.as_deref(), Body::from("[2]")).await;
        assert_eq!(changed.status(), StatusCode::OK);
        let whole = changed.into_body().collect().await.map(|it| it.to_bytes());
        assert_eq!(whole.unwrap_or_default(), "[2]");
        let long = usize::try_from(TAGGED_BYTES).unwrap_or(usize::MAX) + 1;
        for (method, body) in [
            (Method::POST, Body::from("[1]")),
            (Method::GET, Body::empty()),
            (Method::GET, Body::from(vec![b' '; long])),
        ] {
            assert_eq!(tag_of(&ask(method, tag.as_deref(), body).await), None);
        }
    }
}
