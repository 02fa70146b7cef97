//! Passwords: argon2id with the parameters that its authors recommend (19 MiB, two passes, one lane).
//!
//! A check takes a core for some 15 to 30 ms and 19 MiB, by design. So checks run on the runtime's blocking
//! threads, as many at once as [`Limits::password_checks`] says; a bounded number waits, more are refused.

use std::fmt;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use argon2::Argon2;
use argon2::password_hash::phc;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use pinakes_store::Limits;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::entropy::Entropy;
use crate::error::{AccountsError, Result};

/// Most bytes of a password that is hashed.
const PASSWORD_LIMIT_BYTES: usize = 1024;
/// Seconds after which a caller who was refused may find a free place.
const RETRY_AFTER_S: u32 = 1;

/// A password in the clear, on its way to be hashed. Never printed, never stored.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// Takes a password of 1 to 1024 bytes.
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

    /// Hashes with a new salt, on this thread: for the command line; a server uses [`PasswordChecks`].
    pub fn hash_blocking(&self, entropy: &Entropy) -> Result<PasswordHash> {
        let salt: [u8; 16] = entropy.bytes();
        let hash: std::result::Result<phc::PasswordHash, _> =
            Argon2::default().hash_password_with_salt(self.0.as_bytes(), &salt);
        hash.map(|it| PasswordHash(it.to_string())).map_err(|error| AccountsError::Hash(error.to_string()))
    }

    /// Whether this is the password that `hash` was made of, on this thread. Without a hash the same
    /// work is done for nothing, so that the time taken does not tell which users exist.
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

/// What passwords of unknown users are compared with; the cost of a check lies in its parameters.
static NOBODY: LazyLock<phc::PasswordHash> = LazyLock::new(|| {
    let hash: std::result::Result<phc::PasswordHash, _> =
        Argon2::default().hash_password_with_salt(b"nobody", &[0; 16]);
    match hash {
        Ok(hash) => hash,
        Err(error) => panic!("argon2 does not work on this machine: {error}"),
    }
});

/// Runs password work aside from the async threads, so many at once.
#[derive(Debug, Clone)]
pub struct PasswordChecks {
    places: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    queue: usize,
}

impl PasswordChecks {
    /// With the bounds `password_checks` and `password_queue`.
    pub fn new(limits: &Limits) -> Self {
        Self {
            places: Arc::new(Semaphore::new(limits.password_checks.max(1))),
            waiting: Arc::default(),
            queue: limits.password_queue,
        }
    }

    /// [`Password::hash_blocking`], aside.
    pub async fn hash(&self, password: Password, entropy: Entropy) -> Result<PasswordHash> {
        self.run(move || password.hash_blocking(&entropy)).await?
    }

    /// [`Password::matches_blocking`], aside.
    pub async fn matches(&self, password: Password, hash: Option<PasswordHash>) -> Result<bool> {
        self.run(move || password.matches_blocking(hash.as_ref())).await
    }

    async fn run<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Result<R> {
        let waiting = Waiting::enter(&self.waiting, self.queue)?;
        // The semaphore is never closed; a permit of it goes with the work and outlives a caller who left.
        let place = Arc::clone(&self.places).acquire_owned().await;
        drop(waiting);
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.map_err(|error| AccountsError::Hash(error.to_string()))
    }
}

/// One caller in the queue; leaves it when dropped, also when the request is given up.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn enter(waiting: &Arc<AtomicUsize>, limit: usize) -> Result<Self> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let entered = Self(Arc::clone(waiting));
        if limit <= before {
            return Err(AccountsError::Busy { waiting: before, retry_after_s: RETRY_AFTER_S });
        }
        Ok(entered)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
        let refused = checks.matches(Password::new("x")?, None).await;
        assert!(matches!(refused, Err(AccountsError::Busy { .. })));
        assert_eq!(checks.waiting.load(Ordering::Relaxed), 0);
        Ok(())
    }
}
