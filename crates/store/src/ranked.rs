//! Records in the order of how well they satisfy conditions that each have a weight.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::index::{Decider, parse};
use crate::plan::typed;
use crate::scan::Scan;
use crate::{Expr, Kind, Query, Record, Result, View, explain};

/// Number of rows that are held before those behind the end are dropped.
const SPARE_ROWS: usize = 4_096;

/// A condition, and what it adds to the rank of a record that satisfies it.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    /// The condition.
    pub expr: Expr,
    /// What it adds.
    pub weight: u32,
}

/// A record with its rank: the sum of the weights of the conditions that it satisfies.
#[derive(Debug, Clone)]
pub struct Ranked {
    /// The sum.
    pub rank: u64,
    /// The record.
    pub record: Record,
}

/// Weighted conditions, decided on bodies.
pub(crate) struct Weigher<'w> {
    weighted: &'w [Weighted],
    deciders: Vec<Decider>,
}

impl<'w> Weigher<'w> {
    pub(crate) fn of(kind: &'static Kind, weighted: &'w [Weighted]) -> Self {
        Self { weighted, deciders: weighted.iter().map(|it| Decider::of(kind, &it.expr)).collect() }
    }

    /// Returns the rank of a record.
    ///
    /// Errors: the body is not JSON.
    pub(crate) fn rank(&self, kind: &'static Kind, record: &Record) -> Result<u64> {
        let body = parse(kind, &record.id, &record.body)?;
        let mut rank = 0;
        for (it, decider) in self.weighted.iter().zip(&self.deciders) {
            if decider.holds(&it.expr, &record.id, &record.body, &body)? {
                rank += u64::from(it.weight);
            }
        }
        Ok(rank)
    }
}

/// The first rows of an order by descending rank; rows of the same rank are in insertion order.
pub(crate) struct FirstRanked {
    end: usize,
    rows: Vec<(Reverse<u64>, i64)>,
}

impl FirstRanked {
    /// Returns none of the first `end` rows yet.
    pub(crate) fn of(end: u64) -> Self {
        Self { end: usize::try_from(end).unwrap_or(usize::MAX), rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, rank: u64, key: i64) {
        self.rows.push((Reverse(rank), key));
        if self.end <= self.rows.len() / 2 && SPARE_ROWS < self.rows.len() {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        if self.end < self.rows.len() {
            self.rows.select_nth_unstable(self.end);
            self.rows.truncate(self.end);
        }
    }

    /// Returns the rows from `skip` on, each with its rank.
    pub(crate) fn behind(mut self, skip: u64) -> Vec<(u64, i64)> {
        self.shorten();
        self.rows.sort_unstable();
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        self.rows.into_iter().skip(skip).map(|(Reverse(rank), key)| (rank, key)).collect()
    }
}

impl View<'_> {
    /// Returns a window of the records that satisfy `filter`, those of the highest rank first. Records of the same rank
    /// are in insertion order. The search index decides the conditions; without one, all bodies are read.
    ///
    /// Errors: as [`View::find`].
    pub fn ranked(
        &mut self,
        kind: &'static Kind,
        filter: &Expr,
        weighted: &[Weighted],
        skip: u64,
        limit: u64,
    ) -> Result<Vec<Ranked>> {
        let weighted: Vec<Weighted> =
            weighted.iter().map(|it| Weighted { expr: typed(kind, &it.expr), weight: it.weight }).collect();
        let query = Query::filter(filter.clone());
        let scan = Scan::of(self, kind, &query)?;
        let end = skip.saturating_add(limit);
        let by_index =
            scan.by_index_alone(self, |view, found| found.ranked(view, &weighted, end).map(Some))?;
        let first = match by_index {
            Some(first) => first,
            None => self.ranked_by_bodies(kind, &query, &weighted, end)?,
        };
        let rows = first.behind(skip);
        let keys: Vec<i64> = rows.iter().map(|it| it.1).collect();
        let ranks: HashMap<i64, u64> = rows.into_iter().map(|(rank, key)| (key, rank)).collect();
        let records = self.collected(|view, mut add| view.visit_keys(kind, &keys, &mut add).map(|_| ()))?;
        Ok(records.into_iter().map(|record| Ranked { rank: ranks[&record.key], record }).collect())
    }

    fn ranked_by_bodies(
        &mut self,
        kind: &'static Kind,
        query: &Query,
        weighted: &[Weighted],
        end: u64,
    ) -> Result<FirstRanked> {
        explain::note(|| format!("{} rank: bodies read", kind.name));
        let weigher = Weigher::of(kind, weighted);
        let mut first = FirstRanked::of(end);
        self.try_for_each(kind, query, |record| {
            first.add(weigher.rank(kind, &record)?, record.key);
            Ok::<_, crate::StoreError>(())
        })?;
        Ok(first)
    }
}
