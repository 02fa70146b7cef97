//! The part of Dataverse's interface that a deposit uses, in memory, strict about its input.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};

/// The state of a fake repository: collections with the numbers of their datasets, and what it has received.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    pub(crate) collections: BTreeMap<String, BTreeSet<u64>>,
    n_datasets: u64,
    /// Files received, each once.
    pub(crate) files: BTreeSet<Bytes>,
    pub(crate) n_uploads: u64,
    /// Deletions of datasets that are refused before the rest is done.
    n_refused: u64,
}

pub(crate) fn router(repository: &Arc<Mutex<Repository>>) -> Router {
    Router::new().fallback(answer).with_state(Arc::clone(repository))
}

async fn answer(
    State(repository): State<Arc<Mutex<Repository>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut repository = repository.lock().unwrap_or_else(PoisonError::into_inner);
    let parts: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
    let outcome = match (headers.get("x-dataverse-key").map(|it| it.as_bytes()), method.as_str(), &parts[..])
    {
        (Some(b"pinakes-bench"), "POST", ["api", "dataverses", "root"]) => repository.make_collection(&body),
        (Some(b"pinakes-bench"), "POST", ["api", "dataverses", alias, "datasets"]) => {
            repository.make_dataset(alias, &body)
        }
        (Some(b"pinakes-bench"), "POST", ["api", "datasets", id, "add"]) => {
            repository.upload(id, headers["content-type"].to_str().unwrap(), &body)
        }
        (Some(b"pinakes-bench"), "DELETE", ["api", "datasets", id]) => repository.delete_dataset(id),
        (Some(b"pinakes-bench"), "DELETE", ["api", "dataverses", alias]) => {
            repository.delete_collection(alias)
        }
        (Some(b"pinakes-bench"), ..) => Err((StatusCode::NOT_FOUND, "no such route")),
        _ => Err((StatusCode::UNAUTHORIZED, "Bad API key")),
    };
    match outcome {
        Ok(data) => Json(json!({"status": "OK", "data": data})).into_response(),
        Err((status, message)) => {
            (status, Json(json!({"status": "ERROR", "message": message}))).into_response()
        }
    }
}

type Outcome = Result<Value, (StatusCode, &'static str)>;

const ABSENT: (StatusCode, &str) = (StatusCode::NOT_FOUND, "absent");

impl Repository {
    /// Creates one that refuses the first deletions of datasets.
    pub(crate) fn refusing(n_refused: u64) -> Self {
        Self { n_refused, ..Self::default() }
    }

    fn make_collection(&mut self, body: &Bytes) -> Outcome {
        let body: Value = serde_json::from_slice(body).unwrap();
        let alias = body["alias"].as_str().unwrap().to_owned();
        assert!(body["name"].is_string() && body["dataverseContacts"][0]["contactEmail"].is_string());
        assert!(self.collections.insert(alias.clone(), BTreeSet::new()).is_none(), "{alias} comes again");
        Ok(json!({"alias": alias}))
    }

    fn make_dataset(&mut self, alias: &str, body: &Bytes) -> Outcome {
        let body: Value = serde_json::from_slice(body).unwrap();
        let fields = body["datasetVersion"]["metadataBlocks"]["citation"]["fields"].as_array().unwrap();
        let names: Vec<&str> = fields.iter().filter_map(|it| it["typeName"].as_str()).collect();
        assert_eq!(names, ["title", "author", "datasetContact", "dsDescription", "subject"]);
        let datasets = self.collections.get_mut(alias).ok_or(ABSENT)?;
        self.n_datasets += 1;
        datasets.insert(self.n_datasets);
        Ok(json!({"id": self.n_datasets, "persistentId": format!("doi:10.5072/{}", self.n_datasets)}))
    }

    fn upload(&mut self, id: &str, content_type: &str, body: &Bytes) -> Outcome {
        self.collection_of(id)?;
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        let marked = format!("\r\n--{boundary}--\r\n");
        let head = b"content-type: application/octet-stream\r\n\r\n";
        let at = body.windows(head.len()).position(|it| it == head).unwrap() + head.len();
        assert!(
            body.starts_with(format!("--{boundary}\r\n").as_bytes()) && body.ends_with(marked.as_bytes())
        );
        self.files.insert(body.slice(at..body.len() - marked.len()));
        self.n_uploads += 1;
        Ok(json!({"files": []}))
    }

    fn delete_dataset(&mut self, id: &str) -> Outcome {
        if 0 < self.n_refused {
            self.n_refused -= 1;
            return Err((StatusCode::INTERNAL_SERVER_ERROR, "refused"));
        }
        let (alias, id) = self.collection_of(id)?;
        self.collections.get_mut(&alias).unwrap().remove(&id);
        Ok(json!({"message": "deleted"}))
    }

    fn delete_collection(&mut self, alias: &str) -> Outcome {
        match self.collections.get(alias) {
            None => Err(ABSENT),
            Some(datasets) if !datasets.is_empty() => Err((StatusCode::FORBIDDEN, "not empty")),
            Some(_) => {
                self.collections.remove(alias);
                Ok(json!({"message": "deleted"}))
            }
        }
    }

    fn collection_of(&self, id: &str) -> Result<(String, u64), (StatusCode, &'static str)> {
        let id: u64 = id.parse().map_err(|_| ABSENT)?;
        let found = self.collections.iter().find(|(_, datasets)| datasets.contains(&id));
        found.map(|(alias, _)| (alias.clone(), id)).ok_or(ABSENT)
    }
}
