//! The part of FOLIO's interface that the scenarios of desks, imports and searches use, in memory, strict about its input.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::scicat::PASSWORD;

/// The tenants; each has the job profiles.
pub(crate) const TENANTS: [&str; 3] = ["diku", "second", "third"];
const PROFILE: &str = "Default - Create SRS MARC Authority";

/// The state of a fake library: records by their path, barcodes of items on loan, jobs by their id.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    pub(crate) records: BTreeMap<String, Value>,
    lent: BTreeSet<String>,
    pub(crate) n_loans: u64,
    n_made: u64,
    jobs: BTreeMap<String, Job>,
    /// LCCNs of all files received.
    lccns: BTreeSet<Vec<u8>>,
    /// Records received, and imports that used the matching profile.
    pub(crate) n_imported: u64,
    pub(crate) n_matched_jobs: u64,
    /// Instances received in batches.
    pub(crate) n_batched: u64,
    /// Number of records to lose.
    pub(crate) n_lost: u64,
}

/// An import: what was sent, and how often it has been polled.
#[derive(Debug, Default)]
struct Job {
    tenant: String,
    n_records: Option<u64>,
    is_begun: bool,
    n_asked: u64,
    authorities: Vec<String>,
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
    let (bytes, body) = (body.clone(), serde_json::from_slice::<Value>(&body).unwrap_or_default());
    let path = uri.path();
    if method == Method::OPTIONS {
        let is_asking = headers.contains_key("access-control-request-method");
        return if is_asking { StatusCode::NO_CONTENT } else { StatusCode::BAD_REQUEST }.into_response();
    }
    let tenant = headers.get("x-okapi-tenant").and_then(|it| it.to_str().ok()).unwrap_or_default();
    if !TENANTS.contains(&tenant) {
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
        (Method::POST, "/data-import/uploadDefinitions") => shelf.announce(tenant, &body),
        (Method::POST, _) if path.contains("/files/") => {
            let is_octets = headers.get("content-type").is_some_and(|it| it == "application/octet-stream");
            if is_octets { shelf.upload(path, &bytes) } else { StatusCode::BAD_REQUEST.into_response() }
        }
        (Method::POST, _) if path.ends_with("/processFiles") => shelf.process(path, &body),
        (Method::POST, "/instance-storage/batch/synchronous") => shelf.batch(&body),
        (Method::POST, _) => shelf.create(path, body),
        (Method::DELETE, "/change-manager/jobExecutions") => {
            let id = body["ids"][0].as_str().unwrap_or_default();
            let is_there = shelf.jobs.get(id).is_some_and(|it| it.tenant == tenant);
            shelf
                .jobs
                .remove(id)
                .filter(|_| is_there)
                .map_or(StatusCode::NOT_FOUND, |_| StatusCode::OK)
                .into_response()
        }
        (Method::DELETE, "/instance-storage/instances") => shelf.delete_by(uri.query().unwrap_or_default()),
        (Method::DELETE, _) if shelf.records.remove(path).is_some() => StatusCode::NO_CONTENT.into_response(),
        (Method::DELETE, _) => StatusCode::NOT_FOUND.into_response(),
        (Method::GET, "/loan-storage/loans") => shelf.loans(),
        (Method::GET, "/metadata-provider/jobExecutions") => {
            shelf.list_jobs(tenant, uri.query().unwrap_or_default())
        }
        (Method::GET, "/data-import-profiles/jobProfiles") => {
            let profile = json!({"id": "default", "name": PROFILE, "dataType": "MARC", "description": ""});
            Json(json!({"jobProfiles": [{"id": "other", "name": "Other"}, profile]})).into_response()
        }
        (Method::GET, "/data-import-profiles/actionProfiles") => {
            let list = json!([{"id": "create", "name": "Default - Create MARC Authority"}]);
            Json(json!({"actionProfiles": list})).into_response()
        }
        (Method::GET, _) if path.starts_with("/metadata-provider/jobSummary/") => {
            let job = shelf.jobs.get(last(path));
            let n_created = job.map_or(0, |it| it.authorities.len());
            Json(json!({"authoritySummary": {"totalCreatedEntities": n_created}})).into_response()
        }
        (Method::GET, _) if path.starts_with("/metadata-provider/jobLogEntries/") => {
            shelf.log(last(path), uri.query().unwrap_or_default())
        }
        (Method::GET, "/search/instances") => shelf.find(uri.query().unwrap_or_default()),
        _ => Json(json!({"totalRecords": 0})).into_response(),
    }
}

/// Returns what `hrid=="…"` of a query names.
fn of_hrid(query: &str) -> Option<&str> {
    query.strip_prefix("query=hrid%3D%3D%22")?.split("%22").next()
}

/// Returns the last segment of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns the values of `010`, which the scenario must not send twice.
fn lccns(file: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let records = file.split(|it| *it == 0x1D).filter(|it| !it.is_empty());
    records.map(|record| {
        let at = record.windows(2).position(|it| it == [0x1F, b'a']).unwrap();
        record[at + 2..].iter().copied().take_while(|it| *it != 0x1E).collect()
    })
}

impl Shelf {
    fn announce(&mut self, tenant: &str, body: &Value) -> Response {
        let file = &body["fileDefinitions"][0];
        if file["name"].as_str().is_none_or(|it| !it.ends_with(".mrc")) || !file["size"].is_u64() {
            return StatusCode::UNPROCESSABLE_ENTITY.into_response();
        }
        self.n_made += 1;
        let n = self.n_made;
        self.jobs.insert(format!("job-{n}"), Job { tenant: tenant.to_owned(), ..Job::default() });
        self.records.insert(format!("/data-import/uploadDefinitions/{n}"), json!(format!("job-{n}")));
        let file = json!({"id": format!("file-{n}"), "jobExecutionId": format!("job-{n}"), "status": "NEW"});
        (StatusCode::CREATED, Json(json!({"id": n.to_string(), "fileDefinitions": [file]}))).into_response()
    }

    /// Returns the job of the definition that a path is under.
    fn job_under(&mut self, path: &str) -> Option<&mut Job> {
        let definition = path.split('/').take(4).collect::<Vec<_>>().join("/");
        let id = self.records.get(&definition)?.as_str()?.to_owned();
        self.jobs.get_mut(&id)
    }

    fn upload(&mut self, path: &str, bytes: &Bytes) -> Response {
        let n_records = bytes.iter().filter(|it| **it == 0x1D).count() as u64;
        let Some(job) = self.job_under(path).filter(|it| it.n_records.is_none()) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        job.n_records = Some(n_records);
        let before = self.lccns.len();
        self.lccns.extend(lccns(bytes));
        // The matching profile would find records of another import.
        let is_new = before + usize::try_from(n_records).unwrap() == self.lccns.len();
        self.n_imported += n_records;
        let status = if is_new { "UPLOADED" } else { "SENT AGAIN" };
        Json(json!({"id": path.split('/').nth(3), "fileDefinitions": [{"status": status}]})).into_response()
    }

    fn process(&mut self, path: &str, body: &Value) -> Response {
        let profile = &body["jobProfileInfo"];
        let is_matching = profile["id"]
            .as_str()
            .is_some_and(|it| self.records.contains_key(&format!("/data-import-profiles/jobProfiles/{it}")));
        let is_known = is_matching || (profile["id"] == "default" && profile["name"] == PROFILE);
        let is_loaded = body["uploadDefinition"]["fileDefinitions"][0]["status"] == "UPLOADED";
        let is_again = body["uploadDefinition"]["fileDefinitions"][0]["status"] == "SENT AGAIN";
        if !is_known || profile["dataType"] != "MARC" || !(is_loaded || (is_again && !is_matching)) {
            return StatusCode::UNPROCESSABLE_ENTITY.into_response();
        }
        self.n_matched_jobs += u64::from(is_matching);
        let (from, lost) = (self.n_made, self.n_lost);
        let Some(job) = self.job_under(path).filter(|it| !it.is_begun) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        job.is_begun = true;
        let n = job.n_records.unwrap_or(0).saturating_sub(lost);
        job.authorities = (0..n).map(|it| format!("authority-{}", from + 1 + it)).collect();
        let paths: Vec<String> =
            job.authorities.iter().map(|id| format!("/authority-storage/authorities/{id}")).collect();
        self.n_made += n;
        self.records.extend(paths.into_iter().map(|path| (path, json!({}))));
        StatusCode::NO_CONTENT.into_response()
    }

    /// Lists jobs; a job runs until it has been polled twice.
    fn list_jobs(&mut self, tenant: &str, query: &str) -> Response {
        let is_for_running = query.contains("uiStatusAny=RUNNING");
        let mut list = Vec::new();
        for (id, job) in self.jobs.iter_mut().filter(|(_, job)| job.is_begun && job.tenant == tenant) {
            let is_running = job.n_asked < 2;
            if is_running != is_for_running {
                continue;
            }
            job.n_asked += 1;
            list.push(match is_running {
                true => json!({"id": id, "status": "PARSING_IN_PROGRESS"}),
                false => {
                    json!({"id": id, "status": "COMMITTED", "startedDate": "2026-01-31T10:20:30.123+00:00",
                    "completedDate": "2026-01-31T10:20:31.123+00:00"})
                }
            });
        }
        let n = list.len();
        Json(json!({"jobExecutions": list, "totalRecords": n})).into_response()
    }

    fn log(&self, job: &str, query: &str) -> Response {
        let number = |name: &str| {
            let found = query.split('&').find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
            found.and_then(|it| it.parse().ok()).unwrap_or(0)
        };
        let Some(job) = self.jobs.get(job) else { return StatusCode::NOT_FOUND.into_response() };
        let page = job.authorities.iter().skip(number("offset")).take(number("limit"));
        let page: Vec<Value> = page.map(|id| json!({"relatedAuthorityInfo": {"idList": [id]}})).collect();
        Json(json!({"entries": page, "totalRecords": job.authorities.len()})).into_response()
    }

    fn create(&mut self, path: &str, mut body: Value) -> Response {
        self.n_made += 1;
        let id = format!("id-{}", self.n_made);
        body["id"] = id.as_str().into();
        self.records.insert(format!("{path}/{id}"), body.clone());
        (StatusCode::CREATED, Json(body)).into_response()
    }

    /// Takes instances that have what FOLIO requires.
    fn batch(&mut self, body: &Value) -> Response {
        let list = body["instances"].as_array().cloned().unwrap_or_default();
        let required = ["id", "hrid", "source", "title", "instanceTypeId"];
        if list.is_empty() || list.iter().any(|it| required.iter().any(|name| !it[name].is_string())) {
            return StatusCode::UNPROCESSABLE_ENTITY.into_response();
        }
        for it in list {
            self.n_batched += 1;
            let path = format!("/instance-storage/instances/{}", it["id"].as_str().unwrap_or_default());
            self.records.insert(path, it);
        }
        StatusCode::CREATED.into_response()
    }

    /// Finds by `hrid=="…"`; whatever else is asked for finds nothing.
    fn find(&self, query: &str) -> Response {
        let wanted = of_hrid(query);
        let n = self.records.values().filter(|it| wanted.is_some() && it["hrid"].as_str() == wanted).count();
        Json(json!({"instances": [], "totalRecords": n})).into_response()
    }

    /// Deletes by `hrid=="…*"`.
    fn delete_by(&mut self, query: &str) -> Response {
        let Some(beginning) = of_hrid(query).and_then(|it| it.strip_suffix("%2A")) else {
            return StatusCode::BAD_REQUEST.into_response();
        };
        self.records.retain(|_, it| it["hrid"].as_str().is_none_or(|it| !it.starts_with(beginning)));
        StatusCode::NO_CONTENT.into_response()
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
