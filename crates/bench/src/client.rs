//! One HTTP/1.1 connection: keep-alive, no pipelining, one request at a time. Raw hyper, because a pool
//! would hide which connection waited.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::target::Target;

/// One request, cheap to clone.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Request target: absolute path and query, already percent-encoded.
    pub path: String,
    /// Headers beside `Host` and `Content-Length`, shared by the requests of a flow.
    pub headers: Arc<HeaderMap>,
    /// Body; empty for none.
    pub body: Bytes,
    /// A status besides 2xx and 304 that is a correct answer: for a request whose answer is "there is none".
    pub also_fine: Option<u16>,
}

impl Request {
    /// Returns a `GET` of `path`.
    pub fn get(path: String, headers: &Arc<HeaderMap>) -> Self {
        Self { method: Method::GET, path, headers: Arc::clone(headers), body: Bytes::new(), also_fine: None }
    }

    /// Returns a `POST` of `body` to `path`.
    pub fn post(path: String, headers: &Arc<HeaderMap>, body: Bytes) -> Self {
        Self { method: Method::POST, path, headers: Arc::clone(headers), body, also_fine: None }
    }
}

/// What to do with the body of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerBody {
    /// Count its bytes.
    Count,
    /// Count and keep them.
    Keep,
}

/// A complete answer, whatever its status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Length of the body, in bytes.
    pub body_bytes: u64,
    /// The body, if [`AnswerBody::Keep`] was asked for.
    pub body: Bytes,
    /// From sending to the answer's head.
    pub head_after: Duration,
    /// Whether the status is the request's [`Request::also_fine`].
    pub is_also_fine: bool,
}

impl Answer {
    /// Returns true for 2xx and 304, and for the status that the request expects: the answers that count as
    /// success.
    pub fn is_success(&self) -> bool {
        matches!(self.status, 200..=299 | 304) || self.is_also_fine
    }

    /// Returns status and the first characters of the body, for messages.
    pub fn excerpt(&self) -> String {
        const EXCERPT_BYTES: usize = 200;
        let start = &self.body[..self.body.len().min(EXCERPT_BYTES)];
        format!("status {} with {:?}", self.status, String::from_utf8_lossy(start))
    }
}

/// Why there is no complete answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// No connection.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The connection ended or the bytes were not HTTP.
    #[error("connection lost: {0}")]
    Lost(String),
    /// No complete answer within the limit.
    #[error("no complete answer within {0:?}")]
    TimedOut(Duration),
    /// The request itself cannot be built.
    #[error("not a request: {0}")]
    BadRequest(String),
}

/// A connection that opens on demand.
#[derive(Debug)]
pub struct Connection {
    target: Arc<Target>,
    timeout: Duration,
    sender: Option<SendRequest<Full<Bytes>>>,
    /// How often it was opened: more than once means that the server closed it in between.
    pub n_opened: u64,
}

impl Connection {
    /// Returns a closed connection to `target`; `timeout` bounds opening it and each exchange.
    pub fn new(target: Arc<Target>, timeout: Duration) -> Self {
        Self { target, timeout, sender: None, n_opened: 0 }
    }

    /// Opens it unless it is open.
    pub async fn open(&mut self) -> Result<(), Failure> {
        if self.sender.as_ref().is_some_and(|sender| !sender.is_closed()) {
            return Ok(());
        }
        let opening = connect(&self.target);
        let sender = tokio::time::timeout(self.timeout, opening)
            .await
            .map_err(|_| Failure::Connect(format!("no answer within {:?}", self.timeout)))??;
        self.sender = Some(sender);
        self.n_opened += 1;
        Ok(())
    }

    /// Sends `request` and reads the whole answer.
    ///
    /// A kept-alive connection that the server closed meanwhile is opened again and the request sent once
    /// more if it was never sent, or if repeating it is harmless (RFC 9110, 9.2.2): every HTTP client does
    /// this, and otherwise an idle time-out would be counted as an error.
    pub async fn exchange(&mut self, request: &Request, body: AnswerBody) -> Result<Answer, Failure> {
        let was_used = self.sender.is_some();
        let first = self.exchange_once(request, body).await;
        match first {
            Err((failure, Sent::No)) if was_used && matches!(failure, Failure::Lost(_)) => {}
            Err((failure, Sent::Perhaps))
                if was_used && request.method.is_idempotent() && matches!(failure, Failure::Lost(_)) => {}
            Err((failure, _)) => return Err(failure),
            Ok(answer) => return Ok(answer),
        }
        self.sender = None;
        self.exchange_once(request, body).await.map_err(|(failure, _)| failure)
    }

    async fn exchange_once(
        &mut self,
        request: &Request,
        body: AnswerBody,
    ) -> Result<Answer, (Failure, Sent)> {
        self.open().await.map_err(|failure| (failure, Sent::No))?;
        let message = self.message(request).map_err(|failure| (failure, Sent::No))?;
        let Some(sender) = self.sender.as_mut() else {
            return Err((Failure::Lost("not open".to_owned()), Sent::No));
        };
        let outcome = tokio::time::timeout(self.timeout, converse(sender, message, body)).await;
        let result = match outcome {
            Ok(result) => result.map(|mut answer| {
                answer.is_also_fine = request.also_fine == Some(answer.status);
                answer
            }),
            Err(_elapsed) => Err((Failure::TimedOut(self.timeout), Sent::Perhaps)),
        };
        if result.is_err() {
            self.sender = None; // Half an answer may be on the wire: never use it again.
        }
        result
    }

    fn message(&self, request: &Request) -> Result<http::Request<Full<Bytes>>, Failure> {
        let mut message = http::Request::new(Full::new(request.body.clone()));
        *message.method_mut() = request.method.clone();
        *message.uri_mut() = request
            .path
            .parse()
            .map_err(|error| Failure::BadRequest(format!("path {:?}: {error}", request.path)))?;
        let headers = message.headers_mut();
        headers.clone_from(&request.headers);
        let host = HeaderValue::from_str(&self.target.authority)
            .map_err(|error| Failure::BadRequest(format!("host: {error}")))?;
        headers.insert(HOST, host);
        if request.body.is_empty() && matches!(request.method, Method::POST | Method::PUT) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok(message)
    }
}

/// Whether the server may have seen the request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    No,
    Perhaps,
}

async fn connect(target: &Target) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream =
        TcpStream::connect(target.address).await.map_err(|error| Failure::Connect(error.to_string()))?;
    // A delayed acknowledgement of 40 ms would be measured as the server's latency.
    stream.set_nodelay(true).map_err(|error| Failure::Connect(error.to_string()))?;
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| Failure::Connect(error.to_string()))?;
    // Its errors reach the waiting exchange through `sender`.
    drop(tokio::spawn(connection));
    Ok(sender)
}

async fn converse(
    sender: &mut SendRequest<Full<Bytes>>,
    message: http::Request<Full<Bytes>>,
    keep: AnswerBody,
) -> Result<Answer, (Failure, Sent)> {
    let lost = |error: hyper::Error| {
        let sent = if error.is_canceled() { Sent::No } else { Sent::Perhaps };
        (Failure::Lost(error.to_string()), sent)
    };
    sender.ready().await.map_err(|error| (Failure::Lost(error.to_string()), Sent::No))?;
    let sent = Instant::now();
    let (head, mut incoming) = sender.send_request(message).await.map_err(lost)?.into_parts();
    let head_after = sent.elapsed();
    let mut body_bytes = 0;
    let mut kept = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(lost)?;
        if let Some(data) = frame.data_ref() {
            body_bytes += data.len() as u64;
            if keep == AnswerBody::Keep {
                kept.extend_from_slice(data);
            }
        }
    }
    Ok(Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body_bytes,
        body: kept.into(),
        head_after,
        is_also_fine: false,
    })
}
