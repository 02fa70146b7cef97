//! The different values at a path, and how often they occur.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde_json::Value as Json;

use crate::field_values::{Field, ValueCounts, Values};
use crate::parts::Parts;
use crate::scan::Scan;
use crate::{Expr, Kind, Path, Query, Result, StoreError, View, explain};

impl View<'_> {
    /// Returns the different values at a path: texts of up to 64 KB, numbers and booleans; of a list, those of its
    /// elements. Of those that fit, the first `n_most` in the order of their bytes. Not for kinds whose records only
    /// some users may see.
    pub fn distinct_values(
        &mut self,
        kind: &'static Kind,
        path: &Path,
        n_most: usize,
        fits: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<BTreeSet<String>> {
        let mut values = Values::of(n_most, fits);
        if crate::index::add_distinct_values(self, kind, path, &mut values)? {
            explain::note(|| format!("{} values: terms of the search index", kind.name));
            return Ok(values.into_first());
        }
        explain::note(|| format!("{} values: all bodies read", kind.name));
        self.for_each_body(kind, &Query::filter(Expr::All), |_, body| {
            values.add_of(&body, path);
            ControlFlow::Continue(())
        })?;
        Ok(values.into_first())
    }

    /// Counts the values of fields in the records that satisfy a condition. Records that the search index does not count
    /// are passed to `visit`, as the members of their bodies that the fields are in: those changed since its commit, and
    /// all of them if they are few, or where some values are objects or below lists.
    ///
    /// Errors: a field has more values than a list answer may have rows.
    pub fn count_values(
        &mut self,
        kind: &'static Kind,
        filter: &Expr,
        fields: &[Field],
        visit: &mut dyn FnMut(&Json),
    ) -> Result<Vec<ValueCounts>> {
        let query = Query::filter(filter.clone());
        if let Some(counts) = Scan::of(self, kind, &query)?.count_values(self, fields, visit)? {
            return Ok(counts);
        }
        let parts = Parts::default().with(fields.iter().map(|it| &it.path));
        self.try_for_each(kind, &query, |record| {
            visit(&record.json_of(&parts)?);
            Ok::<_, StoreError>(())
        })?;
        Ok(fields.iter().map(|_| ValueCounts::default()).collect())
    }
}
