//! How fast an index is built: times between commits, pauses after failures, and who may use much memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::memory::limit_bytes;

/// Maximum number of changed records that a search reads one by one; with more, the index is too far behind and
/// something else answers.
pub(super) const TAIL_RECORDS: u64 = 50_000;
/// Maximum time between two commits of an index that is far behind: the work that a crash costs.
const COMMIT_AT_MOST: Duration = Duration::from_secs(30);
/// Time between two commits of an index that is so little behind that searches read the missing records themselves:
/// keeps their number small while writers never pause.
const COMMIT_NEARBY: Duration = Duration::from_millis(500);
/// Commits take at most one part in so many of the time.
const COMMIT_SHARE: u32 = 8;
/// Pause after a failure; doubled after each further one.
pub(super) const FAILURE_PAUSE: Duration = Duration::from_secs(10);
/// Maximum pause after many failures.
const FAILURE_PAUSE_MOST: Duration = Duration::from_secs(600);

/// Returns the minimum time between two commits with so many changes left, given the duration of the last commit. While
/// a command waits for the whole index, frequent ones would serve nobody and leave small segments.
pub(super) fn pause_between_commits(n_left: u64, commit_took: Duration, is_hurried: bool) -> Duration {
    let is_near = n_left <= TAIL_RECORDS && !is_hurried;
    if is_near { COMMIT_NEARBY.max(commit_took * COMMIT_SHARE) } else { COMMIT_AT_MOST }
}

/// Memory of an index writer that is up to date.
pub(super) const FOLLOWING_BYTES: usize = 48 << 20;
/// Memory for building an index in a hurry, if the machine has eight times as much: larger segments need fewer merges.
const HURRIED_BYTES: usize = 1 << 30;

/// Resources of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Memory of the index writer.
    pub(super) memory_bytes: usize,
    /// Whether it uses all processors.
    pub(super) is_hurried: bool,
}

impl Pace {
    /// Returns the resources of a step, given the memory for building an index that is far behind.
    pub(super) fn of(is_last: bool, memory_bytes: usize, is_hurried: bool) -> Self {
        let share = limit_bytes().map_or(0, |it| usize::try_from(it / 8).unwrap_or(usize::MAX));
        let far = match is_hurried {
            true => memory_bytes.max(share.min(HURRIED_BYTES)),
            false => memory_bytes,
        };
        let memory_bytes = if is_last { FOLLOWING_BYTES } else { far.max(FOLLOWING_BYTES) };
        Self { memory_bytes, is_hurried }
    }
}

/// Returns how long an index pauses after so many consecutive failures.
pub(super) fn pause_after(n_failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(n_failures.saturating_sub(1)).filter(|it| *it != 0).unwrap_or(u32::MAX);
    FAILURE_PAUSE.saturating_mul(factor).min(FAILURE_PAUSE_MOST)
}

/// The permission to use much memory, held by one index of all tenants at a time.
pub(super) struct Large;

static IS_LARGE: AtomicBool = AtomicBool::new(false);

impl Large {
    pub(super) fn take() -> Option<Self> {
        (!IS_LARGE.swap(true, Ordering::AcqRel)).then_some(Self)
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        IS_LARGE.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index that is nearly up to date is committed often, but not all the time; one that is far behind is not
    /// redone too often.
    #[test]
    fn commits_are_frequent_near_the_end() {
        let ms = Duration::from_millis;
        for (n_left, took, expected) in [
            (0, ms(1), COMMIT_NEARBY),
            (TAIL_RECORDS, ms(20), COMMIT_NEARBY),
            (10, ms(200), ms(1_600)),
            (TAIL_RECORDS + 1, ms(200), COMMIT_AT_MOST),
        ] {
            assert_eq!(pause_between_commits(n_left, took, false), expected, "{n_left} changes, {took:?}");
            assert_eq!(pause_between_commits(n_left, took, true), COMMIT_AT_MOST);
        }
    }

    /// Only an index that is far behind gets more memory, and in a hurry not less than otherwise.
    #[test]
    fn memory_is_for_those_far_behind() {
        let bytes = |is_last, memory, is_hurried| Pace::of(is_last, memory, is_hurried).memory_bytes;
        for is_hurried in [false, true] {
            assert_eq!(bytes(true, 2 << 30, is_hurried), FOLLOWING_BYTES);
            assert_eq!(bytes(false, 2 << 30, is_hurried), 2 << 30);
        }
        assert_eq!(bytes(false, 1 << 20, false), FOLLOWING_BYTES);
        assert!((FOLLOWING_BYTES..=HURRIED_BYTES).contains(&bytes(false, 1 << 20, true)));
    }

    #[test]
    fn pauses_grow_and_are_bounded() {
        assert_eq!(pause_after(1), FAILURE_PAUSE);
        assert_eq!(pause_after(2), FAILURE_PAUSE * 2);
        assert_eq!(pause_after(4), FAILURE_PAUSE * 8);
        for many in [10, 32, 33, u32::MAX] {
            assert_eq!(pause_after(many), FAILURE_PAUSE_MOST);
        }
    }
}
