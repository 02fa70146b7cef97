//! Creating records: authorities, instances, holdings, items.

use std::sync::Arc;

use pinakes_marc::{Record, RecordKind};
use pinakes_store::{Expr, Value as Condition, fold};
use serde_json::{Map, Value};

use super::bodies::{
    apply_fields, apply_to, mapped_bib, missing, occurrences, place, strip_links, tidy_bib, unfold,
};
use super::sources::store_source;
use crate::data_import::engine::{Case, Engine, Prepared, StepError, collection_of, unsupported};
use crate::data_import::hits::Hit;
use crate::data_import::incoming::Incoming;
use crate::data_import::journal::Row;
use crate::data_import::mapping;
use crate::data_import::tree::{Action, Entity};
use crate::platform::collection;
use crate::source_records::marc;

/// Refuses to create a record if the incoming one has a 999 ff field, which means that it already exists.
fn refuse_known(case: &Case<'_>, name: &str, allows_external: bool) -> Result<(), StepError> {
    let has_external = marc::folio_id(&case.record, 'i').is_some();
    if marc::folio_id(&case.record, 's').is_some() || (has_external && !allows_external) {
        return Err(StepError::Record(format!(
            "A new {name} was not created because the incoming record already contained a 999ff$s or 999ff$i field"
        )));
    }
    Ok(())
}

pub(super) fn create_authority(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    refuse_known(case, "MARC-Authority", false)?;
    if case.record.leader.kind() != RecordKind::Authority {
        let kind = case.record.leader.kind();
        return Err(StepError::Record(unsupported(&engine.setup.tree.name, kind)));
    }
    let prepared = case.prepared;
    let is_announced = case.is_unchanged && case.n_sources == 0 && case.n_externals == 0;
    let ready = prepared.authority.as_ref().filter(|_| is_announced);
    let record_id = case.next_source_id(engine.setup, engine.now_ms);
    let external_id = case.next_external_id(engine.setup, engine.now_ms);
    let made;
    let ready = match ready {
        Some(ready) => ready,
        None => {
            let changed = Prepared {
                incoming: Incoming { record: Ok(case.record.clone()), ..prepared.incoming.clone() },
                title: prepared.title.clone(),
                record_id: record_id.clone(),
                external_id,
                authority: None,
            };
            made = engine.setup.authority_of(&changed, engine.now_ms);
            made.as_ref().ok_or_else(|| {
                StepError::Record(format!(
                    "{}: no 001 and no 010 with a known prefix, so there is no naturalId for the authority",
                    place(case)
                ))
            })?
        }
    };
    case.has_written = true;
    engine.txn.insert_document(&ready.source)?;
    engine.txn.insert_document(&ready.authority)?;
    engine.note(&ready.source_body);
    case.found.source = Some(Hit(Arc::clone(&ready.source_body)));
    let id = ready.authority.id().to_owned();
    case.rows.push(Row::made(Entity::Authority, "CREATE", &id, ""));
    if action.entity == Entity::Authority {
        case.rows.push(Row::made(Entity::MarcAuthority, "CREATE", &record_id, &ready.hrid));
    }
    case.source_id = Some(record_id);
    case.found.authority = Some(id);
    Ok(())
}

pub(super) fn create_instance(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    refuse_known(case, "Instance", engine.setup.accepts_instance_id)?;
    let collection = collection_of(Entity::Instance).ok_or_else(|| missing("instances"))?;
    let given = marc::folio_id(&case.record, 'i').filter(|_| engine.setup.accepts_instance_id);
    let id = given.unwrap_or_else(|| case.next_external_id(engine.setup, engine.now_ms));
    let mut record = case.record.clone();
    tidy_bib(&mut record);
    if action.removes_9 {
        strip_links(&mut record);
    }
    let mut body = mapped_bib(&engine.setup.bib_rules, &record, &engine.setup.reference);
    apply_fields(engine, case, action, &mut body)?;
    body.insert("id".into(), id.as_str().into());
    let stored = collection::insert(engine.txn, &engine.writer, collection, body)?;
    case.has_written = true;
    let hrid = stored.body.get("hrid").and_then(Value::as_str).unwrap_or_default().to_owned();
    marc::set_001(&mut record, &hrid);
    store_source(engine, case, record, Entity::MarcBib, &id, &hrid)?;
    case.rows.push(Row::made(Entity::Instance, "CREATE", &id, &hrid));
    case.found.instances = vec![id];
    Ok(())
}

pub(super) fn create_marc_holdings(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
) -> Result<(), StepError> {
    refuse_known(case, "MARC-Holdings", false)?;
    let collection = collection_of(Entity::Holdings).ok_or_else(|| missing("holdingsRecords"))?;
    let instance = instance_of(engine, &case.record)?;
    let mut record = case.record.clone();
    let mut body = mapping::holdings(&engine.setup.holdings_rules, &record, &engine.setup.reference)
        .map_err(|error| StepError::Record(format!("{}: {error}", place(case))))?;
    body.shift_remove("hrid");
    let id = case.next_external_id(engine.setup, engine.now_ms);
    body.insert("id".into(), id.as_str().into());
    body.insert("instanceId".into(), instance.as_str().into());
    let stored = collection::insert(engine.txn, &engine.writer, collection, body)?;
    case.has_written = true;
    let hrid = stored.body.get("hrid").and_then(Value::as_str).unwrap_or_default().to_owned();
    marc::keep_control_number(&mut record);
    record.remove("003");
    marc::set_001(&mut record, &hrid);
    store_source(engine, case, record, Entity::MarcHoldings, &id, &hrid)?;
    case.rows.push(Row::made(Entity::Holdings, "CREATE", &id, &hrid));
    case.found.holdings = vec![id];
    Ok(())
}

/// Returns the id of the instance whose hrid is in 004.
fn instance_of(engine: &mut Engine<'_, '_, '_>, record: &Record) -> Result<String, StepError> {
    let collection = collection_of(Entity::Instance).ok_or_else(|| missing("instances"))?;
    let hrid = record.control("004").unwrap_or_default().trim().to_owned();
    let found = match hrid.is_empty() {
        true => None,
        false => {
            engine.txn.first(&collection.kind, Expr::Is("hrid".into(), Condition::Folded(fold(&hrid))))?
        }
    };
    found.map(|it| it.id).ok_or_else(|| {
        StepError::Record(
            "The 004 tag of the Holdings doesn't has a link to the Bibliographic record".to_owned(),
        )
    })
}

/// Creates holdings from a bibliographic record: one for each field that names a location.
pub(super) fn create_holdings(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    let collection = collection_of(Entity::Holdings).ok_or_else(|| missing("holdingsRecords"))?;
    let Some(instance) = case.found.instances.first().cloned() else {
        return Err(StepError::Record(
            "holdings were not created: there is no instance to put them under".to_owned(),
        ));
    };
    let driver = action.fields.iter().find(|it| it.sets("permanentLocationId")).and_then(|it| it.tag());
    let mut locations: Vec<Value> = Vec::new();
    let n_before = case.found.holdings.len();
    case.found.holdings_by_field.clear();
    for record in occurrences(&case.record, driver) {
        let mut body = Map::new();
        body.insert("instanceId".into(), instance.as_str().into());
        apply_to(engine, &record, action, &mut body)?;
        body.entry("sourceId").or_insert_with(|| {
            engine.setup.reference.by_name("holdingsRecordsSources", "FOLIO").unwrap_or(SOURCE_FOLIO).into()
        });
        let location = body.get("permanentLocationId").cloned().unwrap_or_default();
        if let Some(at) = locations.iter().position(|it| *it == location) {
            let id = case.found.holdings[n_before + at].clone();
            case.found.holdings_by_field.push(id);
            continue;
        }
        locations.push(location);
        let stored = collection::insert(engine.txn, &engine.writer, collection, body)?;
        case.has_written = true;
        let hrid = stored.body.get("hrid").and_then(Value::as_str).unwrap_or_default();
        case.rows.push(Row::made(Entity::Holdings, "CREATE", &stored.id, hrid));
        case.found.holdings_by_field.push(stored.id.clone());
        case.found.holdings.push(stored.id);
    }
    Ok(())
}

/// Id of the source of holdings without a MARC record.
const SOURCE_FOLIO: &str = "f32d531e-df79-46b3-8932-cdd35f7a2264";

/// Creates items from a bibliographic record: one for each field that describes an item.
pub(super) fn create_items(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    let collection = collection_of(Entity::Item).ok_or_else(|| missing("items"))?;
    if case.found.holdings.is_empty() {
        return Err(StepError::Record(
            "items were not created: there are no holdings to put them under".to_owned(),
        ));
    }
    let by_barcode = action.fields.iter().find(|it| it.sets("barcode")).and_then(|it| it.tag());
    let driver = by_barcode.or_else(|| action.fields.iter().find_map(|it| it.tag()));
    let records = occurrences(&case.record, driver);
    // An item belongs to the holdings created from the same field, if there are as many holdings as items.
    let is_paired = case.found.holdings_by_field.len() == records.len();
    let under = if is_paired { case.found.holdings_by_field.clone() } else { case.found.holdings.clone() };
    for (at, record) in records.into_iter().enumerate() {
        let holdings = under[at.min(under.len() - 1)].clone();
        let mut body = Map::new();
        body.insert("holdingsRecordId".into(), holdings.into());
        apply_to(engine, &record, action, &mut body)?;
        unfold(&mut body);
        let stored = collection::insert(engine.txn, &engine.writer, collection, body)?;
        case.has_written = true;
        let hrid = stored.body.get("hrid").and_then(Value::as_str).unwrap_or_default();
        case.rows.push(Row::made(Entity::Item, "CREATE", &stored.id, hrid));
        case.found.items.push(stored.id);
    }
    Ok(())
}
