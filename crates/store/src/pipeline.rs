//! A bulk load in three concurrent stages: batches are read on one thread, prepared on others, and written in order on
//! the caller's. The queues between them are bounded, so only a few batches are in memory.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, available_parallelism};

/// Maximum number of batches waiting between two stages.
const WAITING_BATCHES: usize = 1;
/// Maximum number of preparing threads: with more, writing is the bottleneck.
const PREPARING_THREADS: usize = 4;

/// Loads batches through the three stages.
///
/// `read` passes batch after batch to its argument until that returns `false` (the load is ending) or no batches are
/// left; the return value of `read` is the result. `prepare` runs on several threads at once. `write` takes the
/// prepared batches in the order in which they were read; the value it returns is dropped on another thread, as freeing
/// a batch takes time.
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
    // The preparing threads share the receiver; the last one to end closes it.
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
        // The end of writing, for whatever reason, closes the queues and thereby ends the other stages.
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
        // A batch whose preparation panicked yields nothing; the scope propagates the panic.
        let Ok(batch) = ready.recv() else { break };
        if let Err(unsent) = used.send(write(batch)?) {
            // The thread is gone: this one frees the memory.
            drop(unsent);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::pipeline;

    /// The first batches take the longest to prepare, as far as threads allow, and still arrive in order.
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
