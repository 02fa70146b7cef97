//! Answers of the search index.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::Scan;
use super::sorting::Sorting;
use crate::columns::one_columns;
use crate::index::{
    Candidates, Extent, FirstRows, Found, MANY_RECORDS, ORDERS, Snapshot, SortBy, is_indexed,
};
use crate::parts::Parts;
use crate::session::State;
use crate::{Arity, Direction, Order, Query, Result, StoreError, Type, View};

/// Number of records from which the search index is used where rows would have to be read; where bodies would, it is
/// always used.
const FEWEST_ROWS: u64 = 2_000;
/// Bodies read in one step.
const STEP_BODIES: usize = 500;
/// Maximum number of rows from the first one to the end of a page for which bodies are read along the order.
const DECIDED_ROWS: u64 = 500;
/// Number of rows whose bodies are read in the first step along an order, and in all.
const DECIDED_FIRST: usize = 64;
const DECIDED_LAST: usize = 20_000;

/// What the search index gives for a page.
enum Rows {
    /// The rows of the page, in order.
    Sorted(Vec<i64>),
    /// Records among which the page is, to be sorted by their bodies.
    OfBodies(Candidates),
}

/// Returns the first `end` rows of an order. Bodies are read along the order until there are so many rows that satisfy
/// the condition; `None` when more would have to be read than is worth it.
fn decided_along(
    view: &mut View<'_>,
    found: &mut Found<'_>,
    order: &[(SortBy, Direction)],
    page: Option<&FirstRows>,
    end: usize,
) -> Result<Option<Vec<i64>>> {
    let mut decided: HashMap<i64, bool> = HashMap::new();
    let mut n_rows = (2 * end).max(DECIDED_FIRST);
    while n_rows <= DECIDED_LAST {
        let walked = page.map_or(Ok(None), |it| found.first_rows(&it.up_to(n_rows)))?;
        let rows = match walked {
            Some(rows) => rows,
            None => {
                found.settle_periods()?;
                match found.keys(order, None, 0, Some(n_rows as u64))? {
                    Some(rows) => rows,
                    None => return Ok(None),
                }
            }
        };
        let new: Vec<i64> = rows.iter().copied().filter(|it| !decided.contains_key(it)).collect();
        decided.extend(new.iter().map(|it| (*it, false)));
        decided.extend(found.held(view, new)?.into_iter().map(|it| (it, true)));
        let held: Vec<i64> = rows.iter().copied().filter(|it| decided[it]).take(end).collect();
        if held.len() == end || rows.len() < n_rows {
            return Ok(Some(held));
        }
        n_rows *= 4;
    }
    Ok(None)
}

impl Scan {
    /// Returns the search index if it may answer.
    pub(super) fn index(&self, view: &View<'_>) -> Option<Arc<Snapshot>> {
        if !std::ptr::eq(self.kind, self.declared) {
            return None;
        }
        let snapshot = view.indexes.as_ref()?.get(self.kind.name)?;
        let has_residual = self.plan.residual.is_some();
        let reads_bodies = has_residual || self.plan.has_text || self.order_columns().is_none();
        let fewest = if reads_bodies { MANY_RECORDS } else { FEWEST_ROWS };
        let is_asked = match view.state {
            State::Committed => {
                let is_narrowed = !self.plan.conditions.is_empty() || self.plan.classes.is_some();
                reads_bodies || is_narrowed || !self.is_led()
            }
            // Writers mostly look a value up in an index of the engine, which a range or a beginning leads to many rows.
            State::Open => has_residual && self.plan.conditions.len() == self.plan.n_wide,
        };
        (is_asked && fewest <= snapshot.n_documents()).then(|| Arc::clone(snapshot))
    }

    /// Returns the window of rows ordered by values from their bodies.
    fn keys_of_bodies(
        &self,
        view: &mut View<'_>,
        Candidates { keys, n_before }: &Candidates,
    ) -> Result<Vec<i64>> {
        let query = Query { skip: self.query.skip.saturating_sub(*n_before), ..self.query.clone() };
        let mut rows = Sorting::of(self.declared, &query, &view.shared.limits);
        let parts = Parts::default().with(self.query.order.iter().map(|it| &it.path));
        for step in keys.chunks(STEP_BODIES) {
            for record in view.by_keys(self.kind, step)? {
                rows.add(record.key, &record.json_of(&parts)?)?;
            }
            view.check_pace()?;
        }
        self.note("rows", || format!("{} bodies read and sorted", keys.len()));
        Ok(rows.window())
    }

    /// Returns the rows of the answer by the search index; `None` when it cannot find them. Rows that it cannot sort
    /// are sorted by their bodies if there are at most `most_bodies`.
    pub(super) fn keys_by_index(&self, view: &mut View<'_>, most_bodies: u64) -> Result<Option<Vec<i64>>> {
        let order: Option<Vec<_>> = self.query.order.iter().map(|it| self.sort_by(it)).collect();
        let order = order.filter(|it| it.len() <= ORDERS);
        let Query { after, skip, limit, .. } = self.query;
        let page = match order.as_deref() {
            Some([(SortBy::Column(place), direction)]) => {
                FirstRows::of(self.kind, *place, *direction, skip, limit)
            }
            _ => None,
        };
        let end =
            limit.and_then(|it| skip.checked_add(it)).filter(|it| *it <= DECIDED_ROWS && after.is_none());
        let extent = if end.is_some() { Extent::Page(page.as_ref()) } else { Extent::All };
        let found = self.by_index(view, extent, |view, found| {
            if found.is_open() {
                if let (Some(order), Some(end)) = (&order, end)
                    && let Some(keys) = decided_along(view, found, order, page.as_ref(), end as usize)?
                {
                    return Ok(Some(Rows::Sorted(keys.into_iter().skip(skip as usize).collect())));
                }
                found.decide(view)?;
            }
            if let Some(page) = &page
                && let Some(keys) = found.first_rows(page)?
            {
                return Ok(Some(Rows::Sorted(keys)));
            }
            found.settle_periods()?;
            if let Some(order) = &order {
                if let Some(keys) = found.keys(order, after, skip, limit)? {
                    return Ok(Some(Rows::Sorted(keys)));
                }
                if let Some(candidates) = found.candidates(order, skip, limit)? {
                    return Ok(Some(Rows::OfBodies(candidates)));
                }
            }
            if most_bodies < found.count() {
                return Ok(None);
            }
            let keys = found.keys(&[], after, 0, None)?;
            Ok(keys.map(|keys| Rows::OfBodies(Candidates { keys, n_before: 0 })))
        })?;
        match found {
            Some(Rows::Sorted(keys)) => Ok(Some(keys)),
            Some(Rows::OfBodies(candidates)) => self.keys_of_bodies(view, &candidates).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the search index's sort for an order; it has no column of ids.
    fn sort_by(&self, order: &Order) -> Option<(SortBy, Direction)> {
        if self.kind.is_id(&order.path) {
            return None;
        }
        let by = match self.kind.column_of(&order.path) {
            Some(column) if column.arity == Arity::One => {
                SortBy::Column(one_columns(self.kind).position(|it| it.name == column.name)?)
            }
            // A text in the place of such a list is compared without case and accents.
            Some(column) if column.ty == Type::Folded => return None,
            _ if is_indexed(self.kind, &order.path) => SortBy::Path(order.path.clone()),
            _ => return None,
        };
        Some((by, order.direction))
    }

    /// Returns an answer of the search index; `None` when it has none. An index that fails, whatever damaged it, is rebuilt,
    /// and something else answers.
    pub(super) fn by_index<T>(
        &self,
        view: &mut View<'_>,
        extent: Extent<'_>,
        answer: impl FnOnce(&mut View<'_>, &mut Found<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        match self.index(view) {
            Some(snapshot) => self.by_snapshot(view, &snapshot, extent, answer),
            None => Ok(None),
        }
    }

    /// As [`Scan::by_index`], where nothing but bodies could answer instead.
    pub(crate) fn by_index_alone<T>(
        &self,
        view: &mut View<'_>,
        answer: impl FnOnce(&mut View<'_>, &mut Found<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let is_declared = std::ptr::eq(self.kind, self.declared) && view.state == State::Committed;
        let snapshot = view.indexes.as_ref().filter(|_| is_declared).and_then(|it| it.get(self.kind.name));
        match snapshot.cloned() {
            Some(snapshot) => self.by_snapshot(view, &snapshot, Extent::All, answer),
            None => Ok(None),
        }
    }

    fn by_snapshot<T>(
        &self,
        view: &mut View<'_>,
        snapshot: &Snapshot,
        extent: Extent<'_>,
        answer: impl FnOnce(&mut View<'_>, &mut Found<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let classes = self.plan.classes.as_deref();
        let asked = catch_unwind(AssertUnwindSafe(|| {
            match snapshot.find(view, self.kind, &self.plan.rest, classes, extent)? {
                Some(mut found) => {
                    let given = answer(view, &mut found)?;
                    let how = if given.is_some() { "" } else { " (which cannot give them in this order)" };
                    self.note("answer", || {
                        let n_found = found.known_count().map_or_else(
                            || "walked along the order to the end of the page".to_owned(),
                            |it| format!("{it} found"),
                        );
                        format!(
                            "search index{how}, {n_found}, {} bodies read to decide, {} changed since",
                            found.n_read, found.n_changed
                        )
                    });
                    Ok(given)
                }
                None => {
                    self.note("answer", || "the search index is too far behind".into());
                    Ok(None)
                }
            }
        }));
        let error = match asked {
            Ok(Err(error @ StoreError::Index(_))) => error,
            Ok(result) => return result,
            Err(_) => StoreError::Panicked,
        };
        tracing::warn!(kind = self.kind.name, %error, "a search index failed; rebuilding it");
        if let Some(indexes) = view.shared.indexes.get() {
            indexes.distrust(self.kind);
        }
        Ok(None)
    }
}
