//! Receives bodies: bounded in size and in time, without a copy if the body arrives in one piece.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::BoxError;
use axum::body::Body;
use bytes::{Buf as _, Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use pinakes_store::Limits;
use serde::de::DeserializeOwned;
use tokio::time::{Sleep, sleep};

use crate::refusal::Refusal;
use crate::speed::Patience;
use crate::stages::{self, RequestScope, Stage};

pub use crate::json::{JsonCategory, JsonFault, parse_json};

/// Bytes that a request may hold without being counted: the number of connections bounds them.
pub(crate) const FREE_BYTES: u64 = 16 << 10;
/// How many times the bytes received so far are reserved for the bytes to come.
const GROWTH: usize = 4;
/// Maximum number of bytes read from an unwanted body, so that the connection can be reused.
const UNWANTED_BYTES: u64 = 1 << 20;
/// How long its client may take to send them, in seconds.
const UNWANTED_S: u64 = 2;

/// Receives a whole body.
///
/// Bounds: `limit_bytes` (mostly [`Limits::body_bytes`]), [`Limits::body_timeout_ms`] between two pieces,
/// [`Limits::least_speed_bytes_s`], and [`Limits::held_bytes`] over all requests.
/// Errors: [`Refusal::BodyTooLarge`] before anything is read if `Content-Length` says so, otherwise as soon
/// as it is exceeded; [`Refusal::BodyTimeout`]; [`Refusal::BodyBroken`]. After an error the rest is not read
/// and the connection closes after the answer.
pub async fn receive(
    headers: &HeaderMap,
    body: Body,
    limit_bytes: u64,
    limits: &Limits,
) -> Result<Bytes, Refusal> {
    let mut pieces = Pieces::new(headers, body, limit_bytes, limits)?;
    let Some(first) = pieces.next().await? else { return Ok(Bytes::new()) };
    let Some(second) = pieces.next().await? else { return Ok(first) };
    let mut whole = Whole { bytes: BytesMut::new(), counted: FREE_BYTES, expected: pieces.stated_bytes };
    whole.add(&first).await?;
    whole.add(&second).await?;
    while let Some(piece) = pieces.next().await? {
        whole.add(&piece).await?;
    }
    Ok(whole.bytes.freeze())
}

/// A body that is being received. Its reservation grows with the bytes received: a `Content-Length` alone reserves
/// nothing.
struct Whole {
    bytes: BytesMut,
    /// Bytes that are counted, or need not be.
    counted: u64,
    expected: Option<u64>,
}

impl Whole {
    async fn add(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        let needed = self.bytes.len() + piece.len();
        if self.bytes.capacity() < needed {
            let expected = self.expected.and_then(|it| usize::try_from(it).ok()).unwrap_or(needed * 2);
            let room = expected.clamp(needed, needed * GROWTH);
            if let Some(scope) = RequestScope::current()
                && self.counted < room as u64
            {
                scope.hold(room as u64 - self.counted).await?;
                self.counted = room as u64;
            }
            self.bytes.reserve(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}

/// Receives a body of ordinary size and parses it; records both stages.
pub async fn receive_json<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
) -> Result<T, Refusal> {
    let bytes = receive(headers, body, limits.body_bytes, limits).await?;
    stages::timed(Stage::Parse, || parse_json(&bytes, limits)).map_err(Refusal::Json)
}

/// A body piece by piece, for bodies that are too large to keep.
pub struct Pieces {
    body: Body,
    left_bytes: u64,
    limit_bytes: u64,
    stated_bytes: Option<u64>,
    timeout_ms: u64,
    least_bytes_s: u64,
}

impl Pieces {
    /// Bounds and errors as for [`receive`].
    pub fn new(headers: &HeaderMap, body: Body, limit_bytes: u64, limits: &Limits) -> Result<Self, Refusal> {
        let stated_bytes = stated_bytes(headers);
        let pieces = Self {
            body,
            left_bytes: limit_bytes,
            limit_bytes,
            stated_bytes,
            timeout_ms: limits.body_timeout_ms,
            least_bytes_s: limits.least_speed_bytes_s,
        };
        if stated_bytes.is_some_and(|it| limit_bytes < it) {
            return Err(pieces.too_large());
        }
        Ok(pieces)
    }

    /// Returns the length given by `Content-Length`.
    pub fn stated_bytes(&self) -> Option<u64> {
        self.stated_bytes
    }

    /// Returns the next piece, never empty; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let Some(piece) = self.next_frame().await? else { return Ok(None) };
            let n_bytes = piece.len() as u64;
            if self.left_bytes < n_bytes {
                return Err(self.too_large());
            }
            self.left_bytes -= n_bytes;
            if piece.has_remaining() {
                return Ok(Some(piece));
            }
        }
    }

    async fn next_frame(&mut self) -> Result<Option<Bytes>, Refusal> {
        if self.body.is_end_stream() {
            return Ok(None);
        }
        let started = Instant::now();
        let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
        let frame = tokio::time::timeout(Duration::from_millis(self.timeout_ms), frame).await;
        if let Some(scope) = RequestScope::current() {
            scope.add(Stage::Receive, started.elapsed());
        }
        match frame {
            Err(_) => Err(Refusal::BodyTimeout { timeout_ms: self.timeout_ms }),
            Ok(None) => Ok(None),
            // Trailers carry nothing that is used here.
            Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
            Ok(Some(Err(_))) if RequestScope::current().is_some_and(|it| it.is_slow()) => {
                if started.elapsed() < Duration::from_millis(self.timeout_ms) {
                    return Err(Refusal::BodyTooSlow { least_bytes_s: self.least_bytes_s });
                }
                Err(Refusal::BodyTimeout { timeout_ms: self.timeout_ms })
            }
            Ok(Some(Err(error))) => Err(Refusal::BodyBroken(root_cause(&error))),
        }
    }

    fn too_large(&self) -> Refusal {
        Refusal::BodyTooLarge { limit_bytes: self.limit_bytes, stated_bytes: self.stated_bytes }
    }
}

/// A request's body as handlers get it: notes that the client makes progress. A body that is abandoned half-read is
/// read to its end if the rest is short: otherwise the client would get the answer, but the connection would be
/// closed under its next request. A longer rest closes the connection, with a lingering close.
pub(crate) struct Watched {
    /// `None` once it is read to its end.
    body: Option<Incoming>,
    scope: Arc<RequestScope>,
    patience: Patience,
    /// Since when the client has been waited for, and the timer that ends the wait.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// The client sends its body more slowly than allowed.
#[derive(Debug, thiserror::Error)]
#[error("the body came too slowly")]
struct TooSlow;

impl Watched {
    /// Wraps the body for the handler; a body without bytes costs nothing.
    pub(crate) fn wrap(body: Incoming, scope: &Arc<RequestScope>, limits: &Limits) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        let patience = Patience::new(limits);
        Body::new(Self { body: Some(body), scope: Arc::clone(scope), patience, waiting: None })
    }
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let it = &mut *self;
        let Some(body) = &mut it.body else { return Poll::Ready(None) };
        let Poll::Ready(frame) = Pin::new(body).poll_frame(context) else {
            let left = it.patience.left();
            let (_, end) = it.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
            ready!(end.as_mut().poll(context));
            it.scope.note_slow();
            return Poll::Ready(Some(Err(TooSlow.into())));
        };
        if let Some((since, _)) = it.waiting.take() {
            it.patience.wait(since.elapsed());
        }
        match &frame {
            Some(Ok(frame)) => it.patience.credit(frame.data_ref().map_or(0, Bytes::len)),
            Some(Err(_)) => {}
            None => it.body = None,
        }
        it.scope.note_progress();
        Poll::Ready(frame.map(|it| it.map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|it| !it.is_end_stream()) else { return };
        let is_short = body.size_hint().exact().is_none_or(|it| it <= UNWANTED_BYTES);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if is_short => {
                runtime.spawn(read_away(body, Arc::clone(&self.scope)));
            }
            _ => self.scope.connection().linger(),
        }
    }
}

/// Reads and discards the rest of a short body that nobody wants.
async fn read_away(mut body: Incoming, scope: Arc<RequestScope>) {
    let mut left = UNWANTED_BYTES;
    let rest = async {
        while let Some(Ok(frame)) = body.frame().await {
            let n_bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            if left < n_bytes {
                return false;
            }
            left -= n_bytes;
        }
        true
    };
    let is_read = tokio::time::timeout(Duration::from_secs(UNWANTED_S), rest).await;
    if is_read != Ok(true) {
        scope.connection().linger();
    }
}

fn stated_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
