//! Conditions with many values: the documents that have any of many terms with a common prefix.

use super::Segment;
use crate::index::set::Set;
use crate::{Path, Result, Value};

/// Number of values up to which terms are looked up one by one, and the cost of a condition is told from them.
const FEW_VALUES: usize = 64;
/// A look-up decodes a block of the dictionary, which takes as long as to read so many terms in order.
const TERMS_OF_LOOK_UP: u64 = 100;

impl Segment<'_> {
    /// Estimates the number of steps that equality with any of these values takes.
    pub(super) fn cost_of_any(&self, path: &Path, values: &[Value]) -> Result<u64> {
        let all = u64::from(self.max_doc);
        if FEW_VALUES < values.len() {
            return Ok(all);
        }
        let mut sum = 0;
        for value in values {
            sum += self.n_equal(path, value)?.unwrap_or(all);
        }
        Ok(sum)
    }

    /// Adds the documents with any of the terms that consist of `prefix` and one of `values`. For many values, the
    /// dictionary is read from the first to the last.
    pub(super) fn add_any<V: AsRef<[u8]>>(
        &self,
        prefix: &[u8],
        mut values: Vec<V>,
        set: &mut Set,
    ) -> Result<()> {
        let mut block = None;
        let n_terms_read = u64::from(self.max_doc);
        if values.len() <= FEW_VALUES || values.len() as u64 * TERMS_OF_LOOK_UP < n_terms_read {
            for value in values {
                self.add_term(&[prefix, value.as_ref()].concat(), &mut block, set)?;
            }
            return Ok(());
        }
        values.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        let [first, .., last] = values.as_slice() else { return Ok(()) };
        let (high, mut left) = ([last.as_ref(), &[0]].concat(), values.as_slice());
        self.each_term(prefix, first.as_ref(), Some(&high), |rest, info| {
            while left.first().is_some_and(|it| it.as_ref() < rest) {
                left = &left[1..];
            }
            if left.first().is_some_and(|it| it.as_ref() == rest) {
                self.add_postings(info, &mut block, set)?;
            }
            Ok(())
        })
    }
}
