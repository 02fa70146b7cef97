//! Queries: the records that satisfy a condition, their number, and how often values occur in them.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde_json::Value as Json;

use crate::scan::{AT_ONCE_RECORDS, Scan};
use crate::{Expr, FacetCount, Kind, Path, Query, Record, Result, StoreError, View};

/// Records read in one step when many are returned.
const STEP_RECORDS: usize = 256;
/// Keys held at once when a query asks for everything in insertion order.
const STEP_KEYS: u64 = 16_384;
/// Bytes of a list being collected that are not charged to the budget yet.
const HELD_STEP_BYTES: u64 = 256 << 10;

impl View<'_> {
    /// Returns the records of a query.
    ///
    /// Errors: more rows or bytes than [`crate::Limits::page_rows`] and [`crate::Limits::page_bytes`] allow, or than
    /// all requests together may hold ([`crate::Limits::held_bytes`]).
    pub fn find(&mut self, kind: &'static Kind, query: &Query) -> Result<Vec<Record>> {
        self.collected(|view, add| view.for_each(kind, query, add))
    }

    /// Returns the records that `pass` passes on.
    ///
    /// Errors: as [`View::find`].
    pub(crate) fn collected(
        &mut self,
        pass: impl FnOnce(&mut Self, &mut dyn FnMut(Record) -> ControlFlow<()>) -> Result<()>,
    ) -> Result<Vec<Record>> {
        let limits = self.shared.limits.clone();
        let (mut list, mut n_bytes, mut is_over) = (Vec::new(), 0_u64, false);
        let (mut held, mut n_held, mut crowded) = (self.shared.budget.nothing(), 0, Ok(()));
        pass(self, &mut |record| {
            n_bytes += record.body.len() as u64;
            is_over = limits.page_bytes < n_bytes || limits.page_rows <= list.len() as u64;
            list.push(record);
            if n_held + HELD_STEP_BYTES < n_bytes {
                n_held += HELD_STEP_BYTES;
                crowded = held.try_grow(HELD_STEP_BYTES);
            }
            if is_over || crowded.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        crowded?;
        if is_over {
            return Err(StoreError::Query(format!(
                "the page holds more than {} rows or {} bytes; ask for fewer with a limit",
                limits.page_rows, limits.page_bytes
            )));
        }
        Ok(list)
    }

    /// Passes the records of a query to `visit`, in order, until it breaks. Memory is bounded by the page.
    pub fn for_each(
        &mut self,
        kind: &'static Kind,
        query: &Query,
        mut visit: impl FnMut(Record) -> ControlFlow<()>,
    ) -> Result<()> {
        // Without an order or a limit the result may be everything, so its keys are read in steps.
        let is_all = query.order.is_empty() && query.limit.is_none();
        let mut query = match is_all {
            true => Cow::Owned(Query { limit: Some(STEP_KEYS), ..query.clone() }),
            false => Cow::Borrowed(query),
        };
        let mut scan = Scan::of(self, kind, &query)?;
        let n_first = query.limit.filter(|_| !is_all).unwrap_or(AT_ONCE_RECORDS);
        if let Some(records) = scan.records_at_once(self, n_first)? {
            let (n, last) = (records.len() as u64, records.last().map(Record::cursor));
            let is_over = records.into_iter().try_for_each(&mut visit).is_break();
            if is_over || n < n_first || query.limit == Some(n_first) {
                return Ok(());
            }
            let rest = query.to_mut();
            match rest.order.is_empty() {
                true => (rest.after, rest.skip) = (last, 0),
                false => rest.skip += n,
            }
            scan = Scan::of(self, kind, &query)?;
        }
        loop {
            let keys = scan.keys(self)?;
            let is_over = self.visit_keys(kind, &keys, &mut visit)?.is_break();
            if is_over || !is_all || (keys.len() as u64) < STEP_KEYS {
                return Ok(());
            }
            let rest = query.to_mut();
            (rest.after, rest.skip) = (keys.last().copied(), 0);
            scan = Scan::of(self, kind, &query)?;
        }
    }

    /// Passes the records of a query to a `visit` that may fail, which ends the iteration.
    ///
    /// Errors: the visit's; the store.
    pub fn try_for_each<E: From<StoreError>>(
        &mut self,
        kind: &'static Kind,
        query: &Query,
        mut visit: impl FnMut(Record) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut failure = None;
        self.for_each(kind, query, |record| match visit(record) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    /// Passes each record's id and parsed body to `visit`.
    ///
    /// Errors: a stored body is not JSON.
    pub fn for_each_body(
        &mut self,
        kind: &'static Kind,
        query: &Query,
        mut visit: impl FnMut(&str, Json) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut damaged = None;
        self.for_each(kind, query, |record| match record.json() {
            Ok(body) => visit(&record.id, body),
            Err(error) => {
                damaged = Some(error);
                ControlFlow::Break(())
            }
        })?;
        damaged.map_or(Ok(()), Err)
    }

    pub(crate) fn visit_keys(
        &mut self,
        kind: &'static Kind,
        keys: &[i64],
        visit: &mut impl FnMut(Record) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        for step in keys.chunks(STEP_RECORDS) {
            for record in self.by_keys(kind, step)? {
                if visit(record).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the first record, in insertion order, that satisfies a condition.
    pub fn first(&mut self, kind: &'static Kind, filter: Expr) -> Result<Option<Record>> {
        Ok(self.find(kind, &Query::filter(filter).window(0, 1))?.into_iter().next())
    }

    /// Returns how many records satisfy a condition.
    pub fn count(&mut self, kind: &'static Kind, filter: &Expr) -> Result<u64> {
        Scan::of(self, kind, &Query::filter(filter.clone()))?.count(self)
    }

    /// Returns the number of members ([`Kind::members`]) of all records that satisfy a condition.
    pub fn count_members(&mut self, kind: &'static Kind, filter: &Expr) -> Result<u64> {
        let query = Query::filter(filter.clone());
        let scan = Scan::of(self, kind, &query)?;
        if let Some(n) = scan.by_index_alone(self, |_, found| found.n_members().map(Some))? {
            return Ok(n);
        }
        let mut n = 0;
        self.for_each(kind, &query, |record| {
            n += record.n_members;
            ControlFlow::Continue(())
        })?;
        Ok(n)
    }

    /// Returns the sum of the numbers at the path of a column of whole numbers ([`crate::Type::Integer`]) of all records
    /// that satisfy a condition; a record without a number adds nothing.
    ///
    /// Errors: there is no such column, or the sum has more than 64 bits.
    pub fn sum(&mut self, kind: &'static Kind, filter: &Expr, path: &Path) -> Result<i64> {
        Scan::of(self, kind, &Query::filter(filter.clone()))?.sum(self, path)
    }

    /// Returns how often the values of each of `facets` occur in the records that satisfy a condition, each list by
    /// descending value. Facets that the kind does not declare yield an empty list.
    pub fn facets(
        &mut self,
        kind: &'static Kind,
        filter: &Expr,
        facets: &[&str],
    ) -> Result<Vec<Vec<FacetCount>>> {
        Scan::of(self, kind, &Query::filter(filter.clone()))?.facets(self, facets)
    }
}
