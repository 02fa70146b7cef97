//! Accepts and closes connections: bounded in number, and drained at the end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use pinakes_store::Limits;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::connection::{Connection, ConnectionState};
use crate::shell::Shell;
use crate::tls::Socket;

/// Tells handlers that a connection is encrypted, as behind a proxy.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Connections that the system queues until they are accepted (bounded by `net.core.somaxconn`).
const BACKLOG: u32 = 4096;
/// Pause before accepting again when the system has no more file descriptors, in milliseconds.
const ACCEPT_REST_MS: u64 = 100;
/// Minimum time between two log lines that report this.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);
/// Largest buffer for reading or writing on one connection, in bytes, beyond the head's limit.
const BUFFER_BYTES: usize = 256 << 10;
/// Maximum number of connections that a semaphore can count.
const CONNECTIONS_MAX: usize = 1 << 28;

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// All answers in progress were finished.
    Finished,
    /// The number of connections that were cut after the time for draining.
    Cut(usize),
}

/// The order given to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serve,
    /// Finish the answer in progress, then close.
    Drain,
    /// Close.
    Cut,
}

/// Listens at `address` with a backlog for many clients at once; port 0 picks one.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl Shell {
    /// Serves until `shutdown` is done; then stops accepting, finishes the answers in progress within
    /// [`Limits::drain_timeout_ms`], and returns.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> Drained {
        let shell = Arc::new(self);
        let n_places = shell.context.limits().connections.clamp(1, CONNECTIONS_MAX);
        let places = Arc::new(Semaphore::new(n_places));
        let (phase, _) = watch::channel(Phase::Serve);
        let http = http(shell.context.limits());

        let watching = shell.tls.clone().map(|it| tokio::spawn(it.watch()));
        let mut shutdown = pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = accept(&listener, &places) => accepted,
            };
            if let Some((stream, peer, place)) = accepted {
                let (shell, http, phase) = (Arc::clone(&shell), http.clone(), phase.subscribe());
                tokio::spawn(converse(shell, http, stream, peer, place, phase));
            }
        }
        drop(listener);
        if let Some(watching) = watching {
            watching.abort();
        }
        shell.draining.store(true, Ordering::Relaxed);
        // Without connections nobody listens, which is fine.
        phase.send_replace(Phase::Drain);
        let drained = drain(&shell, &places, n_places).await;
        phase.send_replace(Phase::Cut);
        drained
    }
}

fn http(limits: &Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.header_timeout_ms))
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.header_bytes + BUFFER_BYTES);
    http
}

/// Accepts the next connection, once there is a place for it; `None` if that one failed.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, place)),
        Err(error) if is_of_the_client(&error) => None,
        Err(error) => {
            complain(&error);
            sleep(Duration::from_millis(ACCEPT_REST_MS)).await;
            None
        }
    }
}

/// Logs that no connection could be accepted, at most once per pause: a flood fails ten times a second.
fn complain(error: &io::Error) {
    static SAID_AT: Mutex<Option<Instant>> = Mutex::new(None);
    let mut said_at = SAID_AT.lock().unwrap_or_else(PoisonError::into_inner);
    if said_at.is_none_or(|it| COMPLAINT_PAUSE < it.elapsed()) {
        *said_at = Some(Instant::now());
        tracing::error!(%error, "no connection could be accepted; raise the limit on open files (ulimit -n)");
    }
}

/// Returns whether the client gave up the connection before it was accepted.
fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(error.kind(), Kind::ConnectionAborted | Kind::ConnectionReset | Kind::ConnectionRefused)
}

/// Answers the requests of one connection.
async fn converse(
    shell: Arc<Shell>,
    http: http1::Builder,
    stream: TcpStream,
    peer: SocketAddr,
    _place: OwnedSemaphorePermit,
    mut phase: watch::Receiver<Phase>,
) {
    let open = Open::count(&shell);
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %peer, "no TCP_NODELAY");
    }
    let is_encrypted = shell.tls.is_some();
    let Some(stream) = encrypted(&shell, stream, peer).await else { return };
    let state = Arc::new(ConnectionState::new(peer));
    let io = TokioIo::new(Connection::new(stream, Arc::clone(&state), shell.context.limits()));
    let service = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
        let (shell, state) = (Arc::clone(&shell), Arc::clone(&state));
        if is_encrypted {
            // Regardless of the client's header: addresses and cookies are those of an encrypted server.
            request.headers_mut().insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
        }
        async move { Ok::<_, Infallible>(shell.answer(request, &state).await) }
    });
    let mut conversation = pin!(http.serve_connection(io, service));
    let outcome = loop {
        tokio::select! {
            // The phase first: an answer that is ready when the server drains says `connection: close`.
            biased;
            Ok(()) = phase.changed() => match *phase.borrow_and_update() {
                Phase::Serve => {}
                Phase::Drain => conversation.as_mut().graceful_shutdown(),
                Phase::Cut => break Ok(()),
            },
            outcome = conversation.as_mut() => break outcome,
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, %peer, "connection ended");
    }
    drop(open);
}

/// Returns the stream of a connection, after the TLS handshake if the server encrypts; `None` if it fails.
async fn encrypted(shell: &Shell, stream: TcpStream, peer: SocketAddr) -> Option<Socket> {
    let Some(tls) = &shell.tls else { return Some(Socket::Plain(stream)) };
    let limit = Duration::from_millis(shell.context.limits().header_timeout_ms);
    match timeout(limit, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, %peer, "no handshake");
            None
        }
        Err(_) => {
            tracing::debug!(%peer, "the handshake took too long");
            None
        }
    }
}

/// Waits until every connection has returned its place.
async fn drain(shell: &Shell, places: &Semaphore, n_places: usize) -> Drained {
    let limit = Duration::from_millis(shell.context.limits().drain_timeout_ms);
    let all = u32::try_from(n_places).unwrap_or(u32::MAX);
    match timeout(limit, places.acquire_many(all)).await {
        Ok(_) => Drained::Finished,
        Err(_) => Drained::Cut(n_places - places.available_permits()),
    }
}

/// Counts a connection while it is open.
struct Open(prometheus::IntGauge);

impl Open {
    fn count(shell: &Shell) -> Self {
        let gauge = shell.metrics.connections().clone();
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
