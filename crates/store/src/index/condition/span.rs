//! Ranges of values.

use super::{Bounds, Segment, bytes};
use crate::eval::in_range;
use crate::index::layout::INSTANTS;
use crate::index::set::Set;
use crate::index::terms::Tag;
use crate::{End, Path, Result, Search, Type, Value};

/// A range of a column's values, with both ends included.
pub(super) enum Span {
    Whole(i64, i64),
    Real(f64, f64),
}

impl Span {
    pub(super) fn whole(&self) -> Option<(i64, i64)> {
        match self {
            Self::Whole(from, to) => Some((*from, *to)),
            // Casts saturate, which is what is needed here.
            Self::Real(from, to) => (from <= to).then_some((from.ceil() as i64, to.floor() as i64)),
        }
    }

    pub(super) fn real(&self) -> (f64, f64) {
        match self {
            Self::Whole(from, to) => (*from as f64, *to as f64),
            // Columns distinguish -0 from 0, and hold only 0.
            Self::Real(from, to) => (*from, *to + 0.0),
        }
    }
}

impl Segment<'_> {
    /// Evaluates a range.
    pub(super) fn range(&self, path: &Path, low: &End, high: &End, within: &Set) -> Result<Bounds> {
        let at = bytes(path);
        let value = |end: &End| match end {
            End::Open => None,
            End::Included(value) | End::Excluded(value) => Some(value.clone()),
        };
        let ends = [value(low), value(high)];
        let types: Vec<_> = ends.iter().flatten().map(compared_type).collect();
        if types.iter().any(|it| it.is_none() || *it != types[0]) {
            // A value is within only if it is of the type of each end.
            return Ok(Bounds::exact(Set::empty(self.max_doc)));
        }
        if types.first() == Some(&Some(Type::Boolean)) {
            let mut set = Set::empty(self.max_doc);
            for it in [false, true] {
                if in_range(&it.into(), low, high) {
                    set.add(&self.with(&at, Tag::Boolean, &[u8::from(it)])?);
                }
            }
            return Ok(self.said(set));
        }
        if let Some((from, to)) = instants_between(low, high) {
            let set = self.in_column(INSTANTS, path, &Span::Whole(from, to), within)?;
            return Ok(self.said(set));
        }
        let maybe = || -> Result<Bounds> {
            let set = match self.kind.search {
                Search::Values => Set::full(self.max_doc),
                _ => self.present(path)?,
            };
            Ok(self.said_between(Set::empty(self.max_doc), Some(set)))
        };
        let [first, last] = ends;
        match (first, last) {
            (
                None | Some(Value::Integer(_) | Value::Real(_)),
                None | Some(Value::Integer(_) | Value::Real(_)),
            ) if !matches!((low, high), (End::Open, End::Open)) => self.numbers(path, low, high, within),
            (None | Some(Value::Text(_)), None | Some(Value::Text(_)))
                if !matches!((low, high), (End::Open, End::Open)) =>
            {
                self.texts(&at, low, high, Tag::Text, Tag::LongText)
            }
            (None | Some(Value::Folded(_)), None | Some(Value::Folded(_)))
                if self.is_folded() && !matches!((low, high), (End::Open, End::Open)) =>
            {
                self.texts(&at, low, high, Tag::Folded, Tag::LongFolded)
            }
            (None | Some(Value::Folded(_)), None | Some(Value::Folded(_)))
                if !matches!((low, high), (End::Open, End::Open)) =>
            {
                self.in_folded_column(path, low, high, within)?.map_or_else(maybe, Ok)
            }
            _ => maybe(),
        }
    }
}

/// Returns the type of the values with which a value of a condition can be compared; `None` if there are none.
fn compared_type(value: &Value) -> Option<Type> {
    match value {
        Value::Null | Value::Json(_) => None,
        Value::Boolean(_) => Some(Type::Boolean),
        Value::Integer(_) | Value::Real(_) => Some(Type::Real),
        Value::Text(_) | Value::Folded(_) | Value::Instant(_) => Some(Type::Text),
    }
}

/// Returns the first and the last point in time of a range, milliseconds since 1970; `None` unless it is one of points in
/// time, bounded at one end at least.
pub(in crate::index) fn instants_between(low: &End, high: &End) -> Option<(i64, i64)> {
    let end = |end: &End, step: i64, open: i64| match end {
        End::Open => Some(open),
        End::Included(Value::Instant(ms)) => Some(*ms),
        End::Excluded(Value::Instant(ms)) => Some(ms.saturating_add(step)),
        End::Included(_) | End::Excluded(_) => None,
    };
    let is_bounded = !matches!((low, high), (End::Open, End::Open));
    end(low, 1, i64::MIN).zip(end(high, -1, i64::MAX)).filter(|_| is_bounded)
}
