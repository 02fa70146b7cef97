//! Many operations in one request, one per line (section 10.6 of the contract).

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::StatusCode;
use pinakes_http::answer;
use serde_json::{Value, json};

use crate::app::Conclave;
use crate::call::Answer;
use crate::call::Editing;
use crate::document;
use crate::edit::Edit;
use crate::error::{ConclaveError, Result};
use crate::model::{Arc, Metadata, Occurrence, Topic};

/// Operations per transaction.
const CHUNK_LINES: usize = 10_000;
/// Maximum number of errors that are reported.
const ERRORS_MAX: usize = 20;

pub(super) fn routes() -> Router<Conclave> {
    Router::new().route("/topics/v1/{map}/batch", post(batch))
}

/// One parsed operation.
#[derive(Debug, Clone)]
enum Operation {
    PutTopic(Topic),
    PutMetadata(String, Metadata),
    PutOccurrence(String, Occurrence, bool),
    PutArc(String, Arc),
    DeleteTopic(String),
    DeleteMetadata(String, Option<String>, Option<String>),
    DeleteOccurrence(String, Occurrence),
    DeleteArc(String),
}

impl Operation {
    fn read(mut value: Value, map: &str, new_id: &mut dyn FnMut() -> String) -> Result<Operation> {
        let object =
            value.as_object_mut().ok_or_else(|| ConclaveError::bad_request("the line is no object"))?;
        let op = match object.shift_remove("op") {
            Some(Value::String(op)) => op,
            _ => return Err(ConclaveError::bad_request("op is missing")),
        };
        // The object of an operation may be given in a member of that name.
        let inner = op.split_once('-').and_then(|(_, what)| object.get_mut(what)).filter(|it| it.is_object());
        if let Some(inner) = inner {
            value = inner.take();
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let required =
            |name: &str| text(name).ok_or_else(|| ConclaveError::bad_request(format!("{name} is missing")));
        Ok(match op.as_str() {
            "put-topic" => {
                let id = required("id")?;
                Operation::PutTopic(document::read_topic(&value, map, &id, new_id)?)
            }
            "put-metadata" => {
                let (parent, it) = document::read_metadata(&value, None)?;
                Operation::PutMetadata(parent, it)
            }
            "put-occurrence" => {
                let (topic, it, has_data) = document::read_occurrence(&value, None)?;
                Operation::PutOccurrence(topic, it, has_data)
            }
            "put-association" => {
                let (topic, it) = document::read_arc(&value, None, new_id)?;
                Operation::PutArc(topic, it)
            }
            "delete-topic" => Operation::DeleteTopic(required("id")?),
            "delete-metadata" => Operation::DeleteMetadata(required("for")?, text("scope"), text("name")),
            "delete-occurrence" => {
                let (topic, it, _) = document::read_occurrence(&value, None)?;
                Operation::DeleteOccurrence(topic, it)
            }
            "delete-association" => Operation::DeleteArc(required("id")?),
            other => {
                return Err(ConclaveError::bad_request(format!(
                    "op is {other:?}; expected put-topic, put-metadata, put-occurrence, put-association or the same \
                     with delete-"
                )));
            }
        })
    }

    fn run(&self, edit: &mut Edit<'_, '_>) -> Result<()> {
        match self {
            Operation::PutTopic(it) => edit.put(it.clone()),
            Operation::PutMetadata(parent, it) => edit.put_metadata(parent, it.clone()),
            Operation::PutOccurrence(topic, it, has_data) => {
                edit.put_occurrence(topic, it.clone(), *has_data)
            }
            Operation::PutArc(topic, it) => edit.put_arc(topic, it.clone()),
            Operation::DeleteTopic(id) => edit.remove(id).map(|_| ()),
            Operation::DeleteMetadata(parent, scope, name) => {
                edit.remove_metadata(parent, (scope.as_deref(), name.as_deref())).map(|_| ())
            }
            Operation::DeleteOccurrence(topic, it) => {
                edit.remove_occurrences(topic, |other| other.has_key_of(it)).map(|_| ())
            }
            Operation::DeleteArc(id) => edit.remove_arc(id).map(|_| ()),
        }
    }
}

/// Parses all lines before writing anything. Each chunk of lines is one transaction: all or nothing.
async fn batch(call: Editing, body: Body) -> Answer {
    let bytes = call.received(body).await?;
    let (mut operations, mut errors) = (Vec::new(), Vec::new());
    for (number, line) in bytes.split(|&it| it == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let value = pinakes_http::body::parse_json(line, call.app.context.limits())
            .map_err(|fault| ConclaveError::bad_request(fault.to_string()));
        let read = value.and_then(|it| Operation::read(it, &call.map, &mut || call.app.new_uuid()));
        match read {
            Ok(operation) => operations.push((number + 1, operation)),
            Err(error) => errors.push(json!({"line": number + 1, "detail": error.detail()})),
        }
    }
    if !errors.is_empty() {
        errors.truncate(ERRORS_MAX);
        let body = json!({"done": 0, "errors": errors});
        return Ok(answer::json(StatusCode::UNPROCESSABLE_ENTITY, &body));
    }
    let mut n_done = 0;
    for chunk in operations.chunks(CHUNK_LINES) {
        let own = chunk.to_vec();
        let written = call
            .write(move |edit| {
                for (line, operation) in &own {
                    operation.run(edit).map_err(|error| match error {
                        ConclaveError::Refused { status, detail } => {
                            ConclaveError::Refused { status, detail: format!("line {line}: {detail}") }
                        }
                        other => other,
                    })?;
                }
                Ok(())
            })
            .await;
        match written {
            Ok(_) => n_done += chunk.len(),
            Err(ConclaveError::Refused { detail, .. }) => {
                let body = json!({"done": n_done, "errors": [{"detail": detail}]});
                return Ok(answer::json(StatusCode::UNPROCESSABLE_ENTITY, &body));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(answer::json(StatusCode::OK, &json!({"done": n_done, "errors": []})))
}
