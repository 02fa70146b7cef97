//! The entries to show, selected from those around a position.

use pinakes_store::{Browsed, Listed, View};
use serde_json::json;

use super::lists::List;
use crate::platform::error::FolioError;
use crate::search::browse::lists::Item;

/// A position in a list, and how many entries around it are shown.
pub(super) struct Window {
    pub(super) key: String,
    pub(super) n_before: usize,
    pub(super) n_after: usize,
}

/// A text that gets an entry even if no record has it.
#[derive(Clone, Copy)]
pub(super) struct Marked<'m> {
    pub(super) text: &'m str,
    /// The field in which an entry shows its text.
    pub(super) name: &'static str,
}

/// The content of a window.
pub(super) struct Found {
    pub(super) items: Vec<Item>,
    pub(super) n_entries: u64,
    /// The first entry, if there are others before it.
    pub(super) previous: Option<String>,
    /// The last entry, if there are others after it.
    pub(super) next: Option<String>,
}

impl Window {
    /// Returns the entries in order, in the form shown.
    pub(super) fn of(
        self,
        view: &mut View<'_>,
        list: &List,
        found: Browsed,
        marked: Option<Marked<'_>>,
    ) -> Result<Found, FolioError> {
        let Browsed { mut before, after, n_entries } = found;
        let has_previous = self.n_before < before.len();
        if has_previous {
            before.remove(0);
        }
        let is_there = after.first().is_some_and(|it| it.key == self.key);
        let mut items: Vec<(String, Item)> = Vec::new();
        for listed in before {
            items.push((listed.key.clone(), item(view, list, listed)?));
        }
        let n_below = items.len();
        let mut n_after = self.n_after;
        if let (Some(marked), false) = (marked, is_there) {
            let shown = json!({(marked.name): marked.text, "isAnchor": true, "totalRecords": 0});
            items.push((self.key.clone(), Item { shown, record: None, n_records: 0 }));
            n_after = n_after.saturating_sub(1);
        }
        let has_next = n_after < after.len();
        for listed in after.into_iter().take(n_after) {
            items.push((listed.key.clone(), item(view, list, listed)?));
        }
        if marked.is_some() && is_there {
            for (_, item) in items.iter_mut().skip(n_below).filter(|it| it.0 == self.key) {
                item.shown["isAnchor"] = true.into();
            }
        }
        let name = list.anchors[0];
        let text = |item: Option<&(String, Item)>| Some(item?.1.shown.get(name)?.as_str()?.to_owned());
        let previous = text(items.first()).filter(|_| has_previous);
        let next = text(items.last()).filter(|_| has_next);
        Ok(Found { previous, next, n_entries, items: items.into_iter().map(|it| it.1).collect() })
    }
}

/// Returns an entry in the form given by the record that was found with it.
fn item(view: &mut View<'_>, list: &List, listed: Listed) -> Result<Item, FolioError> {
    let body = view.get(&(list.of)().kind, &listed.record)?.map(|it| it.json()).transpose()?;
    let rows = body.map(|it| (list.rows)(&it)).unwrap_or_default();
    let row = rows.into_iter().find(|it| list.shape.is_of(it, &listed));
    let (mut shown, is_counted, gathered) = match row {
        Some(row) => (row.shown, row.is_counted, row.gathered.map(|it| it.0)),
        None => (list.shape.told(&listed.apart, &listed.traits), true, None),
    };
    if let Some(name) = gathered {
        shown[name] = listed.gathered.into_iter().collect();
    }
    if is_counted {
        shown["totalRecords"] = listed.n_records.into();
    }
    Ok(Item { shown, record: Some(listed.record), n_records: listed.n_records })
}
