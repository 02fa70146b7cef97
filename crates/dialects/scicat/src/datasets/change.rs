//! Changing and deleting datasets: PATCH, PUT, DELETE, `appendToArrayField` (section 4.7 of the contract).

use axum::body::Body;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Record, Txn, Value as Condition, Weight};
use serde_json::{Map, Value, json};

use super::metadata_schema;
use crate::app::{Asker, Path, QueryText, Scicat, json_parameter};
use crate::datasets::filling::{normalise, refused};
use crate::datasets::forms::{Api, scalars_to_lists, seal, v4_bytes};
use crate::documents::{is_merge_patch, merge_patch, object, stamp};
use crate::dto::dataset as dto;
use crate::error::{Answer, ScicatError};
use crate::kinds::{ATTACHMENT, DATABLOCK, DATASET, ORIG_DATABLOCK};
use crate::precondition::Precondition;
use crate::rights::Rights;
use crate::tracking::Tracking;
use crate::validate::Form;

/// The field with the lifecycle.
const LIFECYCLE: &str = "datasetlifecycle";

pub(crate) async fn patch_v3(
    app: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    patch(app.0, asker, pid, headers, body, Api::V3).await
}

pub(crate) async fn patch_v4(
    app: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    patch(app.0, asker, pid, headers, body, Api::V4).await
}

/// Order of the checks: role 403, missing 404, table 400, object 403, precondition 412.
async fn patch(app: Scicat, asker: Asker, pid: String, headers: HeaderMap, body: Body, api: Api) -> Answer {
    if !asker.rights.has_update_role() {
        return Err(ScicatError::forbidden_resource());
    }
    let mut changes = app.object(&headers, body).await?;
    let stored = stored_dataset(&asker, &pid).await?;
    let table = if api == Api::V4 { dto::v4() } else { dto::v3(type_of(&stored)) };
    dto::name_identifiers(&mut changes);
    let faults = table.check(&changes, Form::Update);
    if !faults.is_empty() {
        return Err(refused(&faults, api));
    }
    dto::trim_source_folder(&mut changes);
    let precondition = Precondition::of(&headers);
    let is_merge = is_merge_patch(&headers);
    metadata_schema::judge_changes(&app, &mut changes, &stored, is_merge).await;
    if changes.get(LIFECYCLE).is_some_and(|it| !is_merge || !it.is_object()) {
        crate::datasets::life::complete(&app, &mut changes);
    }
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let tracking = asker.tracking(&DATASET);
    let document = asker
        .db
        .write(move |txn| {
            let record = txn.get(&DATASET, &pid)?.ok_or_else(ScicatError::bare_not_found)?;
            require_owner(txn, &rights, &record)?;
            let mut body = object(&record)?;
            precondition.check("Dataset", "on the server", &pid, &body)?;
            let mut changes = changes.clone();
            require_new_owner(&rights, &body, &changes)?;
            if api == Api::V4 {
                refuse_half_quantities(&pid, &body, &changes)?;
            }
            if is_merge {
                merge_objects(&mut changes, &body);
            }
            apply(&mut body, changes);
            stamp(&mut body, &username, &now);
            save(txn, &pid, &record, body, tracking)
        })
        .await?;
    Ok(shown(&document, api))
}

pub(crate) async fn put_v3(
    app: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    replace(app.0, asker, pid, headers, body, Api::V3).await
}

pub(crate) async fn put_v4(
    app: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    replace(app.0, asker, pid, headers, body, Api::V4).await
}

async fn replace(app: Scicat, asker: Asker, pid: String, headers: HeaderMap, body: Body, api: Api) -> Answer {
    if !asker.rights.has_update_role() {
        return Err(ScicatError::forbidden_resource());
    }
    let mut body = app.object(&headers, body).await?;
    let before = stored_dataset(&asker, &pid).await?;
    let table = if api == Api::V4 { dto::v4() } else { dto::v3(type_of(&before)) };
    dto::name_identifiers(&mut body);
    let faults = table.check(&body, Form::Replace);
    if !faults.is_empty() {
        return Err(refused(&faults, api));
    }
    let metadata = body.get("scientificMetadata").cloned().unwrap_or_else(|| json!({}));
    metadata_schema::judge(&app, &mut body, &metadata).await;
    let precondition = Precondition::of(&headers);
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let tracking = asker.tracking(&DATASET);
    let state = app.clone();
    let document = asker
        .db
        .write(move |txn| {
            let record = txn.get(&DATASET, &pid)?.ok_or_else(ScicatError::bare_not_found)?;
            require_owner(txn, &rights, &record)?;
            let before = object(&record)?;
            precondition.check("Dataset", "on the server", &pid, &before)?;
            require_new_owner(&rights, &before, &body)?;
            let mut after = Map::new();
            for name in ["pid", "_id", "type", "version", "classification", "createdBy", "createdAt", "__v"] {
                if let Some(value) = before.get(name) {
                    after.insert(name.to_owned(), value.clone());
                }
            }
            let mut body = body.clone();
            if body.contains_key("classification") {
                after.shift_remove("classification");
            }
            let had_lifecycle = body.contains_key(LIFECYCLE);
            if had_lifecycle {
                crate::datasets::life::complete(&state, &mut body);
            }
            crate::datasets::filling::fill(&mut after, table, body);
            if !had_lifecycle && let Some(lifecycle) = before.get(LIFECYCLE) {
                after.insert(LIFECYCLE.to_owned(), lifecycle.clone());
            }
            if let Some(updated_at) = before.get("updatedAt") {
                after.insert("updatedAt".to_owned(), updated_at.clone());
            }
            stamp(&mut after, &username, &now);
            save(txn, &pid, &record, after, tracking)
        })
        .await?;
    Ok(shown(&document, api))
}

pub(crate) async fn delete_v3(app: State<Scicat>, asker: Asker, Path(pid): Path<String>) -> Answer {
    delete(&app, asker, pid, Api::V3).await
}

pub(crate) async fn delete_v4(app: State<Scicat>, asker: Asker, Path(pid): Path<String>) -> Answer {
    delete(&app, asker, pid, Api::V4).await
}

/// Deletes a dataset with its blocks and the attachments that belong to nothing else.
async fn delete(app: &Scicat, asker: Asker, pid: String, api: Api) -> Answer {
    if !asker.rights.may_delete {
        return Err(ScicatError::forbidden_resource());
    }
    let (username, now, tracking) = (asker.username(), app.now(), asker.tracking(&DATASET));
    let record = asker
        .db
        .write(move |txn| {
            let record = txn.delete(&DATASET, &pid)?.ok_or_else(ScicatError::bare_not_found)?;
            if tracking != Tracking::Off {
                tracking.note_deletion(
                    txn,
                    &pid,
                    record.version,
                    &without_scalars(object(&record)?),
                    &username,
                    &now,
                )?;
            }
            crate::proposals::counts::count_datasets(
                txn,
                &crate::proposals::counts::named_by(&object(&record)?),
                -1,
            )?;
            for kind in [&ORIG_DATABLOCK, &DATABLOCK] {
                for block in blocks_of(txn, kind, &pid)? {
                    txn.delete(kind, &block.id)?;
                }
            }
            let attached =
                Query::filter(Expr::Is("relationships.targetId".into(), Condition::Text(pid.clone())));
            for attachment in txn.find(&ATTACHMENT, &attached)? {
                crate::attachments::targets::detach(txn, &attachment, &pid)?;
            }
            Ok::<_, ScicatError>(record)
        })
        .await?;
    Ok(answer::stored_json(StatusCode::OK, api.bytes(&record.body)))
}

pub(crate) async fn append_to_array_field(
    app: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    query: QueryText,
) -> Answer {
    if !asker.rights.has_update_role() && !asker.rights.may_delete {
        return Err(ScicatError::forbidden_resource());
    }
    let field = query.get("fieldName").unwrap_or_default().to_owned();
    let data = query.get("data").map(|text| json_parameter("data", text)).transpose()?;
    let Some(Value::Array(items)) = data else {
        return Err(ScicatError::bad_request("data must be a JSON list of the values to append"));
    };
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let tracking = asker.tracking(&DATASET);
    let document = asker
        .db
        .write(move |txn| {
            let record = txn.get(&DATASET, &pid)?.ok_or_else(ScicatError::bare_not_found)?;
            if !rights.may_delete {
                require_owner(txn, &rights, &record)?;
            }
            let mut body = object(&record)?;
            let Some(Value::Array(list)) = body.get_mut(&field) else {
                return Err(ScicatError::bad_request(format!("{field:?} is no list field of the dataset")));
            };
            for item in &items {
                if !list.contains(item) {
                    list.push(item.clone());
                }
            }
            let faults = dto::v4().check(&only(&body, &field), Form::Update);
            if !faults.is_empty() {
                return Err(ScicatError::faults_as_list(&faults));
            }
            stamp(&mut body, &username, &now);
            save(txn, &pid, &record, body, tracking)
        })
        .await?;
    Ok(shown(&document, Api::V3))
}

fn only(body: &Map<String, Value>, field: &str) -> Map<String, Value> {
    body.get(field).map(|value| (field.to_owned(), value.clone())).into_iter().collect()
}

/// Merges the objects that a merge patch names into the stored ones, instead of replacing these.
fn merge_objects(changes: &mut Map<String, Value>, body: &Map<String, Value>) {
    for name in ["scientificMetadata", "jobParameters"] {
        if let Some(patch) = changes.shift_remove(name) {
            let mut merged = body.get(name).cloned().unwrap_or_else(|| json!({}));
            merge_patch(&mut merged, patch);
            changes.insert(name.to_owned(), merged);
        }
    }
    if let Some(Value::Object(given)) = changes.get_mut(LIFECYCLE)
        && let Some(Value::Object(stored)) = body.get(LIFECYCLE)
    {
        let mut merged = stored.clone();
        crate::datasets::life::merge(&mut merged, std::mem::take(given));
        *given = merged;
    }
}

/// Replaces the fields that a patch names.
fn apply(body: &mut Map<String, Value>, mut changes: Map<String, Value>) {
    scalars_to_lists(&mut changes);
    normalise(&mut changes);
    for (name, value) in changes {
        body.insert(name, value);
    }
}

/// Stores a changed dataset, updates who may see its blocks, and updates the counts of its proposals.
pub(crate) fn save(
    txn: &mut Txn<'_>,
    pid: &str,
    before: &Record,
    mut body: Map<String, Value>,
    tracking: Tracking,
) -> Result<Value, ScicatError> {
    seal(&mut body);
    note_change(txn, before, &body, tracking)?;
    let (named_before, named) =
        (crate::proposals::counts::named_by(&object(before)?), crate::proposals::counts::named_by(&body));
    let body = Value::Object(body);
    let written = txn.update(&DATASET, pid, &body)?;
    if written.class != before.class {
        let was = before.json()?;
        for kind in [&ORIG_DATABLOCK, &DATABLOCK] {
            for block in blocks_of(txn, kind, pid)? {
                let mut copy = object(&block)?;
                crate::blocks::sorts::follow_change(&mut copy, &was, &body);
                txn.update(kind, &block.id, &Value::Object(copy))?;
            }
        }
    }
    if named_before != named {
        crate::proposals::counts::count_datasets(txn, &named_before, -1)?;
        crate::proposals::counts::count_datasets(txn, &named, 1)?;
    }
    Ok(body)
}

/// Adds an entry to the history, without the scalars that v3 adds.
pub(crate) fn note_change(
    txn: &mut Txn<'_>,
    before: &Record,
    after: &Map<String, Value>,
    tracking: Tracking,
) -> Result<(), ScicatError> {
    if tracking == Tracking::Off {
        return Ok(());
    }
    let (was, is) = (without_scalars(object(before)?), without_scalars(after.clone()));
    tracking.note_change(txn, &before.id, before.version, &was, &is)
}

fn without_scalars(mut body: Map<String, Value>) -> Map<String, Value> {
    body.retain(|name, _| !crate::datasets::forms::SCALARS.iter().any(|(scalar, _)| scalar == name));
    body
}

fn blocks_of(
    txn: &mut Txn<'_>,
    kind: &'static pinakes_store::Kind,
    pid: &str,
) -> Result<Vec<Record>, ScicatError> {
    let of_dataset = Query::filter(Expr::Is("datasetId".into(), Condition::Text(pid.to_owned())));
    Ok(txn.find(kind, &of_dataset)?)
}

async fn stored_dataset(asker: &Asker, pid: &str) -> Result<Value, ScicatError> {
    let id = pid.to_owned();
    let record = asker.db.read(Weight::Point, move |view| view.get(&DATASET, &id)).await?;
    let record = record.ok_or_else(ScicatError::bare_not_found)?;
    Ok(record.json()?)
}

fn type_of(dataset: &Value) -> &str {
    dataset.get("type").and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn require_owner(txn: &mut Txn<'_>, rights: &Rights, record: &Record) -> Result<(), ScicatError> {
    let class = txn.class(&DATASET, record.class)?;
    if rights.may_update(&class) {
        Ok(())
    } else {
        Err(ScicatError::forbidden("Unauthorized to update this dataset"))
    }
}

/// Checks that a dataset is given only to a group for which the caller may create datasets.
fn require_new_owner(
    rights: &Rights,
    before: &Map<String, Value>,
    changes: &Map<String, Value>,
) -> Result<(), ScicatError> {
    let Some(group) = changes.get("ownerGroup") else { return Ok(()) };
    let is_same = before.get("ownerGroup") == Some(group);
    if is_same || group.as_str().is_some_and(|it| rights.may_create_dataset(it, false)) {
        return Ok(());
    }
    Err(ScicatError::forbidden("Unauthorized to update this dataset"))
}

fn shown(document: &Value, api: Api) -> axum::response::Response {
    let bytes = bytes::Bytes::from(document.to_string());
    answer::stored_json(StatusCode::OK, if api == Api::V4 { v4_bytes(&bytes) } else { bytes })
}

/// Refuses a patch that sets only the value or only the unit of a stored quantity, which would leave a wrong
/// quantity.
fn refuse_half_quantities(
    pid: &str,
    body: &Map<String, Value>,
    changes: &Map<String, Value>,
) -> Result<(), ScicatError> {
    let (Some(Value::Object(before)), Some(Value::Object(after))) =
        (body.get("scientificMetadata"), changes.get("scientificMetadata"))
    else {
        return Ok(());
    };
    for (key, change) in after {
        let (Some(old), Some(change)) = (before.get(key).and_then(Value::as_object), change.as_object())
        else {
            continue;
        };
        let is_quantity = old.contains_key("value") && old.contains_key("unit");
        if is_quantity && change.contains_key("value") != change.contains_key("unit") {
            return Err(ScicatError::bad_request(format!(
                "Original dataset {pid} contains both value and unit in scientificMetadata.{key}. Please provide both when updating."
            )));
        }
    }
    Ok(())
}
