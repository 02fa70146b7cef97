//! Which records a harvester's list has, in the order in which they were created, so that a page begins behind the last
//! record of the page before.

use pinakes_oai_pmh::{Range, Selection};
use pinakes_store::{End, Expr, Kind, Path, Record, Value, View};

use super::members::{MEMBER, Member};
use crate::asker::Asker;
use crate::datasets::{self, version};
use crate::error::ApiError;
use crate::search::document::DOCUMENT;
use crate::search::{index, visible};
use crate::stored;

/// The records of a list: members of a set, or the documents of all published datasets.
pub(super) struct List {
    pub(super) kind: &'static Kind,
    pub(super) filter: Expr,
}

impl List {
    pub(super) fn of(view: &mut View<'_>, selection: &Selection<'_>) -> Result<Self, ApiError> {
        Ok(match selection.set {
            Some(set) => {
                let in_range = within(&selection.range, "changed");
                Self { kind: &MEMBER, filter: Expr::Is("set".into(), set.into()).and(in_range) }
            }
            None => {
                let public = visible::visible(view, &Asker::default())?.and(index::is_public_dataset());
                Self { kind: &DOCUMENT, filter: public.and(documents_within(&selection.range)) }
            }
        })
    }

    /// Returns a record of the list as a member; `None` if its dataset is no longer published.
    pub(super) fn member(&self, view: &mut View<'_>, record: &Record) -> Result<Option<Member>, ApiError> {
        if std::ptr::eq(self.kind, &MEMBER) {
            return stored::parsed(record).map(Some);
        }
        let id = record.json()?["dataset"].as_i64();
        let Some(dataset) = id.map(|it| datasets::by_id(view, it)).transpose()?.flatten() else {
            return Ok(None);
        };
        let Some(released) = &dataset.released else { return Ok(None) };
        let version = version::of_dataset(view, &dataset, released.version)?;
        Ok(Some(Member::of_none(&dataset, &version)))
    }
}

fn within(range: &Range, path: impl Into<Path>) -> Expr {
    if !range.is_bounded() {
        return Expr::All;
    }
    let low = range.from_ms.map_or(End::Open, |ms| End::Included(Value::Instant(ms)));
    let high = range.before_ms.map_or(End::Open, |ms| End::Excluded(Value::Instant(ms)));
    Expr::Range(path.into(), low, high)
}

/// Documents that were written before they had the time of a change have the time of publication as their date.
fn documents_within(range: &Range) -> Expr {
    match within(range, "changed") {
        Expr::All => Expr::All,
        by_change => {
            let has_none = Expr::Not(Box::new(Expr::Exists("changed".into())));
            Expr::Or(vec![by_change, has_none.and(within(range, "date"))])
        }
    }
}
