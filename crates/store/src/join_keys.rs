//! Sets of texts by which records are joined, known by hashes of 64 bits.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::ordered_hashes::OrderedHashes;

/// A set of texts, of any number, for [`crate::Expr::Joined`].
#[derive(Clone, PartialEq, Eq, Default)]
pub struct JoinKeys {
    pub(crate) hashes: Arc<OrderedHashes>,
}

impl JoinKeys {
    pub(crate) fn of(hashes: Vec<i64>) -> Self {
        Self { hashes: Arc::new(OrderedHashes::of(hashes)) }
    }

    /// Returns whether a text is one of them.
    pub fn has(&self, text: &str) -> bool {
        self.hashes.position(join_hash(text)).is_some()
    }

    /// Returns their number.
    pub fn len(&self) -> usize {
        self.hashes.as_slice().len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hashes.as_slice().is_empty()
    }
}

impl fmt::Debug for JoinKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.len())
    }
}

/// Returns the text by which a value is joined: a text itself, a whole number as its digits.
pub(crate) fn join_text(value: &Json) -> Option<Cow<'_, str>> {
    match value {
        Json::String(text) => Some(Cow::Borrowed(text)),
        Json::Number(number) => number.as_i64().map(|it| Cow::Owned(it.to_string())),
        _ => None,
    }
}

/// Returns the hash of a text by which records are joined.
pub(crate) fn join_hash(text: &str) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&Sha256::digest(text)[..8]);
    i64::from_le_bytes(bytes)
}
