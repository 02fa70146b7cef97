//! Answers in Dataverse's envelope (section 0.2 of the contract).

use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use pinakes_http::{Stage, answer, stages};
use serde_json::{Map, Value, json};

use crate::error::Answer;

/// `application/json` as Dataverse sends it.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Plain text.
pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain");

/// Returns any JSON, without an envelope.
pub(crate) fn raw_json(status: StatusCode, value: &Value) -> Response {
    let body = stages::timed(Stage::Render, || value.to_string());
    answer::bytes(status, JSON, body)
}

/// Returns 200 `{"status":"OK","data":…}`.
pub(crate) fn ok(data: impl Into<Value>) -> Answer {
    Ok(raw_json(StatusCode::OK, &json!({"status": "OK", "data": data.into()})))
}

/// Returns 200 `{"status":"OK","data":{"message":…}}`.
pub(crate) fn message(text: impl Into<String>) -> Answer {
    ok(json!({"message": text.into()}))
}

/// Returns 200 `{"status":"OK","message":…,"data":…}`.
pub(crate) fn message_and_data(text: impl Into<String>, data: impl Into<Value>) -> Answer {
    Ok(raw_json(
        StatusCode::OK,
        &json!({"status": "OK", "message": {"message": text.into()}, "data": data.into()}),
    ))
}

/// Returns 200 `{"status":"OK","totalCount":…,"data":[…]}`.
pub(crate) fn page(n_all: u64, items: Vec<Value>) -> Answer {
    Ok(raw_json(StatusCode::OK, &json!({"status": "OK", "totalCount": n_all, "data": items})))
}

/// Returns 201 with `Location`.
pub(crate) fn created(location: &str, data: impl Into<Value>) -> Answer {
    let response = raw_json(StatusCode::CREATED, &json!({"status": "OK", "data": data.into()}));
    Ok(answer::with_header(response, LOCATION, location))
}

/// Returns an object without its `null` members, which Dataverse always leaves out.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}
