//! Ranks of the documents that satisfy a condition, by the sum of the weights of other conditions.

use super::found::Found;
use super::layout::KEY;
use super::set::Set;
use super::values::each_value;
use crate::ranked::{FirstRanked, Weigher, Weighted};
use crate::{Result, View};

/// Bodies read in one step.
const STEP_BODIES: usize = 500;

impl Found<'_> {
    /// Returns the first `end` rows by descending rank.
    pub(crate) fn ranked(
        &mut self,
        view: &mut View<'_>,
        weighted: &[Weighted],
        end: u64,
    ) -> Result<FirstRanked> {
        let kind = self.kind;
        let weigher = Weigher::of(kind, weighted);
        let mut first = FirstRanked::of(end);
        // Decided on their bodies: what has changed since the commit, and what the index leaves undecided.
        let mut open: Vec<i64> = self.tail.iter().map(|it| it.key).collect();
        let n_changed = open.len();
        for (segment, set) in &self.segments {
            let mut ranks = vec![0_u64; segment.n_documents() as usize];
            let mut undecided = Set::empty(segment.n_documents());
            for it in weighted {
                let bounds = segment.satisfying(&it.expr, set)?;
                for doc in bounds.low.clone().and(set).iter() {
                    ranks[doc as usize] += u64::from(it.weight);
                }
                undecided.add(&bounds.high().clone().without(&bounds.low).and(set));
                view.check_pace()?;
            }
            let keys = segment.reader().fast_fields().i64(KEY)?;
            each_value(&keys, set, |doc, key| match undecided.has(doc) {
                true => open.push(key),
                false => first.add(ranks[doc as usize], key),
            });
        }
        self.n_read += (open.len() - n_changed) as u64;
        for step in open.chunks(STEP_BODIES) {
            for record in view.by_keys(kind, step)? {
                first.add(weigher.rank(kind, &record)?, record.key);
            }
            view.check_pace()?;
        }
        Ok(first)
    }
}
