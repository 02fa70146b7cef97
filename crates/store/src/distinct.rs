//! The different values at a path, and how often they occur.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::Value as Json;

use crate::field_values::{Field, ValueBound, ValueCounts, Values};
use crate::parts::Parts;
use crate::scan::Scan;
use crate::{Expr, Kind, Path, Query, Record, Result, StoreError, View, explain};

/// Records whose bodies are read in one step.
const STEP_RECORDS: usize = 500;

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
        for of_field in self.count_values(kind, filter, &[field])? {
            counts.n_without += of_field.n_without;
            for (value, n) in of_field.n_records {
                if let Ok(Json::String(text)) = serde_json::from_str(&value) {
                    *counts.n_records.entry(text).or_default() += n;
                }
            }
        }
        Ok(counts)
    }

    /// Counts the values of fields in the records that satisfy a condition. Bodies are read of those that the search index
    /// does not count: those changed since its commit, those with objects or lists in lists there, and all of them if they
    /// are few or most are such.
    ///
    /// Errors: a field has more values than [`crate::Limits::page_rows`] and [`crate::Limits::facet_bytes`] allow.
    pub fn count_values(
        &mut self,
        kind: &'static Kind,
        filter: &Expr,
        fields: &[Field],
    ) -> Result<Vec<ValueCounts>> {
        let query = Query::filter(filter.clone());
        let parts = Parts::default().with(fields.iter().map(|it| &it.path));
        let bound = ValueBound::of(&self.shared.limits);
        let add = |all: &mut Vec<ValueCounts>, record: &Record| {
            let body = record.json_of(&parts)?;
            for (counts, field) in all.iter_mut().zip(fields) {
                counts.add_of(&body, field);
                counts.check(&field.path)?;
            }
            Ok::<_, StoreError>(())
        };
        if let Some((mut all, left)) = Scan::of(self, kind, &query)?.count_values(self, fields)? {
            explain::note(|| format!("{} values: search index, {} bodies counted", kind.name, left.len()));
            for step in left.chunks(STEP_RECORDS) {
                for record in self.by_keys(kind, step)? {
                    add(&mut all, &record)?;
                }
                self.check_pace()?;
            }
            return Ok(all);
        }
        let mut all: Vec<ValueCounts> = fields.iter().map(|_| ValueCounts::within(bound)).collect();
        self.try_for_each(kind, &query, |record| add(&mut all, &record))?;
        Ok(all)
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
