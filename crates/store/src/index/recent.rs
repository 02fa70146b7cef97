//! The most recently used of many values, within bounds on their number and size.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value whose size is known.
pub(super) trait Measured {
    /// Returns the memory that it takes.
    fn n_bytes(&self) -> usize;
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Size of all values.
    pub(super) n_bytes: usize,
    /// Number of values.
    pub(super) n_values: usize,
    /// A value makes room for another one only after so many look-ups did not ask for it: values that are costly to make
    /// must not push each other out.
    pub(super) n_looks: u64,
}

/// Values, the most recently used ones.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    room: Room,
    kept: Mutex<Kept<K, V>>,
}

#[derive(Debug)]
struct Kept<K, V> {
    values: HashMap<K, Used<V>>,
    n_bytes: usize,
    /// Number of look-ups so far.
    n_looks: u64,
}

#[derive(Debug)]
struct Used<V> {
    value: Arc<V>,
    /// The look-up that last used it.
    at: u64,
}

impl<K: Clone + Eq + Hash, V: Measured> Recent<K, V> {
    pub(super) fn new(room: Room) -> Self {
        Self { room, kept: Mutex::new(Kept { values: HashMap::new(), n_bytes: 0, n_looks: 0 }) }
    }

    /// Returns a value if it is kept.
    pub(super) fn get(&self, key: &K) -> Option<Arc<V>> {
        let mut kept = self.lock();
        kept.n_looks += 1;
        let now = kept.n_looks;
        let used = kept.values.get_mut(key)?;
        used.at = now;
        Some(used.value.clone())
    }

    /// Returns a value, which is made if it is not kept.
    pub(super) fn get_or_make<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        if let Some(value) = self.get(&key) {
            return Ok(value);
        }
        let value = Arc::new(make()?);
        self.keep(key, value.clone());
        Ok(value)
    }

    /// Returns whether another value, of this size, would be kept.
    pub(super) fn has_room(&self, n_bytes: usize) -> bool {
        let kept = self.lock();
        let staying = kept.values.values().filter(|it| !kept.gives_way(it, self.room));
        let (n_values, n_staying) =
            staying.fold((0, 0), |(n_values, n_bytes), it| (n_values + 1, n_bytes + it.value.n_bytes()));
        n_values < self.room.n_values && n_bytes + n_staying <= self.room.n_bytes
    }

    /// Keeps a value, unless there is no room for it.
    pub(super) fn keep(&self, key: K, value: Arc<V>) {
        let (mut kept, n_bytes) = (self.lock(), value.n_bytes());
        kept.take(&key);
        if self.room.n_bytes < n_bytes {
            return;
        }
        while self.room.n_bytes < kept.n_bytes + n_bytes || self.room.n_values <= kept.values.len() {
            let Some((oldest, used)) = kept.values.iter().min_by_key(|it| it.1.at) else { return };
            if !kept.gives_way(used, self.room) {
                return;
            }
            let oldest = oldest.clone();
            kept.take(&oldest);
        }
        let at = kept.n_looks;
        kept.n_bytes += n_bytes;
        kept.values.insert(key, Used { value, at });
    }

    /// Lets go of the values whose keys are named.
    pub(super) fn forget(&self, is_named: impl Fn(&K) -> bool) {
        let mut kept = self.lock();
        let named: Vec<K> = kept.values.keys().filter(|key| is_named(key)).cloned().collect();
        named.iter().for_each(|key| kept.take(key));
    }

    fn lock(&self) -> MutexGuard<'_, Kept<K, V>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V: Measured> Kept<K, V> {
    fn gives_way(&self, used: &Used<V>, room: Room) -> bool {
        room.n_looks <= self.n_looks - used.at
    }

    fn take(&mut self, key: &K) {
        if let Some(used) = self.values.remove(key) {
            self.n_bytes -= used.value.n_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Measured for Vec<u8> {
        fn n_bytes(&self) -> usize {
            self.len()
        }
    }

    fn check(room: Room, steps: &[(&str, usize)], expected: &[&str]) {
        let recent = Recent::new(room);
        for (key, n_bytes) in steps {
            if recent.get(key).is_none() {
                recent.keep(*key, Arc::new(vec![0; *n_bytes]));
            }
        }
        let kept = recent.lock();
        let mut keys: Vec<&str> = kept.values.keys().copied().collect();
        keys.sort_unstable();
        assert_eq!(keys, expected, "{steps:?}");
        assert_eq!(kept.n_bytes, kept.values.values().map(|it| it.value.len()).sum::<usize>());
        assert!(kept.n_bytes <= room.n_bytes && kept.values.len() <= room.n_values);
    }

    #[test]
    fn the_least_recently_used_make_room() {
        let room = Room { n_bytes: 10, n_values: 3, n_looks: 0 };
        check(room, &[("a", 4), ("b", 4)], &["a", "b"]);
        check(room, &[("a", 4), ("b", 4), ("c", 4)], &["b", "c"]);
        check(room, &[("a", 4), ("b", 4), ("a", 4), ("c", 4)], &["a", "c"]);
        check(room, &[("a", 4), ("b", 4), ("c", 10)], &["c"]);
        check(room, &[("a", 4), ("b", 11)], &["a"]);
        check(room, &[("a", 1), ("b", 1), ("c", 1), ("d", 1)], &["b", "c", "d"]);
    }

    #[test]
    fn forgotten_values_make_room() {
        let recent = Recent::new(Room { n_bytes: 10, n_values: 3, n_looks: 1_000 });
        recent.keep("a", Arc::new(vec![0; 5]));
        recent.keep("b", Arc::new(vec![0; 5]));
        assert!(!recent.has_room(1));
        recent.forget(|key| *key == "a");
        assert!(recent.get(&"a").is_none() && recent.get(&"b").is_some());
        assert!(recent.has_room(5) && !recent.has_room(6));
    }

    #[test]
    fn a_value_in_use_makes_no_room() {
        let room = Room { n_bytes: 10, n_values: 9, n_looks: 3 };
        check(room, &[("a", 6), ("b", 6)], &["a"]);
        check(room, &[("a", 6), ("b", 6), ("b", 6), ("b", 6)], &["b"]);
        let recent = Recent::new(room);
        recent.keep("a", Arc::new(vec![0; 6]));
        assert!(recent.has_room(4) && !recent.has_room(5));
        (0..3).for_each(|_| assert!(recent.get(&"b").is_none()));
        assert!(recent.has_room(10) && !recent.has_room(11));
        let recent = Recent::new(Room { n_values: 1, ..room });
        assert!(recent.has_room(1));
        recent.keep("a", Arc::new(vec![0; 1]));
        assert!(!recent.has_room(1), "it would be a second one");
    }
}
