//! Texts told apart by 128 random bits instead of by themselves.

use std::hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::LazyLock;

/// Keys of this process, so that nobody outside can choose two texts of one mark.
static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// The mark of a text, or of anything that can be hashed: equal for what is equal, and for nothing else that will ever
/// be met. It means something in this process alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u128);

impl Mark {
    pub(crate) fn of(it: &(impl Hash + ?Sized)) -> Self {
        let [high, low] = [KEYS[0].hash_one(it), KEYS[1].hash_one(it)];
        Self(u128::from(high) << 64 | u128::from(low))
    }

    /// One of `n` places, the same for the same mark.
    pub(crate) fn place(self, n: usize) -> usize {
        self.0 as usize % n
    }
}

/// Half a mark, for sets of some thousand that live for a moment.
pub(crate) fn half_mark(it: &(impl Hash + ?Sized)) -> u64 {
    KEYS[0].hash_one(it)
}

impl Hash for Mark {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Either half is as good as a hash.
        state.write_u64(self.0 as u64);
    }
}

/// For maps whose keys are marks, or hold one among numbers.
pub(crate) type MarkHasher = BuildHasherDefault<Folded>;

/// Numbers of which one is random already: they only need to be put together.
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
