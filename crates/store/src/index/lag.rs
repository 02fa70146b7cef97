//! How far the indexes are behind the writer of a file, and the writer's wait for them.
//!
//! Every search reads the changes that an index lacks one by one. A writer that is faster than the indexes would soon
//! leave so many that searches take seconds, and then so many that they read all bodies instead. So it waits before that:
//! early while somebody searches, late while nobody does, as an import of some ten thousand records is then indexed
//! behind it. The writer does not wait for an index that is so far behind that searches do without it (it is built from
//! the start, or follows a bulk load), nor for one that has failed.
//!
//! Merges of segments run at low priority. A writer that leaves them no processor time would let segments pile up, each of
//! which costs every search some time: it is slowed down by their number.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::pace::TAIL_RECORDS;

/// Number of changes that the commits of an index may lack before the writer waits, while nobody searches.
const LAG_CHANGES: u64 = 20_000;
/// The same while somebody does.
const LAG_CHANGES_SEARCHED: u64 = 4_000;
/// Size of the changed bodies that they may lack.
const LAG_BYTES: u64 = 32 << 20;
/// Number of changes from which it matters that a search read them.
const NOTED_CHANGES: u64 = 1_000;
/// How long somebody counts as searching after such a search.
const SEARCHED_FOR: Duration = Duration::from_secs(10);
/// Number of an index's segments from which the writer is slowed down.
const SEGMENTS: u64 = 50;
/// How much for each change and each further segment.
const PAUSE: Duration = Duration::from_micros(5);
/// Maximum wait of a batch of writes.
const WAIT_AT_MOST: Duration = Duration::from_secs(5);

/// The lag of all indexes of a file.
#[derive(Debug, Default)]
pub(super) struct Lag {
    state: Mutex<State>,
    advanced: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Number of the last change committed by the writer.
    written: u64,
    /// The same at its last wait.
    waited: u64,
    /// The indexes that the writer waits for, by kind.
    covered: HashMap<&'static str, Covered>,
    /// When a search last read many changes.
    searched: Option<Instant>,
}

/// How far the commits of an index reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Covered {
    /// The last change in them.
    pub(super) upto: u64,
    /// Number of changes that are still to be taken in.
    pub(super) n_left: u64,
    /// Mean size of the bodies last taken in.
    pub(super) body_bytes: u64,
    /// Number of its segments.
    pub(super) n_segments: u64,
}

impl State {
    fn is_too_far(&self) -> bool {
        self.covered
            .values()
            .any(|it| self.changes_at_most(it.body_bytes) < self.written.saturating_sub(it.upto))
    }

    /// Returns how long the writer pauses after the changes since its last wait.
    fn pause(&self) -> Duration {
        let n_segments = self.covered.values().map(|it| it.n_segments).max().unwrap_or(0);
        let n_changes = self.written.saturating_sub(self.waited);
        let times = n_changes.saturating_mul(n_segments.saturating_sub(SEGMENTS));
        PAUSE.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX)).min(WAIT_AT_MOST)
    }

    /// Returns how many changes may be lacking.
    fn changes_at_most(&self, body_bytes: u64) -> u64 {
        let is_searched = self.searched.is_some_and(|it| it.elapsed() < SEARCHED_FOR);
        let n_most = if is_searched { LAG_CHANGES_SEARCHED } else { LAG_CHANGES };
        n_most.min(LAG_BYTES / body_bytes.max(1)).max(1)
    }
}

impl Lag {
    /// Records the number of the last change that the writer has committed.
    pub(super) fn note_written(&self, sequence: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.written == 0 {
            state.waited = sequence;
        }
        state.written = sequence;
    }

    /// Records how far the commits of the index of a kind reach.
    pub(super) fn note_covered(&self, kind: &'static str, covered: Covered) {
        if !is_near(covered.n_left) {
            return self.note_paused(kind);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.covered.insert(kind, covered);
        self.advanced.notify_all();
    }

    /// Records that the index of a kind takes in nothing at present, or is too far behind to be waited for.
    pub(super) fn note_paused(&self, kind: &'static str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.covered.remove(kind);
        self.advanced.notify_all();
    }

    /// Records that a search reads so many changes.
    pub(super) fn note_search(&self, n_changes: u64) {
        if NOTED_CHANGES <= n_changes {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).searched = Some(Instant::now());
        }
    }

    /// Returns the number of changes from which an index that is near is committed: half of what may be lacking.
    pub(super) fn changes_to_commit(&self, body_bytes: u64) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).changes_at_most(body_bytes) / 2
    }

    /// Ends the writer's wait: the builder ends.
    pub(super) fn release(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).covered.clear();
        self.advanced.notify_all();
    }

    /// Waits while an index lacks too many changes or has too many segments, for a bounded time.
    pub(super) fn wait(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + state.pause();
        let most = Instant::now() + WAIT_AT_MOST;
        state.waited = state.written;
        loop {
            let now = Instant::now();
            let end = if state.is_too_far() { most } else { until };
            if end <= now || state.covered.is_empty() {
                return;
            }
            let waited = self.advanced.wait_timeout(state, end - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Returns whether an index that has so many changes to take in is waited for: searches read what it lacks themselves.
pub(super) fn is_near(n_left: u64) -> bool {
    n_left <= TAIL_RECORDS
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY_BYTES: u64 = 1_000;

    fn covered(upto: u64, n_left: u64) -> Covered {
        Covered { upto, n_left, body_bytes: BODY_BYTES, n_segments: SEGMENTS }
    }

    fn is_too_far(lag: &Lag) -> bool {
        lag.state.lock().unwrap_or_else(PoisonError::into_inner).is_too_far()
    }

    /// The writer waits for an index that is a little behind.
    #[test]
    fn an_index_that_is_far_behind_holds_nobody() {
        const WRITTEN: u64 = 1_000_000;
        let left = Some;
        for (steps, expected) in [
            (vec![], false),
            (vec![left(0)], false),
            (vec![left(LAG_CHANGES)], false),
            (vec![left(LAG_CHANGES + 1)], true),
            (vec![left(TAIL_RECORDS)], true),
            // Built from the start, or left behind by a bulk load.
            (vec![left(WRITTEN)], false),
            (vec![left(0), left(TAIL_RECORDS + 1)], false),
            (vec![left(TAIL_RECORDS + 1), left(TAIL_RECORDS)], true),
            // It has failed.
            (vec![left(TAIL_RECORDS), None], false),
        ] {
            let lag = Lag::default();
            lag.note_written(WRITTEN);
            for step in &steps {
                match step {
                    Some(n_left) => lag.note_covered("dataset", covered(WRITTEN - n_left, *n_left)),
                    None => lag.note_paused("dataset"),
                }
            }
            assert_eq!(is_too_far(&lag), expected, "{steps:?}");
        }
    }

    /// A change that the index has not looked for yet counts as well.
    #[test]
    fn changes_since_the_last_look_count() {
        let lag = Lag::default();
        lag.note_covered("dataset", covered(10, 0));
        lag.note_covered("topic", covered(10, 0));
        lag.note_written(10 + LAG_CHANGES);
        assert!(!is_too_far(&lag));
        lag.note_written(11 + LAG_CHANGES);
        assert!(is_too_far(&lag));
        lag.note_covered("topic", covered(11 + LAG_CHANGES, 0));
        assert!(is_too_far(&lag));
        lag.note_covered("dataset", covered(11 + LAG_CHANGES, 0));
        assert!(!is_too_far(&lag));
    }

    /// The writer waits earlier while searches read many changes, and for large bodies.
    #[test]
    fn what_searches_would_read_is_bounded() {
        let lag = Lag::default();
        lag.note_covered("dataset", covered(0, 0));
        lag.note_written(LAG_CHANGES_SEARCHED + 1);
        lag.note_search(NOTED_CHANGES - 1);
        assert!(!is_too_far(&lag));
        lag.note_search(NOTED_CHANGES);
        assert!(is_too_far(&lag));
        assert_eq!(lag.changes_to_commit(BODY_BYTES), LAG_CHANGES_SEARCHED / 2);
        let lag = Lag::default();
        for (body_bytes, n_most) in [(0, LAG_CHANGES), (LAG_BYTES / 100, 100), (LAG_BYTES + 1, 1)] {
            lag.note_covered("dataset", Covered { body_bytes, ..covered(0, 0) });
            lag.note_written(n_most);
            assert!(!is_too_far(&lag), "{body_bytes}");
            lag.note_written(n_most + 1);
            assert!(is_too_far(&lag), "{body_bytes}");
            assert_eq!(lag.changes_to_commit(body_bytes), n_most / 2);
        }
    }

    /// Each change is paused for by the number of segments beyond those that are nothing unusual.
    #[test]
    fn many_segments_slow_the_writer_down() {
        let lag = Lag::default();
        let pause = || lag.state.lock().unwrap_or_else(PoisonError::into_inner).pause();
        lag.note_written(1_000);
        lag.note_written(1_100);
        for (n_segments, expected) in [
            (0, Duration::ZERO),
            (SEGMENTS, Duration::ZERO),
            (SEGMENTS + 40, PAUSE * 4_000),
            (u64::MAX, WAIT_AT_MOST),
        ] {
            lag.note_covered("dataset", Covered { n_segments, ..covered(1_100, 0) });
            assert_eq!(pause(), expected, "{n_segments}");
        }
        lag.note_paused("dataset");
        assert_eq!(pause(), Duration::ZERO);
        lag.wait();
        lag.note_covered("dataset", Covered { n_segments: 2 * SEGMENTS, ..covered(1_100, 0) });
        assert_eq!(pause(), Duration::ZERO, "no change since");
    }
}
