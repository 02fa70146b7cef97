//! `datasetlifecycle`: its defaults, and its own routes, which archive systems use.

use axum::body::Body;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, Scicat};
use crate::datasets::forms::seal;
use crate::datasets::life::merge;
use crate::dto::lifecycle::LIFECYCLE;
use crate::error::{Answer, ScicatError};
use crate::kinds::DATASET;
use crate::validate::Form;

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
            crate::documents::stamp(dataset, &username, &now);
            seal(dataset);
            super::change::note_change(txn, &record, dataset, tracking)?;
            txn.update(&DATASET, &pid, &body)?;
            Ok(lifecycle)
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &lifecycle))
}
