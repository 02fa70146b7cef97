//! Sums of whole numbers: from the search index, from a column, or from bodies.

use std::ops::ControlFlow;

use serde_json::Value as Json;

use super::Scan;
use super::lead::{Lead, Road};
use crate::columns::one_columns;
use crate::eval::value_at;
use crate::index::Extent;
use crate::{Arity, Path, Result, StoreError, Type, View};

impl Scan {
    /// Returns the sum of the numbers at the path of a column of whole numbers.
    ///
    /// Errors: there is no such column, or the sum has more than 64 bits.
    pub(crate) fn sum(mut self, view: &mut View<'_>, path: &Path) -> Result<i64> {
        let column = self.declared.column_of(path);
        let Some(column) = column.filter(|it| (it.ty, it.arity) == (Type::Integer, Arity::One)) else {
            return Err(StoreError::Query(format!(
                "{} has no column of whole numbers there",
                self.declared.name
            )));
        };
        let road = if self.plan.is_empty { Road::Nothing } else { self.road(view, &[])? };
        if road == Road::Nothing {
            return Ok(0);
        }
        let place = one_columns(self.declared).position(|it| it.name == column.name);
        if road == Road::Index
            && let Some(place) = place
            && let Some(sum) = self.by_index(view, Extent::All, |_, found| found.sum(place).map(Some))?
        {
            return self.fitting(sum);
        }
        let is_held = self.kind.column_of(path).is_some();
        if self.plan.residual.is_none() && is_held {
            let condition = self.where_sql(view);
            let sql = format!(
                "SELECT CAST(coalesce(sum(r.\"{}\"), 0) AS bigint) FROM \"k_{}\" r{condition}",
                column.name, self.kind.name
            );
            let sum = view.session.first(&sql, &self.plan.values, |row| row.int(0))?;
            self.note("sum", || "rows added up by the engine".into());
            return Ok(sum.unwrap_or(0));
        }
        let mut sum = 0_i128;
        self.each_body(view, &Lead::Engine, "", std::slice::from_ref(path), |_, body| {
            sum += value_at(body, path.as_steps()).and_then(Json::as_i64).map_or(0, i128::from);
            ControlFlow::Continue(())
        })?;
        self.note("sum", || "each body looked at that columns left".into());
        self.fitting(sum)
    }

    fn fitting(&self, sum: i128) -> Result<i64> {
        let too_large = |_| StoreError::Query(format!("the numbers of {} add up to {sum}", self.kind.name));
        i64::try_from(sum).map_err(too_large)
    }
}
