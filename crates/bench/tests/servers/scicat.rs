//! The part of SciCat's interface v3 that the scenarios use, in memory, strict about its input.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

pub(crate) const PASSWORD: &str = "correct horse";

/// The datasets of a fake site, by pid.
pub(crate) type Datasets = Arc<Mutex<BTreeMap<String, Value>>>;

pub(crate) fn router(datasets: &Datasets) -> Router {
    Router::new()
        .route("/api/v3/auth/login", post(login))
        .route("/api/v3/users/my/identity", get(identity))
        .route("/api/v3/datasets", get(list).post(create))
        .route("/api/v3/datasets/fullquery", get(fullquery))
        .route("/api/v3/datasets/fullfacet", get(full_facet))
        .route("/api/v3/datasets/metadataKeys", get(metadata_keys))
        .route("/api/v3/datasets/{pid}", get(read).delete(delete))
        .route("/api/v3/origdatablocks", post(create_block))
        .layer(axum::extract::DefaultBodyLimit::max(100 << 20))
        .with_state(Arc::clone(datasets))
}

fn error(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({"message": message, "statusCode": status.as_u16()}))).into_response()
}

async fn login(Json(body): Json<Value>) -> Response {
    if body["username"] == "ingestor" && body["password"] == PASSWORD {
        let token = json!({"access_token": "token-1", "id": "token-1", "expires_in": 3600, "userId": "u1"});
        return (StatusCode::CREATED, Json(token)).into_response();
    }
    error(StatusCode::UNAUTHORIZED, "Unauthorized")
}

fn refused(headers: &HeaderMap) -> Option<Response> {
    let authorised = headers.get("authorization").is_some_and(|value| value == "Bearer token-1");
    (!authorised).then(|| error(StatusCode::FORBIDDEN, "Forbidden resource"))
}

async fn identity() -> Response {
    Json(json!({"profile": {"accessGroups": ["ingestor", "other"]}})).into_response()
}

async fn create(
    State(datasets): State<Datasets>,
    headers: HeaderMap,
    Json(mut body): Json<Value>,
) -> Response {
    if let Some(refused) = refused(&headers) {
        return refused;
    }
    let required = [
        "ownerGroup",
        "owner",
        "contactEmail",
        "sourceFolder",
        "creationTime",
        "principalInvestigator",
        "creationLocation",
        "type",
    ];
    if required.iter().any(|name| body[*name].as_str().is_none_or(str::is_empty))
        || body["ownerGroup"] != "ingestor"
    {
        return error(StatusCode::BAD_REQUEST, "not a raw dataset");
    }
    let mut datasets = datasets.lock().unwrap();
    let pid = format!("PID.pfx/{}", datasets.len() + 1_000_000 * usize::from(datasets.is_empty()));
    let pid = if datasets.contains_key(&pid) { format!("{pid}-{}", datasets.len()) } else { pid };
    body["pid"] = json!(pid);
    datasets.insert(pid, body.clone());
    (StatusCode::CREATED, Json(body)).into_response()
}

async fn read(State(datasets): State<Datasets>, headers: HeaderMap, Path(pid): Path<String>) -> Response {
    if let Some(refused) = refused(&headers) {
        return refused;
    }
    match datasets.lock().unwrap().get(&pid) {
        Some(dataset) => Json(dataset.clone()).into_response(),
        None => error(StatusCode::NOT_FOUND, "dataset not found"),
    }
}

async fn delete(State(datasets): State<Datasets>, Path(pid): Path<String>) -> Response {
    match datasets.lock().unwrap().remove(&pid) {
        Some(dataset) => Json(dataset).into_response(),
        None => error(StatusCode::NOT_FOUND, "Not Found"),
    }
}

/// Handles `?filter=`: the equality on keywords used for cleaning up, or a pattern of names.
async fn list(State(datasets): State<Datasets>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    let filter: Value = serde_json::from_str(&query["filter"]).unwrap();
    let limit = filter["limits"]["limit"].as_u64().unwrap() as usize;
    if let Some(pattern) = filter["where"]["datasetName"]["ilike"].as_str() {
        let first = pattern.trim_start_matches('^').chars().next().unwrap().to_string();
        let datasets = datasets.lock().unwrap();
        let named = datasets.values().filter(|it| it["datasetName"].as_str().unwrap().contains(&first));
        return Json(named.take(limit).cloned().collect::<Vec<Value>>()).into_response();
    }
    let keyword = &filter["where"]["keywords"];
    assert_eq!(filter["fields"], json!(["pid"]));
    let datasets = datasets.lock().unwrap();
    let found: Vec<Value> = datasets
        .values()
        .filter(|dataset| dataset["keywords"].as_array().is_some_and(|all| all.contains(keyword)))
        .take(limit)
        .map(|dataset| json!({"pid": dataset["pid"], "_id": dataset["pid"]}))
        .collect();
    Json(found).into_response()
}

async fn fullquery(
    State(datasets): State<Datasets>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let fields: Value = serde_json::from_str(&query["fields"]).unwrap();
    let limits: Value = serde_json::from_str(&query["limits"]).unwrap();
    let text = |value: &Value, otherwise: &str| value.as_str().unwrap_or(otherwise).to_owned();
    let begin = text(&fields["creationTime"]["begin"], "");
    let end = text(&fields["creationTime"]["end"], "9999");
    let datasets = datasets.lock().unwrap();
    let within = datasets
        .values()
        .filter(|dataset| (begin.clone()..=end.clone()).contains(&text(&dataset["creationTime"], "")));
    let found: Vec<Value> = within.take(limits["limit"].as_u64().unwrap() as usize).cloned().collect();
    Json(found).into_response()
}

/// Returns as many as there are, whatever is requested: only the form of the answers matters.
async fn full_facet(
    State(datasets): State<Datasets>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let fields: Value = serde_json::from_str(&query["fields"]).unwrap();
    let facets: Vec<String> = serde_json::from_str(&query["facets"]).unwrap();
    assert!(fields.is_object());
    let n = datasets.lock().unwrap().len();
    let mut row = json!({"all": [{"totalSets": n}]});
    facets.iter().for_each(|it| row[it] = json!([]));
    Json(json!([row])).into_response()
}

async fn metadata_keys(Query(query): Query<BTreeMap<String, String>>) -> Response {
    let fields: Value = serde_json::from_str(&query["fields"]).unwrap();
    assert!(fields["creationTime"]["begin"].is_string());
    Json(json!(["sensor_0001"])).into_response()
}

async fn create_block(
    State(datasets): State<Datasets>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    if let Some(refused) = refused(&headers) {
        return refused;
    }
    let mut datasets = datasets.lock().unwrap();
    let Some(dataset) = datasets.get_mut(body["datasetId"].as_str().unwrap()) else {
        return error(StatusCode::NOT_FOUND, "Dataset not found for attaching an origdatablock");
    };
    let n_files = body["dataFileList"].as_array().unwrap().len() as u64;
    dataset["numberOfFiles"] = json!(dataset["numberOfFiles"].as_u64().unwrap() + n_files);
    (StatusCode::CREATED, Json(json!({"_id": "b", "size": body["size"]}))).into_response()
}
