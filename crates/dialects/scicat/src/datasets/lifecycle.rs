//! `datasetlifecycle`: its defaults, and its own routes on which archive systems live.

use axum::body::Body;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use serde_json::{Map, Value, json};

use super::{DATASET, seal};
use crate::app::{Asker, Path, Scicat};
use crate::dates;
use crate::dto::lifecycle::LIFECYCLE;
use crate::error::{Answer, ScicatError};
use crate::validate::Form;

/// Dates of a lifecycle.
const DATES: [&str; 4] = ["dateOfDiskPurging", "archiveRetentionTime", "dateOfPublishing", "publishedOn"];

/// Gives `datasetlifecycle` of a dataset what was left out.
pub(crate) fn complete(app: &Scicat, dataset: &mut Map<String, Value>) {
    let given = match dataset.shift_remove("datasetlifecycle") {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let now_ms = app.context.clock().now_ms();
    let later = |years: i64| Value::from(dates::format_ms(dates::years_later(now_ms, years)));
    let mut lifecycle = Map::with_capacity(given.len() + 12);
    for (name, value) in [
        ("archivable", Value::Bool(true)),
        ("retrievable", Value::Bool(false)),
        ("publishable", Value::Bool(false)),
        ("dateOfDiskPurging", later(app.settings.policy_retention_shift)),
        ("archiveRetentionTime", later(app.settings.policy_retention_shift)),
        ("dateOfPublishing", later(app.settings.policy_publication_shift)),
        ("publishedOn", later(0)),
        ("isOnCentralDisk", Value::Bool(true)),
        ("archiveStatusMessage", "datasetCreated".into()),
        ("retrieveStatusMessage", "".into()),
        ("retrieveIntegrityCheck", Value::Bool(false)),
        ("_id", app.new_object_id().into()),
    ] {
        lifecycle.insert(name.to_owned(), value);
    }
    merge(&mut lifecycle, given);
    dataset.insert("datasetlifecycle".to_owned(), Value::Object(lifecycle));
}

fn merge(lifecycle: &mut Map<String, Value>, changes: Map<String, Value>) {
    for (name, value) in changes {
        let value = match value {
            Value::String(text) if DATES.contains(&name.as_str()) => {
                dates::normalise(&text).unwrap_or(text).into()
            }
            other => other,
        };
        lifecycle.insert(name, value);
    }
}

pub(crate) async fn get(app: State<Scicat>, asker: Asker, Path(pid): Path<String>) -> Answer {
    let record = super::read::readable(&app, &asker, &pid).await?;
    let body = record.json()?;
    Ok(answer::json(StatusCode::OK, body.get("datasetlifecycle").unwrap_or(&json!({}))))
}

pub(crate) async fn patch(
    app: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    if !asker.rights.has_lifecycle_role() {
        return Err(ScicatError::forbidden_resource());
    }
    let changes = app.object(&headers, body).await?;
    if changes.is_empty() {
        return Err(ScicatError::bad_request("dataset lifecycle DTO must not be empty"));
    }
    let faults = LIFECYCLE.check(&changes, Form::Update);
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let tracking = asker.tracking(&DATASET);
    let lifecycle = asker
        .db
        .write(move |txn| {
            let absent = || ScicatError::not_found(format!("dataset with pid {pid} not found"));
            let record = txn.get(&DATASET, &pid)?.ok_or_else(absent)?;
            let class = txn.class(&DATASET, record.class)?;
            if !rights.may_update_lifecycle(&class) {
                return Err(ScicatError::forbidden("Unauthorized to update this dataset"));
            }
            if !faults.is_empty() {
                return Err(ScicatError::faults_as_list(&faults));
            }
            let mut body = record.json()?;
            let Some(dataset) = body.as_object_mut() else { return Err(ScicatError::bare_not_found()) };
            let mut lifecycle = match dataset.shift_remove("datasetlifecycle") {
                Some(Value::Object(map)) => map,
                _ => Map::new(),
            };
            merge(&mut lifecycle, changes.clone());
            dataset.insert("datasetlifecycle".to_owned(), Value::Object(lifecycle.clone()));
            super::change::stamp(dataset, &username, &now);
            seal(dataset);
            super::change::note_change(txn, &record, dataset, tracking)?;
            txn.update(&DATASET, &pid, &body)?;
            Ok(lifecycle)
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &lifecycle))
}
