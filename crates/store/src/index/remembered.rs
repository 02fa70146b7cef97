//! What a snapshot of the store remembers of its questions to the search indexes. A request often asks several of the same
//! condition: facets, values, a number, a page, or the next step of a long list.

use std::collections::HashMap;
use std::sync::Arc;

use super::found::{Changed, Tail};
use super::set::Set;
use crate::classes::ClassSet;
use crate::session::State;
use crate::{Expr, Kind, View};

/// The changes since the indexes' commits, and the records last found.
#[derive(Default)]
pub(crate) struct Remembered {
    /// By kind; `None` where there are too many.
    tails: HashMap<&'static str, Option<Arc<Tail>>>,
    last: Option<Last>,
}

/// The records that satisfied a condition, all decided.
struct Last {
    kind: &'static str,
    filter: Expr,
    classes: Option<Vec<i64>>,
    sets: Vec<Set>,
    tail: Arc<Vec<Changed>>,
}

/// The documents found in each segment, and the records changed since.
pub(super) type Records = (Vec<Set>, Arc<Vec<Changed>>);

impl View<'_> {
    /// Returns the changes of a kind since its index's commit if they are known. Writers change them.
    pub(super) fn known_tail(&self, kind: &Kind) -> Option<Option<Arc<Tail>>> {
        (self.state == State::Committed).then(|| self.remembered.tails.get(kind.name).cloned()).flatten()
    }

    pub(super) fn remember_tail(&mut self, kind: &Kind, tail: Option<Arc<Tail>>) {
        if self.state == State::Committed {
            self.remembered.tails.insert(kind.name, tail);
        }
    }

    /// Returns the records that satisfy a condition if they were found last.
    pub(super) fn known_records(
        &self,
        kind: &Kind,
        filter: &Expr,
        classes: Option<&ClassSet>,
    ) -> Option<Records> {
        let last = self.remembered.last.as_ref().filter(|_| self.state == State::Committed)?;
        let is_same = last.kind == kind.name
            && last.classes.as_ref() == classes.map(|it| &it.numbers)
            && last.filter == *filter;
        is_same.then(|| (last.sets.clone(), last.tail.clone()))
    }

    pub(super) fn remember_records(
        &mut self,
        kind: &Kind,
        filter: &Expr,
        classes: Option<&ClassSet>,
        (sets, tail): Records,
    ) {
        if self.state == State::Committed {
            let classes = classes.map(|it| it.numbers.clone());
            self.remembered.last =
                Some(Last { kind: kind.name, filter: filter.clone(), classes, sets, tail });
        }
    }
}
