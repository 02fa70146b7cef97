//! The log of a job: what happened to each record.
//!
//! The entries of one batch are one record of the store, so that a log costs a job one write per batch. What
//! `/metadata-provider` shows (journal records, log entries, summaries) is made of them in `metadata_provider.rs`.

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

/// What happened to one record.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Position in the job, from 0.
    pub(crate) order: u64,
    pub(crate) incoming_id: String,
    /// The source record that was stored.
    pub(crate) source_id: Option<String>,
    /// `MARC_AUTHORITY` and so on; empty when it could not be told.
    pub(crate) record_type: String,
    pub(crate) title: String,
    /// Why it failed; empty when it did not.
    pub(crate) error: String,
    /// What of it was lost or put right on the way; empty when nothing was.
    pub(crate) warning: String,
    /// Its bytes, when no source record holds them.
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
    /// Something that went well and made nothing.
    pub(crate) const fn done(entity: Entity, action: &'static str) -> Self {
        Self { entity, id: None, hrid: None, action, error: None }
    }

    /// Something that was stored.
    pub(crate) fn made(entity: Entity, action: &'static str, id: &str, hrid: &str) -> Self {
        let hrid = Some(hrid.to_owned()).filter(|it| !it.is_empty());
        Self { entity, id: Some(id.to_owned()), hrid, action, error: None }
    }

    fn json(&self) -> Value {
        json!([self.entity.name(), self.id, self.hrid, self.action, self.error])
    }
}

impl Entry {
    /// As it is stored: names left out where there is nothing to say.
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

/// The counts of `jobSummary`, by its keys.
#[derive(Debug, Default, Clone)]
pub(crate) struct Summary(pub(crate) Map<String, Value>);

/// Kinds of records in a summary: key and entity.
const SUMMARIES: [(&str, &[Entity]); 5] = [
    ("sourceRecordSummary", &[Entity::MarcBib, Entity::MarcHoldings, Entity::MarcAuthority]),
    ("instanceSummary", &[Entity::Instance]),
    ("holdingSummary", &[Entity::Holdings]),
    ("itemSummary", &[Entity::Item]),
    ("authoritySummary", &[Entity::Authority]),
];

impl Summary {
    /// Counts the entries of a batch.
    pub(crate) fn add(&mut self, entries: &[Entry]) {
        for entry in entries {
            if !entry.error.is_empty() {
                self.count_total();
                self.count("sourceRecordSummary", "totalErrors");
                continue;
            }
            let stored = |row: &&Row| matches!(row.action, "CREATE" | "UPDATE" | "MODIFY" | "DELETE");
            if !entry.rows.iter().any(|it| stored(&it)) {
                self.count("sourceRecordSummary", "totalDiscardedEntities");
                continue;
            }
            for (key, entities) in SUMMARIES {
                let rows = entry.rows.iter().filter(|it| entities.contains(&it.entity)).filter(stored);
                if key == "sourceRecordSummary" {
                    let mut rows = rows.peekable();
                    if rows.peek().is_some() {
                        let name = if rows.any(|it| it.action == "CREATE") { CREATED } else { UPDATED };
                        self.count(key, name);
                    }
                } else {
                    let actions: Vec<&str> = rows.map(|it| it.action).collect();
                    for action in actions {
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
        let part = self.0.entry(key).or_insert_with(
            || json!({CREATED: 0, UPDATED: 0, "totalDiscardedEntities": 0, "totalErrors": 0}),
        );
        let before = part.get(name).and_then(Value::as_u64).unwrap_or(0);
        if let Value::Object(part) = part {
            part.insert(name.into(), (before + 1).into());
        }
    }
}

const CREATED: &str = "totalCreatedEntities";
const UPDATED: &str = "totalUpdatedEntities";
