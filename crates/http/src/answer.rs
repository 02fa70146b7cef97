//! Builds answers: stored bytes as they are, lists of stored bodies joined by commas, streams.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, StatusCode};
use http_body::{Frame, SizeHint};
use serde::Serialize;

use crate::refusal::Refusal;
use crate::stages::{self, Stage};

/// `application/json; charset=utf-8`.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
/// `text/plain; charset=utf-8`.
pub const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// `application/x-ndjson`: one JSON document a line.
pub const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// Up to this size a list is one buffer, in bytes.
const ONE_BUFFER_BYTES: usize = 64 << 10;
/// From this size on a body of a list is sent without a copy, in bytes; shorter ones are copied together.
const BY_REFERENCE_BYTES: usize = 8 << 10;

/// Makes an answer of bytes. No copy.
pub fn bytes(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Response {
    with_body(status, content_type, Body::from(body.into()))
}

/// Makes an answer with this body.
pub fn with_body(status: StatusCode, content_type: HeaderValue, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Makes an answer of stored JSON as it is. No copy.
pub fn stored_json(status: StatusCode, body: Bytes) -> Response {
    bytes(status, JSON, body)
}

/// Makes an answer of a value as JSON. Records the stage `render`. A value that has no JSON form is a bug:
/// 500.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match stages::timed(Stage::Render, || serde_json::to_vec(value)) {
        Ok(body) => bytes(status, JSON, body),
        Err(error) => {
            tracing::error!(%error, "an answer has no JSON form");
            Refusal::Panic.plain()
        }
    }
}

/// Makes an answer of text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response {
    bytes(status, TEXT, body)
}

/// Makes an answer with only a status.
pub fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Adds a header to an answer; a value that is not a valid header value is left out.
pub fn with_header(mut response: Response, name: HeaderName, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Makes a JSON array of stored bodies: `[a,b,c]`.
pub fn json_array(status: StatusCode, bodies: Vec<Bytes>) -> Response {
    let list = JoinedBodies::new("[", bodies, "]");
    with_body(status, JSON, list.into_body())
}

/// Stored bodies joined by commas, between a head and a tail, e.g. `{"items":[` and `],"totalRecords":3}`.
///
/// Its length is known, so the answer has a `Content-Length`. Short lists become one buffer; longer ones are
/// never copied as a whole: large bodies are sent without a copy, small ones are copied together in pieces of
/// 64 KiB as the client reads them.
pub struct JoinedBodies {
    head: Bytes,
    bodies: VecDeque<Bytes>,
    tail: Bytes,
    left_bytes: usize,
    at: At,
}

/// The next part to send.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Head,
    FirstBody,
    Comma,
    Body,
    End,
}

impl JoinedBodies {
    /// Creates it from its parts.
    pub fn new(head: impl Into<Bytes>, bodies: Vec<Bytes>, tail: impl Into<Bytes>) -> Self {
        let (head, tail) = (head.into(), tail.into());
        let commas = bodies.len().saturating_sub(1);
        let left_bytes = head.len() + tail.len() + commas + bodies.iter().map(Bytes::len).sum::<usize>();
        Self { head, bodies: bodies.into(), tail, left_bytes, at: At::Head }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.left_bytes
    }

    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.left_bytes == 0
    }

    /// Converts it into the body of an answer. Records the stage `render`.
    pub fn into_body(mut self) -> Body {
        if ONE_BUFFER_BYTES < self.left_bytes {
            return Body::new(self);
        }
        stages::timed(Stage::Render, || self.next_piece(self.left_bytes).map_or_else(Body::empty, Body::from))
    }

    /// Returns the next piece: a large body by itself, or at most `limit_bytes` of small parts.
    fn next_piece(&mut self, limit_bytes: usize) -> Option<Bytes> {
        if self.at == At::Body
            && self
                .bodies
                .front()
                .is_some_and(|it| BY_REFERENCE_BYTES <= it.len() && it.len() < self.left_bytes)
        {
            let body = self.take()?;
            self.left_bytes -= body.len();
            return Some(body);
        }
        let mut piece = BytesMut::with_capacity(limit_bytes.min(self.left_bytes));
        while let Some(n_bytes) = self.len_of_next() {
            let is_large =
                self.at == At::Body && BY_REFERENCE_BYTES <= n_bytes && limit_bytes < self.left_bytes;
            if !piece.is_empty() && (is_large || limit_bytes < piece.len() + n_bytes) {
                break;
            }
            piece.put(self.take()?);
        }
        self.left_bytes -= piece.len();
        (!piece.is_empty()).then(|| piece.freeze())
    }

    fn len_of_next(&self) -> Option<usize> {
        match self.at {
            At::Head => Some(self.head.len()),
            At::Comma => Some(1),
            At::FirstBody | At::Body => Some(self.bodies.front().map_or(self.tail.len(), Bytes::len)),
            At::End => None,
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        match self.at {
            At::Head => {
                self.at = At::FirstBody;
                Some(std::mem::take(&mut self.head))
            }
            At::FirstBody | At::Body => {
                let Some(body) = self.bodies.pop_front() else {
                    self.at = At::End;
                    return Some(std::mem::take(&mut self.tail));
                };
                self.at = if self.bodies.is_empty() { At::FirstBody } else { At::Comma };
                Some(body)
            }
            At::Comma => {
                self.at = At::Body;
                Some(Bytes::from_static(b","))
            }
            At::End => None,
        }
    }
}

impl http_body::Body for JoinedBodies {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next_piece(ONE_BUFFER_BYTES).map(|it| Ok(Frame::data(it))))
    }

    fn is_end_stream(&self) -> bool {
        self.left_bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left_bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use proptest::prelude::*;

    fn collected(body: impl http_body::Body<Data = Bytes, Error: std::fmt::Debug>) -> (usize, Vec<u8>) {
        let stated = body.size_hint().exact().map_or(0, |it| usize::try_from(it).unwrap_or(0));
        let whole = futures_util::FutureExt::now_or_never(body.collect());
        (stated, whole.and_then(Result::ok).map(|it| it.to_bytes().to_vec()).unwrap_or_default())
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole(sizes in proptest::collection::vec(0usize..20_000, 0..30), tail in "[a-z]{0,3}") {
            let bodies: Vec<Bytes> =
                sizes.iter().enumerate().map(|(i, n)| vec![b'a' + u8::try_from(i).unwrap_or(0); *n].into()).collect();
            let joined = bodies.iter().map(|it| it.to_vec()).collect::<Vec<_>>().join(&b","[..]);
            let expected = [b"[", &joined[..], b"]", tail.as_bytes()].concat();
            let parts = || JoinedBodies::new("[", bodies.clone(), format!("]{tail}"));
            prop_assert_eq!(collected(parts()), (expected.len(), expected.clone()));
            prop_assert_eq!(collected(parts().into_body()), (expected.len(), expected));
        }
    }
}
