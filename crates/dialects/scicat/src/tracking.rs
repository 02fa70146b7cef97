//! Which changes are recorded in the history, and how much each entry contains.

use pinakes_store::{Kind, Txn};
use serde_json::{Map, Value, json};

use crate::error::ScicatError;
use crate::kinds::{
    ATTACHMENT, DATABLOCK, DATASET, HISTORY, INSTRUMENT, ORIG_DATABLOCK, POLICY, PROPOSAL, PUBLISHED_DATA,
    SAMPLE,
};

/// The subsystem in entries of datasets.
pub(crate) const DATASETS: &str = "Dataset";

/// Fields that change with every write.
pub(crate) const NOTES: [&str; 3] = ["updatedAt", "updatedBy", "__v"];

/// A type of record whose changes are tracked if the site wants it.
struct Tracked {
    /// The name in `trackables` and in entries.
    name: &'static str,
    /// Its records.
    kind: &'static Kind,
}

/// All types that can be tracked. `history.rs` defines who may read the entries of each.
static TRACKED: [Tracked; 9] = [
    Tracked { name: DATASETS, kind: &DATASET },
    Tracked { name: "OrigDatablock", kind: &ORIG_DATABLOCK },
    Tracked { name: "Datablock", kind: &DATABLOCK },
    Tracked { name: "Attachment", kind: &ATTACHMENT },
    Tracked { name: "Sample", kind: &SAMPLE },
    Tracked { name: "Proposal", kind: &PROPOSAL },
    Tracked { name: "Instrument", kind: &INSTRUMENT },
    Tracked { name: "Policy", kind: &POLICY },
    Tracked { name: "PublishedData", kind: &PUBLISHED_DATA },
];

/// A type of record whose changes may be tracked.
#[derive(Clone, Copy)]
pub(crate) struct Subsystem(&'static Tracked);

impl Subsystem {
    /// Returns all of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TRACKED.iter().map(Self)
    }

    /// Returns the subsystem of a kind, if its changes can be tracked.
    pub(crate) fn of(kind: &Kind) -> Option<Self> {
        Self::all().find(|it| it.0.kind.name == kind.name)
    }

    /// Returns the names of all.
    pub(crate) fn names() -> Vec<&'static str> {
        Self::all().map(Self::name).collect()
    }

    /// Returns the name in `trackables` and in entries.
    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }
}

impl std::fmt::Debug for Subsystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Subsystem {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Subsystem {}

/// Whether changes of a type of record are recorded, and how much each entry contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// They are not recorded.
    Off,
    /// Entries contain whole documents, before and after.
    Documents(Subsystem),
    /// Entries contain only what differs.
    Differences(Subsystem),
}

impl Tracking {
    /// Returns what the settings `trackables` and `trackable_strategy` say about `subsystem`.
    pub(crate) fn of(trackables: &[String], strategy: &str, subsystem: Option<Subsystem>) -> Self {
        let is_named = |it: &Subsystem| trackables.iter().any(|name| name == it.name());
        match subsystem.filter(is_named) {
            None => Self::Off,
            Some(subsystem) if strategy == "delta" => Self::Differences(subsystem),
            Some(subsystem) => Self::Documents(subsystem),
        }
    }

    /// Records that a record became `after`, whose `updatedBy` and `updatedAt` tell who changed it and when.
    /// `version` is the record's version before the change.
    pub(crate) fn note_change(
        self,
        txn: &mut Txn<'_>,
        id: &str,
        version: u64,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> Result<(), ScicatError> {
        let is_same = |name: &String| NOTES.contains(&name.as_str()) || before.get(name) == after.get(name);
        if self == Self::Off || before.keys().chain(after.keys()).all(is_same) {
            return Ok(());
        }
        let note = |name: &str| after.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (user, now) = (note("updatedBy"), note("updatedAt"));
        self.put(txn, "update", (id, version), (before, after), (&user, &now))
    }

    /// Records that `user` deleted a record.
    pub(crate) fn note_deletion(
        self,
        txn: &mut Txn<'_>,
        id: &str,
        version: u64,
        before: &Map<String, Value>,
        user: &str,
        now: &str,
    ) -> Result<(), ScicatError> {
        self.put(txn, "delete", (id, version), (before, &Map::new()), (user, now))
    }

    fn put(
        self,
        txn: &mut Txn<'_>,
        operation: &str,
        (id, version): (&str, u64),
        (before, after): (&Map<String, Value>, &Map<String, Value>),
        (user, now): (&str, &str),
    ) -> Result<(), ScicatError> {
        let (subsystem, before, after) = match self {
            Self::Off => return Ok(()),
            Self::Documents(subsystem) => (subsystem, before.clone(), after.clone()),
            Self::Differences(subsystem) => {
                let (mut before, mut after) = differences(before, after);
                // User and time are fields of the entry itself.
                for name in NOTES {
                    before.shift_remove(name);
                    after.shift_remove(name);
                }
                (subsystem, before, after)
            }
        };
        let entry = json!({
            "subsystem": subsystem.name(), "documentId": id, "before": before, "after": after,
            "operation": operation, "user": user, "timestamp": now,
        });
        // If an id is reused, its versions start again, so the time is part of the name.
        let name = format!("{}/{id}/{version}/{now}", subsystem.name());
        txn.put(&HISTORY, &name, &entry)?;
        Ok(())
    }
}

/// Returns the differences between two documents, descending into objects.
pub(crate) fn differences(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut was, mut is) = (Map::new(), Map::new());
    for (name, old) in before {
        match (old, after.get(name)) {
            (old, Some(new)) if old == new => {}
            (Value::Object(old), Some(Value::Object(new))) => {
                let (old, new) = differences(old, new);
                was.insert(name.clone(), Value::Object(old));
                is.insert(name.clone(), Value::Object(new));
            }
            (old, new) => {
                was.insert(name.clone(), old.clone());
                if let Some(new) = new {
                    is.insert(name.clone(), new.clone());
                }
            }
        }
    }
    for (name, new) in after {
        if !before.contains_key(name) {
            is.insert(name.clone(), new.clone());
        }
    }
    (was, is)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn differences_are_taken_from_inside() {
        let before = map(json!({"a": 1, "b": {"c": 1, "d": {"e": [1]}}, "gone": 1, "same": {"x": 1}}));
        let after = map(json!({"a": 2, "b": {"c": 1, "d": {"e": [2]}}, "new": null, "same": {"x": 1}}));
        let (was, is) = differences(&before, &after);
        assert_eq!(Value::Object(was), json!({"a": 1, "b": {"d": {"e": [1]}}, "gone": 1}));
        assert_eq!(Value::Object(is), json!({"a": 2, "b": {"d": {"e": [2]}}, "new": null}));
    }
}
