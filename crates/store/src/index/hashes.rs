//! Sorted hashes of a list's entries: how often each occurs among some documents, and how many there are in all.

use std::borrow::Cow;

use super::recent::Measured;

/// A run is searched for each hash of another one that is at most one in so many of its size; otherwise both are read.
const MUCH_LONGER: usize = 16;

/// Distinct hashes in order, with the number of times that each occurs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Hashes {
    distinct: Vec<i64>,
    n_times: Vec<u32>,
}

impl Hashes {
    pub(super) fn of(mut values: Vec<i64>) -> Self {
        values.sort_unstable();
        let mut hashes = Self::default();
        for same in values.chunk_by(|a, b| a == b) {
            hashes.distinct.push(same[0]);
            hashes.n_times.push(u32::try_from(same.len()).unwrap_or(u32::MAX));
        }
        hashes.distinct.shrink_to_fit();
        hashes.n_times.shrink_to_fit();
        hashes
    }

    /// Returns the distinct ones, in order.
    pub(super) fn distinct(&self) -> &[i64] {
        &self.distinct
    }

    /// Returns how often a hash occurs.
    pub(super) fn n_times(&self, hash: i64) -> u32 {
        self.distinct.binary_search(&hash).map_or(0, |at| self.n_times[at])
    }

    /// Returns those that occur more often than in `gone`.
    pub(super) fn without(&self, gone: &Self) -> Cow<'_, [i64]> {
        if gone.distinct.is_empty() {
            return Cow::Borrowed(&self.distinct);
        }
        let mut left = gone.distinct.iter().zip(&gone.n_times).peekable();
        let mut kept = Vec::with_capacity(self.distinct.len());
        for (hash, n_times) in self.distinct.iter().zip(&self.n_times) {
            while left.next_if(|it| it.0 < hash).is_some() {}
            if left.peek().is_none_or(|it| it.0 != hash || it.1 < n_times) {
                kept.push(*hash);
            }
        }
        Cow::Owned(kept)
    }
}

impl Measured for Hashes {
    fn n_bytes(&self) -> usize {
        size_of::<i64>() * self.distinct.len() + size_of::<u32>() * self.n_times.len()
    }
}

/// Returns how many distinct hashes sorted runs have in all.
pub(super) fn n_in_any(mut runs: Vec<Cow<'_, [i64]>>) -> u64 {
    // The two shortest are united first, so that no hash is copied more often than needed.
    runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
    loop {
        let Some(a) = runs.pop() else { return 0 };
        let Some(b) = runs.pop() else { return a.len() as u64 };
        if runs.is_empty() {
            return (a.len() + b.len()) as u64 - n_in_both(&a, &b);
        }
        let both = united(&a, &b);
        let at = runs.partition_point(|run| both.len() < run.len());
        runs.insert(at, Cow::Owned(both));
    }
}

fn united(a: &[i64], b: &[i64]) -> Vec<i64> {
    let mut both = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        both.push(*x.min(y));
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    both.extend_from_slice(&a[i..]);
    both.extend_from_slice(&b[j..]);
    both
}

fn n_in_both(short: &[i64], long: &[i64]) -> u64 {
    if short.len() < long.len() / MUCH_LONGER {
        return short.iter().filter(|it| long.binary_search(it).is_ok()).count() as u64;
    }
    let (mut i, mut j, mut n) = (0, 0, 0);
    while let (Some(x), Some(y)) = (short.get(i), long.get(j)) {
        n += u64::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn they_count_as_sets_do(
            runs in proptest::collection::vec(proptest::collection::vec(0..300_i64, 0..150), 0..5),
            n_gone in 0..60_usize,
        ) {
            let mut all = BTreeSet::new();
            let mut kept = Vec::new();
            for run in &runs {
                let (hashes, n_gone) = (Hashes::of(run.clone()), n_gone.min(run.len()));
                let gone = Hashes::of(run[..n_gone].to_vec());
                let left: BTreeSet<i64> = run[n_gone..].iter().copied().collect();
                for hash in 0..300 {
                    let expected = run.iter().filter(|it| **it == hash).count();
                    prop_assert_eq!(hashes.n_times(hash) as usize, expected);
                }
                let without = hashes.without(&gone).into_owned();
                prop_assert_eq!(&without, &left.iter().copied().collect::<Vec<_>>());
                all.extend(left);
                kept.push(Cow::Owned(without));
            }
            prop_assert_eq!(n_in_any(kept), all.len() as u64);
        }
    }
}
