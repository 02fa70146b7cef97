//! The ceiling: a bare server on the stack that servers of this kind are built on (axum, hyper, tokio), which
//! reads the request, sends as many bytes as requested and does nothing else. It runs in threads of this
//! process while it is measured, on the same cores that the measured server had.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request as HttpRequest};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::serve::ListenerExt;
use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use tokio::sync::oneshot;

use crate::client::Request;
use crate::error::BenchError;
use crate::load::run::{Live, run_step};
use crate::load::{ClientSettings, Flow, Group, Load, Loops, Step, StepRecord, Work};
use crate::result::{BareCeiling, ClientCeiling};
use crate::stop::Stop;
use crate::target::{Reach, Target};

/// Longest body that the bare server sends.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// Time measured for each ceiling, and warmed up before.
const MEASURED: Duration = Duration::from_millis(2_000);
const WARMUP: Duration = Duration::from_millis(500);

/// Bytes of the answers for the client's own ceiling.
const CLIENT_CEILING_ANSWER_BYTES: u64 = 64;

/// A running bare server; dropping it stops it.
#[derive(Debug)]
pub struct BareServer {
    /// Where it listens.
    pub address: SocketAddr,
    _end: oneshot::Sender<()>,
}

impl BareServer {
    /// Starts it on a free port of 127.0.0.1 with as many threads as there are cores.
    pub fn start() -> Result<Self, BenchError> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), Duration::ZERO)
    }

    /// Starts it at `address`; each answer waits for `delay`.
    pub fn start_at(address: SocketAddr, delay: Duration) -> Result<Self, BenchError> {
        let failed =
            |error: std::io::Error| BenchError::Thread { what: "bare server", reason: error.to_string() };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(n_cores())
            .thread_name("bench-bare")
            .enable_all()
            .build()
            .map_err(failed)?;
        let (end, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("bench-bare-main".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    tokio::select! {
                        () = serve(listener, delay) => {}
                        _ = ended => {}
                    }
                });
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        Ok(Self { address, _end: end })
    }

    /// Returns it as a target of load.
    pub fn target(&self) -> Result<Arc<Target>, BenchError> {
        Target::parse(&format!("http://{}", self.address), Reach::LoopbackOnly).map(Arc::new)
    }
}

/// Cores that this process may use.
pub fn n_cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

async fn serve(listener: std::net::TcpListener, delay: Duration) {
    let router = Router::new().route(
        "/{n_bytes}",
        any(move |path, request| async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            answer(path, request).await
        }),
    );
    let served = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => {
            // Set like a server for interactive use: no answer waits for an acknowledgement.
            let listener = listener.tap_io(|stream| {
                if let Err(error) = stream.set_nodelay(true) {
                    eprintln!("bare server: {error}");
                }
            });
            axum::serve(listener, router).await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = served {
        eprintln!("bare server: {error}");
    }
}

/// `/{n_bytes}`: reads the body, sends that many bytes.
async fn answer(Path(n_bytes): Path<u64>, request: HttpRequest) -> Response {
    /// Sent repeatedly.
    static BLOCK: [u8; 64 * 1024] = [b'x'; 64 * 1024];
    let mut body = request.into_body();
    while let Some(Ok(_frame)) = body.frame().await {}
    let n_bytes = n_bytes.min(ANSWER_BYTES_MAX);
    let bytes = if n_bytes <= BLOCK.len() as u64 {
        Bytes::from_static(&BLOCK[..n_bytes as usize])
    } else {
        vec![b'x'; n_bytes as usize].into()
    };
    ([(CONTENT_TYPE, "application/json; charset=utf-8")], Body::from(bytes)).into_response()
}

/// Measures ceilings and caches those already measured.
#[derive(Debug, Default)]
pub struct Ceilings {
    measured: BTreeMap<(u64, u64, usize), f64>,
}

impl Ceilings {
    /// Returns a bare server's rate in closed load over `connections`, with bodies of the given bytes (each
    /// rounded up to a sixteenth of its power of two, so that similar sizes share a measurement).
    pub async fn bare(
        &mut self,
        request_bytes: f64,
        answer_bytes: f64,
        connections: usize,
        settings: &ClientSettings,
        stop: &Stop,
    ) -> Result<BareCeiling, BenchError> {
        let (request_bytes, answer_bytes) = (rounded(request_bytes), rounded(answer_bytes));
        let key = (request_bytes, answer_bytes, connections);
        let rate_per_s = match self.measured.get(&key) {
            Some(rate_per_s) => *rate_per_s,
            None => {
                let record = measure(request_bytes, answer_bytes, connections, settings, stop).await?;
                let rate_per_s = record.throughput_per_s();
                self.measured.insert(key, rate_per_s);
                rate_per_s
            }
        };
        Ok(BareCeiling { rate_per_s, request_bytes, answer_bytes, connections, share: None })
    }
}

/// Measures what the client can send: small requests and answers over `connections`.
pub async fn client_ceiling(
    connections: usize,
    settings: &ClientSettings,
    stop: &Stop,
) -> Result<ClientCeiling, BenchError> {
    let record = measure(0, CLIENT_CEILING_ANSWER_BYTES, connections, settings, stop).await?;
    let rate_per_s = record.throughput_per_s();
    let cores = record.client_cpu_s / record.measured_s();
    Ok(ClientCeiling {
        rate_per_s,
        rate_per_core_s: if cores > 0.0 { rate_per_s / cores } else { rate_per_s / settings.threads as f64 },
        threads: settings.threads,
        connections,
    })
}

/// Runs closed load on a separate bare server.
pub async fn measure(
    request_bytes: u64,
    answer_bytes: u64,
    connections: usize,
    settings: &ClientSettings,
    stop: &Stop,
) -> Result<StepRecord, BenchError> {
    let server = BareServer::start()?;
    let headers = Arc::new(HeaderMap::new());
    let request = Request {
        method: if request_bytes == 0 { Method::GET } else { Method::POST },
        path: format!("/{answer_bytes}"),
        headers,
        body: vec![b'x'; usize::try_from(request_bytes).unwrap_or(usize::MAX)].into(),
        also_fine: None,
    };
    let step = Step {
        name: "bare server".to_owned(),
        labels: BTreeMap::new(),
        warmup: WARMUP,
        measured: MEASURED,
        groups: vec![Group {
            name: String::new(),
            load: Load::Closed { ramp_up: Duration::ZERO, loops: Loops::UntilEnd, think: Duration::ZERO },
            connections,
            work: Work::Mix(vec![Flow::only("bare", Arc::new(move |_| request.clone()))]),
        }],
    };
    run_step(&server.target()?, &step, settings, stop, &Arc::new(Live::default())).await
}

fn rounded(bytes: f64) -> u64 {
    let bytes = bytes.max(0.0) as u64;
    let grain = (bytes.next_power_of_two() / 16).max(1);
    bytes.div_ceil(grain) * grain
}
