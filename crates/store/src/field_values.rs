//! The values of fields: how they are written, and which of them are kept.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;

use serde_json::{Number, Value as Json};

use crate::eval::{any_list, any_value};
use crate::{FacetCount, Limits, Path, Result, StoreError};

/// Integers below this are exactly represented by a 64-bit float.
pub(crate) const EXACT: f64 = 9_007_199_254_740_992.0;

/// Maximum length in bytes of a text that counts as a value.
pub(crate) const VALUE_BYTES: usize = 64 << 10;

/// Returns a number as it is written as a value: as an integer if it is one.
pub fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < EXACT) {
        Some(whole) => (whole as i64).to_string(),
        None => number.to_string(),
    }
}

/// Checks the number of values of what has this name.
///
/// Errors: there are more than `most`.
pub(crate) fn check_number(n_values: usize, name: &dyn Debug, most: u64) -> Result<()> {
    if most < n_values as u64 {
        let fault = format!("{name:?} has more than {most} values here; narrow the search down");
        return Err(StoreError::Query(fault));
    }
    Ok(())
}

/// How many different values a facet may have, and how many bytes they may have together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueBound {
    n_values: u64,
    n_bytes: u64,
}

impl ValueBound {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { n_values: limits.page_rows, n_bytes: limits.facet_bytes }
    }

    /// Returns the number of values.
    pub(crate) fn n_values(self) -> u64 {
        self.n_values
    }

    fn is_kept(self, n_values: usize, n_bytes: usize) -> bool {
        n_values as u64 <= self.n_values && n_bytes as u64 <= self.n_bytes
    }

    /// Checks the values of what has this name.
    ///
    /// Errors: there are too many, or they are too long.
    pub(crate) fn check(self, n_values: usize, n_bytes: usize, name: &dyn Debug) -> Result<()> {
        check_number(n_values, name, self.n_values)?;
        if self.is_kept(n_values, n_bytes) {
            return Ok(());
        }
        Err(StoreError::Query(format!(
            "the values of {name:?} have more than {} bytes here; narrow the search down",
            self.n_bytes
        )))
    }

    /// As [`ValueBound::check`], of a facet's counts.
    pub(crate) fn check_counts(self, counts: &[FacetCount], name: &dyn Debug) -> Result<()> {
        self.check(counts.len(), counts.iter().map(|it| it.value.len()).sum(), name)
    }
}

/// The first of the values that fit.
pub(crate) struct Values<'f> {
    fits: &'f (dyn Fn(&str) -> bool + Sync),
    n_most: usize,
    first: BTreeSet<String>,
}

impl<'f> Values<'f> {
    pub(crate) fn of(n_most: usize, fits: &'f (dyn Fn(&str) -> bool + Sync)) -> Self {
        Self { fits, n_most, first: BTreeSet::new() }
    }

    pub(crate) fn into_first(self) -> BTreeSet<String> {
        self.first
    }

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

/// A field whose values are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The path of its values.
    pub path: Path,
    /// Whether of a text only its first ten bytes count: the day of a point in time.
    pub by_day: bool,
}

/// Returns the part of a text that counts where days are counted.
pub(crate) fn day_of(text: &str) -> &str {
    text.get(..10).unwrap_or(text)
}

/// How often the values of a field occur.
#[derive(Debug)]
pub struct ValueCounts {
    /// The number of records by value, which is written as JSON; by the day itself where days are counted. A record
    /// counts once for each value that it has, in lists as well.
    pub n_records: HashMap<String, u64>,
    /// The number of records that have neither a value nor a list at the path.
    pub n_without: u64,
    bound: ValueBound,
    /// Total length of the values.
    n_bytes: usize,
}

impl ValueCounts {
    /// Returns counts of nothing, which take in no more values than a bound allows.
    pub(crate) fn within(bound: ValueBound) -> Self {
        Self { n_records: HashMap::new(), n_without: 0, bound, n_bytes: 0 }
    }

    /// Errors: the field of this path had more values than the bound allows.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        self.bound.check(self.n_records.len(), self.n_bytes, &path.as_steps().join("."))
    }

    /// Adds the values of a body.
    pub(crate) fn add_of(&mut self, body: &Json, field: &Field) {
        let (mut values, steps) = (BTreeSet::new(), field.path.as_steps());
        any_value(body, steps, &mut |value| {
            values.extend(match value {
                Json::Null => None,
                Json::String(text) if field.by_day => Some(day_of(text).to_owned()),
                Json::Number(number) => Some(number_text(number)),
                other => Some(other.to_string()),
            });
            false
        });
        let has_any = !values.is_empty() || any_list(body, steps, &mut |_| true);
        self.n_without += u64::from(!has_any);
        values.into_iter().for_each(|it| self.add(it, 1));
    }

    /// Counts records with a value; no longer once the bound was exceeded, see [`ValueCounts::check`].
    pub(crate) fn add(&mut self, value: String, n_records: u64) {
        if n_records == 0 || !self.bound.is_kept(self.n_records.len(), self.n_bytes) {
            return;
        }
        if !self.n_records.contains_key(&value) {
            self.n_bytes += value.len();
        }
        *self.n_records.entry(value).or_default() += n_records;
    }

    /// Adds a value of these documents, which are taken out; each counts once.
    pub(crate) fn add_docs(&mut self, value: String, docs: &mut Vec<u32>) {
        docs.sort_unstable();
        docs.dedup();
        self.add(value, docs.len() as u64);
        docs.clear();
    }
}
