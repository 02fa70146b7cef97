//! What a segment says of a condition.

use crate::index::set::Set;

/// Bounds on the documents that satisfy a condition.
#[derive(Debug, Clone)]
pub(in crate::index) struct Bounds {
    /// These certainly do.
    pub(in crate::index) low: Set,
    /// No documents outside this set do; `None` where it equals `low`.
    pub(in crate::index) high: Option<Set>,
}

impl Bounds {
    pub(in crate::index) fn exact(set: Set) -> Self {
        Self { low: set, high: None }
    }

    /// Returns bounds for an unknown part of these documents.
    pub(super) fn some_of(set: Set, max_doc: u32) -> Self {
        Self { low: Set::empty(max_doc), high: Some(set) }
    }

    pub(in crate::index) fn high(&self) -> &Set {
        self.high.as_ref().unwrap_or(&self.low)
    }

    pub(in crate::index) fn and(self, other: &Self) -> Self {
        let high =
            (self.high.is_some() || other.high.is_some()).then(|| self.high().clone().and(other.high()));
        Self { low: self.low.and(&other.low), high }
    }

    pub(in crate::index) fn or(self, other: &Self) -> Self {
        let high =
            (self.high.is_some() || other.high.is_some()).then(|| self.high().clone().or(other.high()));
        Self { low: self.low.or(&other.low), high }
    }

    /// Restricts the bounds to `set`.
    pub(super) fn within(self, set: &Set) -> Self {
        Self { low: self.low.and(set), high: self.high.map(|it| it.and(set)) }
    }

    pub(super) fn complement(self) -> Self {
        let Self { low, high } = self;
        match high {
            None => Self::exact(low.complement()),
            Some(high) => Self { low: high.complement(), high: Some(low.complement()) },
        }
    }
}
