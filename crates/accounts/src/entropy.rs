//! Randomness, passed in so that tests are exact: the source of keys, salts and new identifiers.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// Bytes requested from the system at once, per thread: one system call for 256 UUIDs.
const POOL_BYTES: usize = 4096;

/// A source of random bytes. Clones of a seeded source share its state.
#[derive(Debug, Clone, Default)]
pub enum Entropy {
    /// The system's generator, suitable for keys.
    #[default]
    System,
    /// The same bytes in every run, only for tests: anyone can compute them.
    Seeded(Arc<AtomicU64>),
}

impl Entropy {
    /// Creates a source that gives the same bytes in every run.
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(AtomicU64::new(seed)))
    }

    /// Fills `bytes`.
    ///
    /// Panics if the system cannot provide randomness: nothing can be done safely without it.
    pub fn fill(&self, bytes: &mut [u8]) {
        match self {
            Self::System => POOL.with_borrow_mut(|pool| pool.fill(bytes)),
            Self::Seeded(state) => {
                for chunk in bytes.chunks_mut(8) {
                    chunk.copy_from_slice(&split_mix(state).to_le_bytes()[..chunk.len()]);
                }
            }
        }
    }

    /// Returns `N` random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// Returns a UUID of version 4.
    pub fn uuid(&self) -> Uuid {
        uuid::Builder::from_random_bytes(self.bytes()).into_uuid()
    }

    /// Returns a UUID in the form of version 4, which clients and schemas of the original systems expect. It is greater
    /// than those created in earlier milliseconds, so that an index on them grows at its end instead of changing a
    /// random page for each. 74 of its bits are random.
    pub fn uuid_at(&self, now_ms: i64) -> Uuid {
        let rising = uuid::Builder::from_unix_timestamp_millis(now_ms.max(0).cast_unsigned(), &self.bytes());
        rising.with_version(uuid::Version::Random).into_uuid()
    }

    /// Returns 24 random hexadecimal digits, the form of a MongoDB object id.
    pub fn object_id(&self) -> String {
        hex(&self.bytes::<12>())
    }
}

/// Formats `bytes` in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Random bytes that have not been used yet, per thread; used ones are overwritten.
struct Pool {
    bytes: [u8; POOL_BYTES],
    left: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], left: 0 }) };
}

impl Pool {
    fn fill(&mut self, out: &mut [u8]) {
        if POOL_BYTES < out.len() {
            return from_system(out);
        }
        if self.left < out.len() {
            from_system(&mut self.bytes);
            self.left = POOL_BYTES;
        }
        let from = self.left - out.len();
        let taken = &mut self.bytes[from..self.left];
        out.copy_from_slice(taken);
        taken.fill(0);
        self.left = from;
    }
}

fn from_system(out: &mut [u8]) {
    if let Err(error) = getrandom::fill(out) {
        panic!("the system gives no randomness: {error}; keys and identifiers cannot be made");
    }
}

/// Steele, Lea and Flood's `SplitMix64`: a counter and a mixing function.
fn split_mix(state: &AtomicU64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn identifiers_have_their_shapes_and_differ() {
        let entropy = Entropy::System;
        let mut seen = HashSet::new();
        for _ in 0..1_000 {
            let uuid = entropy.uuid();
            assert_eq!(uuid.get_version_num(), 4);
            assert!(seen.insert(uuid.to_string()));
            let id = entropy.object_id();
            assert!(id.len() == 24 && id.bytes().all(|it| it.is_ascii_hexdigit()));
            assert!(seen.insert(id));
        }
    }

    #[test]
    fn uuids_of_later_times_are_greater() {
        let entropy = Entropy::System;
        let (earlier, later) = (entropy.uuid_at(1_790_000_000_000), entropy.uuid_at(1_790_000_000_001));
        assert_eq!((earlier.get_version_num(), earlier.get_variant()), (4, uuid::Variant::RFC4122));
        assert!(earlier < later && earlier.to_string() < later.to_string());
        assert_ne!(earlier, entropy.uuid_at(1_790_000_000_000));
    }

    #[test]
    fn large_requests_pass_the_pool_by() {
        let bytes = Entropy::System.bytes::<{ POOL_BYTES + 1 }>();
        assert!(bytes.iter().any(|it| *it != 0));
    }

    #[test]
    fn seeded_sources_repeat() {
        assert_eq!(Entropy::seeded(7).uuid(), Entropy::seeded(7).uuid());
        assert_ne!(Entropy::seeded(7).uuid(), Entropy::seeded(8).uuid());
    }
}
