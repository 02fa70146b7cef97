//! The different values at a path, and how often they occur.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::Value as Json;

use crate::eval::{any_list, any_value, each_text};
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

    /// Counts the texts at a path in the records that satisfy a condition.
    ///
    /// Errors: as [`View::count_values`].
    pub fn count_texts(&mut self, kind: &'static Kind, filter: &Expr, path: &Path) -> Result<TextCounts> {
        let mut counts = TextCounts::default();
        let field = Field { path: path.clone(), by_day: false };
        let counted = self.count_values(kind, filter, &[field], &mut |body| counts.add_of(body, path))?;
        for field in counted {
            counts.n_without += field.n_without;
            for (value, n) in field.n_records {
                if let Ok(Json::String(text)) = serde_json::from_str(&value) {
                    *counts.n_records.entry(text).or_default() += n;
                }
            }
        }
        Ok(counts)
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

/// How often texts occur at a path.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TextCounts {
    /// The number of records by text, of a list each of its own. A record counts once for each text that it has.
    pub n_records: BTreeMap<String, u64>,
    /// The number of records that have neither a value nor a list at the path.
    pub n_without: u64,
}

impl TextCounts {
    /// Adds the texts of a body.
    fn add_of(&mut self, body: &Json, path: &Path) {
        let mut texts = BTreeSet::new();
        each_text(body, path, |text| texts.extend([text.to_owned()]));
        let steps = path.as_steps();
        let has_any = any_value(body, steps, &mut |it| !it.is_null()) || any_list(body, steps, &mut |_| true);
        self.n_without += u64::from(!has_any);
        texts.into_iter().for_each(|it| *self.n_records.entry(it).or_default() += 1);
    }
}
