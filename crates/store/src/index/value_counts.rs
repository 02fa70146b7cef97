//! How often the values at a path occur in the records found, from terms and columns.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Number, Value as Json};
use tantivy::columnar::{Column, DynamicColumn};

use super::condition::Segment;
use super::found::Found;
use super::layout::KEY;
use super::set::Set;
use super::terms::{self, Tag};
use super::values::each_value;
use crate::field_values::{Field, ValueBound, ValueCounts, day_of, number_text};
use crate::{Path, Result};

/// Number of records up to which their bodies are read instead of all terms of a path.
const FEW_RECORDS: u64 = 2_000;

impl Found<'_> {
    /// Counts the values of fields. Returns also the rows of the records that are not counted, because terms and columns do
    /// not tell their values. `None` where the bodies of all records found should be read instead.
    ///
    /// Errors: a field has more values than `bound` allows.
    pub(crate) fn count_values(
        &self,
        fields: &[Field],
        bound: ValueBound,
    ) -> Result<Option<(Vec<ValueCounts>, Vec<i64>)>> {
        if self.count() <= FEW_RECORDS || fields.iter().any(|it| !terms::is_indexed(self.kind, &it.path)) {
            return Ok(None);
        }
        let (mut parts, mut left) = (Vec::with_capacity(self.segments.len()), Vec::new());
        for (segment, set) in &self.segments {
            let mut untold = Set::empty(segment.n_documents());
            for field in fields {
                if !segment.has_exact_numbers(&field.path)? {
                    return Ok(None);
                }
                untold.add(&segment.untold_values(&field.path)?);
            }
            let untold = untold.and(set);
            let keys = segment.reader().fast_fields().i64(KEY)?;
            left.extend(untold.iter().filter_map(|doc| keys.first(doc)));
            parts.push((segment, set.clone().without(&untold)));
        }
        if self.count() < 2 * left.len() as u64 {
            return Ok(None);
        }
        let mut all = Vec::with_capacity(fields.len());
        for field in fields {
            let mut counts = ValueCounts::within(bound);
            for (segment, set) in &parts {
                let is_counted = segment.count_values(field, set, &mut counts)?;
                counts.check(&field.path)?;
                if !is_counted {
                    return Ok(None);
                }
            }
            self.tail.iter().for_each(|it| counts.add_of(&it.body, field));
            counts.check(&field.path)?;
            all.push(counts);
        }
        Ok(Some((all, left)))
    }
}

impl Segment<'_> {
    /// Returns the documents of which terms and columns do not tell all values at a path, each once.
    pub(super) fn untold_values(&self, path: &Path) -> Result<Set> {
        let at =
            |steps: &[String], tag: Tag| self.with_term(&terms::term(&terms::path_bytes(steps), tag, &[]));
        let steps = path.as_steps();
        let mut untold = self.with_term(&terms::beyond_term())?;
        for tag in [Tag::Object, Tag::Objects, Tag::Nested] {
            untold.add(&at(steps, tag)?);
        }
        // A long text may occur several times in lists, but counts once.
        let long = self.with_long_text(path, "")?;
        if !long.is_empty() {
            for n in 1..=steps.len() {
                untold.add(&at(&steps[..n], Tag::List)?.and(&long));
            }
        }
        Ok(untold)
    }

    /// Adds the values of the documents of a set; false if a text is too long to be stored.
    ///
    /// Errors: there are more than the bound of the counts allows.
    fn count_values(&self, field: &Field, set: &Set, counts: &mut ValueCounts) -> Result<bool> {
        let path = &field.path;
        let mut known = self.lists(path)?.and(set);
        for (value, of_value) in ["false", "true"].into_iter().zip(self.booleans(path)?) {
            let of_value = of_value.and(set);
            counts.add(value.to_owned(), of_value.len());
            known.add(&of_value);
        }
        for column in self.number_columns(path)? {
            match column {
                DynamicColumn::I64(column) => {
                    count_numbers(&column, set, |it| Some(it.into()), counts, &mut known);
                }
                DynamicColumn::F64(column) => {
                    count_numbers(&column, set, Number::from_f64, counts, &mut known);
                }
                _ => {}
            }
        }
        let (mut docs, mut day) = (Vec::new(), String::new());
        let prefix = terms::term(&terms::path_bytes(path.as_steps()), Tag::Text, &[]);
        self.each_term(&prefix, &[], None, |text, info| {
            let text = String::from_utf8_lossy(text);
            if !field.by_day {
                docs.clear();
            } else if day != day_of(&text) {
                // Texts come in order: those of a day are next to each other.
                counts.add_docs(std::mem::take(&mut day), &mut docs);
                day_of(&text).clone_into(&mut day);
            }
            self.each_of(info, |doc| {
                if set.has(doc) {
                    docs.push(doc);
                    known.insert(doc);
                }
            })?;
            if !field.by_day {
                counts.add_docs(Json::from(text).to_string(), &mut docs);
            }
            counts.check(path)
        })?;
        counts.add_docs(day, &mut docs);
        let long = self.with_long_text(path, "")?.and(set);
        known.add(&long);
        let shared = Mutex::new(&mut *counts);
        let visit = |text: &str| {
            let key = if field.by_day { day_of(text).to_owned() } else { Json::from(text).to_string() };
            shared.lock().unwrap_or_else(PoisonError::into_inner).add(key, 1);
            false
        };
        let (_, unknown) = self.tested_long_texts(path, &visit, &long)?;
        counts.n_without += set.len() - known.len();
        Ok(unknown.is_empty())
    }
}

/// Counts the numbers of a column, each once a document.
fn count_numbers<T>(
    column: &Column<T>,
    set: &Set,
    number: impl Fn(T) -> Option<Number>,
    counts: &mut ValueCounts,
    known: &mut Set,
) where
    T: PartialOrd + Copy + Default + std::fmt::Debug + Send + Sync + 'static,
{
    let mut texts: HashMap<String, (u64, u32)> = HashMap::new();
    each_value(column, set, |doc, it| {
        let Some(number) = number(it) else { return };
        known.insert(doc);
        let (n, last) = texts.entry(number_text(&number)).or_insert((0, u32::MAX));
        if std::mem::replace(last, doc) != doc {
            *n += 1;
        }
    });
    texts.into_iter().for_each(|(text, (n, _))| counts.add(text, n));
}
