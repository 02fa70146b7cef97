//! Terms of a dictionary from a place backwards. A dictionary is read forward only, so some terms are read at once.

use tantivy::postings::TermInfo;
use tantivy::termdict::TermDictionary;

use crate::Result;
use crate::index::condition::failed;

/// Number of terms that are read at once.
const TERMS: u64 = 64;

/// The terms between two places, backwards.
pub(super) struct Backward<'t> {
    terms: &'t TermDictionary,
    first: Vec<u8>,
    /// Ordinal of the first term that was read.
    read_from: u64,
    /// What was read and not passed: the current term last.
    read: Vec<(Vec<u8>, TermInfo)>,
}

impl<'t> Backward<'t> {
    /// Begins in front of `end`; `first` is the least term that is wanted.
    pub(super) fn begin(terms: &'t TermDictionary, first: &[u8], end: &[u8]) -> Result<Self> {
        let mut stream = terms.range().ge(end).into_stream().map_err(failed)?;
        let read_from = if stream.advance() { stream.term_ord() } else { terms.num_terms() as u64 };
        Ok(Self { terms, first: first.to_vec(), read_from, read: Vec::new() })
    }

    /// Moves on to the next term and returns it, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<&(Vec<u8>, TermInfo)>> {
        self.read.pop();
        if self.read.is_empty() && self.read_from != 0 {
            let end = self.read_from;
            self.read_from = end.saturating_sub(TERMS);
            let mut from = Vec::new();
            self.terms.ord_to_term(self.read_from, &mut from).map_err(failed)?;
            if from < self.first {
                self.read_from = 0;
                from.clone_from(&self.first);
            }
            let mut stream = self.terms.range().ge(&from).into_stream().map_err(failed)?;
            while stream.advance() && stream.term_ord() < end {
                self.read.push((stream.key().to_vec(), stream.value().clone()));
            }
        }
        Ok(self.current())
    }

    pub(super) fn current(&self) -> Option<&(Vec<u8>, TermInfo)> {
        self.read.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tantivy::directory::{Directory as _, RamDirectory, TerminatingWrite as _};
    use tantivy::termdict::TermDictionaryBuilder;

    fn term(number: u32) -> Vec<u8> {
        format!("{number:05}").into_bytes()
    }

    proptest! {
        #[test]
        fn they_are_those_in_between(
            numbers in proptest::collection::btree_set(0..3_000_u32, 0..1_500),
            first in 0..3_000_u32,
            end in 0..3_000_u32,
        ) {
            let directory = RamDirectory::create();
            let path = std::path::Path::new("terms");
            let mut builder = TermDictionaryBuilder::create(directory.open_write(path).expect("a file")).expect("a builder");
            let info = |number: u32| TermInfo { doc_freq: number, ..TermInfo::default() };
            for number in &numbers {
                builder.insert(term(*number), &info(*number)).expect("a term");
            }
            builder.finish().expect("terms").terminate().expect("a file");
            let terms = TermDictionary::open(directory.open_read(path).expect("a file")).expect("a dictionary");
            let mut backward = Backward::begin(&terms, &term(first), &term(end)).expect("a place");
            let mut found = Vec::new();
            while let Some(found_next) = backward.next().expect("a term") {
                found.push(found_next.clone());
            }
            let between = numbers.iter().rev().filter(|it| (first..end).contains(*it));
            let expected: Vec<_> = between.map(|it| (term(*it), info(*it))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
