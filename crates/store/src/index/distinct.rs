//! The different values at a path, from terms and columns.

use std::sync::{Mutex, PoisonError};

use serde_json::Number;
use tantivy::columnar::DynamicColumn;

use super::condition::{Segment, failed};
use super::found::parse;
use super::layout::KEY;
use super::lists::snapshot_of;
use super::set::Set;
use super::terms::{self, Tag};
use super::values::each_value;
use crate::field_values::{Values, number_text};
use crate::{Kind, Path, Result, View};

/// Maximum number of records without terms, whose bodies are read.
const READ_RECORDS: u64 = 5_000;

/// Adds the values at a path; false where the index cannot tell them.
pub(crate) fn add_distinct_values(
    view: &mut View<'_>,
    kind: &'static Kind,
    path: &Path,
    values: &mut Values<'_>,
) -> Result<bool> {
    let Some(snapshot) = snapshot_of(view, kind).filter(|_| terms::is_indexed(kind, path)) else {
        return Ok(false);
    };
    let Some(tail) = snapshot.tail(view, kind)? else { return Ok(false) };
    let mut parts = Vec::new();
    let mut n_read = 0;
    for reader in snapshot.searcher.segment_readers() {
        let segment = Segment::new(&snapshot.searcher, reader, &snapshot.layout, &snapshot.decoded, kind)?;
        if !segment.has_exact_numbers(path)? {
            return Ok(false);
        }
        let within = tail.unchanged_in(&segment)?;
        let beyond = segment.with_term(&terms::beyond_term())?.and(&within);
        n_read += beyond.len();
        parts.push((segment, within.without(&beyond), beyond));
    }
    if READ_RECORDS < n_read {
        return Ok(false);
    }
    for (segment, within, beyond) in &parts {
        segment.add_values(path, within, values)?;
        let keys = segment.reader().fast_fields().i64(KEY)?;
        let keys: Vec<i64> = beyond.iter().filter_map(|doc| keys.first(doc)).collect();
        for record in view.by_keys(kind, &keys)? {
            values.add_of(&parse(kind, &record.id, &record.body)?, path);
        }
    }
    for row in &tail.rows {
        values.add_of(&parse(kind, &row.id, &row.body)?, path);
    }
    Ok(true)
}

impl Segment<'_> {
    fn add_values(&self, path: &Path, within: &Set, values: &mut Values<'_>) -> Result<()> {
        for (value, set) in ["false", "true"].into_iter().zip(self.booleans(path)?) {
            if !set.and(within).is_empty() {
                values.add(value);
            }
        }
        for column in self.number_columns(path)? {
            match column {
                DynamicColumn::I64(column) => {
                    each_value(&column, within, |_, it| values.add(&number_text(&it.into())));
                }
                DynamicColumn::F64(column) => each_value(&column, within, |_, it| {
                    Number::from_f64(it).iter().for_each(|it| values.add(&number_text(it)));
                }),
                _ => {}
            }
        }
        let prefix = terms::term(&terms::path_bytes(path.as_steps()), Tag::Text, &[]);
        let mut stream = self.all_terms().range().ge(&prefix).into_stream().map_err(failed)?;
        while stream.advance() {
            let Some(text) = stream.key().strip_prefix(prefix.as_slice()) else { break };
            let Ok(text) = std::str::from_utf8(text) else { continue };
            if values.is_behind(text) {
                break;
            }
            if values.lacks(text) && self.has_any_of(stream.value(), within)? {
                values.add(text);
            }
        }
        let long = self.with_long_text(path, "")?.and(within);
        let values = Mutex::new(values);
        let visit = |text: &str| {
            values.lock().unwrap_or_else(PoisonError::into_inner).add(text);
            false
        };
        self.tested_long_texts(path, &visit, &long).map(drop)
    }
}
