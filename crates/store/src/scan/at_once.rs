//! Short pages in one statement, where each statement takes a round trip.

use super::lead::{Lead, Road};
use super::{Scan, order_sql};
use crate::{Record, Result, View};

/// Maximum number of records that are read at once: the engine sorts whole records.
pub(crate) const AT_ONCE_RECORDS: u64 = 256;

impl Scan {
    /// Returns the first `n` records of a page if a database decides it alone and they are few; `None` where keys are found
    /// first.
    pub(crate) fn records_at_once(&mut self, view: &mut View<'_>, n: u64) -> Result<Option<Vec<Record>>> {
        let is_short = (1..=AT_ONCE_RECORDS).contains(&n);
        if !view.is_remote() || !is_short || self.plan.is_empty || self.plan.residual.is_some() {
            return Ok(None);
        }
        let Some(order) = self.order_columns() else { return Ok(None) };
        if self.road(view, &order)? != Road::Engine
            || self.choice().leads(view, &order)?.promising != Lead::Engine
        {
            return Ok(None);
        }
        self.query.limit = Some(n);
        let (condition, order) = (self.where_sql(view), order_sql(view, "r.", &order));
        let window = self.window_sql(view);
        let sql = format!("{}{condition}{order}{window}", view.statements(self.declared)?.records);
        let found = view.records(self.declared, &sql, &self.plan.values)?;
        self.note("rows", || format!("{}, with the bodies", Lead::Engine.named()));
        Ok(Some(found))
    }
}
