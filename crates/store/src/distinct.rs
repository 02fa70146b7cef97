//! The different values at a path, from the search index or, without one, from all bodies.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde_json::{Number, Value as Json};

use crate::eval::any_value;
use crate::index::EXACT;
use crate::{Expr, Kind, Path, Query, Result, View, explain};

/// Maximum length in bytes of a text that counts as a value.
pub(crate) const VALUE_BYTES: usize = 64 << 10;

/// Returns a number as it is written as a value: as an integer if it is one.
pub fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < EXACT) {
        Some(whole) => (whole as i64).to_string(),
        None => number.to_string(),
    }
}

/// The first of the values that fit.
pub(crate) struct Values<'f> {
    fits: &'f (dyn Fn(&str) -> bool + Sync),
    n_most: usize,
    first: BTreeSet<String>,
}

impl Values<'_> {
    /// Returns whether a value, and all after it, are behind those that are wanted.
    pub(crate) fn is_behind(&self, value: &str) -> bool {
        self.first.len() == self.n_most && self.first.last().is_none_or(|last| last.as_str() < value)
    }

    /// Returns whether a value is missing.
    pub(crate) fn lacks(&self, value: &str) -> bool {
        !self.is_behind(value) && !self.first.contains(value) && (self.fits)(value)
    }

    /// Adds a value if it is missing.
    pub(crate) fn add(&mut self, value: &str) {
        if self.lacks(value) {
            self.first.insert(value.to_owned());
            if self.n_most < self.first.len() {
                self.first.pop_last();
            }
        }
    }

    /// Adds the values at a path of a body.
    pub(crate) fn add_of(&mut self, body: &Json, path: &Path) {
        any_value(body, path.as_steps(), &mut |value| {
            match value {
                Json::String(text) if text.len() <= VALUE_BYTES => self.add(text),
                Json::Bool(it) => self.add(if *it { "true" } else { "false" }),
                Json::Number(number) => self.add(&number_text(number)),
                _ => {}
            }
            false
        });
    }
}

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
        let mut values = Values { fits, n_most, first: BTreeSet::new() };
        if crate::index::add_distinct_values(self, kind, path, &mut values)? {
            explain::note(|| format!("{} values: terms of the search index", kind.name));
            return Ok(values.first);
        }
        explain::note(|| format!("{} values: all bodies read", kind.name));
        self.for_each_body(kind, &Query::filter(Expr::All), |_, body| {
            values.add_of(&body, path);
            ControlFlow::Continue(())
        })?;
        Ok(values.first)
    }
}
