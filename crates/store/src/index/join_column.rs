//! The column of a path by which records are joined, in the order of its hashes.

use super::recent::Measured;

/// A list is searched for each hash of another one that is at most one in so many of its size; otherwise both are read.
const MUCH_LONGER: usize = 16;

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

    /// Calls `visit` with each document that has one of some hashes, which are in order, and with the hash's position
    /// among them.
    pub(super) fn each_with(&self, wanted: &[i64], mut visit: impl FnMut(usize, u32)) {
        if wanted.len() < self.hashes.len() / MUCH_LONGER {
            for (at, hash) in wanted.iter().enumerate() {
                let first = self.hashes.partition_point(|it| it < hash);
                let same = self.hashes[first..].iter().take_while(|it| *it == hash);
                same.zip(&self.docs[first..]).for_each(|(_, doc)| visit(at, *doc));
            }
            return;
        }
        let mut at = 0;
        for (hash, doc) in self.hashes.iter().zip(&self.docs) {
            while wanted.get(at).is_some_and(|it| it < hash) {
                at += 1;
            }
            match wanted.get(at) {
                Some(it) if it == hash => visit(at, *doc),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Returns each hash, in order, with its document.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, u32)> {
        self.hashes.iter().copied().zip(self.docs.iter().copied())
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
            let column = JoinColumn::of(pairs);
            for step in [wanted.len().max(1), 3] {
                let mut found = Vec::new();
                for wanted in wanted.chunks(step) {
                    column.each_with(wanted, |at, doc| found.push((wanted[at], doc)));
                }
                found.sort_unstable();
                prop_assert_eq!(&found, &expected);
            }
        }
    }
}
