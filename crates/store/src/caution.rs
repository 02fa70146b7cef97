//! Where reads by id run: on the thread that answers, while their pages are in memory, else aside.
//!
//! A read of what is in memory takes less time than handing it to another thread. One that waits for the disk holds up all
//! that its thread has to answer. Which it will be is not known before, but the last ones tell: after a read that was slow,
//! those that follow run aside, until a number of them in a row were quick. A read that was slow because its thread did not
//! have the processor tells nothing of the disk: what the thread has read of it is asked then.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// From when on a read counts as slow: far longer than one from memory, shorter than a seek of a disk.
const SLOW: Duration = Duration::from_millis(1);
/// Quick reads in a row after which they run in place again. Aside each costs some ten microseconds more.
const QUICK_IN_A_ROW: u32 = 1_000;

/// What the last reads by id of a tenant have told.
#[derive(Debug, Default)]
pub(crate) struct Caution {
    /// Reads that are still to run aside.
    left: AtomicU32,
}

impl Caution {
    /// Whether the next read is to run aside.
    pub(crate) fn advises(&self) -> bool {
        self.left.load(Ordering::Relaxed) != 0
    }

    /// A read has taken so long, wherever it ran. To be called on the thread that ran it.
    pub(crate) fn note(&self, took: Duration) {
        self.note_if(took, has_read_from_disk);
    }

    fn note_if(&self, took: Duration, was_disk: impl FnOnce() -> bool) {
        if SLOW <= took && was_disk() {
            self.left.store(QUICK_IN_A_ROW, Ordering::Relaxed);
        } else if self.advises() {
            // Several threads count down: what is lost between them is a few reads.
            let left = self.left.load(Ordering::Relaxed);
            self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        }
    }
}

/// Whether this thread has read from a disk since it was last asked; yes where the system does not tell.
fn has_read_from_disk() -> bool {
    thread_local! { static BEFORE: Cell<Option<u64>> = const { Cell::new(None) }; }
    let now = bytes_read_from_disk();
    now.is_none() || BEFORE.replace(now) != now
}

/// Bytes that this thread has had read from disks (Linux), by whatever call or mapped page.
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
        // What reads took in microseconds, and whether the next one runs aside.
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
        has_read_from_disk();
        if bytes_read_from_disk().is_some() {
            assert!(!has_read_from_disk());
        }
    }
}
