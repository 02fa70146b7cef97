//! Actions on a record: create, update, modify, delete (section 6 of the contract).

use std::sync::Arc;

use pinakes_marc::{Field, Record, RecordKind};
use pinakes_store::{Document, Expr, Value as Condition, fold};
use serde_json::{Map, Value};

use super::engine::{Case, Engine, Made, Protection, StepError, collection_of};
use super::fields::Source;
use super::journal::Row;
use super::tree::{Action, Entity, Verb};
use crate::data_import::mapping;
use crate::data_import::mapping::{Reference, Rules};
use crate::platform::collection::{self, Lock, Missing};
use crate::platform::{dates, json as text_form};
use crate::source_records::marc;
use crate::source_records::source_storage::{self, SOURCE_RECORD};

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

fn place<'c>(case: &'c Case<'_>) -> &'c str {
    &case.prepared.incoming.place
}

fn create_authority(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    refuse_known(case, "MARC-Authority", false)?;
    if case.record.leader.kind() != RecordKind::Authority {
        return Err(StepError::Record(super::engine::unsupported(
            &engine.setup.tree.name,
            case.record.leader.kind(),
        )));
    }
    let prepared = case.prepared;
    let ready = prepared.authority.as_ref().filter(|_| case.is_unchanged);
    let made;
    let ready = match ready {
        Some(ready) => ready,
        None => {
            let changed = super::engine::Prepared {
                incoming: super::incoming::Incoming {
                    record: Ok(case.record.clone()),
                    ..prepared.incoming.clone()
                },
                title: prepared.title.clone(),
                record_id: prepared.record_id.clone(),
                external_id: prepared.external_id.clone(),
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
    engine.txn.insert_document(&ready.source)?;
    case.has_written = true;
    engine.txn.insert_document(&ready.authority)?;
    engine.note(&ready.source_body);
    case.source_id = Some(prepared.record_id.clone());
    let id = ready.authority.id().to_owned();
    case.rows.push(Row::made(Entity::Authority, "CREATE", &id, ""));
    if action.entity == Entity::Authority {
        case.rows.push(Row::made(Entity::MarcAuthority, "CREATE", &prepared.record_id, &ready.hrid));
    }
    case.found.authority = Some(id);
    Ok(())
}

fn create_instance(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    refuse_known(case, "Instance", engine.setup.accepts_instance_id)?;
    let collection = collection_of(Entity::Instance).ok_or_else(|| missing("instances"))?;
    let given = marc::folio_id(&case.record, 'i').filter(|_| engine.setup.accepts_instance_id);
    let id = given.unwrap_or_else(|| case.prepared.external_id.clone());
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

/// Normalises a bibliographic record before it is mapped.
fn tidy_bib(record: &mut Record) {
    marc::keep_control_number(record);
    record.remove("003");
    marc::normalise_oclc(record);
}

/// Maps a bibliographic record to the properties of an instance, without the hrid, which is assigned when it is stored.
fn mapped_bib(rules: &Rules, record: &Record, reference: &Reference) -> Map<String, Value> {
    let mut body = mapping::instance(rules, record, reference);
    body.shift_remove("hrid");
    body
}

/// Does the same for a record as it arrived.
pub(crate) fn made_of_bib(rules: &Rules, mut record: Record, reference: &Reference) -> Map<String, Value> {
    tidy_bib(&mut record);
    mapped_bib(rules, &record, reference)
}

fn strip_links(record: &mut Record) {
    const LINKABLE: [&str; 22] = [
        "100", "110", "111", "130", "240", "600", "610", "611", "630", "650", "651", "655", "700", "710",
        "711", "730", "800", "810", "811", "830", "648", "647",
    ];
    for field in &mut record.fields {
        if let Field::Data(field) = field
            && LINKABLE.iter().any(|it| field.tag == **it)
        {
            field.remove('9');
        }
    }
}

fn create_marc_holdings(engine: &mut Engine<'_, '_, '_>, case: &mut Case<'_>) -> Result<(), StepError> {
    refuse_known(case, "MARC-Holdings", false)?;
    let collection = collection_of(Entity::Holdings).ok_or_else(|| missing("holdingsRecords"))?;
    let instance = instance_of(engine, &case.record)?;
    let mut record = case.record.clone();
    let mut body = mapping::holdings(&engine.setup.holdings_rules, &record, &engine.setup.reference)
        .map_err(|error| StepError::Record(format!("{}: {error}", place(case))))?;
    body.shift_remove("hrid");
    let id = case.prepared.external_id.clone();
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
fn create_holdings(
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
fn create_items(
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

/// Renames `materialType.id` and the like, which mapping profiles set, to the stored form, e.g. `materialTypeId`.
pub(crate) fn unfold(body: &mut Map<String, Value>) {
    for name in
        ["materialType", "permanentLoanType", "temporaryLoanType", "permanentLocation", "temporaryLocation"]
    {
        if let Some(id) = body.get(name).and_then(|it| it.get("id")).cloned() {
            body.shift_remove(name);
            body.insert(format!("{name}Id"), id);
        }
    }
}

/// Returns a copy of the record for each field with the tag, each with only that one of these fields.
pub(crate) fn occurrences(record: &Record, tag: Option<&str>) -> Vec<Record> {
    let places: Vec<usize> = match tag {
        None => Vec::new(),
        Some(tag) => {
            let is_it = |(at, field): (usize, &Field)| (*field.tag() == *tag).then_some(at);
            record.fields.iter().enumerate().filter_map(is_it).collect()
        }
    };
    if places.len() < 2 {
        return vec![record.clone()];
    }
    let one = |place: &usize| {
        let fields = record.fields.iter().enumerate();
        let kept =
            fields.filter(|(at, _)| at == place || !places.contains(at)).map(|(_, field)| field.clone());
        Record { leader: record.leader, fields: kept.collect() }
    };
    places.iter().map(one).collect()
}

fn update_authority(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    let collection = collection_of(Entity::Authority).ok_or_else(|| missing("authorities"))?;
    let (Some(source), Some(id)) = (case.found.source.clone(), case.found.authority.clone()) else {
        return Err(StepError::Record("the authority was not updated: no match has found one".to_owned()));
    };
    let record = merged(engine, case, &source.0, action)?;
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
    supersede(engine, case, record, &source.0, Entity::MarcAuthority, &id, &hrid)?;
    case.rows.push(Row::made(Entity::Authority, "UPDATE", &id, ""));
    Ok(())
}

/// Maps a changed MARC record to its instance; properties that do not come from MARC are kept.
pub(super) fn remapped(
    rules: &Rules,
    record: &Record,
    reference: &Reference,
    old: &Value,
) -> Map<String, Value> {
    let mut body = mapping::instance(rules, record, reference);
    const OWN: [&str; 11] = [
        "id",
        "hrid",
        "statusId",
        "statisticalCodeIds",
        "administrativeNotes",
        "natureOfContentTermIds",
        "catalogedDate",
        "tags",
        "previouslyHeld",
        "discoverySuppress",
        "staffSuppress",
    ];
    for name in OWN {
        if let Some(value) = old.get(name).filter(|_| !body.contains_key(name) || name == "hrid") {
            body.insert(name.to_owned(), value.clone());
        }
    }
    body
}

fn update_instance(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    let collection = collection_of(Entity::Instance).ok_or_else(|| missing("instances"))?;
    let Some(id) = case.found.instances.first().cloned() else {
        return Err(StepError::Record("the instance was not updated: no match has found one".to_owned()));
    };
    let source = match case.found.source.clone() {
        Some(hit) => Some(hit.0),
        None => source_storage::current_of(engine.txn, "instanceId", &id)?.map(Arc::new),
    };
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

fn update_marc_holdings(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    let collection = collection_of(Entity::Holdings).ok_or_else(|| missing("holdingsRecords"))?;
    let (Some(source), Some(id)) = (case.found.source.clone(), case.found.holdings.first().cloned()) else {
        return Err(StepError::Record("the holdings were not updated: no match has found them".to_owned()));
    };
    let record = merged(engine, case, &source.0, action)?;
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
    supersede(engine, case, record, &source.0, Entity::MarcHoldings, &id, &hrid)?;
    case.rows.push(Row::made(Entity::Holdings, "UPDATE", &id, &hrid));
    Ok(())
}

/// Updates matched holdings or items: the fields of the mapping are set, the others are kept.
fn update_by_fields(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    action: &Action,
) -> Result<(), StepError> {
    let list = if action.entity == Entity::Item { &case.found.items } else { &case.found.holdings };
    let name = if action.entity == Entity::Item { "item" } else { "holdings record" };
    let Some(id) = list.first().cloned() else {
        return Err(StepError::Record(format!("the {name} was not updated: no match has found one")));
    };
    let collection = collection_of(action.entity).ok_or_else(|| missing(name))?;
    let Some(old) = engine.txn.get(&collection.kind, &id)? else {
        return Err(StepError::Record(format!("the {name} {id} was not updated: it is not there any more")));
    };
    let Value::Object(mut body) = old.json()? else { return Err(missing(name)) };
    apply_fields(engine, case, action, &mut body)?;
    unfold(&mut body);
    let hrid = body.get("hrid").and_then(Value::as_str).unwrap_or_default().to_owned();
    collection::put(engine.txn, &engine.writer, collection, &id, body, Missing::Refuse, Lock::Ignored)?;
    case.has_written = true;
    case.rows.push(Row::made(action.entity, "UPDATE", &id, &hrid));
    Ok(())
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

/// Stores the first source record of an instance, holdings record or authority.
fn store_source(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    mut record: Record,
    entity: Entity,
    external_id: &str,
    hrid: &str,
) -> Result<(), StepError> {
    let id = case.prepared.record_id.clone();
    engine.setup.finish(&mut record, external_id, &id, engine.now_ms);
    let made = Made {
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
fn supersede(
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
    let made = Made {
        record: &record,
        matched_id: &matched_id,
        generation,
        external: Some((entity, external_id, hrid)),
        now_ms: engine.now_ms,
    };
    insert_source(engine, case, made)?;
    let id = case.prepared.record_id.clone();
    case.rows.push(Row::made(entity, "UPDATE", &id, hrid));
    Ok(())
}

fn insert_source(
    engine: &mut Engine<'_, '_, '_>,
    case: &mut Case<'_>,
    made: Made<'_>,
) -> Result<(), StepError> {
    let id = case.prepared.record_id.as_str();
    let body = engine.setup.source_record(case.prepared, made);
    let document = Document::with_bytes(&SOURCE_RECORD, id, &body, text_form::bytes(&body))?;
    engine.txn.insert_document(&document)?;
    case.has_written = true;
    engine.note(&body);
    case.source_id = Some(id.to_owned());
    Ok(())
}

fn apply_fields(
    engine: &Engine<'_, '_, '_>,
    case: &Case<'_>,
    action: &Action,
    body: &mut Map<String, Value>,
) -> Result<(), StepError> {
    apply_to(engine, &case.record, action, body)
}

fn apply_to(
    engine: &Engine<'_, '_, '_>,
    record: &Record,
    action: &Action,
    body: &mut Map<String, Value>,
) -> Result<(), StepError> {
    let today = dates::rmb(engine.now_ms);
    let today = today.get(..10).unwrap_or_default();
    let source = Source { record, reference: &engine.setup.reference, today };
    action.fields.iter().try_for_each(|it| it.apply(body, &source)).map_err(StepError::Record)
}

fn missing(what: &str) -> StepError {
    StepError::Record(format!("this server keeps no {what}"))
}

impl Engine<'_, '_, '_> {
    /// Caches a stored source record, so that matches of later records can find it.
    pub(crate) fn note(&mut self, body: &Value) {
        if 0 < self.setup.tree.n_matches {
            let body = Arc::new(body.clone());
            self.cache.add(self.setup, &body);
        }
    }
}
