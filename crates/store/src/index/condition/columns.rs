//! Conditions decided by columns: numbers and points in time, and patterns on declared text columns.

use std::sync::Arc;

use tantivy::columnar::{Column, DynamicColumn, StrColumn};

use super::span::Span;
use super::{Bounds, Segment, failed};
use crate::columns::one_columns;
use crate::field_values::EXACT;
use crate::index::ascending::Ascending;
use crate::index::codes::{Codes, WholeNumbers};
use crate::index::layout::{INSTANTS, NUMBERS, column_name, path_column_name};
use crate::index::set::Set;
use crate::index::values::each_value;
use crate::{End, Path, Result, Type, Value};

/// A column is looked up for each candidate when at most one in so many documents is a candidate; otherwise it is read
/// whole.
const FEW: u64 = 12;
/// Documents whose columns are read in one step.
const STEP_DOCS: u32 = 1 << 16;

impl Segment<'_> {
    /// Evaluates a range of numbers. Bodies decide integers beyond [`EXACT`].
    pub(super) fn numbers(&self, path: &Path, low: &End, high: &End, within: &Set) -> Result<Bounds> {
        let mut is_exact = true;
        let mut number = |end: &End, open: f64, step: fn(f64) -> f64| match end {
            End::Included(Value::Real(number)) => *number,
            End::Excluded(Value::Real(number)) => step(*number),
            End::Included(Value::Integer(number)) | End::Excluded(Value::Integer(number))
                if EXACT as u64 <= number.unsigned_abs() =>
            {
                is_exact = false;
                *number as f64
            }
            End::Included(Value::Integer(number)) => *number as f64,
            End::Excluded(Value::Integer(number)) => step(*number as f64),
            _ => open,
        };
        let from = number(low, f64::NEG_INFINITY, f64::next_up);
        let to = number(high, f64::INFINITY, f64::next_down);
        if from.is_nan() || to.is_nan() {
            return Ok(Bounds::exact(Set::empty(self.max_doc)));
        }
        let set = self.in_column(NUMBERS, path, &Span::Real(from, to), within)?;
        Ok(if is_exact { self.said(set) } else { self.said_between(Set::empty(self.max_doc), Some(set)) })
    }

    /// Returns the documents among `within` with any of these numbers; a column is read once, however many numbers
    /// there are.
    pub(super) fn among(&self, path: &Path, mut numbers: Vec<f64>, within: &Set) -> Result<Set> {
        if let [number] = numbers.as_slice() {
            return self.in_column(NUMBERS, path, &Span::Real(*number, *number), within);
        }
        numbers.sort_by(f64::total_cmp);
        let has = |number: f64| {
            let at = numbers.partition_point(|it| *it < number);
            numbers.get(at).is_some_and(|it| *it == number)
        };
        let mut set = Set::empty(self.max_doc);
        for column in self.number_columns(path)? {
            match column {
                DynamicColumn::I64(column) => each_value(&column, within, |doc, it| {
                    if has(it as f64) {
                        set.insert(doc);
                    }
                }),
                DynamicColumn::F64(column) => each_value(&column, within, |doc, it| {
                    if has(it) {
                        set.insert(doc);
                    }
                }),
                _ => {}
            }
        }
        Ok(set)
    }

    /// Returns the documents among `within` with a value in the span.
    pub(super) fn in_column(&self, family: &str, path: &Path, span: &Span, within: &Set) -> Result<Set> {
        self.in_named_column(&path_column_name(family, path), span, within)
    }

    /// As [`Segment::in_column`], of the column of a name.
    pub(super) fn in_named_column(&self, name: &str, span: &Span, within: &Set) -> Result<Set> {
        let mut set = Set::empty(self.max_doc);
        if let Some(codes) = self.decoded.kept_column(self.reader.segment_id(), name) {
            if let Some((from, to)) = span.whole() {
                codes.add_span(from, to, within, &mut set);
            }
            return Ok(set);
        }
        let handles = self.reader.fast_fields().dynamic_column_handles(name)?;
        let is_alone = handles.len() == 1;
        for handle in handles {
            match handle.open().map_err(failed)? {
                DynamicColumn::I64(column) => {
                    let Some((from, to)) = span.whole() else { continue };
                    let segment = self.reader.segment_id();
                    let decode = || self.decoded.column(segment, name, &column, within.len());
                    match is_alone.then(decode).flatten() {
                        Some(codes) => codes.add_span(from, to, within, &mut set),
                        None => self.add_column(&column, from, to, within, &mut set),
                    }
                }
                DynamicColumn::U64(column) => {
                    if let Some((from, to)) = span.whole()
                        && 0 <= to
                    {
                        let (from, to) = (from.max(0).cast_unsigned(), to.cast_unsigned());
                        self.add_column(&column, from, to, within, &mut set);
                    }
                }
                DynamicColumn::F64(column) => {
                    let (from, to) = span.real();
                    self.add_column(&column, from, to, within, &mut set);
                }
                _ => {}
            }
        }
        Ok(set)
    }

    /// Returns a column of whole numbers that the layout declares, of which the values of so many documents are needed.
    pub(in crate::index) fn whole_numbers(&self, name: &str, n_wanted: u64) -> Result<WholeNumbers> {
        let segment = self.reader.segment_id();
        if let Some(codes) = self.decoded.kept_column(segment, name) {
            return Ok(WholeNumbers::Decoded(codes));
        }
        let column = self.reader.fast_fields().i64(name)?;
        let codes = self.decoded.column(segment, name, &column, n_wanted);
        Ok(codes.map_or_else(|| WholeNumbers::Column(column), WholeNumbers::Decoded))
    }

    /// Returns all documents in the order of a column that the layout declares, decoded as `codes`; `None` if there is no
    /// room for it. `path`: the column's, if it is one of points in time.
    pub(in crate::index) fn ascending(
        &self,
        name: &str,
        path: Option<&Path>,
        codes: &Codes,
    ) -> Result<Option<Arc<Ascending>>> {
        let sort = || {
            let is_of_path = path.map_or(Ok(false), |path| self.are_instants_of(path, codes))?;
            Ok(Ascending::of(codes, self.max_doc, is_of_path))
        };
        self.decoded.ascending(self.reader.segment_id(), name, self.max_doc, sort)
    }

    /// Returns whether a column has the points in time at a path, and there are no others.
    fn are_instants_of(&self, path: &Path, codes: &Codes) -> Result<bool> {
        let handles = self.reader.fast_fields().dynamic_column_handles(&path_column_name(INSTANTS, path))?;
        let [handle] = handles.as_slice() else { return Ok(false) };
        Ok(match handle.open().map_err(failed)? {
            DynamicColumn::I64(column) => Codes::of(&column).as_ref() == Some(codes),
            _ => false,
        })
    }

    fn add_column<T>(&self, column: &Column<T>, from: T, to: T, within: &Set, set: &mut Set)
    where
        T: PartialOrd + Copy + std::fmt::Debug + Send + Sync + 'static,
    {
        // An empty range, or one with a bound that is not a number, contains nothing.
        if !from.partial_cmp(&to).is_some_and(std::cmp::Ordering::is_le) {
            return;
        }
        // The column's own search treats a range below its smallest value as one that begins there.
        if to < column.min_value() || column.max_value() < from {
            return;
        }
        if within.len() * FEW < u64::from(self.max_doc) {
            for doc in within.iter() {
                if column.values_for_doc(doc).any(|it| from <= it && it <= to) {
                    set.insert(doc);
                }
            }
            return;
        }
        let mut docs = Vec::new();
        let mut at = 0;
        while at < self.max_doc {
            let end = (at + STEP_DOCS).min(self.max_doc);
            docs.clear();
            column.get_docids_for_value_range(from..=to, at..end, &mut docs);
            docs.iter().for_each(|doc| set.insert(*doc));
            at = end;
        }
    }

    /// Returns the column that holds every text at a path: one of these types is declared, and there is no list on the
    /// way.
    pub(super) fn text_column(&self, path: &Path, types: &[Type]) -> Result<Option<StrColumn>> {
        let declared = one_columns(self.kind)
            .position(|it| types.contains(&it.ty) && it.path.split('.').eq(path.as_steps()));
        let Some(place) = declared else { return Ok(None) };
        if self.beyond.is_some() || self.has_list(path)? {
            return Ok(None);
        }
        Ok(self.reader.fast_fields().str(&column_name(place))?)
    }

    /// Tests each distinct text from the column's dictionary, whose blocks are read sequentially.
    pub(super) fn pattern_in_column(
        &self,
        column: &StrColumn,
        test: impl Fn(&str) -> bool,
        within: &Set,
    ) -> Result<Bounds> {
        /// What a column holds in place of a character that not every engine stores.
        const REPLACED: char = '\u{fffd}';
        let mut said = vec![Said::Unused; column.num_terms()];
        each_value(column.ords(), within, |_, ord| said[ord as usize] = Said::No);
        let used: Vec<u64> = (0..said.len() as u64).filter(|it| said[*it as usize] == Said::No).collect();
        let mut next = used.iter();
        let mut is_open = false;
        column
            .dictionary()
            .sorted_ords_to_term_cb(&used, |text| {
                let Some(ord) = next.next() else { return };
                said[*ord as usize] = match std::str::from_utf8(text) {
                    Ok(text) if text.contains(REPLACED) => {
                        is_open = true;
                        Said::Perhaps
                    }
                    Ok(text) if test(text) => Said::Yes,
                    _ => return,
                };
            })
            .map_err(failed)?;
        let (mut set, mut open) = (Set::empty(self.max_doc), Set::empty(self.max_doc));
        each_value(column.ords(), within, |doc, ord| match said[ord as usize] {
            Said::Yes => set.insert(doc),
            Said::Perhaps => open.insert(doc),
            Said::No | Said::Unused => {}
        });
        Ok(self.said_between(set, is_open.then_some(open)))
    }
}

/// The result of a test on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// No document in question has it.
    Unused,
    No,
    Yes,
    /// The body decides.
    Perhaps,
}
