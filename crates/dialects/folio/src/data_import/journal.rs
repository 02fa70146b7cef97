//! The log of a job: the result for each record.
//!
//! The entries of one batch are one record of the store, so the log costs a job one write per batch.
//! `metadata_provider.rs` derives from them what `/metadata-provider` shows (journal records, log entries, summaries).

pub(crate) mod stored;

use std::collections::BTreeSet;

use pinakes_store::{Column, Index, Kind, Type};
use serde_json::{Map, Value, json};

use super::tree::Entity;

/// The entries of a batch: `{jobId, order, n, hasErrors, date, entries}`.
pub(crate) static JOURNAL: Kind = Kind {
    columns: &[
        Column::one("jobId", Type::Text),
        Column::at("position", "order", Type::Integer),
        Column::one("hasErrors", Type::Boolean),
    ],
    indexes: &[Index::on(&["jobId", "position"])],
    ..Kind::named("folio_import_journal")
};

/// The result for one record.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Position in the job, from 0.
    pub(crate) order: u64,
    pub(crate) incoming_id: String,
    /// Id of the stored source record.
    pub(crate) source_id: Option<String>,
    /// `MARC_AUTHORITY` and so on; empty if it could not be determined.
    pub(crate) record_type: String,
    pub(crate) title: String,
    /// Why the record failed; empty if it did not.
    pub(crate) error: String,
    /// What was lost or repaired on the way; empty if nothing was.
    pub(crate) warning: String,
    /// The record's bytes, if no source record holds them.
    pub(crate) raw: Option<String>,
    pub(crate) rows: Vec<Row>,
}

/// One journal record.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) entity: Entity,
    pub(crate) id: Option<String>,
    pub(crate) hrid: Option<String>,
    /// `CREATE`, `UPDATE`, `DELETE`, `MODIFY`, `MATCH`, `NON_MATCH` or `PARSE`.
    pub(crate) action: &'static str,
    pub(crate) error: Option<String>,
}

impl Row {
    /// Builds the row of an action that succeeded and stored nothing.
    pub(crate) const fn done(entity: Entity, action: &'static str) -> Self {
        Self { entity, id: None, hrid: None, action, error: None }
    }

    /// Builds the row of an action that stored a record.
    pub(crate) fn made(entity: Entity, action: &'static str, id: &str, hrid: &str) -> Self {
        let hrid = Some(hrid.to_owned()).filter(|it| !it.is_empty());
        Self { entity, id: Some(id.to_owned()), hrid, action, error: None }
    }

    fn json(&self) -> Value {
        json!([self.entity.name(), self.id, self.hrid, self.action, self.error])
    }
}

impl Entry {
    /// Returns the stored form; names without a value are omitted.
    pub(crate) fn json(&self) -> Value {
        let mut map = Map::new();
        map.insert("o".into(), self.order.into());
        map.insert("i".into(), self.incoming_id.as_str().into());
        map.extend(self.source_id.as_ref().map(|it| ("s".to_owned(), it.as_str().into())));
        for (name, text) in
            [("y", &self.record_type), ("t", &self.title), ("e", &self.error), ("w", &self.warning)]
        {
            if !text.is_empty() {
                map.insert(name.into(), text.as_str().into());
            }
        }
        map.extend(self.raw.as_ref().map(|it| ("r".to_owned(), it.as_str().into())));
        map.insert("j".into(), self.rows.iter().map(Row::json).collect());
        Value::Object(map)
    }
}

/// The counts of `jobSummary`, by key.
#[derive(Debug, Default, Clone)]
pub(crate) struct Summary(pub(crate) Map<String, Value>);

/// Keys of a summary, and the entities that each counts.
const SUMMARIES: [(&str, &[Entity]); 5] = [
    ("sourceRecordSummary", &[Entity::MarcBib, Entity::MarcHoldings, Entity::MarcAuthority]),
    ("instanceSummary", &[Entity::Instance]),
    ("holdingSummary", &[Entity::Holdings]),
    ("itemSummary", &[Entity::Item]),
    ("authoritySummary", &[Entity::Authority]),
];

impl Summary {
    /// Adds the entries of a batch to the counts.
    pub(crate) fn add(&mut self, entries: &[Entry]) {
        for entry in entries {
            let stored = |row: &&Row| {
                row.error.is_none() && matches!(row.action, "CREATE" | "UPDATE" | "MODIFY" | "DELETE")
            };
            let has_stored = entry.rows.iter().any(|it| stored(&it));
            if !entry.error.is_empty() {
                self.count_total();
            }
            for (key, entities) in SUMMARIES {
                let is_source = key == "sourceRecordSummary";
                if is_source && !has_stored {
                    self.count(key, if entry.error.is_empty() { DISCARDED } else { "totalErrors" });
                    continue;
                }
                // What the steps before a failed one have stored counts all the same.
                let of_key = || entry.rows.iter().filter(|it| entities.contains(&it.entity));
                let has_failed = of_key().any(|it| it.error.is_some());
                let is_idle = of_key().any(|it| it.action == "NON_MATCH") && !of_key().any(|it| stored(&it));
                if has_failed {
                    self.count(key, "totalErrors");
                }
                if has_failed || is_idle {
                    self.count(key, DISCARDED);
                }
                let rows = of_key().filter(stored);
                if is_source {
                    let mut rows = rows.peekable();
                    if rows.peek().is_some() {
                        let name = if rows.any(|it| it.action == "CREATE") { CREATED } else { UPDATED };
                        self.count(key, name);
                    }
                } else {
                    // Two branches of a profile may have changed the same record.
                    let distinct: BTreeSet<_> = rows.map(|it| (it.action, it.id.as_deref())).collect();
                    for (action, _) in distinct {
                        self.count(key, if action == "CREATE" { CREATED } else { UPDATED });
                    }
                }
            }
        }
    }

    fn count_total(&mut self) {
        let before = self.0.get("totalErrors").and_then(Value::as_u64).unwrap_or(0);
        self.0.insert("totalErrors".into(), (before + 1).into());
    }

    fn count(&mut self, key: &str, name: &str) {
        let part = self
            .0
            .entry(key)
            .or_insert_with(|| json!({CREATED: 0, UPDATED: 0, DISCARDED: 0, "totalErrors": 0}));
        let before = part.get(name).and_then(Value::as_u64).unwrap_or(0);
        if let Value::Object(part) = part {
            part.insert(name.into(), (before + 1).into());
        }
    }
}

const CREATED: &str = "totalCreatedEntities";
const UPDATED: &str = "totalUpdatedEntities";
const DISCARDED: &str = "totalDiscardedEntities";
