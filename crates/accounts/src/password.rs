//! Passwords: argon2id with the parameters that its authors recommend (19 MiB, two passes, one lane).
//!
//! By design, a check takes a core for some 15 to 30 ms and 19 MiB. So checks run on the runtime's blocking threads, at
//! most [`Limits::password_checks`] at a time; a limited number waits, and more are refused. Only a part of the waiting
//! checks may be for one account or from one address, so that guessing passwords does not lock out others.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use argon2::Argon2;
use argon2::password_hash::phc;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use pinakes_store::Limits;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::entropy::Entropy;
use crate::error::{AccountsError, Result};

/// Maximum length of a password that is hashed, in bytes.
const PASSWORD_LIMIT_BYTES: usize = 1024;
/// Seconds after which a refused caller may find a free place.
const RETRY_AFTER_S: u32 = 1;

/// A plain-text password that is about to be hashed. Never printed, never stored.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// Accepts a password of 1 to 1024 bytes.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        if text.is_empty() || PASSWORD_LIMIT_BYTES < text.len() {
            return Err(AccountsError::Password {
                found_bytes: text.len(),
                limit_bytes: PASSWORD_LIMIT_BYTES,
            });
        }
        Ok(Self(text))
    }

    /// Returns the text itself, for a server that checks it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Hashes the password with a new salt on this thread: for the command line; a server uses [`PasswordChecks`].
    pub fn hash_blocking(&self, entropy: &Entropy) -> Result<PasswordHash> {
        let salt: [u8; 16] = entropy.bytes();
        let hash: std::result::Result<phc::PasswordHash, _> =
            Argon2::default().hash_password_with_salt(self.0.as_bytes(), &salt);
        hash.map(|it| PasswordHash(it.to_string())).map_err(|error| AccountsError::Hash(error.to_string()))
    }

    /// Checks on this thread whether this is the password of `hash`. Without a hash the same amount of work is done, so
    /// that the time taken does not reveal which users exist.
    pub fn matches_blocking(&self, hash: Option<&PasswordHash>) -> bool {
        let known = hash.and_then(|it| phc::PasswordHash::new(&it.0).ok());
        let matches =
            Argon2::default().verify_password(self.0.as_bytes(), known.as_ref().unwrap_or(&NOBODY)).is_ok();
        matches && known.is_some()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// A hash in the PHC string format, `$argon2id$v=19$…`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(String);

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

/// Hash with which passwords of unknown users are compared; its parameters determine the cost of a check.
static NOBODY: LazyLock<phc::PasswordHash> = LazyLock::new(|| {
    let hash: std::result::Result<phc::PasswordHash, _> =
        Argon2::default().hash_password_with_salt(b"nobody", &[0; 16]);
    match hash {
        Ok(hash) => hash,
        Err(error) => panic!("argon2 does not work on this machine: {error}"),
    }
});

tokio::task_local! {
    static ADDRESS: IpAddr;
}

/// Runs the work of a request from this address, and makes the address known to password checks.
pub async fn asked_from<F: Future>(address: IpAddr, work: F) -> F::Output {
    ADDRESS.scope(address, work).await
}

/// Returns the network of the requesting address: for IPv6 its first 64 bits. `None` outside of requests.
pub(crate) fn asking_network() -> Option<IpAddr> {
    match ADDRESS.try_with(|it| Claimant::from_address(*it)).ok()? {
        Claimant::Address(network) => Some(network),
        Claimant::Account(_) => None,
    }
}

/// The account or address of a waiting check: the number of checks is limited for both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Claimant {
    /// An account, by tenant and name or id.
    Account(String),
    /// An address.
    Address(IpAddr),
}

impl Claimant {
    /// Creates the claimant of an address. An IPv6 network of 64 bits is one claimant, as its owner has all addresses
    /// in it.
    fn from_address(address: IpAddr) -> Self {
        Self::Address(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(it) => IpAddr::V6((it.to_bits() >> 64 << 64).into()),
        })
    }
}

/// Runs password hashing outside the async threads, limited to a number of concurrent checks.
#[derive(Debug, Clone)]
pub struct PasswordChecks {
    places: Arc<Semaphore>,
    queue: Arc<Queue>,
}

/// Number of waiting checks, in total and by claimant.
#[derive(Debug)]
struct Queue {
    most: usize,
    most_of_account: usize,
    most_from_address: usize,
    waiting: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    n: usize,
    by_claimant: HashMap<Claimant, usize>,
}

impl PasswordChecks {
    /// Creates it with the limits `password_checks` and `password_queue`.
    pub fn new(limits: &Limits) -> Self {
        Self {
            places: Arc::new(Semaphore::new(limits.password_checks.max(1))),
            queue: Arc::new(Queue {
                most: limits.password_queue,
                most_of_account: limits.password_queue_account,
                most_from_address: limits.password_queue_address,
                waiting: Mutex::default(),
            }),
        }
    }

    /// Runs [`Password::hash_blocking`] on a blocking thread.
    pub async fn hash(&self, password: Password, entropy: Entropy) -> Result<PasswordHash> {
        self.run(None, move || password.hash_blocking(&entropy)).await?
    }

    /// Runs [`Password::matches_blocking`] on a blocking thread, for the account that this text identifies.
    pub async fn matches(
        &self,
        account: Option<String>,
        password: Password,
        hash: Option<PasswordHash>,
    ) -> Result<bool> {
        self.run(account, move || password.matches_blocking(hash.as_ref())).await
    }

    async fn run<R: Send + 'static>(
        &self,
        account: Option<String>,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R> {
        let address = ADDRESS.try_with(|it| Claimant::from_address(*it)).ok();
        let waiting = Waiting::enter(&self.queue, account.map(Claimant::Account).into_iter().chain(address))?;
        // The semaphore is never closed; its permit is held by the work, even if the caller has gone away.
        let place = Arc::clone(&self.places).acquire_owned().await;
        drop(waiting);
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.map_err(|error| AccountsError::Hash(error.to_string()))
    }
}

/// One caller in the queue; leaves it when dropped, also when the request is cancelled.
struct Waiting {
    queue: Arc<Queue>,
    claimants: Vec<Claimant>,
}

impl Waiting {
    fn enter(queue: &Arc<Queue>, claimants: impl Iterator<Item = Claimant>) -> Result<Self> {
        let claimants: Vec<Claimant> = claimants.collect();
        let mut counts = queue.lock();
        let own = claimants.iter().map(|it| (it, counts.by_claimant.get(it).copied().unwrap_or(0)));
        let full = own
            .map(|(it, n)| (n, queue.most_of(it)))
            .chain([(counts.n, queue.most)])
            .find(|(n, most)| most <= n);
        if let Some((waiting, _)) = full {
            return Err(AccountsError::Busy { waiting, retry_after_s: RETRY_AFTER_S });
        }
        counts.n += 1;
        for it in &claimants {
            *counts.by_claimant.entry(it.clone()).or_default() += 1;
        }
        drop(counts);
        Ok(Self { queue: Arc::clone(queue), claimants })
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn most_of(&self, claimant: &Claimant) -> usize {
        match claimant {
            Claimant::Account(_) => self.most_of_account,
            Claimant::Address(_) => self.most_from_address,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut counts = self.queue.lock();
        counts.n -= 1;
        for it in &self.claimants {
            if let Some(n) = counts.by_claimant.get_mut(it) {
                *n -= 1;
                if *n == 0 {
                    counts.by_claimant.remove(it);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_salted_and_match_their_password_only() -> Result<()> {
        let entropy = Entropy::seeded(1);
        let password = Password::new("2jf70TPNZsS")?;
        let (a, b) = (password.hash_blocking(&entropy)?, password.hash_blocking(&entropy)?);
        assert_ne!(a, b);
        assert!(a.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", a.0);
        assert!(password.matches_blocking(Some(&a)) && password.matches_blocking(Some(&b)));
        assert!(!Password::new("2jf70TPNZs")?.matches_blocking(Some(&a)));
        assert!(!password.matches_blocking(None));
        assert!(!Password::new("nobody")?.matches_blocking(None));
        assert!(!password.matches_blocking(Some(&PasswordHash("damaged".into()))));
        Ok(())
    }

    #[test]
    fn secrets_are_not_printed() -> Result<()> {
        let password = Password::new("aman")?;
        let hash = PasswordHash("$argon2id$".into());
        assert_eq!(format!("{password:?} {hash:?}"), "Password(..) PasswordHash(..)");
        Ok(())
    }

    #[test]
    fn passwords_have_a_length() {
        assert!(matches!(Password::new(""), Err(AccountsError::Password { found_bytes: 0, .. })));
        assert!(Password::new("x".repeat(1024)).is_ok());
        assert!(matches!(Password::new("x".repeat(1025)), Err(AccountsError::Password { .. })));
    }

    #[tokio::test]
    async fn a_full_queue_refuses() -> Result<()> {
        let limits = Limits { password_checks: 1, password_queue: 0, ..Limits::default() };
        let checks = PasswordChecks::new(&limits);
        let refused = checks.matches(None, Password::new("x")?, None).await;
        assert!(matches!(refused, Err(AccountsError::Busy { .. })));
        assert_eq!(checks.queue.lock().n, 0);
        Ok(())
    }

    #[test]
    fn who_guesses_fills_its_own_part_of_the_queue_only() -> Result<()> {
        let limits = Limits {
            password_queue: 6,
            password_queue_account: 2,
            password_queue_address: 3,
            ..Limits::default()
        };
        let queue = PasswordChecks::new(&limits).queue;
        let enter = |account: &str, address: &str| {
            let address = address.parse().ok().map(Claimant::from_address);
            Waiting::enter(&queue, std::iter::once(Claimant::Account(account.into())).chain(address))
        };
        let guesses = [enter("root", "10.0.0.1")?, enter("root", "10.0.0.2")?];
        assert!(matches!(enter("root", "10.0.0.3"), Err(AccountsError::Busy { waiting: 2, .. })));
        let more = [enter("a", "fd00::1")?, enter("b", "fd00::2")?, enter("c", "fd00::3")?];
        assert!(enter("d", "fd00::4").is_err(), "the same network");
        let other = enter("d", "fd00:0:0:1::4")?;
        assert!(matches!(enter("e", "10.0.0.9"), Err(AccountsError::Busy { waiting: 6, .. })), "full");
        drop((guesses, more, other));
        assert!(queue.lock().n == 0 && queue.lock().by_claimant.is_empty());
        Ok(())
    }
}
