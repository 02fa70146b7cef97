//! Bit sets of a segment's documents.

use super::recent::Measured;

/// A set of documents of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set {
    words: Vec<u64>,
    max_doc: u32,
}

impl Set {
    pub(super) fn empty(max_doc: u32) -> Self {
        Self { words: vec![0; max_doc.div_ceil(64) as usize], max_doc }
    }

    pub(super) fn full(max_doc: u32) -> Self {
        Self { words: vec![u64::MAX; max_doc.div_ceil(64) as usize], max_doc }.trimmed()
    }

    pub(super) fn insert(&mut self, doc: u32) {
        if let Some(word) = self.words.get_mut((doc / 64) as usize) {
            *word |= 1 << (doc % 64);
        }
    }

    pub(super) fn remove(&mut self, doc: u32) {
        if let Some(word) = self.words.get_mut((doc / 64) as usize) {
            *word &= !(1 << (doc % 64));
        }
    }

    pub(super) fn has(&self, doc: u32) -> bool {
        self.words.get((doc / 64) as usize).is_some_and(|word| word >> (doc % 64) & 1 == 1)
    }

    pub(super) fn len(&self) -> u64 {
        self.words.iter().map(|it| u64::from(it.count_ones())).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|it| *it == 0)
    }

    pub(super) fn and(mut self, other: &Self) -> Self {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= b);
        self
    }

    pub(super) fn or(mut self, other: &Self) -> Self {
        self.add(other);
        self
    }

    pub(super) fn without(mut self, other: &Self) -> Self {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= !b);
        self
    }

    pub(super) fn complement(mut self) -> Self {
        self.words.iter_mut().for_each(|it| *it = !*it);
        self.trimmed()
    }

    /// Clears the bits behind the last document.
    fn trimmed(mut self) -> Self {
        let n_over = self.max_doc % 64;
        if n_over != 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << n_over) - 1;
        }
        self
    }

    /// Adds the documents of another set.
    pub(super) fn add(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Adds documents among `within`. `chosen` returns which of the 64 documents from a multiple of 64 on are meant, the
    /// first as the lowest bit; it gets the multiple, and is not asked where `within` has none.
    pub(super) fn add_words(&mut self, within: &Self, chosen: impl Fn(usize) -> u64) {
        for (index, (word, within)) in self.words.iter_mut().zip(&within.words).enumerate() {
            if *within != 0 {
                *word |= within & chosen(index);
            }
        }
    }

    /// Iterates over the documents in ascending order.
    pub(super) fn iter(&self) -> Docs<'_> {
        Docs { words: self.words.iter(), word: 0, next: 0 }
    }
}

/// The documents of a set, in ascending order.
#[derive(Debug)]
pub(super) struct Docs<'s> {
    words: std::slice::Iter<'s, u64>,
    /// The documents of the current word that are left.
    word: u64,
    /// First document of the word after it.
    next: u32,
}

impl Iterator for Docs<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.word == 0 {
            self.word = *self.words.next()?;
            self.next = self.next.wrapping_add(64);
        }
        let bit = self.word.trailing_zeros();
        self.word &= self.word - 1;
        Some(self.next.wrapping_sub(64) + bit)
    }
}

impl Measured for Set {
    fn n_bytes(&self) -> usize {
        size_of::<u64>() * self.words.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Set;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn of(docs: &BTreeSet<u32>, max_doc: u32) -> Set {
        let mut set = Set::empty(max_doc);
        docs.iter().for_each(|it| set.insert(*it));
        set
    }

    proptest! {
        #[test]
        fn sets_are_sets(
            a in proptest::collection::btree_set(0..200_u32, 0..80),
            b in proptest::collection::btree_set(0..200_u32, 0..80),
        ) {
            let (x, y) = (of(&a, 200), of(&b, 200));
            let listed = |it: Set| it.iter().collect::<Vec<_>>();
            prop_assert_eq!(x.len(), a.len() as u64);
            prop_assert_eq!(listed(x.clone().and(&y)), a.intersection(&b).copied().collect::<Vec<_>>());
            prop_assert_eq!(listed(x.clone().or(&y)), a.union(&b).copied().collect::<Vec<_>>());
            prop_assert_eq!(listed(x.clone().without(&y)), a.difference(&b).copied().collect::<Vec<_>>());
            prop_assert_eq!(listed(x.clone().complement()), (0..200).filter(|it| !a.contains(it)).collect::<Vec<_>>());
            prop_assert_eq!(Set::full(200).len(), 200);
            prop_assert_eq!(x.is_empty(), a.is_empty());
        }
    }
}
