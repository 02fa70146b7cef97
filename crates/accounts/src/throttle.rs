//! Counts failed logins and makes callers with too many failures wait, so that passwords cannot be found by trying.
//!
//! It counts the failures of an account from one network, all failures of an account, and all failures from a
//! network. An attacker can lock the owner out on other networks only after [`BEYOND`] times as many failures as the
//! limit. Counts are per server.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinakes_store::Limits;

use crate::clock::Clock;
use crate::error::{AccountsError, Result};
use crate::password::asking_network;

/// Factor by which the limits of an account, and of a network, exceed the limit of both combined.
const BEYOND: u32 = 10;
/// Maximum number of counts; if there are more, expired ones are removed.
const KEPT: usize = 100_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Counted {
    Both(String, IpAddr),
    Account(String),
    Network(IpAddr),
}

/// Number of failures since a point in time.
#[derive(Debug, Clone, Copy)]
struct Failures {
    n: u32,
    since_ms: i64,
}

/// The counts of one server.
#[derive(Debug, Clone)]
pub(crate) struct Throttle {
    most: u32,
    window_ms: i64,
    clock: Clock,
    counts: Arc<Mutex<HashMap<Counted, Failures>>>,
}

/// A login in progress.
#[must_use = "say how it ended"]
pub(crate) struct Attempt<'t> {
    throttle: &'t Throttle,
    counted: Vec<Counted>,
}

impl Throttle {
    /// Creates it with the limits `sign_in_failures` and `sign_in_window_s`.
    pub(crate) fn new(limits: &Limits, clock: Clock) -> Self {
        let window_ms = i64::try_from(limits.sign_in_window_s).unwrap_or(i64::MAX).saturating_mul(1_000);
        Self { most: limits.sign_in_failures, window_ms, clock, counts: Arc::default() }
    }

    /// Starts a login.
    ///
    /// Errors: [`AccountsError::TooManyFailures`].
    pub(crate) fn enter(&self, tenant: &str, username: &str) -> Result<Attempt<'_>> {
        let account = format!("{tenant}/{username}");
        let mut counted = vec![Counted::Account(account.clone())];
        if let Some(network) = asking_network() {
            counted.push(Counted::Both(account, network));
            counted.push(Counted::Network(network));
        }
        let (now_ms, counts) = (self.clock.now_ms(), self.lock());
        let full = counted.iter().filter_map(|it| {
            let failures = counts.get(it)?;
            let left_ms = failures.since_ms.saturating_add(self.window_ms) - now_ms;
            (0 < left_ms && self.most_of(it) <= failures.n).then_some(left_ms)
        });
        if let Some(left_ms) = full.max() {
            let retry_after_s = u32::try_from(left_ms.div_euclid(1_000) + 1).unwrap_or(u32::MAX);
            return Err(AccountsError::TooManyFailures { retry_after_s });
        }
        drop(counts);
        Ok(Attempt { throttle: self, counted })
    }

    fn most_of(&self, counted: &Counted) -> u32 {
        match counted {
            Counted::Both(..) => self.most,
            Counted::Account(_) | Counted::Network(_) => self.most.saturating_mul(BEYOND),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Counted, Failures>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt<'_> {
    /// Records that name or password were wrong.
    pub(crate) fn failed(self) {
        let Throttle { window_ms, clock, .. } = self.throttle;
        let now_ms = clock.now_ms();
        let mut counts = self.throttle.lock();
        let is_over = |it: &Failures| it.since_ms.saturating_add(*window_ms) <= now_ms;
        if KEPT <= counts.len() {
            counts.retain(|_, it| !is_over(it));
        }
        for it in self.counted {
            let failures = counts.entry(it).or_insert(Failures { n: 0, since_ms: now_ms });
            if is_over(failures) {
                *failures = Failures { n: 0, since_ms: now_ms };
            }
            failures.n = failures.n.saturating_add(1);
        }
    }

    /// Records a success: the account's failures from this network are forgotten.
    pub(crate) fn succeeded(self) {
        let mut counts = self.throttle.lock();
        for it in &self.counted {
            if matches!(it, Counted::Both(..)) {
                counts.remove(it);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::password::asked_from;

    fn throttle() -> Throttle {
        let limits = Limits { sign_in_failures: 2, sign_in_window_s: 60, ..Limits::default() };
        Throttle::new(&limits, Clock::fixed(0))
    }

    async fn fail(throttle: &Throttle, name: &str, address: [u8; 4]) -> Result<()> {
        asked_from(address.into(), async { throttle.enter("t", name).map(Attempt::failed) }).await
    }

    #[tokio::test]
    async fn who_fails_too_often_waits_and_nobody_else() -> Result<()> {
        let throttle = throttle();
        for _ in 0..2 {
            fail(&throttle, "a", [10, 0, 0, 1]).await?;
        }
        let refused = fail(&throttle, "a", [10, 0, 0, 1]).await;
        assert!(matches!(refused, Err(AccountsError::TooManyFailures { retry_after_s: 61 })), "{refused:?}");
        fail(&throttle, "a", [10, 0, 0, 2]).await?;
        fail(&throttle, "b", [10, 0, 0, 1]).await?;
        throttle.clock.advance_ms(60_000);
        fail(&throttle, "a", [10, 0, 0, 1]).await
    }

    #[tokio::test]
    async fn a_success_forgets_failures() -> Result<()> {
        let throttle = throttle();
        for _ in 0..5 {
            fail(&throttle, "a", [10, 0, 0, 1]).await?;
            asked_from([10, 0, 0, 1].into(), async { throttle.enter("t", "a").map(Attempt::succeeded) })
                .await?;
        }
        Ok(())
    }

    #[tokio::test]
    async fn many_networks_and_many_names_are_counted_too() -> Result<()> {
        let throttle = throttle();
        for n in 0..20 {
            fail(&throttle, "a", [10, 0, 1, n]).await?;
        }
        assert!(fail(&throttle, "a", [10, 0, 2, 1]).await.is_err(), "the account");
        for n in 0..20 {
            fail(&throttle, &format!("name{n}"), [10, 0, 0, 9]).await?;
        }
        assert!(fail(&throttle, "other", [10, 0, 0, 9]).await.is_err(), "the network");
        Ok(())
    }
}
