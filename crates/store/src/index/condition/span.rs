//! Ranges of a column's values.

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
