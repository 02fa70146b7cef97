//! The queue of a file's writer, and the timing of its transactions.
//!
//! A batch accepts writes for as long as the previous one is being flushed, and then until none is waiting: a slow disk
//! makes batches large, and the writer works while the disk does. The keeper of the log holds the writer between two
//! batches for the moment in which the log restarts.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::jobs::Job;

/// Number of writes for which the writer wakes up while the previous batch is being flushed. Fewer lose nothing by
/// waiting for the flush, as they cannot be committed sooner.
const WORTHWHILE: usize = 16;

/// A bounded queue of writes.
pub(super) struct Queue {
    most: usize,
    state: Mutex<State>,
    /// Signals that the writer may have something to do.
    work: Condvar,
    /// Signals that there is room, or that the writer is between two batches.
    room: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Box<dyn Job>>,
    /// Number of batches that are committed and not yet on disk.
    n_flushing: usize,
    is_writing: bool,
    is_held: bool,
    /// The writer sleeps until this many writes wait; 0 when it is awake. Even a wake-up without effect costs a system
    /// call.
    wakes_at: usize,
    /// Number of other sleeping threads.
    n_sleeping: usize,
    is_closed: bool,
    /// Why no more writes are accepted.
    failure: Option<String>,
}

/// What the writer is to do; [`Queue::end`] reports that it is done.
pub(super) enum Begun {
    /// A batch that begins with this write.
    Batch(Box<dyn Job>),
    /// Stop: no writes are waiting, and none will come.
    Closed,
}

/// Why a write was not accepted.
pub(super) enum Refused {
    Full(Box<dyn Job>),
    Closed,
}

impl Queue {
    pub(super) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default(), work: Condvar::new(), room: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this many writes are queued, something else has changed, or the deadline has passed.
    fn wait_for_work<'s>(
        &self,
        mut state: MutexGuard<'s, State>,
        n_jobs: usize,
        until: Option<Instant>,
    ) -> MutexGuard<'s, State> {
        state.wakes_at = n_jobs;
        state = match until {
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
        state.wakes_at = 0;
        state
    }

    fn wait_for_room<'s>(&self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.n_sleeping += 1;
        state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.n_sleeping -= 1;
        state
    }

    fn wake_writer(&self, state: &State) {
        if 0 < state.wakes_at {
            self.work.notify_one();
        }
    }

    fn wake_others(&self, state: &State) {
        if 0 < state.n_sleeping {
            self.room.notify_all();
        }
    }

    /// Appends a write.
    pub(super) fn push(&self, job: Box<dyn Job>) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Refused::Closed);
        }
        if self.most <= state.jobs.len() {
            return Err(Refused::Full(job));
        }
        state.jobs.push_back(job);
        if state.wakes_at <= state.jobs.len() {
            self.wake_writer(&state);
        }
        Ok(())
    }

    /// Appends a write once there is room.
    pub(super) fn push_waiting(&self, job: Box<dyn Job>) -> Result<(), Refused> {
        let mut state = self.lock();
        while self.most <= state.jobs.len() && !state.is_closed {
            state = self.wait_for_room(state);
        }
        drop(state);
        match self.push(job) {
            // Another one was faster.
            Err(Refused::Full(job)) => self.push_waiting(job),
            result => result,
        }
    }

    /// Waits for a write.
    pub(super) fn begin(&self) -> Begun {
        let mut state = self.lock();
        loop {
            if !state.is_held {
                if let Some(job) = state.jobs.pop_front() {
                    state.is_writing = true;
                    self.wake_others(&state);
                    return Begun::Batch(job);
                }
                if state.is_closed {
                    return Begun::Closed;
                }
            }
            state = self.wait_for_work(state, 1, None);
        }
    }

    /// Returns the next write of the current batch; `None` when it is time to commit. A batch that nobody waits for,
    /// being part of a load, does not wait for the previous flush either.
    pub(super) fn next(&self, is_load: bool) -> Option<Box<dyn Job>> {
        let mut state = self.lock();
        while state.jobs.is_empty() && 0 < state.n_flushing && !is_load {
            state = self.wait_for_work(state, WORTHWHILE, None);
        }
        let job = state.jobs.pop_front();
        self.wake_others(&state);
        job
    }

    /// Ends the batch, or work done in idle time.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.is_writing = false;
        self.wake_others(&state);
    }

    /// Records that the flush of a batch begins.
    pub(super) fn flush_begins(&self) {
        self.lock().n_flushing += 1;
    }

    /// Returns the number of batches being flushed.
    #[cfg(test)]
    pub(super) fn n_flushing(&self) -> usize {
        self.lock().n_flushing
    }

    /// Records that so many batches are on disk, or never will be.
    pub(super) fn flushed(&self, n: usize, failure: Option<&str>) {
        let mut state = self.lock();
        state.n_flushing = state.n_flushing.saturating_sub(n);
        if let Some(failure) = failure {
            state.failure.get_or_insert_with(|| failure.to_owned());
        }
        self.wake_writer(&state);
    }

    /// Returns why no more writes are accepted, if so.
    pub(super) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    /// Waits until the writer is between two batches and keeps it there.
    pub(super) fn hold(&self) -> Held<'_> {
        let mut state = self.lock();
        state.is_held = true;
        while state.is_writing {
            state = self.wait_for_room(state);
        }
        Held(self)
    }

    /// Records that the writer is gone: waiting writes are dropped, and nobody waits any longer.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        (state.is_closed, state.is_writing) = (true, false);
        let given_up = std::mem::take(&mut state.jobs);
        self.wake_others(&state);
        drop(state);
        drop(given_up);
    }

    /// Accepts no more writes; waiting ones are still written.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.wake_writer(&state);
        self.wake_others(&state);
    }
}

/// Keeps the writer between two batches until dropped.
pub(super) struct Held<'q>(&'q Queue);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_held = false;
        self.0.wake_writer(&state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::super::flush::tests::Answered;
    use super::*;

    #[test]
    fn a_batch_takes_in_what_comes_until_the_one_before_is_on_disk() {
        let queue = Queue::new(100);
        queue.flush_begins();
        let (ran, seen) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                while queue.next(false).is_some() {
                    ran.send(()).unwrap();
                }
                drop(ran);
            });
            for _ in 0..WORTHWHILE {
                assert!(queue.push(Answered::to_nobody()).is_ok());
            }
            assert_eq!(seen.iter().take(WORTHWHILE).count(), WORTHWHILE);
            assert!(queue.push(Answered::to_nobody()).is_ok());
            queue.flushed(1, None);
            assert_eq!(seen.iter().count(), 1, "the batch is over");
        });
        assert!(queue.next(false).is_none(), "nothing waits and nothing is on its way");
        queue.flush_begins();
        assert!(queue.next(true).is_none(), "a load waits for nothing");
    }

    #[test]
    fn a_full_queue_refuses_and_a_closed_one_is_emptied() {
        let queue = Queue::new(1);
        assert!(queue.push(Answered::to_nobody()).is_ok());
        assert!(matches!(queue.push(Answered::to_nobody()), Err(Refused::Full(_))));
        queue.close();
        assert!(matches!(queue.push_waiting(Answered::to_nobody()), Err(Refused::Closed)));
        assert!(matches!(queue.begin(), Begun::Batch(_)));
        queue.end();
        assert!(matches!(queue.begin(), Begun::Closed));
    }

    #[test]
    fn who_waits_for_a_writer_that_is_gone_is_let_go() {
        let queue = Queue::new(1);
        assert!(queue.push(Answered::to_nobody()).is_ok());
        assert!(matches!(queue.begin(), Begun::Batch(_)));
        assert!(queue.push(Answered::to_nobody()).is_ok());
        thread::scope(|scope| {
            let holder = scope.spawn(|| drop(queue.hold()));
            let pusher = scope.spawn(|| queue.push_waiting(Answered::to_nobody()));
            queue.abandon();
            holder.join().unwrap();
            assert!(matches!(pusher.join().unwrap(), Err(Refused::Closed)));
        });
        assert!(queue.lock().jobs.is_empty());
    }

    #[test]
    fn who_holds_the_writer_finds_it_between_two_batches() {
        let queue = Queue::new(10);
        assert!(queue.push(Answered::to_nobody()).is_ok());
        assert!(matches!(queue.begin(), Begun::Batch(_)));
        thread::scope(|scope| {
            let (held, is_held) = mpsc::channel();
            let holder = scope.spawn(|| {
                let writer = queue.hold();
                assert!(!queue.lock().is_writing);
                held.send(()).unwrap();
                drop(held);
                drop(writer);
            });
            assert!(is_held.try_recv().is_err(), "a batch is under way");
            queue.end();
            holder.join().unwrap();
            assert!(is_held.recv().is_ok());
        });
        assert!(!queue.lock().is_held);
    }
}
