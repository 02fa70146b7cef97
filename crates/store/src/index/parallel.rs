//! Runs one piece of work for each segment of an index, or for each part of its input, on several threads if it is
//! heavy.

use std::panic::resume_unwind;
use std::thread::{self, available_parallelism};

use crate::error::{Result, StoreError};
use crate::priority::step_back;

/// Maximum number of threads, which leaves some for other searches.
const THREADS: usize = 4;

/// Which threads do the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threads {
    /// The caller's only.
    One,
    /// Several.
    Several,
    /// Several; those other than the caller's run at low priority.
    SteppedBack,
}

impl Threads {
    /// Returns several from more than `heavy` documents on: below, starting a thread costs more than it saves.
    pub(super) fn for_documents(n_documents: u64, heavy: u64) -> Self {
        if heavy < n_documents { Self::Several } else { Self::One }
    }
}

/// Runs `work` on each segment and returns the results in order.
pub(super) fn on_each<S: Sync, T: Send>(
    segments: &[S],
    n_documents: impl Fn(&S) -> u32,
    threads: Threads,
    work: impl Fn(&S) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let n_threads = match threads {
        Threads::One => 1,
        _ => available_parallelism().map_or(1, usize::from).min(THREADS).min(segments.len()),
    };
    if n_threads < 2 {
        return segments.iter().map(work).collect();
    }
    let run = |numbers: Vec<usize>| -> Result<Vec<(usize, T)>> {
        numbers.into_iter().map(|it| Ok((it, work(&segments[it])?))).collect()
    };
    let run = &run;
    let begin = move |numbers| {
        if threads == Threads::SteppedBack {
            step_back();
        }
        run(numbers)
    };
    let mut shares = shares(segments.iter().map(n_documents), n_threads).into_iter();
    let own = shares.next().unwrap_or_default();
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| scope.spawn(move || begin(share))).collect();
        let mut all = run(own)?;
        for other in others {
            all.append(&mut other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok::<_, StoreError>(all)
    })?;
    all.sort_unstable_by_key(|it| it.0);
    Ok(all.into_iter().map(|it| it.1).collect())
}

/// Groups segment numbers by size so that each share has about as many documents.
fn shares(sizes: impl Iterator<Item = u32>, n_shares: usize) -> Vec<Vec<usize>> {
    let mut by_size: Vec<(u32, usize)> = sizes.enumerate().map(|(number, size)| (size, number)).collect();
    by_size.sort_unstable_by(|a, b| b.cmp(a));
    let mut shares = vec![(0_u64, Vec::new()); n_shares];
    for (size, number) in by_size {
        if let Some(least) = shares.iter_mut().min_by_key(|it| it.0) {
            least.0 += u64::from(size);
            least.1.push(number);
        }
    }
    shares.into_iter().map(|it| it.1).collect()
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn shares_are_of_about_one_size() {
        assert_eq!(shares([400, 300, 200, 100].into_iter(), 2), [[0, 3], [1, 2]]);
        assert_eq!(shares([5, 1, 1].into_iter(), 2), [vec![0], vec![2, 1]]);
        assert_eq!(shares([7].into_iter(), 2), [vec![0], vec![]]);
    }
}
