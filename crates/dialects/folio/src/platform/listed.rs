//! Browse lists: the entries of a record, and the form of an entry that conditions apply to.
//!
//! The kinds declare their lists and the store maintains them; `search/browse` shows them.

use pinakes_store::{ListEntry, Listed};
use serde_json::{Value, json};

/// An entry as produced by a record.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The text by which it is sorted, as shown.
    pub(crate) text: String,
    /// Distinguishes it from entries that show the same; without control characters.
    pub(crate) apart: String,
    /// The entry as it is answered.
    pub(crate) shown: Value,
    /// A value that is collected into a list over all records with the entry: name and value.
    pub(crate) gathered: Option<(&'static str, String)>,
    /// Whether the records with the entry are counted.
    pub(crate) is_counted: bool,
}

/// What the entries of a list consist of.
pub(crate) struct Shape {
    /// The field with the text.
    pub(crate) anchor: &'static str,
    /// Fields with few different values, by which entries are selected: see [`ListEntry::traits`].
    pub(crate) traits: &'static [&'static str],
    /// Other fields that distinguish entries and that conditions may refer to.
    pub(crate) others: &'static [&'static str],
    /// Computes the sort key of a text.
    pub(crate) key: fn(&str) -> String,
}

/// Separator between the parts that distinguish entries.
const BETWEEN: char = '\u{1}';

impl Shape {
    /// Passes rows to `visit` as entries of the list.
    pub(crate) fn hand_out(&self, rows: Vec<Row>, visit: &mut dyn FnMut(ListEntry)) {
        for row in rows {
            let (apart, traits) = (self.apart(&row), values(&row.shown, self.traits));
            let gathered = row.gathered.map(|it| it.1).unwrap_or_default();
            visit(ListEntry { key: (self.key)(&row.text), apart, traits, gathered });
        }
    }

    /// Returns whether an entry that was found is this row.
    pub(crate) fn is_of(&self, row: &Row, listed: &Listed) -> bool {
        values(&row.shown, self.traits) == listed.traits && self.apart(row) == listed.apart
    }

    /// Returns what distinguishes an entry from others with the same key and traits.
    fn apart(&self, row: &Row) -> String {
        let text = row.shown.get(self.anchor).and_then(Value::as_str).unwrap_or(&row.text);
        format!("{text}{BETWEEN}{}{BETWEEN}{}", row.apart, values(&row.shown, self.others))
    }

    /// Returns an entry in the form that conditions apply to.
    pub(crate) fn told(&self, apart: &str, traits: &str) -> Value {
        let mut parts = apart.rsplitn(3, BETWEEN);
        let (others, _, text) = (parts.next(), parts.next(), parts.next());
        let mut told = self.told_by_traits(traits);
        restore(&mut told, self.others, others.map_or("", |it| it));
        told[self.anchor] = text.into();
        told
    }

    /// Returns what conditions apply to that depend on the traits of entries alone.
    pub(crate) fn told_by_traits(&self, traits: &str) -> Value {
        let mut told = json!({"isAnchor": false, "shared": false, "instances": {"shared": false}});
        restore(&mut told, self.traits, traits);
        told
    }
}

/// Returns the values of some fields as a text: empty if there are none.
fn values(shown: &Value, names: &[&str]) -> String {
    let values: Vec<&Value> = names.iter().map(|name| shown.get(name).unwrap_or(&Value::Null)).collect();
    let is_empty = values.iter().all(|it| it.is_null());
    if is_empty { String::new() } else { json!(values).to_string() }
}

/// Adds fields with the values in a text that [`values`] has made.
fn restore(told: &mut Value, names: &[&str], values: &str) {
    let Ok(values) = serde_json::from_str::<Vec<Value>>(values) else {
        debug_assert!(values.is_empty(), "{values:?} are no values");
        return;
    };
    for (name, value) in names.iter().zip(values).filter(|it| !it.1.is_null()) {
        told[*name] = value;
    }
}

/// Returns the named fields that are present.
pub(crate) fn picked(value: &Value, names: &[&str]) -> Value {
    let found = names.iter().filter_map(|name| Some(((*name).to_owned(), value.get(name)?.clone())));
    Value::Object(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape =
        Shape { anchor: "name", traits: &["type", "is"], others: &["id"], key: str::to_owned };

    fn check(shown: Value, expected: Value) {
        let row =
            Row { text: "key".to_owned(), apart: "a/b".to_owned(), shown, gathered: None, is_counted: true };
        SHAPE.hand_out(vec![row], &mut |entry| {
            assert_eq!(SHAPE.told(&entry.apart, &entry.traits), expected);
        });
    }

    #[test]
    fn entries_tell_what_conditions_apply_to() {
        let told = |more: Value| {
            let mut told = json!({"isAnchor": false, "shared": false, "instances": {"shared": false}});
            for (name, value) in more.as_object().into_iter().flatten() {
                told[name] = value.clone();
            }
            told
        };
        check(json!({"name": "A", "other": 1}), told(json!({"name": "A"})));
        check(
            json!({"name": "A\u{1}B", "type": "[t\u{1}\"]", "is": true, "id": "x"}),
            told(json!({"name": "A\u{1}B", "type": "[t\u{1}\"]", "is": true, "id": "x"})),
        );
        check(json!({"id": "x"}), told(json!({"name": "key", "id": "x"})));
    }
}
