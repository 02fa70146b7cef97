//! `POST /mapping-preview`: applies a mapping profile to a stored record. Nothing is written.
//!
//! FOLIO has no such route. The profile is part of the request, so that it can be tried before it is saved; the record
//! is a source record, found by its own id or by the id or hrid of the instance, holdings record or authority that it
//! describes.

use http::StatusCode;
use pinakes_marc::{Record, RecordKind};
use pinakes_store::{StoreError, View, Weight};
use serde_json::{Map, Value, json};

use super::actions::{made_of_bib, occurrences, unfold};
use super::fields::{FieldRule, Source};
use super::modify::Edit;
use super::setup::{SetupError, authority_rules, reference, rules, source_files};
use super::tree::Entity;
use crate::data_import::mapping::{self, Reference, RuleSet};
use crate::platform::app::Call;
use crate::platform::collection::Collections;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid, required_text};
use crate::source_records::{marc, source_storage};

/// Names in `externalIdsHolder` that are searched.
const NAMES: [&str; 6] =
    ["instanceId", "holdingsId", "authorityId", "instanceHrid", "holdingsHrid", "authorityHrid"];

/// Adds the route. It requires the permission to read source records.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.post("/mapping-preview", Access::to("source-storage.records.collection.get"), preview)
}

impl From<SetupError> for FolioError {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Store(error) => error.into(),
            SetupError::Profile(reason) => Self::unprocessable(Fault::new(reason)),
        }
    }
}

/// The tenant's data used for mapping.
struct Surroundings {
    collections: Collections,
    is_extended: bool,
    reference: Reference,
    today: String,
}

async fn preview(mut call: Call) -> Answer {
    let body = call.object().await?;
    let profile = body.get("profile").filter(|it| it.is_object()).cloned();
    let profile = profile.ok_or_else(|| FolioError::unprocessable(Fault::missing("profile")))?;
    let wanted = required_text(&body, "record")?.trim().to_owned();
    let collections = call.app.collections;
    let is_extended = call.app.settings.authority_extended;
    let today = dates::rmb(call.app.now_ms()).get(..10).unwrap_or_default().to_owned();
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let source = found(view, &wanted)?.ok_or_else(|| {
            FolioError::not_found(format!(
                "No source record has the id {wanted:?}, and none describes a record of that id or hrid"
            ))
        })?;
        let reference = reference(view, collections)?;
        let around = Surroundings { collections, is_extended, reference, today: today.clone() };
        shown(view, &profile, &source, &around)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Returns the source record for an id or hrid.
fn found(view: &mut View<'_>, wanted: &str) -> Result<Option<Value>, StoreError> {
    let id = parse_uuid(wanted);
    if let Some(id) = &id
        && let Some(found) = source_storage::get(view, id)?
    {
        return Ok(Some(found));
    }
    for name in NAMES.iter().filter(|it| it.ends_with("Id") == id.is_some()) {
        let found = source_storage::current_of(view, name, id.as_deref().unwrap_or(wanted))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn refused(message: String) -> FolioError {
    FolioError::unprocessable(Fault::new(message))
}

/// Builds the answer: the result of each field, the records they form together, and the faults.
fn shown(
    view: &mut View<'_>,
    profile: &Value,
    source: &Value,
    around: &Surroundings,
) -> Result<Value, FolioError> {
    let content = source.pointer("/parsedRecord/content").unwrap_or(&Value::Null);
    let record = marc::from_value(content)
        .ok_or_else(|| refused("The source record holds no MARC record that could be read".to_owned()))?;
    let name = profile.get("existingRecordType").and_then(Value::as_str).unwrap_or_default();
    let entity = Entity::named(name).ok_or_else(|| {
        refused(format!("existingRecordType {name:?} is no type of record that is imported"))
    })?;
    expect_kind(entity, record.leader.kind())?;
    let list = |pointer: &str| profile.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let edits: Vec<Edit> = list("/mappingDetails/marcMappingDetails").filter_map(Edit::read).collect();
    let option = profile.pointer("/mappingDetails/marcMappingOption").and_then(Value::as_str);
    let mut after = record.clone();
    if option != Some("UPDATE") {
        edits.iter().for_each(|it| it.apply(&mut after));
    }
    let rules: Vec<(&Value, Option<FieldRule>)> =
        list("/mappingDetails/mappingFields").map(|it| (it, FieldRule::read(it))).collect();
    let active: Vec<&FieldRule> = rules.iter().filter_map(|it| it.1.as_ref()).collect();
    let parts = parts(entity, &after, &active);
    let fields: Vec<Value> =
        rules.iter().map(|(given, rule)| field(given, rule.as_ref(), &parts, around)).collect();
    let (mut made, mut faults) = (Vec::new(), Vec::new());
    for part in &parts {
        match whole(view, entity, part, &active, around)? {
            // An import creates one holdings record per location, the first.
            Ok(body) if entity == Entity::Holdings && has_place(&made, &body) => {}
            Ok(body) => made.push(Value::Object(body)),
            Err(fault) => faults.push(Value::from(fault)),
        }
    }
    let id = source.get("id");
    Ok(json!({
        "record": {"id": id, "title": marc::title(&record), "marc": marc::formatted(content)},
        "marcAfter": (after != record).then(|| marc::formatted(&marc::to_value(&after))),
        "fields": fields, "made": made, "faults": faults,
    }))
}

/// Checks whether one of the holdings records has the same location.
fn has_place(made: &[Value], body: &Map<String, Value>) -> bool {
    made.iter().any(|it| it.get("permanentLocationId") == body.get("permanentLocationId"))
}

/// Checks that MARC records of that kind are mapped to such records.
fn expect_kind(entity: Entity, kind: RecordKind) -> Result<(), FolioError> {
    let wanted = match entity {
        Entity::Authority | Entity::MarcAuthority => RecordKind::Authority,
        Entity::MarcHoldings => RecordKind::Holdings,
        _ => RecordKind::Bibliographic,
    };
    if kind == wanted {
        return Ok(());
    }
    Err(refused(format!(
        "The profile makes a record of the type {} of a record that is {wanted:?}; this one is {kind:?}",
        entity.name()
    )))
}

/// Returns a copy of the record for each field that becomes a record of its own, split as in an import.
fn parts(entity: Entity, record: &Record, rules: &[&FieldRule]) -> Vec<Record> {
    let driver = |path: &str| rules.iter().find(|it| it.sets(path)).and_then(|it| it.tag());
    match entity {
        Entity::Holdings => occurrences(record, driver("permanentLocationId")),
        Entity::Item => {
            occurrences(record, driver("barcode").or_else(|| rules.iter().find_map(|it| it.tag())))
        }
        _ => vec![record.clone()],
    }
}

/// Applies one field of the profile to each part of the record.
fn field(given: &Value, rule: Option<&FieldRule>, parts: &[Record], around: &Surroundings) -> Value {
    let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default();
    let (mut made, mut faults) = (Vec::new(), Vec::new());
    for record in rule.into_iter().flat_map(|_| parts) {
        let source = Source { record, reference: &around.reference, today: &around.today };
        let mut object = Map::new();
        match rule.map_or(Ok(()), |it| it.apply(&mut object, &source)) {
            Ok(()) if object.is_empty() => {}
            Ok(()) => made.push(Value::Object(object)),
            Err(fault) => faults.push(Value::from(fault)),
        }
    }
    json!({"name": text("name"), "path": text("path"), "value": text("value"), "made": made, "faults": faults})
}

/// Builds the complete record that an import would store for a part, without its ids; or returns why it would not.
fn whole(
    view: &mut View<'_>,
    entity: Entity,
    record: &Record,
    active: &[&FieldRule],
    around: &Surroundings,
) -> Result<Result<Map<String, Value>, String>, FolioError> {
    let mut body = match entity {
        Entity::Instance => made_of_bib(&rules(view, RuleSet::Bib)?, record.clone(), &around.reference),
        Entity::Authority => {
            let (rules, is_extended) = authority_rules(view, around.is_extended)?;
            let files = source_files(view, around.collections)?;
            let mut mapped = mapping::authority(&rules, record, &around.reference, &files);
            if is_extended {
                mapping::add_related(&rules, record, &around.reference, &mut mapped);
            }
            return Ok(Ok(mapped));
        }
        Entity::MarcHoldings => {
            let made = mapping::holdings(&rules(view, RuleSet::Holdings)?, record, &around.reference);
            return Ok(made.map_err(|error| error.to_string()));
        }
        Entity::Holdings | Entity::Item => Map::new(),
        Entity::MarcBib | Entity::MarcAuthority => return Ok(Ok(Map::new())),
    };
    let source = Source { record, reference: &around.reference, today: &around.today };
    if let Err(fault) = active.iter().try_for_each(|it| it.apply(&mut body, &source)) {
        return Ok(Err(fault));
    }
    if entity == Entity::Item {
        unfold(&mut body);
    }
    Ok(Ok(body))
}
