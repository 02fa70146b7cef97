//! Where the time of a request goes: the stages reported in `Server-Timing` and the metrics.
//!
//! The shell runs every handler inside a [`RequestScope`], which is task-local: code that records a stage
//! needs no handle to it. Outside of a request (tests, background jobs, spawned tasks) recording does
//! nothing.

use std::cell::Cell;
use std::fmt::Write as _;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::MatchedPath;
use http::{HeaderValue, Method};
use pinakes_store::{Budget, Held, StoreError};

use crate::connection::ConnectionState;
use crate::entrance::Entrance;

/// A part of the work on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Finding the tenant and the caller.
    Auth,
    /// Waiting for the bytes of the request's body.
    Receive,
    /// Parsing the body and the query into the dialect's own structures.
    Parse,
    /// Waiting for the tenant's writer.
    Wait,
    /// Reading, or running a write's closure.
    Store,
    /// Waiting until the write is on disk.
    Commit,
    /// Rendering the answer.
    Render,
}

impl Stage {
    /// All of them, in the order in which they usually happen.
    pub const ALL: [Self; 7] =
        [Self::Auth, Self::Receive, Self::Parse, Self::Wait, Self::Store, Self::Commit, Self::Render];

    /// Returns the name in `Server-Timing` and in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Receive => "receive",
            Self::Parse => "parse",
            Self::Wait => "wait",
            Self::Store => "store",
            Self::Commit => "commit",
            Self::Render => "render",
        }
    }
}

/// Maximum number of lines of an explanation.
const EXPLANATION_LINES: usize = 40;
/// Longest explanation, in bytes.
const EXPLANATION_BYTES: usize = 4_000;

tokio::task_local! {
    static SCOPE: Arc<RequestScope>;
}

/// An answered request, for slow requests and traces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) method: &'a Method,
    pub(crate) dialect: &'static str,
    pub(crate) status: u16,
    pub(crate) request_id: &'a HeaderValue,
    pub(crate) took: Duration,
}

/// The state of one request while it is answered.
#[derive(Debug)]
pub struct RequestScope {
    started: Instant,
    stages_ns: [AtomicU64; Stage::ALL.len()],
    /// When the client last sent a part of the body, or a handler reported progress; ns after `started`.
    progress_ns: AtomicU64,
    route: OnceLock<Route>,
    username: OnceLock<Box<str>>,
    tenant: OnceLock<Box<str>>,
    connection: Arc<ConnectionState>,
    entrance: OnceLock<Entrance>,
    budget: Budget,
    /// Memory held for the body until the request is answered.
    held: Mutex<Held>,
    /// The client sends its body too slowly.
    is_slow: AtomicBool,
    /// Whether the client asks how it is answered, and whether it may know.
    asks_how: AtomicBool,
    may_know_how: AtomicBool,
    /// How reads were answered.
    how: Mutex<Vec<String>>,
}

#[derive(Debug)]
enum Route {
    Matched(MatchedPath),
    Named(&'static str),
}

impl RequestScope {
    pub(crate) fn new(started: Instant, connection: Arc<ConnectionState>, budget: &Budget) -> Arc<Self> {
        Arc::new(Self {
            started,
            stages_ns: Default::default(),
            progress_ns: AtomicU64::new(0),
            route: OnceLock::new(),
            username: OnceLock::new(),
            tenant: OnceLock::new(),
            connection,
            entrance: OnceLock::new(),
            budget: budget.clone(),
            held: Mutex::new(budget.nothing()),
            is_slow: AtomicBool::new(false),
            asks_how: AtomicBool::new(false),
            may_know_how: AtomicBool::new(false),
            how: Mutex::default(),
        })
    }

    /// Notes that the client asks how its request is answered.
    pub(crate) fn ask_how(&self) {
        self.asks_how.store(true, Ordering::Relaxed);
    }

    /// Notes that the caller may know.
    pub(crate) fn allow_how(&self) {
        self.may_know_how.store(true, Ordering::Relaxed);
    }

    /// Returns whether reads are to be explained.
    pub(crate) fn is_explained(&self) -> bool {
        self.asks_how.load(Ordering::Relaxed) && self.may_know_how.load(Ordering::Relaxed)
    }

    /// Runs a read, and records how it was answered if that is requested.
    pub(crate) fn explained<R>(self: &Arc<Self>, read: impl FnOnce() -> R) -> R {
        if !self.is_explained() {
            return read();
        }
        let scope = Arc::clone(self);
        let tell = move |line| {
            let mut how = scope.how.lock().unwrap_or_else(PoisonError::into_inner);
            if how.len() < EXPLANATION_LINES {
                how.push(line);
            }
        };
        pinakes_store::explained(Box::new(tell), read)
    }

    /// Returns how reads were answered, as a field of the answer's head; `None` unless a permitted caller
    /// asks.
    pub(crate) fn explanation(&self) -> Option<HeaderValue> {
        if !self.is_explained() {
            return None;
        }
        let lines = self.how.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = lines.join("; ");
        text.retain(|it| matches!(it, ' '..='~'));
        text.truncate(EXPLANATION_BYTES);
        HeaderValue::from_str(&text).ok()
    }

    /// Returns the scope of the request that the current task answers.
    pub fn current() -> Option<Arc<Self>> {
        SCOPE.try_with(Arc::clone).ok()
    }

    /// Runs `work` as part of this request: for tasks that a handler spawns.
    pub async fn run<F: Future>(self: Arc<Self>, work: F) -> F::Output {
        SCOPE.scope(self, work).await
    }

    /// Returns when the request's head had arrived.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Counts bytes that the request holds until it is answered, waiting a moment for others to release some.
    ///
    /// Errors: [`StoreError::Crowded`].
    pub(crate) async fn hold(&self, bytes: u64) -> Result<(), StoreError> {
        let mut more = self.budget.nothing();
        more.grow(bytes).await?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).absorb(more);
        Ok(())
    }

    pub(crate) fn note_slow(&self) {
        self.is_slow.store(true, Ordering::Relaxed);
    }

    /// Returns whether the body was abandoned because its client is too slow.
    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    /// Adds time to a stage.
    pub fn add(&self, stage: Stage, spent: Duration) {
        self.stages_ns[stage as usize].fetch_add(nanoseconds(spent), Ordering::Relaxed);
    }

    /// Returns the time spent in a stage so far.
    pub fn spent(&self, stage: Stage) -> Duration {
        Duration::from_nanos(self.stages_ns[stage as usize].load(Ordering::Relaxed))
    }

    /// Returns the stages that took any time, by their names.
    pub(crate) fn stages(&self) -> Vec<(&'static str, Duration)> {
        let all = Stage::ALL.map(|it| (it.name(), self.spent(it)));
        all.into_iter().filter(|it| !it.1.is_zero()).collect()
    }

    /// Notes progress: the limit on how long an answer may take starts again.
    pub fn note_progress(&self) {
        self.progress_ns.store(nanoseconds(self.started.elapsed()), Ordering::Relaxed);
    }

    /// Returns when it last made progress.
    pub(crate) fn progressed(&self) -> Instant {
        self.started + Duration::from_nanos(self.progress_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn set_matched(&self, path: MatchedPath) {
        let _ = self.route.set(Route::Matched(path));
    }

    /// Names the route in metrics and logs, for a dialect that routes by itself. The first name stays.
    pub fn set_route(&self, name: &'static str) {
        let _ = self.route.set(Route::Named(name));
    }

    /// Returns the route's template, e.g. `/api/v3/datasets/{pid}`; `unmatched` for none.
    pub fn route(&self) -> &str {
        match self.route.get() {
            Some(Route::Matched(path)) => path.as_str(),
            Some(Route::Named(name)) => name,
            None => "unmatched",
        }
    }

    /// Sets the user's name for the access log. The first name stays.
    pub fn set_username(&self, name: &str) {
        let _ = self.username.set(name.into());
    }

    /// Returns the user's name, if known.
    pub fn username(&self) -> Option<&str> {
        self.username.get().map(AsRef::as_ref)
    }

    /// Sets the tenant's name for the access log. The first name stays.
    pub fn set_tenant(&self, name: &str) {
        let _ = self.tenant.set(name.into());
    }

    /// Returns the tenant's name, if known.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.get().map(AsRef::as_ref)
    }

    /// Returns the client's address; none in tests that call handlers directly.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.connection.peer()
    }

    /// Sets how the answering dialect finds token and tenant.
    pub(crate) fn set_entrance(&self, entrance: Entrance) {
        let _ = self.entrance.set(entrance);
    }

    pub(crate) fn entrance(&self) -> Entrance {
        self.entrance.get().copied().unwrap_or_default()
    }

    pub(crate) fn connection(&self) -> &ConnectionState {
        &self.connection
    }

    /// Formats `auth;dur=0.012, store;dur=0.107, total;dur=0.151`: milliseconds, of the stages that took any
    /// time.
    pub(crate) fn server_timing(&self, total: Duration) -> HeaderValue {
        thread_local! { static TEXT: Cell<String> = const { Cell::new(String::new()) }; }
        let mut text = TEXT.take();
        text.clear();
        for stage in Stage::ALL {
            let spent = self.spent(stage);
            if !spent.is_zero() {
                push_entry(&mut text, stage.name(), spent);
                text.push_str(", ");
            }
        }
        push_entry(&mut text, "total", total);
        // Names and digits are always a header value.
        let value = HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("total"));
        TEXT.set(text);
        value
    }
}

/// Writes `name;dur=ms` with three decimals.
fn push_entry(text: &mut String, name: &str, spent: Duration) {
    let us = spent.as_micros();
    // Writing to a string does not fail.
    let _ = write!(text, "{name};dur={}.{:03}", us / 1000, us % 1000);
}

fn nanoseconds(spent: Duration) -> u64 {
    u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX)
}

/// Adds time to a stage of the current request, if there is one.
pub fn record(stage: Stage, spent: Duration) {
    let _ = SCOPE.try_with(|scope| scope.add(stage, spent));
}

/// Runs `work` and records the time it takes.
pub fn timed<R>(stage: Stage, work: impl FnOnce() -> R) -> R {
    let started = Instant::now();
    let result = work();
    record(stage, started.elapsed());
    result
}

/// Awaits `work` and records the time it takes, waiting included.
pub async fn timed_async<F: Future>(stage: Stage, work: F) -> F::Output {
    let started = Instant::now();
    let result = work.await;
    record(stage, started.elapsed());
    result
}

/// Notes progress of the current request; see [`RequestScope::note_progress`].
pub fn note_progress() {
    let _ = SCOPE.try_with(|scope| scope.note_progress());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stages_add_up_inside_a_request_only() {
        record(Stage::Store, Duration::from_secs(1));
        let scope = RequestScope::new(Instant::now(), Arc::default(), &Budget::new(1 << 20));
        let inside = Arc::clone(&scope);
        inside
            .run(async {
                record(Stage::Auth, Duration::from_micros(12));
                record(Stage::Store, Duration::from_micros(1_500));
                record(Stage::Store, Duration::from_micros(7));
            })
            .await;
        let header = scope.server_timing(Duration::from_micros(2_000));
        assert_eq!(header, "auth;dur=0.012, store;dur=1.507, total;dur=2.000");
        assert_eq!(scope.route(), "unmatched");
        assert!(RequestScope::current().is_none());
    }
}
