//! Lists that are browsed: what a record adds to one, and what conditions on entries see.
//!
//! The kinds declare their lists, and the store keeps them; `search/browse` shows them.

use pinakes_store::ListEntry;
use serde_json::{Value, json};

/// An entry as a record gives it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// What it is sorted by, as it is shown.
    pub(crate) text: String,
    /// What tells it apart from entries with the same text.
    pub(crate) apart: String,
    /// As it is answered.
    pub(crate) shown: Value,
    /// What is shown as a list over the records that have the entry: name and value.
    pub(crate) gathered: Option<(&'static str, String)>,
    /// Whether records are counted.
    pub(crate) is_counted: bool,
}

/// Stands between the parts of what tells entries apart.
const BETWEEN: char = '\u{1}';

/// Hands rows out as entries of a list; `anchor` is the field that shows their text, `key` what they are sorted by.
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

/// What tells an entry from others with the same key: what its own list says, its text, and what else conditions may
/// speak of.
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

/// Of what tells an entry apart, what conditions speak of, but the text.
pub(crate) fn shape(apart: &str) -> &str {
    apart.rsplit_once(BETWEEN).map_or(apart, |it| it.1)
}

/// An entry as conditions see it.
pub(crate) fn told(anchor: &str, apart: &str) -> Value {
    let mut parts = apart.splitn(3, BETWEEN);
    let (_, text, told) = (parts.next(), parts.next(), parts.next());
    let mut shown: Value = told.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_else(|| json!({}));
    shown[anchor] = text.into();
    shown["isAnchor"] = false.into();
    shown["shared"] = false.into();
    shown
}

/// The named fields that there are.
pub(crate) fn picked(value: &Value, names: &[&str]) -> Value {
    let found = names.iter().filter_map(|name| Some(((*name).to_owned(), value.get(name)?.clone())));
    Value::Object(found.collect())
}
