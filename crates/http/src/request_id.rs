//! The id of a request: the client's if it is valid, otherwise one of ours. It is returned in the answer and
//! is in every log line about the request.

use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};
use pinakes_accounts::Entropy;

/// The header that carries it, both ways.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken over, in bytes.
const LIMIT_BYTES: usize = 128;

/// Generates ids: a part specific to this process, and a number.
pub(crate) struct RequestIds {
    process: u32,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new(entropy: &Entropy) -> Self {
        Self { process: u32::from_le_bytes(entropy.bytes()), next: AtomicU64::new(1) }
    }

    /// Returns the client's id, or the next of ours.
    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        if let Some(given) = headers.get(X_REQUEST_ID).filter(|it| is_sane(it.as_bytes())) {
            return given.clone();
        }
        let id = format!("{:08x}-{:x}", self.process, self.next.fetch_add(1, Ordering::Relaxed));
        // Hexadecimal digits are always a header value.
        HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("unknown"))
    }
}

fn is_sane(id: &[u8]) -> bool {
    (1..=LIMIT_BYTES).contains(&id.len())
        && id.iter().all(|it| it.is_ascii_alphanumeric() || b"-_.:/+=;,".contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sane_ids_are_taken_over() {
        let ids = RequestIds::new(&Entropy::seeded(1));
        let of = |given: &'static str| {
            let headers = HeaderMap::from_iter([(X_REQUEST_ID, HeaderValue::from_static(given))]);
            ids.of(&headers).to_str().unwrap_or("").to_owned()
        };
        assert_eq!(of("571/inventory;102"), "571/inventory;102");
        assert_ne!(of("a b"), "a b");
        assert_ne!(of(""), "");
        assert_ne!(ids.of(&HeaderMap::new()), ids.of(&HeaderMap::new()));
    }
}
