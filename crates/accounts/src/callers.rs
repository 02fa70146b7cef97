//! Resolves tokens to callers without asking the store on every request.
//!
//! A resolved token is cached with the sequence numbers of the records from which it was resolved. It is used
//! as it is as long as this process has changed no account and the last check was less than a second ago;
//! after that, one point read per record decides whether it is still valid. So a change made through
//! [`crate::Accounts`] takes effect at once, one made by another process on the same data within a second.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use pinakes_store::View;
use quick_cache::Equivalent;
use quick_cache::sync::Cache;

use crate::caller::Caller;
use crate::error::{AccountsError, Result};
use crate::token;

/// How long a resolved token is used without checking the store, in milliseconds.
const FRESH_MS: i64 = 1_000;

/// What a token stands for.
#[derive(Debug, Clone)]
pub enum Resolved {
    /// This caller.
    Caller(Caller),
    /// A caller, but the token has expired.
    Expired,
    /// Nobody: the token is forged, malformed or removed, or its user is gone or inactive.
    Invalid,
    /// It was issued for another tenant, named here.
    OtherTenant(String),
}

/// Cache of resolved tokens.
#[derive(Debug)]
pub(crate) struct Callers {
    pub(crate) kept: Cache<Key, Arc<Kept>>,
    /// Counts the changes of accounts in this process.
    pub(crate) changes: AtomicU64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) tenant: Box<str>,
    pub(crate) token: Box<str>,
}

pub(crate) struct KeyRef<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) token: &'a str,
}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.tenant.hash(state);
        self.token.hash(state);
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self.tenant == *key.tenant && *self.token == *key.token
    }
}

#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) caller: Caller,
    pub(crate) proof: Proof,
    pub(crate) expires_at_ms: Option<i64>,
    pub(crate) changes: AtomicU64,
    pub(crate) checked_at_ms: AtomicI64,
}

/// The records from which a caller was resolved, with their sequence numbers.
#[derive(Debug, Clone)]
pub(crate) struct Proof {
    pub(crate) user: (String, u64),
    pub(crate) token: Option<(String, u64)>,
}

impl Callers {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { kept: Cache::new(capacity.max(1)), changes: AtomicU64::new(0) }
    }

    /// Makes every cached caller be checked at its next request.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }
}

impl Kept {
    pub(crate) fn is_fresh(&self, callers: &Callers, now_ms: i64) -> bool {
        let age_ms = now_ms - self.checked_at_ms.load(Ordering::Relaxed);
        (0..FRESH_MS).contains(&age_ms)
            && self.changes.load(Ordering::Relaxed) == callers.changes.load(Ordering::Acquire)
    }
}

impl Proof {
    pub(crate) fn holds(&self, view: &mut View<'_>) -> Result<bool, AccountsError> {
        let (id, sequence) = &self.user;
        if crate::user::sequence(view, id)? != Some(*sequence) {
            return Ok(false);
        }
        match &self.token {
            Some((id, sequence)) => Ok(token::sequence(view, id)? == Some(*sequence)),
            None => Ok(true),
        }
    }
}
