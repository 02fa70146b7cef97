//! Ranges of a column's values.

use crate::{End, Value};

/// A range with both ends included.
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
