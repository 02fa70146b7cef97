//! How often the values of fields occur in the records that satisfy a condition.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::scan::Scan;
use crate::{Expr, Kind, Path, Query, Result, View};

/// A field whose values are counted.
#[derive(Debug, Clone)]
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
#[derive(Debug, Default)]
pub struct ValueCounts {
    /// The number of records by value, which is written as JSON; by the day itself where days are counted. A record
    /// counts once for each value that it has.
    pub n_records: HashMap<String, u64>,
    /// The number of records that have neither a value nor a list at the path.
    pub n_without: u64,
}

impl ValueCounts {
    pub(crate) fn add(&mut self, value: String, n_records: u64) {
        if n_records != 0 {
            *self.n_records.entry(value).or_default() += n_records;
        }
    }

    /// Adds a value of these documents, which are taken out; each counts once.
    pub(crate) fn add_docs(&mut self, value: String, docs: &mut Vec<u32>) {
        docs.sort_unstable();
        docs.dedup();
        self.add(value, docs.len() as u64);
        docs.clear();
    }
}

impl View<'_> {
    /// Counts the values of fields in the records that satisfy a condition. Records that the search index does not hold
    /// are not counted: their bodies are passed to `visit`. `None` where the index cannot count, as for values that are
    /// objects, or should not, as for few records: their bodies are to be read instead.
    ///
    /// Errors: a field has more values than a list answer may have rows.
    pub fn count_values(
        &mut self,
        kind: &'static Kind,
        filter: &Expr,
        fields: &[Field],
        visit: &mut dyn FnMut(&Json),
    ) -> Result<Option<Vec<ValueCounts>>> {
        Scan::of(self, kind, &Query::filter(filter.clone()))?.count_values(self, fields, visit)
    }
}
