//! What a snapshot of the store remembers of its questions to the search indexes. A request often asks several of the same
//! condition: facets, values, a number, a page, or the next step of a long list.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::set::Set;
use crate::classes::ClassSet;
use crate::document::Taken;
use crate::{Expr, Kind};

/// The changes since an index's commit.
pub(super) struct Tail {
    pub(super) rows: Vec<TailRow>,
    pub(super) deleted: Vec<String>,
}

/// A record written since.
pub(super) struct TailRow {
    pub(super) key: i64,
    pub(super) id: String,
    /// Whether it was created and never changed: no index has it yet.
    pub(super) is_first: bool,
    /// 0 if the kind has no members.
    pub(super) n_members: i64,
    pub(super) body: bytes::Bytes,
}

/// A record changed since the index's commit.
pub(super) struct Changed {
    pub(super) key: i64,
    pub(super) n_members: i64,
    /// What the declaration extracts from the body.
    pub(super) taken: Taken,
    pub(super) body: Json,
}

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
    records: Records,
}

/// The documents found in each segment, and the records changed since.
pub(super) type Records = (Vec<Set>, Arc<Vec<Changed>>);

impl Remembered {
    /// Returns the changes of a kind since its index's commit if they are known.
    pub(super) fn tail(&self, kind: &Kind) -> Option<Option<Arc<Tail>>> {
        self.tails.get(kind.name).cloned()
    }

    pub(super) fn keep_tail(&mut self, kind: &Kind, tail: Option<Arc<Tail>>) {
        self.tails.insert(kind.name, tail);
    }

    /// Returns the records that satisfy a condition if they were found last.
    pub(super) fn records(&self, kind: &Kind, filter: &Expr, classes: Option<&ClassSet>) -> Option<Records> {
        let last = self.last.as_ref()?;
        let is_same = last.kind == kind.name
            && last.classes.as_ref() == classes.map(|it| &it.numbers)
            && last.filter == *filter;
        is_same.then(|| last.records.clone())
    }

    pub(super) fn keep_records(
        &mut self,
        kind: &Kind,
        filter: &Expr,
        classes: Option<&ClassSet>,
        records: Records,
    ) {
        let classes = classes.map(|it| it.numbers.clone());
        self.last = Some(Last { kind: kind.name, filter: filter.clone(), classes, records });
    }
}
