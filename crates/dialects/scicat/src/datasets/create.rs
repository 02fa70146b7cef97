//! `POST /datasets` and `/datasets/isValid`, in v3 and v4.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use pinakes_http::{Stage, answer, stages};
use pinakes_store::{Document, StoreError, Txn};
use serde_json::{Map, Value, json};

use super::{incoming, metadata_schema};
use crate::app::{Asker, Scicat};
use crate::datasets::filling::{fill, refused};
use crate::datasets::forms::{Api, seal, v4_bytes};
use crate::dto::dataset as dto;
use crate::error::{Answer, ScicatError};
use crate::faults;
use crate::kinds::POLICY;
use crate::policies::seen::Seen;
use crate::policies::{self, First};
use crate::validate::{Dto, Form};

pub(crate) async fn create_v3(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    create(app.0, asker, &headers, body, Api::V3).await
}

pub(crate) async fn create_v4(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    create(app.0, asker, &headers, body, Api::V4).await
}

/// Order of the checks: role 403, type 400, table 400, pid and object 403, pid pattern 400, duplicate 409.
async fn create(app: Scicat, asker: Asker, headers: &HeaderMap, body: Body, api: Api) -> Answer {
    if !asker.rights.has_create_role() {
        return Err(ScicatError::forbidden_resource());
    }
    let bytes = app.received(headers, body).await?;
    let incoming = stages::timed(Stage::Parse, || app.parse_dataset(&bytes))?;
    let mut dataset = stages::timed(Stage::Parse, || checked(&app, &asker, incoming.rest, api))?;
    if dataset.contains_key("scientificMetadataSchema") {
        let metadata = incoming.metadata.as_ref().map(serde_json::to_value).transpose();
        let metadata = metadata.ok().flatten().unwrap_or_else(|| json!({}));
        metadata_schema::judge(&app, &mut dataset, &metadata).await;
    }
    let owner_group = text(&dataset, "ownerGroup");
    let mut seen = app.policies.of(&asker.db, &owner_group).await?;
    let (owner_email, wished) = (text(&dataset, "ownerEmail"), text(&dataset, "classification"));
    let first = First { owner_group: &owner_group, owner_email: &owner_email, classification: &wished };
    let username = asker.username();
    let stored = stages::timed(Stage::Parse, || stored(&app, &username, dataset, api));
    let metadata = stages::timed(Stage::Parse, || incoming.metadata.map(incoming::part).transpose())?;
    let (pid, proposals) = (text(&stored, "pid"), crate::proposals::counts::named_by(&stored));
    let mut stored = Value::Object(stored);
    loop {
        let policy = match seen {
            Some(seen) => PolicySource::Seen(seen),
            None => PolicySource::New(policies::of_new_group(&app, first, &username)),
        };
        stored["classification"] = policy.classification().into();
        let document = stages::timed(Stage::Parse, || incoming::document(&pid, &stored, metadata.as_ref()))?;
        let (bytes, group, proposals) = (document.body().clone(), owner_group.clone(), proposals.clone());
        let insert = move |txn: &mut Txn<'_>| insert(txn, &document, &group, &policy, &proposals);
        match asker.db.write(insert).await {
            Ok(Ending::Stored) => {
                let bytes = match api {
                    Api::V3 => bytes,
                    Api::V4 => v4_bytes(&bytes),
                };
                return Ok(answer::stored_json(StatusCode::CREATED, bytes));
            }
            Ok(Ending::OtherPolicy) => {}
            Err(ScicatError::Refused(pinakes_http::Refusal::Store(StoreError::Duplicate {
                column: "id",
                ..
            }))) => {
                return Err(ScicatError::conflict(format!("A dataset with pid {pid} already exists!")));
            }
            Err(error) => return Err(error),
        }
        seen = app.policies.look(&asker.db, &owner_group).await?;
    }
}

/// Where a new dataset takes its classification from.
enum PolicySource {
    /// The existing policy of its group.
    Seen(Seen),
    /// The policy that will be created for its group, which has none yet.
    New(Value),
}

impl PolicySource {
    fn classification(&self) -> String {
        match self {
            Self::Seen(seen) => seen.classification.clone(),
            Self::New(policy) => crate::policies::seen::classification(policy),
        }
    }
}

/// Outcome of the transaction of a new dataset.
enum Ending {
    Stored,
    /// Nothing was stored: the group's policy is no longer the one that the dataset was prepared with.
    OtherPolicy,
}

/// Inserts the dataset, the policy of a group that has none yet, and the new counts of the proposals, in one
/// transaction.
fn insert(
    txn: &mut Txn<'_>,
    document: &Document,
    owner_group: &str,
    policy: &PolicySource,
    proposals: &BTreeSet<String>,
) -> Result<Ending, ScicatError> {
    let is_as_seen = match policy {
        PolicySource::Seen(seen) => seen.holds(txn, owner_group)?,
        PolicySource::New(_) => !txn.has(&POLICY, owner_group)?,
    };
    if !is_as_seen {
        return Ok(Ending::OtherPolicy);
    }
    txn.insert_document(document)?;
    if let PolicySource::New(policy) = policy {
        txn.insert(&POLICY, owner_group, policy)?;
    }
    crate::proposals::counts::count_datasets(txn, proposals, 1)?;
    Ok(Ending::Stored)
}

/// Returns the body if it is valid and the caller may create it.
pub(crate) fn checked(
    app: &Scicat,
    asker: &Asker,
    mut body: Map<String, Value>,
    api: Api,
) -> Result<Map<String, Value>, ScicatError> {
    let table = table_of(app, &body, api)?;
    dto::name_identifiers(&mut body);
    let faults = table.check(&body, Form::Create);
    if !faults.is_empty() {
        return Err(refused(&faults, api));
    }
    let pid = body.get("pid").and_then(Value::as_str).filter(|it| !it.is_empty());
    if !asker.rights.may_create_dataset(&text(&body, "ownerGroup"), pid.is_some()) {
        return Err(ScicatError::forbidden("Unauthorized to create this dataset"));
    }
    if let Some(pid) = pid
        && app.settings.dataset_creation_validation_enabled
        && !pid_pattern(app)?.is_match(pid)
    {
        return Err(ScicatError::bad_request("PID is not following required standards"));
    }
    Ok(body)
}

fn pid_pattern(app: &Scicat) -> Result<pinakes_store::Pattern, ScicatError> {
    Ok(pinakes_store::Pattern::new(&app.settings.dataset_creation_validation_regex, "")?)
}

/// Returns the table for a body by its `type`. Unknown types are refused if the site lists its types.
fn table_of(app: &Scicat, body: &Map<String, Value>, api: Api) -> Result<&'static Dto, ScicatError> {
    if api == Api::V4 {
        return Ok(dto::v4());
    }
    let types = &app.settings.dataset_types;
    let kind = body.get("type").and_then(Value::as_str);
    let is_known = kind.is_some_and(|it| {
        it == "raw" || it == "derived" || types.is_empty() || types.iter().any(|known| known == it)
    });
    if !is_known && (!types.is_empty() || kind.is_none()) {
        return Err(ScicatError::short(StatusCode::BAD_REQUEST, "Invalid dataset type!"));
    }
    Ok(dto::v3(kind.unwrap_or_default()))
}

/// Returns the body as it is stored, except for its classification: with the fields that the server sets, normalised
/// dates and quantities, v4's names and v3's scalars at the end.
fn stored(app: &Scicat, username: &str, body: Map<String, Value>, api: Api) -> Map<String, Value> {
    let table = match api {
        Api::V3 => dto::v3(body.get("type").and_then(Value::as_str).unwrap_or_default()),
        Api::V4 => dto::v4(),
    };
    let pid = match body.get("pid").and_then(Value::as_str) {
        Some(pid) if !pid.is_empty() => pid.to_owned(),
        _ => app.new_pid(),
    };
    let now = app.now();
    let mut stored = Map::with_capacity(body.len() + 24);
    stored.insert("pid".to_owned(), pid.clone().into());
    stored.insert("_id".to_owned(), pid.into());
    stored.insert("type".to_owned(), body.get("type").cloned().unwrap_or_default());
    stored.insert("version".to_owned(), api.version().into());
    fill(&mut stored, table, body);
    // Reserves the position; the policy supplies the value.
    stored.insert("classification".to_owned(), Value::Null);
    crate::datasets::life::complete(app, &mut stored);
    let now = now.as_str();
    for (name, value) in
        [("createdBy", username), ("updatedBy", username), ("createdAt", now), ("updatedAt", now)]
    {
        stored.insert(name.to_owned(), value.into());
    }
    seal(&mut stored);
    stored
}

pub(crate) async fn is_valid_v3(app: State<Scicat>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    if !asker.rights.has_create_role() {
        return Err(ScicatError::forbidden_resource());
    }
    let mut body = app.object(&headers, body).await?;
    dto::name_identifiers(&mut body);
    require_creator(&asker, &body)?;
    // An unknown type is a fault of the body like any other and is answered as such.
    let Ok(table) = table_of(&app, &body, Api::V3) else {
        return Ok(answer::json(StatusCode::OK, &json!({"valid": false, "error": "Invalid dataset type!"})));
    };
    let faults = table.check_known(&body, Form::Create);
    Ok(if faults.is_empty() {
        answer::json(StatusCode::OK, &json!({"valid": true}))
    } else {
        answer::json(StatusCode::OK, &json!({"valid": false, "error": faults::joined(&faults)}))
    })
}

pub(crate) async fn is_valid_v4(
    app: State<Scicat>,
    asker: Asker,
    headers: HeaderMap,
    body: Body,
) -> Answer<Response> {
    if !asker.rights.has_create_role() {
        return Err(ScicatError::forbidden_resource());
    }
    let mut body = app.object(&headers, body).await?;
    dto::name_identifiers(&mut body);
    let faults = dto::v4().check_known(&body, Form::Create);
    require_creator(&asker, &body)?;
    Ok(answer::json(StatusCode::OK, &json!({"valid": faults.is_empty()})))
}

/// Checks the caller's right to create the dataset, if the body names a group at all.
fn require_creator(asker: &Asker, body: &Map<String, Value>) -> Result<(), ScicatError> {
    let has_pid = body.get("pid").and_then(Value::as_str).is_some_and(|it| !it.is_empty());
    match body.get("ownerGroup").and_then(Value::as_str) {
        Some(group) if !asker.rights.may_create_dataset(group, has_pid) => {
            Err(ScicatError::forbidden("Unauthorized to create this dataset"))
        }
        _ => Ok(()),
    }
}

fn text(body: &Map<String, Value>, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
