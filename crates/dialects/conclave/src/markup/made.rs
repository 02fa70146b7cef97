//! Cache of rendered HTML: the same topics are requested again and again, and their texts rarely change.
//!
//! The HTML depends on the behaviour, the base of links, and the text. These are the key, hashed cryptographically, so
//! that no text can be served the HTML of another.

use std::sync::{Arc, LazyLock};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};

/// Maximum size of the cache, in bytes of HTML.
const KEPT_BYTES: u64 = 32 << 20;
/// Expected number of texts within that.
const KEPT_TEXTS: usize = 16_384;
/// Shorter texts are rendered each time: that costs less than a look-up.
const SHORT_BYTES: usize = 64;

/// Weighs a cached entry in bytes, including its key and its slot in the table.
#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<str>> for Bytes {
    fn weight(&self, _: &Key, html: &Arc<str>) -> u64 {
        html.len() as u64 + 128
    }
}

type Key = [u8; 32];

static MADE: LazyLock<Cache<Key, Arc<str>, Bytes>> =
    LazyLock::new(|| Cache::with_weighter(KEPT_TEXTS, KEPT_BYTES, Bytes));

/// Returns the HTML of a text from the cache, or renders it with `make`. `way` is everything else that the HTML depends
/// on.
pub(super) fn or_make(way: [&str; 3], text: &str, make: impl FnOnce() -> String) -> String {
    if text.len() < SHORT_BYTES {
        return make();
    }
    let mut digest = Sha256::new();
    for part in way.into_iter().chain([text]) {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    let key: Key = digest.finalize().into();
    if let Some(html) = MADE.get(&key) {
        return html.to_string();
    }
    let html = make();
    MADE.insert(key, html.as_str().into());
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_key_decides() {
        let text = "a text that is long enough to be kept, and says nothing beyond that it is";
        let ways = [
            ["markdown", "/t/a/", ""],
            ["markdown", "/t/a", "/"],
            ["wiki", "/t/a/", ""],
            ["markdown", "/t/b/", ""],
        ];
        for (n, way) in ways.into_iter().enumerate() {
            assert_eq!(or_make(way, text, || n.to_string()), n.to_string());
        }
        for (n, way) in ways.into_iter().enumerate() {
            assert_eq!(or_make(way, text, || "made again".to_owned()), n.to_string());
        }
        assert_eq!(or_make(ways[0], "short", || "1".to_owned()), "1");
        assert_eq!(or_make(ways[0], "short", || "2".to_owned()), "2");
    }
}
