//! The runtime that polls a session, on the thread that uses the session.

use std::task::{Context, Poll};

use tokio::runtime::Runtime;
use tokio_postgres::{AsyncMessage, Connection, Socket};

use super::tls::Stream;
use crate::{Result, StoreError};

/// The runtime that a session polls on.
pub(super) struct Driver(Option<Runtime>);

impl Driver {
    pub(super) fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let failed = |source| StoreError::Io { path: "runtime of a database session".into(), source };
        runtime.map(|it| Self(Some(it))).map_err(failed)
    }

    /// Runs a future to its end. Errors: the session is being dropped.
    pub(super) fn block_on<F: Future>(&self, future: F) -> Result<F::Output> {
        match &self.0 {
            Some(runtime) => Ok(aside(|| runtime.block_on(future))),
            None => Err(StoreError::Closed),
        }
    }
}

impl Drop for Driver {
    /// Shuts down without waiting, so that a session may end on a thread of another runtime.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs blocking work. On a multi-threaded asynchronous runtime, other threads take over the tasks meanwhile; a
/// single-threaded runtime has none, and may only get here on its blocking threads.
pub(crate) fn aside<T>(block: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let has_others =
        Handle::try_current().is_ok_and(|it| it.runtime_flavor() != RuntimeFlavor::CurrentThread);
    if has_others { tokio::task::block_in_place(block) } else { block() }
}

/// Polls the connection for sending and receiving; `Some` when it has ended, with its error.
pub(super) fn drive(
    connection: &mut Connection<Socket, Stream>,
    context: &mut Context<'_>,
) -> Option<Option<tokio_postgres::Error>> {
    loop {
        match connection.poll_message(context) {
            Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                tracing::debug!(notice = notice.message(), "the database says");
            }
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(error))) => return Some(Some(error)),
            Poll::Ready(None) => return Some(None),
            Poll::Pending => return None,
        }
    }
}
