//! A bulk load in three stages at once: batches are read on one thread, prepared on others, and written in their order on
//! the caller's. The queues between are bounded, so a few batches are in memory at most.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, available_parallelism};

/// Batches that wait between two stages at most.
const WAITING_BATCHES: usize = 1;
/// Threads that prepare at most: the one that writes is the slower part beyond.
const PREPARING_THREADS: usize = 4;

/// Loads batches.
///
/// `read` gives batch after batch to its argument until that says `false` (nobody takes more) or there are none; what `read`
/// itself gives back is the result. `prepare` runs on several threads at once. `write` takes the prepared batches in
/// the order in which they were read; what it gives back is dropped on another thread, as freeing a batch takes its time.
///
/// # Errors
/// The first error of `write`, which ends the other stages.
///
/// # Panics
/// As `read` or `prepare` does.
pub fn pipeline<Raw: Send, Ready: Send, Used: Send, End: Send, E>(
    read: impl FnOnce(&mut dyn FnMut(Raw) -> bool) -> End + Send,
    prepare: impl Fn(Raw) -> Ready + Sync,
    mut write: impl FnMut(Ready) -> Result<Used, E>,
) -> Result<End, E> {
    let n_threads = available_parallelism().map_or(1, usize::from).clamp(1, PREPARING_THREADS);
    let (raw, to_prepare) = sync_channel::<(Raw, SyncSender<Ready>)>(WAITING_BATCHES);
    let (order, in_order) = sync_channel(n_threads + WAITING_BATCHES);
    let (used, to_drop) = sync_channel(WAITING_BATCHES);
    // The threads that prepare share it; the last one that ends closes it.
    let to_prepare = Arc::new(Mutex::new(to_prepare));
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            read(&mut |batch| {
                let (answer, ready) = sync_channel(1);
                order.send(ready).is_ok() && raw.send((batch, answer)).is_ok()
            })
        });
        for _ in 0..n_threads {
            let (to_prepare, prepare) = (Arc::clone(&to_prepare), &prepare);
            scope.spawn(move || prepare_all(&to_prepare, prepare));
        }
        drop(to_prepare);
        scope.spawn(move || to_drop.into_iter().for_each(drop::<Used>));
        // Whatever ends the writing closes the queues, and with them the other stages.
        write_all(in_order, &mut write, used)?;
        Ok(reader.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn prepare_all<Raw, Ready>(
    batches: &Mutex<Receiver<(Raw, SyncSender<Ready>)>>,
    prepare: &impl Fn(Raw) -> Ready,
) {
    loop {
        let next = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((raw, answer)) = next else { return };
        if answer.send(prepare(raw)).is_err() {
            return;
        }
    }
}

fn write_all<Ready, Used, E>(
    in_order: Receiver<Receiver<Ready>>,
    write: &mut impl FnMut(Ready) -> Result<Used, E>,
    used: SyncSender<Used>,
) -> Result<(), E> {
    for ready in in_order {
        // Nothing comes of a batch whose preparing panicked; the scope tells of that.
        let Ok(batch) = ready.recv() else { break };
        if let Err(unsent) = used.send(write(batch)?) {
            // The thread is gone: this one gives the memory back.
            drop(unsent);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::pipeline;

    /// Batches of which the first takes longest to prepare, as far as threads allow, come in their order.
    #[test]
    fn batches_are_written_in_the_order_of_reading() {
        let read = |take: &mut dyn FnMut(u64) -> bool| (0..200).filter(|it| take(*it)).count();
        let prepare = |number: u64| {
            let work: u64 = (0..(200 - number) * 500).fold(number, |sum, it| sum.wrapping_mul(31) ^ it);
            (number, std::hint::black_box(work))
        };
        let mut written = Vec::new();
        let n_read = pipeline(read, prepare, |(number, _)| {
            written.push(number);
            Ok::<_, ()>(())
        });
        assert_eq!(n_read, Ok(200));
        assert_eq!(written, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn an_error_of_writing_ends_the_reading() {
        let read = |take: &mut dyn FnMut(u64) -> bool| {
            let mut number = 0;
            while take(number) {
                number += 1;
            }
            number
        };
        let write = |number: u64| if number == 3 { Err("the disk is full") } else { Ok(number) };
        assert_eq!(pipeline(read, |it| it, write), Err("the disk is full"));
    }

    #[test]
    #[should_panic(expected = "a broken source")]
    fn a_panic_of_reading_is_the_callers() {
        let read = |_: &mut dyn FnMut(u64) -> bool| panic!("a broken source");
        let _: Result<(), ()> = pipeline(read, |it| it, Ok);
    }
}
