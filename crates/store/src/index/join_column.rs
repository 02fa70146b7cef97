//! The column of a path by which records are joined, in the order of its hashes.

use super::recent::Measured;
use super::set::Set;
use crate::ordered_hashes::OrderedHashes;

/// A column is searched for each of some hashes that are at most one in so many of its own; otherwise it is read.
const MUCH_LONGER: usize = 16;
/// Documents that are looked up in one step.
const STEP: usize = 1_024;

/// The hashes of a column in order, each with a document that has it.
#[derive(Debug, Default)]
pub(super) struct JoinColumn {
    hashes: Vec<i64>,
    docs: Vec<u32>,
}

impl JoinColumn {
    pub(super) fn of(mut pairs: Vec<(i64, u32)>) -> Self {
        pairs.sort_unstable();
        let (hashes, docs) = pairs.into_iter().unzip();
        Self { hashes, docs }
    }

    /// Calls `visit` with each document that has one of some hashes, and with the hash's position among them.
    pub(super) fn each_with(&self, wanted: &OrderedHashes, mut visit: impl FnMut(usize, u32)) {
        let hashes = wanted.as_slice();
        if hashes.len() < self.hashes.len() / MUCH_LONGER {
            for (at, hash) in hashes.iter().enumerate() {
                let first = self.hashes.partition_point(|it| it < hash);
                let same = self.hashes[first..].iter().take_while(|it| *it == hash);
                same.zip(&self.docs[first..]).for_each(|(_, doc)| visit(at, *doc));
            }
            return;
        }
        wanted.each_found(&self.hashes, |at, there| visit(at, self.docs[there]));
    }

    /// Calls `visit` with each hash of the documents of a set, in order, and its document.
    pub(super) fn each_of(&self, set: &Set, mut visit: impl FnMut(i64, u32)) {
        // Whether a document is in the set cannot be foretold, so nothing branches on it before all of a step are known.
        let mut found = [0; STEP];
        for (hashes, docs) in self.hashes.chunks(STEP).zip(self.docs.chunks(STEP)) {
            let mut n_found = 0;
            for (at, doc) in docs.iter().enumerate() {
                found[n_found] = at;
                n_found += usize::from(set.has(*doc));
            }
            found[..n_found].iter().for_each(|at| visit(hashes[*at], docs[*at]));
        }
    }
}

impl Measured for JoinColumn {
    fn n_bytes(&self) -> usize {
        size_of::<i64>() * self.hashes.len() + size_of::<u32>() * self.docs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn documents_with_hashes_are_found(
            pairs in prop::collection::vec((0..60_i64, 0..1_000_u32), 0..200),
            wanted in prop::collection::btree_set(0..70_i64, 0..60),
        ) {
            let wanted: Vec<i64> = wanted.into_iter().collect();
            let mut expected: Vec<(i64, u32)> =
                pairs.iter().copied().filter(|it| wanted.contains(&it.0)).collect();
            expected.sort_unstable();
            let column = JoinColumn::of(pairs.clone());
            let mut set = Set::empty(1_000);
            pairs.iter().filter(|it| it.1 % 3 == 0).for_each(|it| set.insert(it.1));
            let mut of_set = Vec::new();
            column.each_of(&set, |hash, doc| of_set.push((hash, doc)));
            let mut in_order = pairs;
            in_order.sort_unstable();
            in_order.retain(|it| set.has(it.1));
            prop_assert_eq!(of_set, in_order);
            for step in [wanted.len().max(1), 3] {
                let mut found = Vec::new();
                for wanted in wanted.chunks(step) {
                    let ordered = OrderedHashes::of(wanted.to_vec());
                    column.each_with(&ordered, |at, doc| found.push((wanted[at], doc)));
                }
                found.sort_unstable();
                prop_assert_eq!(&found, &expected);
            }
        }
    }
}
