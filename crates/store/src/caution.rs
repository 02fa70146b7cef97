//! Decides where reads by id run: on the answering thread while their pages are in memory, otherwise on another thread.
//!
//! A read from memory takes less time than handing it to another thread; a read that waits for the disk blocks
//! everything else that its thread has to answer. Which one a read will be is not known in advance, so the last reads
//! decide: after a slow read, the following ones run aside until a number of them in a row were quick. A read may also
//! be slow because its thread was not scheduled, so a slow read counts only if its thread has read from a disk.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Duration from which a read counts as slow: far longer than a read from memory, shorter than a disk seek.
const SLOW: Duration = Duration::from_millis(1);
/// Quick reads in a row after which reads run in place again. Running aside costs each some ten microseconds more.
const QUICK_IN_A_ROW: u32 = 1_000;

/// What recent reads by id of a tenant have shown.
#[derive(Debug, Default)]
pub(crate) struct Caution {
    /// Number of reads that are still to run aside.
    left: AtomicU32,
}

impl Caution {
    /// Returns whether the next read should run aside.
    pub(crate) fn advises(&self) -> bool {
        self.left.load(Ordering::Relaxed) != 0
    }

    /// Records the duration of a read, wherever it ran. Must be called on the thread that ran it.
    pub(crate) fn note(&self, took: Duration) {
        self.note_if(took, has_read_from_disk);
    }

    fn note_if(&self, took: Duration, was_disk: impl FnOnce() -> bool) {
        if SLOW <= took && was_disk() {
            self.left.store(QUICK_IN_A_ROW, Ordering::Relaxed);
        } else if self.advises() {
            // Several threads count down without synchronisation: at worst a few reads are miscounted.
            let left = self.left.load(Ordering::Relaxed);
            self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        }
    }
}

/// Returns whether this thread has read from a disk since the last call; true where the system does not tell.
fn has_read_from_disk() -> bool {
    thread_local! { static BEFORE: Cell<Option<u64>> = const { Cell::new(None) }; }
    let now = bytes_read_from_disk();
    now.is_none() || BEFORE.replace(now) != now
}

/// Returns the bytes that this thread has caused to be read from disks (Linux), by system calls or page faults.
fn bytes_read_from_disk() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_reads_are_followed_by_reads_aside() {
        let quick = |n: usize| vec![10_u64; n];
        // Duration of each read in microseconds, and whether the next one runs aside.
        for (took_us, is_aside) in [
            (vec![], false),
            (quick(5), false),
            (vec![999], false),
            (vec![1_000], true),
            (vec![8_000, 10, 10], true),
            ([vec![8_000], quick(999)].concat(), true),
            ([vec![8_000], quick(1_000)].concat(), false),
            ([vec![8_000], quick(999), vec![1_000], quick(999)].concat(), true),
            ([vec![8_000], quick(2_000), vec![20]].concat(), false),
        ] {
            let caution = Caution::default();
            took_us.iter().for_each(|it| caution.note_if(Duration::from_micros(*it), || true));
            assert_eq!(caution.advises(), is_aside, "{} reads", took_us.len());
        }
    }

    #[test]
    fn a_thread_that_waited_for_the_processor_tells_nothing() {
        let caution = Caution::default();
        caution.note_if(Duration::from_millis(8), || false);
        assert!(!caution.advises());
    }

    #[test]
    fn what_stays_in_memory_is_not_read_from_disk() {
        // Pages of the program itself may still come from a disk while it runs, but not for ever.
        if bytes_read_from_disk().is_some() {
            assert!((0..100_000).any(|_| !has_read_from_disk()));
        }
    }
}
