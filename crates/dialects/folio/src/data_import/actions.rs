//! Actions on a record: create, update, modify, delete.

mod bodies;
mod create;
mod sources;
mod update;

use pinakes_marc::RecordKind;

use super::engine::{Case, Engine, StepError, collection_of};
use super::journal::Row;
use super::tree::{Action, Entity, Verb};
use crate::platform::collection;
use crate::source_records::source_storage;
use bodies::missing;
use create::{create_authority, create_holdings, create_instance, create_items, create_marc_holdings};
use update::{update_authority, update_by_fields, update_instance, update_marc_holdings};

pub(crate) use bodies::{made_of_bib, occurrences, remapped, unfold};

/// Performs an action. Everything it stores is recorded in the case's rows.
pub(crate) fn perform(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    match (action.verb, action.entity) {
        (Verb::Modify, _) => {
            modify(case, action);
            Ok(())
        }
        (Verb::Create, Entity::Authority | Entity::MarcAuthority) => create_authority(engine, case, action),
        (Verb::Create, Entity::Instance | Entity::MarcBib) => create_instance(engine, case, action),
        (Verb::Create, Entity::Holdings | Entity::MarcHoldings) => match case.record.leader.kind() {
            RecordKind::Holdings => create_marc_holdings(engine, case),
            _ => create_holdings(engine, case, action),
        },
        (Verb::Create, Entity::Item) => create_items(engine, case, action),
        (Verb::Update, Entity::Authority | Entity::MarcAuthority) => update_authority(engine, case, action),
        (Verb::Update, Entity::Instance | Entity::MarcBib) => update_instance(engine, case, action),
        (Verb::Update, Entity::Holdings | Entity::MarcHoldings) => match case.record.leader.kind() {
            RecordKind::Holdings => update_marc_holdings(engine, case, action),
            _ => update_by_fields(engine, case, action),
        },
        (Verb::Update, Entity::Item) => update_by_fields(engine, case, action),
        (Verb::Delete, entity) => delete(engine, case, entity),
    }
}

fn modify(case: &mut Case<'_>, action: &Action) {
    action.edits.iter().for_each(|edit| edit.apply(&mut case.record));
    case.is_unchanged = false;
    case.rows.push(Row::done(action.entity, "MODIFY"));
}

fn delete(engine: &mut Engine<'_, '_, '_>, case: &mut Case<'_>, entity: Entity) -> Result<(), StepError> {
    let Some(source) = case.found.source.clone() else {
        return Err(StepError::Record("nothing was deleted: no match has found a record".to_owned()));
    };
    source_storage::mark_deleted(engine.txn, source.id(), engine.now_ms)?;
    case.has_written = true;
    engine.cache.drop_record(source.id());
    case.source_id = None;
    case.rows.push(Row::made(entity, "DELETE", source.id(), ""));
    if let (Entity::MarcAuthority | Entity::Authority, Some(id)) = (entity, case.found.authority.clone()) {
        let collection = collection_of(Entity::Authority).ok_or_else(|| missing("authorities"))?;
        collection::delete(engine.txn, &engine.writer, collection, &id)?;
        case.rows.push(Row::made(Entity::Authority, "DELETE", &id, ""));
    }
    Ok(())
}
