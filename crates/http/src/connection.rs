//! The byte stream of one connection, as hyper sees it: bounded writes, a lingering close, header names in the
//! spelling that some clients require, and request lines in the form hyper accepts ([`RequestLines`]).

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use pinakes_store::Limits;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::request_line::RequestLines;
use crate::speed::Patience;
use crate::tls::Socket;

/// How long a close waits for a client that is still sending an unwanted body, in seconds.
const LINGER_S: u64 = 2;
/// How many bytes of such a body are read and discarded.
const LINGER_BYTES: usize = 64 << 20;
/// Header names as HTTP libraries write them, and as some clients look for them.
const SPELLINGS: [(&[u8], &[u8]); 3] = [
    (b"\r\netag:", b"\r\nETag:"),
    (b"\r\nlocation:", b"\r\nLocation:"),
    (b"\r\nset-cookie:", b"\r\nSet-Cookie:"),
];

/// Request heads that hyper refuses, answering without a body.
const NOT_TAKEN: [(&str, u16, &str); 3] = [
    ("Bad Request", 400, "the request line or a header field is malformed"),
    ("URI Too Long", 414, "the request line is too long"),
    (
        "Request Header Fields Too Large",
        431,
        "the request line and the header fields are too large, or the fields too many",
    ),
];

/// Returns hyper's own answer to a refused request head, with a body that says what is wrong; `None` for anything
/// else. The dialect is not known at that point: the body has a `message`, which most clients show.
fn explained(answer: &[u8]) -> Option<Vec<u8>> {
    let after = answer.strip_prefix(b"HTTP/1.1 ").filter(|it| it.starts_with(b"4"))?;
    let (reason, status, message) = NOT_TAKEN.iter().find(|(reason, status, _)| {
        // Exactly these fields: every answer of the shell has more.
        let head = format!("{status} {reason}\r\nconnection: close\r\ncontent-length: 0\r\ndate: ");
        after.strip_prefix(head.as_bytes()).is_some_and(is_end_of_date)
    })?;
    let body = format!(r#"{{"message":"{message}","error":"{reason}","statusCode":{status}}}"#);
    let length =
        format!("content-length: {}\r\ncontent-type: application/json; charset=utf-8\r\n", body.len());
    let text = std::str::from_utf8(answer).ok()?.replacen("content-length: 0\r\n", &length, 1);
    Some([text, body].concat().into_bytes())
}

/// Returns whether this is a date and the end of the head: `Sun, 22 Nov 2026 08:40:20 GMT`.
fn is_end_of_date(rest: &[u8]) -> bool {
    rest.strip_suffix(b" GMT\r\n\r\n").is_some_and(|it| it.len() == 25 && !it.contains(&b'\r'))
}

/// State that the handlers of a connection share with its stream.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    peer: Option<SocketAddr>,
    linger: AtomicBool,
    respell: AtomicBool,
}

impl ConnectionState {
    pub(crate) fn new(peer: SocketAddr) -> Self {
        Self { peer: Some(peer), ..Self::default() }
    }

    /// Returns the client's address.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Notes that a body was refused while the client may still be sending it: the close lets it finish,
    /// otherwise the system would reset the connection and the client would never read the answer.
    pub(crate) fn linger(&self) {
        self.linger.store(true, Ordering::Relaxed);
    }

    /// Returns whether the connection ends with the next answer.
    pub(crate) fn is_to_linger(&self) -> bool {
        self.linger.load(Ordering::Relaxed)
    }

    /// Makes the next answer spell `ETag`, `Location` and `Set-Cookie` this way.
    pub(crate) fn respell(&self) {
        self.respell.store(true, Ordering::Relaxed);
    }
}

/// A stream with limits on how long the client may leave an answer unread, and on how slowly it may read.
pub(crate) struct Connection {
    stream: Socket,
    state: Arc<ConnectionState>,
    patience: Patience,
    /// Since when a write has waited for the client, and the timer that ends the wait.
    stalled: Option<(Instant, Pin<Box<Sleep>>)>,
    closing: Option<Closing>,
    lines: RequestLines,
    /// Bytes that were read but did not fit after their request line was encoded.
    unread: Bytes,
}

/// A close that lets the client finish sending.
struct Closing {
    until: Pin<Box<Sleep>>,
    left_bytes: usize,
}

impl Connection {
    pub(crate) fn new(stream: Socket, state: Arc<ConnectionState>, limits: &Limits) -> Self {
        Self {
            stream,
            state,
            patience: Patience::new(limits),
            stalled: None,
            closing: None,
            lines: RequestLines::default(),
            unread: Bytes::new(),
        }
    }

    /// Passes on the outcome of a write; a write that waits longer for the client than allowed is an error.
    fn bounded(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = &outcome {
            if let Some((since, _)) = self.stalled.take() {
                self.patience.wait(since.elapsed());
            }
            self.patience.credit(*written.as_ref().unwrap_or(&0));
            return outcome;
        }
        let left = self.patience.left();
        let (_, end) = self.stalled.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
        ready!(end.as_mut().poll(context));
        let reason = "the client takes its answer too slowly, or not at all";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)))
    }

    /// Writes the beginning of an answer with the names of [`SPELLINGS`] respelled.
    fn write_respelled(&mut self, context: &mut Context<'_>, head: &[u8]) -> Poll<io::Result<usize>> {
        let end = memchr::memmem::find(head, b"\r\n\r\n").unwrap_or(head.len());
        let mut copy = head.to_vec();
        for (plain, spelled) in SPELLINGS {
            for at in memchr::memmem::find_iter(&head[..end], plain) {
                copy[at..at + spelled.len()].copy_from_slice(spelled);
            }
        }
        let outcome = Pin::new(&mut self.stream).poll_write(context, &copy);
        if let Poll::Ready(Ok(written)) = outcome
            && end <= written
        {
            self.state.respell.store(false, Ordering::Relaxed);
        }
        outcome
    }

    /// Writes an answer in place of `bytes`. It is short: a client whose window does not take all of it is cut off.
    fn write_instead(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        answer: &[u8],
    ) -> Poll<io::Result<usize>> {
        // The client may still be sending the refused request.
        self.state.linger();
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, answer))?;
        let is_whole = written == answer.len();
        Poll::Ready(if is_whole { Ok(bytes.len()) } else { Err(io::ErrorKind::WriteZero.into()) })
    }

    /// Reads and discards what still arrives, until the client closes, or a limit on time or bytes is
    /// reached.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(closing) = &mut self.closing else { return Poll::Ready(Ok(())) };
        let mut space = [0; 16 << 10];
        loop {
            if closing.until.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = ReadBuf::new(&mut space);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            let n_bytes = buffer.filled().len();
            if read.is_err() || n_bytes == 0 || closing.left_bytes < n_bytes {
                return Poll::Ready(Ok(()));
            }
            closing.left_bytes -= n_bytes;
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let begin = buffer.filled().len();
        while buffer.filled().len() == begin && 0 < buffer.remaining() {
            if self.unread.is_empty() {
                ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
                let read = &buffer.filled()[begin..];
                self.patience.begin_anew();
                let changed = if read.is_empty() { Some(self.lines.end()) } else { self.lines.take(read) };
                match changed {
                    // The client has closed, and nothing is held back.
                    Some(end) if read.is_empty() && end.is_empty() => break,
                    Some(changed) => self.unread = changed.into(),
                    None => break,
                }
                buffer.set_filled(begin);
            }
            let n = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread.split_to(n));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = if self.state.respell.load(Ordering::Relaxed) {
            self.write_respelled(context, bytes)
        } else if let Some(answer) = explained(bytes) {
            self.write_instead(context, bytes, &answer)
        } else {
            Pin::new(&mut self.stream).poll_write(context, bytes)
        };
        self.bounded(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|it| !it.is_empty()).map_or(&[][..], |it| it);
        if self.state.respell.load(Ordering::Relaxed) || explained(first).is_some() {
            return self.poll_write(context, first);
        }
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.bounded(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // An encrypted stream may still buffer written bytes.
        let outcome = Pin::new(&mut self.stream).poll_flush(context).map_ok(|()| 0);
        self.bounded(context, outcome).map_ok(|_| ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            if !self.state.is_to_linger() {
                return Poll::Ready(Ok(()));
            }
            let until = Instant::now() + Duration::from_secs(LINGER_S);
            let until = Box::pin(tokio::time::sleep_until(until));
            self.closing = Some(Closing { until, left_bytes: LINGER_BYTES });
        }
        self.poll_linger(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_refusals_are_explained() {
        let bare = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\
                    date: Sun, 22 Nov 2026 08:40:20 GMT\r\n\r\n";
        let whole = explained(bare.as_bytes()).map(|it| String::from_utf8_lossy(&it).into_owned());
        let (head, body) = whole.as_deref().and_then(|it| it.split_once("\r\n\r\n")).unwrap_or_default();
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
        assert!(body.ends_with(r#""error":"Request Header Fields Too Large","statusCode":431}"#), "{body}");
        for other in [
            bare.replace("431 Request Header Fields Too Large", "404 Not Found"),
            bare.replace("date", "x-request-id: 1\r\ndate"),
            format!("{bare}more"),
            bare.replace("\r\n\r\n", "\r\n"),
            String::new(),
        ] {
            assert_eq!(explained(other.as_bytes()), None, "{other}");
        }
    }
}
