//! How far the indexes are behind the writer of a file, and the writer's wait for them.
//!
//! A writer that is faster than the indexes would soon leave more changes than searches read one by one, and then
//! searches would read all bodies. So it waits before that. Shorter bursts are not held up: an import of some ten
//! thousand records is indexed behind it. The writer does not wait for an index that is so far behind that searches do
//! without it (it is built from the start, or follows a bulk load), nor for one that has failed.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::pace::{PENDING_CHANGES, TAIL_RECORDS};

/// Number of changes that the commits of an index may lack before the writer waits.
const LAG_CHANGES: u64 = 2 * PENDING_CHANGES;
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
    /// The last change in the commits of the index of each kind that the writer waits for.
    covered: HashMap<&'static str, u64>,
}

impl State {
    fn is_too_far(&self) -> bool {
        self.covered.values().any(|covered| LAG_CHANGES < self.written.saturating_sub(*covered))
    }
}

impl Lag {
    /// Records the number of the last change that the writer has committed.
    pub(super) fn note_written(&self, sequence: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).written = sequence;
    }

    /// Records that the commits of the index of a kind hold the changes up to `covered`, and that so many are still to
    /// be taken in.
    pub(super) fn note_covered(&self, kind: &'static str, covered: u64, n_left: u64) {
        if !is_near(n_left) {
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

    /// Ends the writer's wait: the builder ends.
    pub(super) fn release(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).covered.clear();
        self.advanced.notify_all();
    }

    /// Waits while an index lacks too many changes, for a bounded time.
    pub(super) fn wait(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.advanced.wait_timeout_while(state, WAIT_AT_MOST, |it| it.is_too_far()));
    }
}

/// Returns whether an index that has so many changes to take in is waited for: searches read what it lacks themselves.
pub(super) fn is_near(n_left: u64) -> bool {
    n_left <= TAIL_RECORDS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The writer waits for an index that is a little behind.
    #[test]
    fn an_index_that_is_far_behind_holds_nobody() {
        const WRITTEN: u64 = 1_000_000;
        let left = Some;
        for (steps, is_too_far) in [
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
                    Some(n_left) => lag.note_covered("dataset", WRITTEN - n_left, *n_left),
                    None => lag.note_paused("dataset"),
                }
            }
            assert_eq!(lag.state.lock().unwrap().is_too_far(), is_too_far, "{steps:?}");
        }
    }

    /// A change that the index has not looked for yet counts as well.
    #[test]
    fn changes_since_the_last_look_count() {
        let lag = Lag::default();
        lag.note_covered("dataset", 10, 0);
        lag.note_covered("topic", 10, 0);
        lag.note_written(10 + LAG_CHANGES);
        assert!(!lag.state.lock().unwrap().is_too_far());
        lag.note_written(11 + LAG_CHANGES);
        assert!(lag.state.lock().unwrap().is_too_far());
        lag.note_covered("topic", 11 + LAG_CHANGES, 0);
        assert!(lag.state.lock().unwrap().is_too_far());
        lag.note_covered("dataset", 11 + LAG_CHANGES, 0);
        assert!(!lag.state.lock().unwrap().is_too_far());
    }
}
