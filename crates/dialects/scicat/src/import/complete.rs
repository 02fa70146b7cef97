//! Fills in the missing fields of imported records of each type and converts the records to the form in which
//! they are stored.
//!
//! Fields keep their order: a record that `pinakes export` wrote is stored byte for byte.

use serde_json::{Map, Value, json};

use crate::blocks::sorts::whole_number;
use crate::datasets::filling::DATES;
use crate::datasets::forms::seal;
use crate::documents::normalise_dates;
use crate::dto;
use crate::dto::dataset::{name_identifiers, name_of_folder, trim_source_folder};
use crate::dto::sample::name_sample;
use crate::import::imported::Importer;
use crate::jobs;
use crate::published_data;
use crate::scientific;
use crate::validate::{Default, Dto};

type Body = Map<String, Value>;

/// The scalars of v3's datasets and the lists that are stored.
const LISTS: [(&str, &str); 5] = [
    ("proposalId", "proposalIds"),
    ("sampleId", "sampleIds"),
    ("instrumentId", "instrumentIds"),
    ("principalInvestigator", "principalInvestigators"),
    ("investigator", "principalInvestigators"),
];
/// Fields in the API's answers that hold other records.
const OF_OTHERS: [&str; 7] =
    ["history", "origdatablocks", "datablocks", "attachments", "instruments", "proposals", "samples"];
/// Dates that the server sets.
const STAMPS: [&str; 2] = ["createdAt", "updatedAt"];
/// The fields in which a v3 attachment names its parent, and the parent's type in v4.
const TARGETS: [(&str, &str); 3] =
    [("datasetId", "dataset"), ("sampleId", "sample"), ("proposalId", "proposal")];

pub(crate) fn dataset(importer: &Importer, body: &mut Body) -> Result<String, String> {
    let app = &importer.app;
    let pid = identify(body, &["pid", "_id"], || app.new_pid());
    for name in OF_OTHERS {
        body.shift_remove(name);
    }
    for (scalar, list) in LISTS {
        let Some(value) = body.shift_remove(scalar) else { continue };
        let is_named = matches!(&value, Value::String(text) if !text.is_empty());
        if !body.get(list).is_some_and(Value::is_array) && is_named {
            body.insert(list.to_owned(), Value::Array(vec![value]));
        }
    }
    for list in ["proposalIds", "sampleIds", "instrumentIds"] {
        if let Some(Value::Array(list)) = body.get_mut(list) {
            list.retain(|it| !it.is_null());
        }
    }
    without_nulls(body, dto::dataset::v4());
    trim_source_folder(body);
    name_identifiers(body);
    if !body.contains_key("datasetName")
        && let Some(folder) = body.get("sourceFolder").and_then(Value::as_str)
    {
        let name = name_of_folder(folder);
        body.insert("datasetName".to_owned(), name.into());
    }
    body.entry("version").or_insert_with(|| "3".into());
    for list in ["proposalIds", "sampleIds", "instrumentIds"] {
        body.entry(list).or_insert_with(|| json!([]));
    }
    dto::dataset::v4().fill_defaults(body);
    normalise_dates(body, &DATES);
    make_whole(body, &["size", "packedSize", "numberOfFiles", "numberOfFilesArchived"]);
    enrich(body, "scientificMetadata");
    body.entry("classification")
        .or_insert_with(|| crate::policies::seen::classification(&Value::Null).into());
    complete_lifecycle(importer, body);
    sign(importer, body);
    seal(body);
    Ok(pid)
}

/// Completes `datasetlifecycle` in place.
fn complete_lifecycle(importer: &Importer, body: &mut Body) {
    const NAME: &str = "datasetlifecycle";
    let mut alone = Map::new();
    if let Some(given) = body.get_mut(NAME) {
        alone.insert(NAME.to_owned(), given.take());
    }
    crate::datasets::life::complete(&importer.app, &mut alone);
    if let Some(whole) = alone.shift_remove(NAME) {
        body.insert(NAME.to_owned(), whole);
    }
}

pub(crate) fn block(importer: &Importer, body: &mut Body) -> Result<String, String> {
    let id = identify(body, &["_id", "id"], || importer.app.new_uuid());
    if let Some(pid) = body.shift_remove("rawDatasetId").or_else(|| body.shift_remove("derivedDatasetId")) {
        body.entry("datasetId").or_insert(pid);
    }
    body.shift_remove("dataset");
    without_nulls(body, &Dto { fields: &[] });
    make_whole(body, &["size", "packedSize"]);
    sign(importer, body);
    Ok(id)
}

pub(crate) fn attachment(importer: &Importer, body: &mut Body) -> Result<String, String> {
    let aid = identify(body, &["aid", "_id", "id"], || importer.app.new_uuid());
    let mut relationships = Vec::new();
    for (name, target) in TARGETS {
        if let Some(Value::String(id)) = body.shift_remove(name) {
            relationships
                .push(json!({"targetId": id, "targetType": target, "relationType": "is attached to"}));
        }
    }
    let table = &dto::attachment::V4;
    without_nulls(body, table);
    if !relationships.is_empty() {
        body.entry("relationships").or_insert(Value::Array(relationships));
    }
    body.entry("isPublished").or_insert(Value::Bool(false));
    body.entry("caption").or_insert_with(|| "".into());
    table.fill_defaults(body);
    sign(importer, body);
    Ok(aid)
}

pub(crate) fn sample(importer: &Importer, body: &mut Body) -> Result<String, String> {
    let id = identify(body, &["sampleId", "_id"], || importer.app.new_uuid());
    let table = &dto::sample::SAMPLE;
    without_nulls(body, table);
    name_sample(body, &id);
    table.fill_defaults(body);
    enrich(body, "sampleCharacteristics");
    sign(importer, body);
    Ok(id)
}

pub(crate) fn proposal(importer: &Importer, body: &mut Body) -> Result<String, String> {
    let app = &importer.app;
    if text(body, "proposalId").or_else(|| text(body, "_id")).is_none() {
        return Err("proposal: proposalId must be a string".to_owned());
    }
    let id = identify(body, &["proposalId", "_id"], || app.new_uuid());
    let table = &dto::proposal::PROPOSAL;
    without_nulls(body, table);
    table.fill_defaults(body);
    normalise_dates(body, &["startTime", "endTime"]);
    enrich(body, "metadata");
    let periods = body.get_mut("MeasurementPeriodList").and_then(Value::as_array_mut);
    for period in periods.into_iter().flatten().filter_map(Value::as_object_mut) {
        normalise_dates(period, &["start", "end", "createdAt", "updatedAt"]);
        let id = period.get("id").filter(|it| it.is_string()).cloned();
        period.entry("_id").or_insert_with(|| id.unwrap_or_else(|| app.new_object_id().into()));
    }
    body.entry("numberOfDatasets").or_insert_with(|| 0.into());
    sign(importer, body);
    Ok(id)
}

pub(crate) fn instrument(importer: &Importer, body: &mut Body) -> Result<String, String> {
    let app = &importer.app;
    let new_pid = || format!("{}{}", app.settings.pid_prefix, app.new_uuid());
    let pid = identify(body, &["pid", "_id", "id"], new_pid);
    let table = &dto::instrument::INSTRUMENT;
    without_nulls(body, table);
    // Instruments created before v4 have no unique name.
    body.entry("uniqueName").or_insert_with(|| pid.clone().into());
    table.fill_defaults(body);
    sign(importer, body);
    Ok(pid)
}

pub(crate) fn policy(importer: &Importer, body: &mut Body) -> Result<String, String> {
    identify(body, &["_id", "id"], || importer.app.new_object_id());
    let table = &dto::policy::POLICY;
    without_nulls(body, table);
    table.fill_defaults(body);
    sign(importer, body);
    text(body, "ownerGroup").ok_or_else(|| "policy: ownerGroup must be a string".to_owned())
}

/// Completes a job. Jobs of v3 have `jobStatusMessage` and `datasetList` at the top level.
pub(crate) fn job(importer: &Importer, body: &mut Body) -> Result<String, String> {
    let app = &importer.app;
    let id = identify(body, &["_id", "id"], || app.new_uuid());
    without_nulls(body, &dto::job::V4_CREATE);
    if ["jobStatusMessage", "datasetList", "emailJobInitiator"].iter().any(|it| body.contains_key(*it)) {
        *body = jobs::forms::v4_of_create(std::mem::take(body));
    }
    let settings = &app.settings;
    for (name, default) in [
        ("statusCode", &settings.job_default_status_code),
        ("statusMessage", &settings.job_default_status_message),
    ] {
        body.entry(name).or_insert_with(|| default.as_str().into());
    }
    body.entry("accessGroups").or_insert_with(|| json!([]));
    body.entry("isPublished").or_insert(false.into());
    body.entry("jobResultObject").or_insert_with(|| json!({}));
    if let Some(made) = body.shift_remove("creationTime") {
        body.entry("createdAt").or_insert(made);
    }
    normalise_dates(body, &["executionTime"]);
    sign(importer, body);
    Ok(id)
}

/// Completes published data. That of v3 has its fields at the top level.
pub(crate) fn publication(importer: &Importer, body: &mut Body) -> Result<String, String> {
    let app = &importer.app;
    let prefix = app.settings.doi_prefix.trim_end_matches('/');
    let doi = identify(body, &["doi", "_id"], || format!("{prefix}/{}", app.new_uuid()));
    body.shift_remove("id");
    let table = &dto::published_data::V4;
    without_nulls(body, table);
    if !body.contains_key("datasetPids") {
        from_v3(body);
    }
    table.fill_defaults(body);
    body.entry("status").or_insert_with(|| published_data::status::PRIVATE.into());
    normalise_dates(body, &["registeredTime"]);
    sign(importer, body);
    Ok(doi)
}

fn from_v3(body: &mut Body) {
    let mut own = Vec::new();
    for name in ["doi", "_id", "createdBy", "updatedBy", "createdAt", "updatedAt", "__v"] {
        own.extend(body.shift_remove(name).map(|value| (name.to_owned(), value)));
    }
    let mut v4 = published_data::forms::v4_of(std::mem::take(body));
    if v4.get("status").and_then(Value::as_str) == Some("pending_registration") {
        v4.insert("status".to_owned(), published_data::status::PRIVATE.into());
    }
    let stamps = own.split_off(own.iter().position(|it| it.0 != "doi" && it.0 != "_id").unwrap_or(own.len()));
    body.extend(own.into_iter().chain(v4).chain(stamps));
}

/// Adds the users that the record lacks (the importer's name), normalises its dates, and moves the version to
/// the end.
fn sign(importer: &Importer, body: &mut Body) {
    normalise_dates(body, &STAMPS);
    for name in ["createdBy", "updatedBy"] {
        body.entry(name).or_insert_with(|| importer.username.as_str().into());
    }
    let first = body.get("createdAt").or_else(|| body.get("updatedAt")).cloned();
    let first = first.unwrap_or_else(|| importer.app.now().into());
    for name in STAMPS {
        body.entry(name).or_insert_with(|| first.clone());
    }
    body.entry("__v").or_insert_with(|| 0.into());
}

/// Returns the first id found under `names` (or `_id`), or else a new one, and sets it under all of `names`.
fn identify(body: &mut Body, names: &[&str], new: impl FnOnce() -> String) -> String {
    let given = names.iter().find_map(|name| text(body, name)).or_else(|| text(body, "_id"));
    let is_complete = given
        .as_deref()
        .is_some_and(|id| names.iter().all(|name| body.get(*name).and_then(Value::as_str) == Some(id)));
    let id = given.unwrap_or_else(new);
    if !is_complete {
        for name in names.iter().rev() {
            body.shift_remove(*name);
            body.shift_insert(0, (*name).to_owned(), id.as_str().into());
        }
    }
    id
}

fn text(body: &Body, name: &str) -> Option<String> {
    body.get(name).and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned)
}

/// Removes fields that are `null`, which mean the same as absent ones, unless `null` is what a create stores.
fn without_nulls(body: &mut Body, table: &Dto) {
    let is_default = |name: &str| table.field(name).is_some_and(|it| it.default == Some(Default::Null));
    body.retain(|name, value| !value.is_null() || is_default(name));
}

/// Converts doubles that are whole numbers to integers: MongoDB stores numbers beyond 2^31 as doubles, so
/// that 1173381773872.0 must be written as JavaScript writes it.
fn make_whole(body: &mut Body, names: &[&str]) {
    for name in names {
        if let Some(value) = body.get_mut(*name)
            && let Some(number) = value.as_f64().filter(|_| value.is_f64())
        {
            *value = whole_number(number);
        }
    }
}

fn enrich(body: &mut Body, name: &str) {
    if let Some(Value::Object(quantities)) = body.get_mut(name) {
        scientific::enrich(quantities);
    }
}
