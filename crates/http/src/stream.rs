//! Answers that a reader thread produces while the client reads them: memory is bounded by the channel
//! between the two, whatever the length.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use pinakes_store::{Limits, ScanPlace, StoreError, View};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::context::Db;
use crate::stages::{self, RequestScope, Stage};

/// Size of a piece, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that may wait for the client.
const PIECES: usize = 8;
/// How long a client may block an answer that keeps its place among the scans.
const SOON: Duration = Duration::from_millis(10);
/// How long it may do so when no more answers may wait without a place.
const CROWDED: Duration = Duration::from_secs(1);

/// The client is gone, or has stopped reading, or the read started again after bytes were sent: stop
/// producing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// What goes from the producer to the answer. A channel that closes without [`Piece::End`] was cut off, by an
/// error, a panic or a client that stopped reading.
enum Piece {
    Data(Bytes),
    End,
}

/// Where the producer writes the bytes of the answer.
pub struct Sink {
    buffer: BytesMut,
    pieces: mpsc::Sender<Piece>,
    runtime: Handle,
    timeout: Duration,
    place: ScanPlace,
    state: SinkState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SinkState {
    /// Nothing has been sent: the producer may start over, and its error can be answered.
    Unsent,
    /// Bytes have been sent.
    Sent,
    /// Nobody reads any more.
    Gone,
}

impl Sink {
    /// Adds bytes; blocks while the client is slow, at most [`Limits::body_timeout_ms`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        if PIECE_BYTES < self.buffer.len() + bytes.len() {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        if self.state == SinkState::Gone { Err(Gone) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Gone> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = self.buffer.split().freeze();
        self.send(Piece::Data(piece))
    }

    fn send(&mut self, piece: Piece) -> Result<(), Gone> {
        if self.state == SinkState::Gone {
            return Err(Gone);
        }
        let sent = match self.pieces.try_send(piece) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Closed(_)) => false,
            Err(mpsc::error::TrySendError::Full(piece)) => self.wait_and_send(piece),
        };
        self.state = if sent { SinkState::Sent } else { SinkState::Gone };
        if sent { Ok(()) } else { Err(Gone) }
    }

    /// Waits for the client: a moment while keeping the place that others wait for, then without it. A client that
    /// is slower than its connection allows is cut off there ([`Limits::least_speed_bytes_s`]), which closes the
    /// channel.
    fn wait_and_send(&mut self, piece: Piece) -> bool {
        let (runtime, pieces, place, patience) =
            (self.runtime.clone(), &self.pieces, &mut self.place, self.timeout);
        runtime.block_on(async move {
            let room = match timeout(SOON, pieces.reserve()).await {
                Ok(room) => room,
                Err(_) => {
                    let patience = if place.leave() { patience } else { CROWDED.min(patience) };
                    let Ok(room) = timeout(patience, pieces.reserve()).await else { return false };
                    if room.is_ok() && place.take_again().await.is_err() {
                        return false;
                    }
                    room
                }
            };
            room.map(|room| room.send(piece)).is_ok()
        })
    }

    /// Runs the producer once. Returns the whole answer if it is short and nothing of it was sent.
    fn run<E: From<StoreError>>(
        &mut self,
        produce: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<Option<Bytes>, E> {
        if self.state != SinkState::Unsent {
            self.state = SinkState::Gone;
            return Err(StoreError::Closed.into());
        }
        self.buffer.clear();
        produce(self)?;
        if self.state == SinkState::Unsent {
            return Ok(Some(self.buffer.split().freeze()));
        }
        // A producer that left early needs nothing more.
        if self.flush().is_ok() {
            let _ = self.send(Piece::End);
        }
        Ok(None)
    }
}

impl Db {
    /// Makes a body that `produce` writes from a snapshot, on a reader thread, while the client reads it.
    ///
    /// Returns when the first 64 KiB are there, or everything if it is less: an error of the producer up to
    /// then is returned and can be answered as such; a later one is logged and cuts the connection, so that
    /// the client does not mistake a part for the whole. A short answer gets a `Content-Length`. The producer
    /// may run again as long as nothing was sent; it stops when [`Sink::push`] says [`Gone`] (return `Ok`
    /// then).
    ///
    /// Bounds: 8 pieces of 64 KiB; [`Limits::scans`] for those that are not waiting for their client, and
    /// [`Limits::slow_streams`] for those that are; [`Limits::body_timeout_ms`] for a client that stops reading.
    pub async fn stream<E>(
        &self,
        limits: &Limits,
        mut produce: impl FnMut(&mut View<'_>, &mut Sink) -> Result<(), E> + Send + 'static,
    ) -> Result<Body, E>
    where
        E: From<StoreError> + std::fmt::Display + Send + 'static,
    {
        let (pieces, mut taken) = mpsc::channel(PIECES);
        let (outcome, early) = oneshot::channel::<Result<Bytes, E>>();
        let mut sink = Sink {
            buffer: BytesMut::with_capacity(PIECE_BYTES),
            pieces,
            runtime: Handle::current(),
            timeout: Duration::from_millis(limits.body_timeout_ms),
            place: self.tenant().scan_place().await?,
            state: SinkState::Unsent,
        };
        let tenant = self.tenant().clone();
        let scope = RequestScope::current();
        tokio::spawn(async move {
            let read = move |view: &mut View<'_>| {
                let mut run = || sink.run(|sink| produce(view, sink));
                match &scope {
                    Some(scope) => scope.explained(run),
                    None => run(),
                }
            };
            // The client may be gone; then nobody needs an early outcome.
            match tenant.read_placed(read).await {
                Ok(None) => {}
                Ok(Some(whole)) => drop(outcome.send(Ok(whole))),
                Err(error) => {
                    if let Err(Err(error)) = outcome.send(Err(error)) {
                        tracing::error!(%error, "an answer was cut off");
                    }
                }
            }
        });
        stages::timed_async(Stage::Store, first_of(early, &mut taken)).await.map(|first| match first {
            First::Whole(bytes) => Body::from(bytes),
            First::Piece(piece) => {
                Body::from_stream(Taken { first: Some(piece), rest: taken, is_over: false })
            }
        })
    }
}

enum First {
    Whole(Bytes),
    Piece(Piece),
}

/// Returns the whole of a short answer, an early error, or the first piece of a long answer.
async fn first_of<E: From<StoreError>>(
    early: oneshot::Receiver<Result<Bytes, E>>,
    taken: &mut mpsc::Receiver<Piece>,
) -> Result<First, E> {
    if let Some(piece) = taken.recv().await {
        return Ok(First::Piece(piece));
    }
    // The channel is closed without a piece: the producer is done, and says how.
    match early.await {
        Ok(result) => result.map(First::Whole),
        Err(_) => Err(StoreError::Closed.into()),
    }
}

struct Taken {
    first: Option<Piece>,
    rest: mpsc::Receiver<Piece>,
    is_over: bool,
}

impl Stream for Taken {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let piece = match self.first.take() {
            Some(piece) => Some(piece),
            None => ready!(self.rest.poll_recv(context)),
        };
        Poll::Ready(match piece {
            Some(Piece::Data(bytes)) => Some(Ok(bytes)),
            Some(Piece::End) => {
                self.is_over = true;
                None
            }
            None => {
                self.is_over = true;
                Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer was cut off")))
            }
        })
    }
}
