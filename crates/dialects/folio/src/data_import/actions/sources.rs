//! Storing the source records of what is created and updated.

use std::sync::Arc;

use pinakes_marc::Record;
use pinakes_store::Document;
use serde_json::Value;

use crate::data_import::engine::{Case, Engine, Made, StepError};
use crate::data_import::hits::Hit;
use crate::data_import::journal::Row;
use crate::data_import::tree::Entity;
use crate::platform::json as text_form;
use crate::source_records::source_storage::{self, SOURCE_RECORD};

/// Stores the first source record of an instance, holdings record or authority.
pub(super) fn store_source(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    mut record: Record,
    entity: Entity,
    external_id: &str,
    hrid: &str,
) -> Result<(), StepError> {
    let id = case.next_source_id(engine.setup, engine.now_ms);
    engine.setup.finish(&mut record, external_id, &id, engine.now_ms);
    let made = Made {
        id: &id,
        record: &record,
        matched_id: &id,
        generation: 0,
        external: Some((entity, external_id, hrid)),
        now_ms: engine.now_ms,
    };
    insert_source(engine, case, made)?;
    case.rows.push(Row::made(entity, "CREATE", &id, hrid));
    Ok(())
}

/// Stores the next generation of a source record.
pub(super) fn supersede(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    mut record: Record,
    old: &Value,
    entity: Entity,
    external_id: &str,
    hrid: &str,
) -> Result<(), StepError> {
    let text = |name: &str| old.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (old_id, matched_id) = (text("id"), text("matchedId"));
    let generation = old.get("generation").and_then(Value::as_u64).unwrap_or(0) + 1;
    source_storage::mark_old(engine.txn, &old_id)?;
    engine.cache.drop_record(&old_id);
    engine.setup.finish(&mut record, external_id, &matched_id, engine.now_ms);
    let id = case.next_source_id(engine.setup, engine.now_ms);
    let made = Made {
        id: &id,
        record: &record,
        matched_id: &matched_id,
        generation,
        external: Some((entity, external_id, hrid)),
        now_ms: engine.now_ms,
    };
    insert_source(engine, case, made)?;
    case.rows.push(Row::made(entity, "UPDATE", &id, hrid));
    Ok(())
}

fn insert_source(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    made: Made<'_>,
) -> Result<(), StepError> {
    let id = made.id.to_owned();
    let body = Arc::new(engine.setup.source_record(case.prepared, made));
    let document = Document::with_bytes(&SOURCE_RECORD, id.as_str(), &body, text_form::bytes(&*body))?;
    case.has_written = true;
    engine.txn.insert_document(&document)?;
    engine.note(&body);
    case.source_id = Some(id);
    // A later branch of the profile goes on from this record.
    case.found.source = Some(Hit(body));
    Ok(())
}

impl Engine<'_, '_, '_> {
    /// Caches a stored source record, so that matches of later records can find it.
    pub(crate) fn note(&mut self, body: &Arc<Value>) {
        if 0 < self.setup.tree.n_matches {
            self.cache.add(self.setup, body);
        }
    }
}
