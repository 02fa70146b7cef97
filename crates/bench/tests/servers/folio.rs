//! As much of FOLIO's interface as the desk's scenario uses, in memory, strict about what it sends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::scicat::PASSWORD;

/// What a fake library has: records by their path, barcodes of lent items.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    pub(crate) records: BTreeMap<String, Value>,
    lent: BTreeSet<String>,
    pub(crate) n_loans: u64,
    n_made: u64,
}

pub(crate) type Library = Arc<Mutex<Shelf>>;

pub(crate) fn router(library: &Library) -> Router {
    Router::new().fallback(answer).with_state(Arc::clone(library))
}

async fn answer(
    State(library): State<Library>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = uri.path();
    if method == Method::OPTIONS {
        let is_asking = headers.contains_key("access-control-request-method");
        return if is_asking { StatusCode::NO_CONTENT } else { StatusCode::BAD_REQUEST }.into_response();
    }
    if headers.get("x-okapi-tenant").is_none_or(|it| it != "diku") {
        return (StatusCode::BAD_REQUEST, "No such Tenant").into_response();
    }
    if path == "/authn/login" {
        if body["username"] == "ann" && body["password"] == PASSWORD {
            return (StatusCode::CREATED, [("x-okapi-token", "token-1")], Json(json!({}))).into_response();
        }
        let errors = json!({"errors": [{"message": "Wrong username or wrong password"}]});
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(errors)).into_response();
    }
    if headers.get("x-okapi-token").is_none_or(|it| it != "token-1") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let mut shelf = library.lock().unwrap_or_else(PoisonError::into_inner);
    match (method, path) {
        (Method::POST, "/circulation/check-out-by-barcode") => shelf.lend(&body),
        (Method::POST, "/circulation/check-in-by-barcode") => shelf.take_back(&body),
        (Method::POST, _) => shelf.create(path, body),
        (Method::DELETE, _) if shelf.records.remove(path).is_some() => StatusCode::NO_CONTENT.into_response(),
        (Method::DELETE, _) => StatusCode::NOT_FOUND.into_response(),
        (Method::GET, "/loan-storage/loans") => shelf.loans(),
        (Method::GET, "/metadata-provider/jobExecutions") => {
            Json(json!({"jobExecutions": [], "totalRecords": 0})).into_response()
        }
        _ => Json(json!({"totalRecords": 0})).into_response(),
    }
}

impl Shelf {
    fn create(&mut self, path: &str, mut body: Value) -> Response {
        self.n_made += 1;
        let id = format!("id-{}", self.n_made);
        body["id"] = id.as_str().into();
        self.records.insert(format!("{path}/{id}"), body.clone());
        (StatusCode::CREATED, Json(body)).into_response()
    }

    fn has(&self, barcode: &Value) -> bool {
        self.records.values().any(|it| it["barcode"] == *barcode)
    }

    fn lend(&mut self, body: &Value) -> Response {
        let item = body["itemBarcode"].as_str().unwrap_or_default().to_owned();
        let is_known = self.has(&body["itemBarcode"]) && self.has(&body["userBarcode"]);
        if !is_known || body["servicePointId"].is_null() || !self.lent.insert(item) {
            return StatusCode::UNPROCESSABLE_ENTITY.into_response();
        }
        self.n_loans += 1;
        self.create("/loan-storage/loans", json!({"status": {"name": "Open"}}))
    }

    fn take_back(&mut self, body: &Value) -> Response {
        let is_lent = self.lent.remove(body["itemBarcode"].as_str().unwrap_or_default());
        if !is_lent || body["checkInDate"].as_str().is_none_or(str::is_empty) {
            return StatusCode::UNPROCESSABLE_ENTITY.into_response();
        }
        Json(json!({"item": {}})).into_response()
    }

    fn loans(&self) -> Response {
        let loans = self.records.iter().filter(|(path, _)| path.starts_with("/loan-storage/"));
        let loans: Vec<&Value> = loans.map(|(_, loan)| loan).take(100).collect();
        Json(json!({"loans": loans, "totalRecords": loans.len()})).into_response()
    }
}
