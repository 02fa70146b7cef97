//! The entries nearest to a place, of any number that go by.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash as _, Hasher as _};

use serde_json::{Value, json};

/// An entry as a record gives it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// What it is sorted by, as it is shown.
    pub(super) text: String,
    /// What tells it apart from entries with the same text.
    pub(super) apart: String,
    /// Its type, where lists of one type alone can be asked for.
    pub(super) ty: Option<String>,
    /// As it is answered.
    pub(super) shown: Value,
    /// What is shown as a list over the records that have the entry: name and value.
    pub(super) gathered: Option<(&'static str, String)>,
    /// Whether records are counted.
    pub(super) is_counted: bool,
}

/// An entry of the answer.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) shown: Value,
    /// A record that has it.
    pub(super) record: Option<String>,
    /// Records that have it.
    pub(super) n_records: u64,
}

/// Where a list is entered.
pub(super) struct Place {
    pub(super) key: String,
    /// Whether an entry right there counts.
    pub(super) includes: bool,
}

type Key = (String, String);

struct Entry {
    row: Row,
    record: String,
    n_records: u64,
    gathered: BTreeSet<String>,
}

/// The nearest entries on both sides of a place.
pub(super) struct Window {
    place: Place,
    n_before: usize,
    n_after: usize,
    before: BTreeMap<Key, Entry>,
    after: BTreeMap<Key, Entry>,
    /// Hashes of all keys, to count them.
    known: HashSet<u64>,
}

/// What a window has come to.
pub(super) struct Found {
    pub(super) items: Vec<Item>,
    pub(super) n_entries: usize,
    /// The first entry, when others stand before it.
    pub(super) previous: Option<String>,
    /// The last one, when others stand behind it.
    pub(super) next: Option<String>,
}

impl Window {
    pub(super) fn new(place: Place, n_before: usize, n_after: usize) -> Self {
        Self {
            place,
            n_before,
            n_after,
            before: BTreeMap::new(),
            after: BTreeMap::new(),
            known: HashSet::new(),
        }
    }

    /// Takes notice of an entry of a record.
    pub(super) fn add(&mut self, key: String, row: Row, record: &str) {
        let key = (key, row.apart.clone());
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.known.insert(hasher.finish());
        let order = key.0.as_str().cmp(self.place.key.as_str());
        if order.is_eq() && !self.place.includes {
            return;
        }
        // A place that is asked for with `<=` alone is the last of those before it.
        let is_before = order.is_lt() || (order.is_eq() && self.n_after == 0);
        let (side, n_most) = match is_before {
            true => (&mut self.before, self.n_before),
            false => (&mut self.after, self.n_after),
        };
        if n_most == 0 {
            return;
        }
        let gathered = row.gathered.as_ref().map(|it| it.1.clone());
        match side.get_mut(&key) {
            Some(entry) => {
                entry.n_records += u64::from(entry.record != record);
                entry.gathered.extend(gathered);
                entry.record = record.to_owned();
            }
            None => {
                let entry = Entry {
                    row,
                    record: record.to_owned(),
                    n_records: 1,
                    gathered: gathered.into_iter().collect(),
                };
                side.insert(key, entry);
                // One more than is shown tells that there are more. What falls out has as many before it, and never comes back.
                if n_most + 1 < side.len() {
                    _ = if is_before { side.pop_first() } else { side.pop_last() };
                }
            }
        }
    }

    /// The entries in order. `marked` is a text that has an entry even when no record has it.
    pub(super) fn finish(mut self, name: &str, marked: Option<&str>) -> Found {
        let has_previous = self.n_before < self.before.len() && self.before.pop_first().is_some();
        let place = self.place.key;
        let is_there = self.after.first_key_value().is_some_and(|(key, _)| key.0 == place);
        let mut items: Vec<(Key, Item)> = Vec::new();
        items.extend(self.before.into_iter().map(|(key, entry)| (key, entry.item())));
        let n_below = items.len();
        let mut n_after = self.n_after;
        if let (Some(text), false) = (marked, is_there) {
            let shown = json!({name: text, "isAnchor": true, "totalRecords": 0});
            items.push(((place.clone(), String::new()), Item { shown, record: None, n_records: 0 }));
            n_after = n_after.saturating_sub(1);
        }
        let has_next = n_after < self.after.len();
        items.extend(self.after.into_iter().take(n_after).map(|(key, entry)| (key, entry.item())));
        if marked.is_some() && is_there {
            for (_, item) in items.iter_mut().skip(n_below).filter(|(key, _)| key.0 == place) {
                item.shown["isAnchor"] = true.into();
            }
        }
        let text = |item: Option<&(Key, Item)>| Some(item?.1.shown.get(name)?.as_str()?.to_owned());
        let previous = text(items.first()).filter(|_| has_previous);
        let next = text(items.last()).filter(|_| has_next);
        Found {
            previous,
            next,
            n_entries: self.known.len(),
            items: items.into_iter().map(|it| it.1).collect(),
        }
    }
}

impl Entry {
    fn item(self) -> Item {
        let mut shown = self.row.shown;
        if let Some((name, _)) = self.row.gathered {
            shown[name] = self.gathered.into_iter().collect();
        }
        if self.row.is_counted {
            shown["totalRecords"] = self.n_records.into();
        }
        Item { shown, record: Some(self.record), n_records: self.n_records }
    }
}
