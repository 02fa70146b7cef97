//! Texts identified by 128 random bits instead of by their content.

use std::hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::LazyLock;

/// Hash keys of this process, so that nobody outside can choose two texts with the same mark.
static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// The mark of a text, or of anything hashable: equal for equal values, and in practice for nothing else. Valid in this
/// process only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u128);

impl Mark {
    pub(crate) fn of(it: &(impl Hash + ?Sized)) -> Self {
        let [high, low] = [KEYS[0].hash_one(it), KEYS[1].hash_one(it)];
        Self(u128::from(high) << 64 | u128::from(low))
    }

    /// Returns one of `n` slots, the same for the same mark.
    pub(crate) fn place(self, n: usize) -> usize {
        self.0 as usize % n
    }
}

/// Returns half a mark, for short-lived sets of some thousand members.
pub(crate) fn half_mark(it: &(impl Hash + ?Sized)) -> u64 {
    KEYS[0].hash_one(it)
}

impl Hash for Mark {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Either half is good enough as a hash.
        state.write_u64(self.0 as u64);
    }
}

/// Hasher for maps whose keys are marks, or contain one among numbers.
pub(crate) type MarkHasher = BuildHasherDefault<Folded>;

/// Combines numbers of which one is random already, so no further mixing is needed.
#[derive(Debug, Default)]
pub(crate) struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|it| self.write_u64(u64::from(*it)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.rotate_left(23) ^ number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
