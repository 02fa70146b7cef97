//! Browse lists: the entries of a record, and the form of an entry that conditions apply to.
//!
//! The kinds declare their lists and the store maintains them; `search/browse` shows them.

use std::collections::HashMap;

use pinakes_store::ListEntry;
use serde_json::{Value, json};

/// An entry as produced by a record.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The text by which it is sorted, as shown.
    pub(crate) text: String,
    /// Distinguishes it from entries with the same text.
    pub(crate) apart: String,
    /// The entry as it is answered.
    pub(crate) shown: Value,
    /// A value that is collected into a list over all records with the entry: name and value.
    pub(crate) gathered: Option<(&'static str, String)>,
    /// Whether the records with the entry are counted.
    pub(crate) is_counted: bool,
}

/// Maximum number of entry shapes for which the result of a condition is cached.
const KNOWN_SHAPES: usize = 10_000;

/// Separator between the parts that distinguish entries.
const BETWEEN: char = '\u{1}';

/// Passes rows to `visit` as entries of a list; `anchor` is the field with their text, `key` computes the sort key.
pub(crate) fn hand_out(
    rows: Vec<Row>,
    anchor: &str,
    key: fn(&str) -> String,
    visit: &mut dyn FnMut(ListEntry),
) {
    for row in rows {
        let apart = apart_of(anchor, &row);
        let gathered = row.gathered.map(|it| it.1).unwrap_or_default();
        visit(ListEntry { key: key(&row.text), apart, gathered });
    }
}

/// Returns what distinguishes an entry from others with the same key: the part given by its list, its text, and the
/// other properties that conditions may refer to.
pub(crate) fn apart_of(anchor: &str, row: &Row) -> String {
    let mut told = row.shown.clone();
    if let Value::Object(map) = &mut told {
        for name in [anchor, "authority", "isAnchor", "shared", "contributorTypeId"] {
            map.remove(name);
        }
    }
    let text = row.shown.get(anchor).and_then(Value::as_str).unwrap_or(&row.text);
    format!("{}{BETWEEN}{text}{BETWEEN}{told}", row.apart)
}

/// Returns the part that conditions refer to, without the text.
pub(crate) fn shape(apart: &str) -> &str {
    apart.rsplit_once(BETWEEN).map_or(apart, |it| it.1)
}

/// Results for entries by what conditions refer to; at most [`KNOWN_SHAPES`].
#[derive(Default)]
pub(crate) struct Known(HashMap<String, bool>);

impl Known {
    /// Returns the result for a shape, computed only if it is not known.
    pub(crate) fn get(&mut self, shape: &str, compute: impl FnOnce() -> bool) -> bool {
        if let Some(known) = self.0.get(shape) {
            return *known;
        }
        if KNOWN_SHAPES < self.0.len() {
            self.0.clear();
        }
        let computed = compute();
        self.0.insert(shape.to_owned(), computed);
        computed
    }
}

/// Returns an entry in the form that conditions apply to.
pub(crate) fn told(anchor: &str, apart: &str) -> Value {
    let mut parts = apart.splitn(3, BETWEEN);
    let (_, text, told) = (parts.next(), parts.next(), parts.next());
    let mut shown: Value = told.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_else(|| json!({}));
    shown[anchor] = text.into();
    shown["isAnchor"] = false.into();
    shown["shared"] = false.into();
    shown
}

/// Returns the named fields that are present.
pub(crate) fn picked(value: &Value, names: &[&str]) -> Value {
    let found = names.iter().filter_map(|name| Some(((*name).to_owned(), value.get(name)?.clone())));
    Value::Object(found.collect())
}
