//! HTML that was made of a text a while ago: pages of one topic are asked for again and again, and their texts change seldom.
//!
//! What a text is shown as follows from the behaviour, where links lead, and the text itself: these are the key, hashed
//! cryptographically, so that nobody gets what was made of somebody else's text.

use std::sync::{Arc, LazyLock};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};

/// Bytes of HTML that are kept.
const KEPT_BYTES: u64 = 32 << 20;
/// Texts that are expected within that.
const KEPT_TEXTS: usize = 16_384;
/// Shorter texts are made anew: that costs less than looking for them.
const SHORT_BYTES: usize = 64;

/// Counts the bytes of what is kept, the key and the place in the table included.
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

/// The HTML of a text, as `make` makes it or made it before. `way` is everything beside the text that decides it.
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
