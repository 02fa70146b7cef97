//! Updating records that a match has found.

use std::sync::Arc;

use pinakes_marc::{Field, Record};
use serde_json::{Map, Value};

use super::bodies::{apply_fields, apply_to, missing, place, remapped, unfold, with_one_field};
use super::sources::{store_source, supersede};
use crate::data_import::engine::{Case, Engine, Protection, StepError, collection_of};
use crate::data_import::journal::Row;
use crate::data_import::mapping;
use crate::data_import::tree::{Action, Entity};
use crate::platform::collection::{self, Lock, Missing};
use crate::platform::json::text_at;
use crate::source_records::marc;
use crate::source_records::source_storage;

pub(super) fn update_authority(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    let collection = collection_of(Entity::Authority).ok_or_else(|| missing("authorities"))?;
    let Some(id) = case.found.authority.clone() else {
        return Err(StepError::Record("the authority was not updated: no match has found one".to_owned()));
    };
    let source = source_of(engine, case, "authorityId", &id)?.ok_or_else(|| {
        StepError::Record(format!("the authority {id} was not updated: it has no MARC record"))
    })?;
    let record = merged(engine, case, &source, action)?;
    let mapped = engine.setup.map_authority(&record);
    let hrid = record.control("001").unwrap_or_default().trim().to_owned();
    let old = engine.txn.get(&collection.kind, &id)?;
    let old = old.map(|it| it.json()).transpose()?;
    let mut body = mapped;
    if body.get("naturalId").is_none()
        && let Some(natural) = old.as_ref().and_then(|it| it.get("naturalId"))
    {
        body.insert("naturalId".into(), natural.clone());
    }
    collection::put(engine.txn, &engine.writer, collection, &id, body, Missing::Insert, Lock::Ignored)?;
    case.has_written = true;
    supersede(engine, case, record, &source, Entity::MarcAuthority, &id, &hrid)?;
    case.rows.push(Row::made(Entity::Authority, "UPDATE", &id, ""));
    Ok(())
}

pub(super) fn update_instance(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    let collection = collection_of(Entity::Instance).ok_or_else(|| missing("instances"))?;
    let Some(id) = case.found.instances.first().cloned() else {
        return Err(StepError::Record("the instance was not updated: no match has found one".to_owned()));
    };
    let source = source_of(engine, case, "instanceId", &id)?;
    let Some(old) = engine.txn.get(&collection.kind, &id)? else {
        return Err(StepError::Record(format!(
            "the instance {id} was not updated: it is not there any more"
        )));
    };
    let old = old.json()?;
    let hrid = old.get("hrid").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut record = match &source {
        Some(source) => merged(engine, case, source, action)?,
        None => case.record.clone(),
    };
    if case.record.control("001").is_some_and(|it| it.trim() != hrid) {
        let mut incoming = case.record.clone();
        marc::keep_control_number(&mut incoming);
        record.remove("035");
        for field in incoming.remove("035") {
            match field {
                Field::Data(field) => marc::insert_by_tag(&mut record, field),
                other => record.insert_in_order(other),
            }
        }
    }
    record.remove("003");
    marc::normalise_oclc(&mut record);
    marc::set_001(&mut record, &hrid);
    let mut body = remapped(&engine.setup.bib_rules, &record, &engine.setup.reference, &old);
    apply_fields(engine, case, action, &mut body)?;
    collection::put(engine.txn, &engine.writer, collection, &id, body, Missing::Refuse, Lock::Ignored)?;
    case.has_written = true;
    match source {
        Some(source) => supersede(engine, case, record, &source, Entity::MarcBib, &id, &hrid)?,
        None => store_source(engine, case, record, Entity::MarcBib, &id, &hrid)?,
    }
    case.rows.push(Row::made(Entity::Instance, "UPDATE", &id, &hrid));
    Ok(())
}

pub(super) fn update_marc_holdings(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    let collection = collection_of(Entity::Holdings).ok_or_else(|| missing("holdingsRecords"))?;
    let Some(id) = case.found.holdings.first().cloned() else {
        return Err(StepError::Record("the holdings were not updated: no match has found them".to_owned()));
    };
    let source = source_of(engine, case, "holdingsId", &id)?.ok_or_else(|| {
        StepError::Record(format!("the holdings {id} were not updated: they have no MARC record"))
    })?;
    let record = merged(engine, case, &source, action)?;
    let mut body = mapping::holdings(&engine.setup.holdings_rules, &record, &engine.setup.reference)
        .map_err(|error| StepError::Record(format!("{}: {error}", place(case))))?;
    let Some(old) = engine.txn.get(&collection.kind, &id)? else {
        return Err(StepError::Record(format!(
            "the holdings {id} were not updated: they are not there any more"
        )));
    };
    let old = old.json()?;
    for name in ["instanceId", "hrid", "sourceId"] {
        body.extend(old.get(name).map(|it| (name.to_owned(), it.clone())));
    }
    let hrid = old.get("hrid").and_then(Value::as_str).unwrap_or_default().to_owned();
    collection::put(engine.txn, &engine.writer, collection, &id, body, Missing::Refuse, Lock::Ignored)?;
    case.has_written = true;
    supersede(engine, case, record, &source, Entity::MarcHoldings, &id, &hrid)?;
    case.rows.push(Row::made(Entity::Holdings, "UPDATE", &id, &hrid));
    Ok(())
}

/// Statuses of items that only circulation ends.
const DESK_STATUSES: [&str; 8] = [
    "Aged to lost",
    "Awaiting delivery",
    "Awaiting pickup",
    "Checked out",
    "Claimed returned",
    "Declared lost",
    "Paged",
    "Recently returned",
];

fn status_of(item: &Map<String, Value>) -> String {
    item.get("status").and_then(|it| text_at(it, "name")).unwrap_or_default().to_owned()
}

/// Updates matched holdings or items: the fields of the mapping are set, the others are kept. Of several, each is updated
/// from the field that has matched it.
pub(super) fn update_by_fields(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    let list = if action.entity == Entity::Item { &case.found.items } else { &case.found.holdings };
    let by_field: Vec<(String, usize)> =
        case.found.matched_by_field.iter().filter(|(id, _)| list.contains(id)).cloned().collect();
    if 1 < by_field.len() {
        return by_field.iter().try_for_each(|(id, at)| {
            let record = with_one_field(&case.record, *at);
            update_one(engine, case, action, id, &record)
        });
    }
    let Some(id) = list.first().cloned() else {
        let name = name_of(action);
        return Err(StepError::Record(format!("the {name} was not updated: no match has found one")));
    };
    let record = case.record.clone();
    update_one(engine, case, action, &id, &record)
}

fn name_of(action: &Action) -> &'static str {
    if action.entity == Entity::Item { "item" } else { "holdings record" }
}

fn update_one(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
    id: &str,
    record: &Record,
) -> Result<(), StepError> {
    let name = name_of(action);
    let collection = collection_of(action.entity).ok_or_else(|| missing(name))?;
    let Some(old) = engine.txn.get(&collection.kind, id)? else {
        return Err(StepError::Record(format!("the {name} {id} was not updated: it is not there any more")));
    };
    let Value::Object(mut body) = old.json()? else { return Err(missing(name)) };
    let status = status_of(&body);
    apply_to(engine, record, action, &mut body)?;
    unfold(&mut body);
    let wanted = status_of(&body);
    if action.entity == Entity::Item && wanted != status && DESK_STATUSES.contains(&status.as_str()) {
        return Err(StepError::Record(format!("Could not change item status '{status}' to '{wanted}'")));
    }
    let hrid = body.get("hrid").and_then(Value::as_str).unwrap_or_default().to_owned();
    collection::put(engine.txn, &engine.writer, collection, id, body, Missing::Refuse, Lock::Ignored)?;
    case.has_written = true;
    case.rows.push(Row::made(action.entity, "UPDATE", id, &hrid));
    Ok(())
}

/// Returns the source record of a matched record: the one that a match has found, if it is that, or the stored one.
fn source_of(
    engine: &mut Engine<'_, '_, '_>,
    case: &Case<'_>,
    holder: &str,
    id: &str,
) -> Result<Option<Arc<Value>>, StepError> {
    match case.source_of(id) {
        Some(source) => Ok(Some(source)),
        None => Ok(source_storage::current_of(engine.txn, holder, id)?.map(Arc::new)),
    }
}

/// Merges the protected fields of the stored record into the incoming one.
fn merged(
    engine: &Engine<'_, '_, '_>,
    case: &Case<'_>,
    stored: &Value,
    action: &Action,
) -> Result<Record, StepError> {
    let content = stored.pointer("/parsedRecord/content").unwrap_or(&Value::Null);
    let existing = marc::from_value(content)
        .ok_or_else(|| StepError::Record("the stored source record cannot be read".to_owned()))?;
    let protections: Vec<&Protection> =
        engine.setup.protections.iter().filter(|it| !action.overridden.contains(&it.id)).collect();
    let mut record = case.record.clone();
    let is_own = |field: &Field| {
        field.tag().is_control() || field.as_data().is_some_and(|it| it.indicators == ['f', 'f'])
    };
    let kept: Vec<Field> = existing
        .fields
        .iter()
        .filter(|field| protections.iter().any(|it| it.covers(field)))
        .cloned()
        .collect();
    for field in kept.iter().filter(|it| is_own(it)) {
        let indicators = field.as_data().map(|it| it.indicators);
        record.remove_where(|other| {
            other.tag() == field.tag() && other.as_data().map(|it| it.indicators) == indicators
        });
    }
    for field in kept {
        if !record.fields.contains(&field) {
            record.insert_in_order(field);
        }
    }
    Ok(record)
}

impl Protection {
    fn covers(&self, field: &Field) -> bool {
        if *field.tag() != *self.tag.as_str() {
            return false;
        }
        match field {
            Field::Control(field) => self.data == "*" || field.value == self.data,
            Field::Data(field) => {
                let fits = self.indicators.iter().zip(field.indicators).all(|(a, b)| *a == '*' || *a == b);
                let mut subfields = field.subfields.iter();
                let is_it = |code: char, value: &str| {
                    (self.subfield == '*' || self.subfield == code)
                        && (self.data == "*" || self.data == value)
                };
                fits && subfields.any(|it| is_it(it.code, &it.value))
            }
        }
    }
}
