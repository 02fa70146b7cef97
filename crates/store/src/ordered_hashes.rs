//! Hashes in order, with a table that leads to each.

use std::sync::OnceLock;

/// Hashes that are looked up in one step.
const STEP: usize = 1_024;
/// Hashes are looked up by halving, without a table, if they are at most one in so many of those in order.
const MUCH_FEWER: usize = 64;
/// Number of hashes from the first of a beginning on that are compared without a branch. Few are not found among these,
/// as hashes are spread evenly.
const COMPARED: usize = 3;

/// Different hashes of 64 bits, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct OrderedHashes {
    hashes: Vec<i64>,
    table: OnceLock<Table>,
}

/// Where the hashes that begin with the same bits are.
#[derive(Debug, Clone)]
struct Table {
    /// Number of the other bits.
    shift: u32,
    /// The position of the first hash for each beginning, and the number of hashes.
    firsts: Vec<u32>,
}

impl PartialEq for OrderedHashes {
    fn eq(&self, other: &Self) -> bool {
        self.hashes == other.hashes
    }
}

impl Eq for OrderedHashes {}

/// Returns the number whose order among others is that of a hash.
fn unsigned(hash: i64) -> u64 {
    hash.cast_unsigned() ^ (1 << 63)
}

impl Table {
    fn of(hashes: &[i64]) -> Self {
        let n_bits = hashes.len().max(2).next_power_of_two().trailing_zeros();
        let shift = u64::BITS - n_bits;
        let mut firsts = vec![0; (1 << n_bits) + 1];
        for hash in hashes {
            firsts[(unsigned(*hash) >> shift) as usize + 1] += 1;
        }
        let mut n = 0;
        for first in &mut firsts {
            n += *first;
            *first = n;
        }
        Self { shift, firsts }
    }
}

impl OrderedHashes {
    /// Returns these hashes, each once. Runs that are in order already are merged.
    pub(crate) fn of(mut hashes: Vec<i64>) -> Self {
        hashes.sort();
        hashes.dedup();
        Self::in_order(hashes)
    }

    /// Returns these hashes, which are different and in order.
    pub(crate) fn in_order(hashes: Vec<i64>) -> Self {
        Self { hashes, table: OnceLock::new() }
    }

    pub(crate) fn as_slice(&self) -> &[i64] {
        &self.hashes
    }

    /// Returns the position of a hash.
    pub(crate) fn position(&self, hash: i64) -> Option<usize> {
        self.hashes.binary_search(&hash).ok()
    }

    /// Calls `visit` for each of some hashes that is one of these, with its position here and there.
    pub(crate) fn each_found(&self, some: &[i64], mut visit: impl FnMut(usize, usize)) {
        if some.len() < self.hashes.len() / MUCH_FEWER && self.table.get().is_none() {
            let found =
                some.iter().enumerate().filter_map(|(there, hash)| Some((self.position(*hash)?, there)));
            found.for_each(|(here, there)| visit(here, there));
            return;
        }
        let Some(last) = self.hashes.len().checked_sub(1) else { return };
        let Table { shift, firsts } = self.table.get_or_init(|| Table::of(&self.hashes));
        // Whether a hash is found cannot be foretold, so nothing branches on it before all of a step are looked up.
        let mut found = [(0, 0); STEP];
        for (step, hashes) in some.chunks(STEP).enumerate() {
            let mut n_found = 0;
            for (at, hash) in hashes.iter().enumerate() {
                let beginning = (unsigned(*hash) >> shift) as usize;
                let first = firsts[beginning] as usize;
                let is_before = |at: usize| usize::from(self.hashes[at.min(last)] < *hash);
                let n_before: usize = (first..first + COMPARED).map(is_before).sum();
                let mut here = first + n_before;
                if n_before == COMPARED {
                    let end = firsts[beginning + 1] as usize;
                    here += self.hashes[here.min(end)..end].partition_point(|it| it < hash);
                }
                found[n_found] = (here, step * STEP + at);
                n_found += usize::from(self.hashes[here.min(last)] == *hash);
            }
            found[..n_found].iter().for_each(|(here, there)| visit(*here, *there));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::OrderedHashes;

    fn check(hashes: &[i64], some: &[i64]) {
        let ordered = OrderedHashes::of(hashes.to_vec());
        let mut expected = Vec::new();
        for (there, hash) in some.iter().enumerate() {
            expected.extend(ordered.as_slice().iter().position(|it| it == hash).map(|here| (here, there)));
        }
        // The table is made by the first look-up of many.
        for _ in 0..2 {
            let mut found = Vec::new();
            ordered.each_found(some, |here, there| found.push((here, there)));
            assert_eq!(found, expected);
            ordered.each_found(&hashes.repeat(2), |_, _| {});
        }
    }

    proptest! {
        #[test]
        fn hashes_are_found(
            hashes in prop::collection::vec(any::<i64>(), 0..400),
            others in prop::collection::vec(any::<i64>(), 0..40),
        ) {
            let some: Vec<i64> = hashes.iter().step_by(3).chain(&others).copied().collect();
            check(&hashes, &some);
        }

        #[test]
        fn hashes_with_the_same_first_bits_are_found(
            hashes in prop::collection::vec(-20..20_i64, 0..60),
            others in prop::collection::vec(-25..25_i64, 0..40),
        ) {
            check(&hashes, &others);
        }
    }

    #[test]
    fn the_ends_are_found() {
        check(&[i64::MIN, i64::MAX], &[i64::MAX, 0, i64::MIN]);
        check(&[0], &[0, 0, -1, 1]);
        check(&[], &[0]);
    }
}
