//! Slow requests with a breakdown of their time, for operators.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::stages::{Exchange, RequestScope};

/// Number of slow requests that are kept, the latest ones.
const KEPT: usize = 200;

/// A slow request. Times are up to the answer's head.
#[derive(Debug, Clone)]
pub struct SlowRequest {
    /// When it was answered, milliseconds since 1970.
    pub at_ms: i64,
    /// Its id, as in the log and in `X-Request-Id`.
    pub request_id: String,
    /// The method.
    pub method: String,
    /// The dialect.
    pub dialect: &'static str,
    /// The route's template; never the path, which may contain private data.
    pub route: String,
    /// The tenant, if it was found.
    pub tenant: Option<String>,
    /// Status of the answer.
    pub status: u16,
    /// How long it took.
    pub took: Duration,
    /// Time in each stage that took any.
    pub stages: Vec<(&'static str, Duration)>,
}

/// The latest slow requests.
#[derive(Debug)]
pub struct SlowRequests {
    from: Duration,
    list: Mutex<VecDeque<SlowRequest>>,
    clock: pinakes_accounts::Clock,
}

impl SlowRequests {
    /// Keeps requests that take `from_ms` or longer; none with 0.
    pub(crate) fn new(from_ms: u64, clock: pinakes_accounts::Clock) -> Self {
        let from = if from_ms == 0 { Duration::MAX } else { Duration::from_millis(from_ms) };
        Self { from, list: Mutex::default(), clock }
    }

    /// Returns the duration from which a request is slow; `None`: none is kept.
    pub fn from(&self) -> Option<Duration> {
        Some(self.from).filter(|it| *it != Duration::MAX)
    }

    /// Returns those that are kept, the latest first.
    pub fn latest(&self) -> Vec<SlowRequest> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
    }

    pub(crate) fn is_slow(&self, took: Duration) -> bool {
        self.from <= took
    }

    pub(crate) fn note(&self, exchange: &Exchange<'_>, scope: &RequestScope) {
        let Exchange { method, dialect, status, request_id, took } = *exchange;
        let request = SlowRequest {
            at_ms: self.clock.now_ms(),
            request_id: request_id.to_str().unwrap_or_default().to_owned(),
            method: method.to_string(),
            dialect,
            route: scope.route().to_owned(),
            tenant: scope.tenant().map(str::to_owned),
            status,
            took,
            stages: scope.stages(),
        };
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if KEPT <= list.len() {
            list.pop_front();
        }
        list.push_back(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;
    use std::time::Instant;

    use http::{HeaderValue, Method};
    use pinakes_store::Budget;

    use crate::stages::Stage;

    #[test]
    fn the_latest_slow_ones_are_kept() {
        let slow = SlowRequests::new(500, pinakes_accounts::Clock::fixed(1_000));
        assert!(slow.is_slow(Duration::from_millis(500)) && !slow.is_slow(Duration::from_millis(499)));
        let scope = RequestScope::new(Instant::now(), Arc::default(), &Budget::new(1 << 20));
        scope.add(Stage::Store, Duration::from_millis(400));
        let id = HeaderValue::from_static("id");
        for status in 0..KEPT as u16 + 5 {
            let took = Duration::from_secs(1);
            let exchange =
                Exchange { method: &Method::GET, dialect: "scicat", status, request_id: &id, took };
            slow.note(&exchange, &scope);
        }
        let latest = slow.latest();
        assert_eq!((latest.len(), latest[0].status), (KEPT, KEPT as u16 + 4));
        assert_eq!(latest[0].stages, [("store", Duration::from_millis(400))]);
        let none = SlowRequests::new(0, pinakes_accounts::Clock::fixed(1_000));
        assert_eq!((none.from(), none.is_slow(Duration::from_secs(3600))), (None, false));
    }
}
