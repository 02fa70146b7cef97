//! Explains how reads were answered: a line for each list, count and set of facets.

use std::cell::RefCell;
use std::time::Instant;

/// The receiver of the lines.
pub(crate) type Told = Box<dyn Fn(String)>;

struct Notes {
    tell: Told,
    /// When the last line ended.
    since: Instant,
}

thread_local! {
    static NOTES: RefCell<Option<Notes>> = const { RefCell::new(None) };
}

/// Removes the receiver when the explained work ends, however it ends.
struct Until;

impl Drop for Until {
    fn drop(&mut self) {
        NOTES.take();
    }
}

/// Runs `work`, which reads on this thread, and passes `tell` a line for each answer: the kind, which index or scan
/// answered, and how long it took.
pub fn explained<R>(tell: Box<dyn Fn(String)>, work: impl FnOnce() -> R) -> R {
    NOTES.set(Some(Notes { tell, since: Instant::now() }));
    let _until = Until;
    work()
}

/// Passes a line to the receiver, if there is one.
pub(crate) fn note(line: impl FnOnce() -> String) {
    NOTES.with_borrow_mut(|notes| {
        let Some(notes) = notes else { return };
        let took_ms = notes.since.elapsed().as_secs_f64() * 1_000.0;
        (notes.tell)(format!("{}, {took_ms:.2} ms", line()));
        notes.since = Instant::now();
    });
}
