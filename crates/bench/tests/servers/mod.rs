//! Servers with known behaviour, on 127.0.0.1, for the life of a test.
#![allow(dead_code, reason = "each test program uses a part of this module")]

#[path = "dataverse.rs"]
pub(crate) mod dataverse;
#[path = "folio.rs"]
pub(crate) mod folio;
#[path = "scicat.rs"]
pub(crate) mod scicat;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use pinakes_bench::target::{Reach, Target};
use tokio::sync::oneshot;

/// A server in a separate thread; ends when dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
}

impl TestServer {
    /// Answers with `router`.
    pub(crate) fn start(router: Router) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    served = async { axum::serve(listener, router).await } => served.unwrap(),
                    _ = ended => {}
                }
            });
            runtime.shutdown_background();
        });
        Self { address, end: Some(end) }
    }

    /// Answers every request with `answer`, which gets the number of the request, from 0.
    pub(crate) fn answering<F, Fut>(answer: F) -> Self
    where
        F: Fn(u64, Request) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Response> + Send + 'static,
    {
        let n = Arc::new(std::sync::atomic::AtomicU64::new(0));
        Self::start(Router::new().fallback(move |request: Request| {
            let n = n.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            answer(n, request)
        }))
    }

    /// Lets it run until the test program ends, and returns its URL.
    pub(crate) fn keep(self) -> &'static str {
        let url = self.url();
        std::mem::forget(self);
        url.leak()
    }

    /// Stops answering and accepting.
    pub(crate) fn end(&mut self) {
        self.end.take();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn target(&self) -> Arc<Target> {
        Arc::new(Target::parse(&self.url(), Reach::LoopbackOnly).unwrap())
    }
}
