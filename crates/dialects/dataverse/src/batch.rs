//! Import of many datasets from DDI codebooks: `/api/batch`.

use std::path::PathBuf;

use axum::response::IntoResponse as _;
use http::StatusCode;
use pinakes_store::{View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::datasets::{create, ddi};
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{collections, envelope};

/// Maximum number of files of a folder that one request reads.
const FILES: usize = 10_000;
/// Maximum size of one codebook, in bytes.
const FILE_BYTES: u64 = 16 << 20;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/batch/import", import_body)
        .get("/batch/import", import_folder)
        .get("/batch/migrate", import_folder)
        .get("/batch/update", import_folder)
}

/// Returns the collection that `dv` names, or the root; creates it if `createDV` is set. Errors: 404.
async fn collection(call: &Call) -> Result<String, ApiError> {
    let name = call.query.filled("dv").unwrap_or("root").to_owned();
    let wanted = name.clone();
    let found = call.db().read(Weight::Point, move |view: &mut View<'_>| collections::find(view, &wanted));
    match found.await {
        Ok(_) => return Ok(name),
        Err(error) if error.status == StatusCode::NOT_FOUND && call.query.is_true("createDV") => {}
        Err(error) => return Err(error),
    }
    let email = call.asker.user()?.email.clone();
    let body = json!({"alias": name, "name": name, "dataverseContacts": [{"contactEmail": email}]});
    let body: Map<String, Value> = envelope::object(body);
    collections::write::make(call, "root", body).await?;
    Ok(name)
}

/// Creates a dataset from the codebook in the body.
async fn import_body(mut call: Call) -> Answer {
    call.asker.user()?;
    let bytes = call.bytes().await?;
    let alias = collection(&call).await?;
    let made = import(&call, &alias, &bytes).await?;
    envelope::ok(made)
}

async fn import(call: &Call, alias: &str, bytes: &[u8]) -> Result<Value, ApiError> {
    let registry = call.app.registry(call.db()).await?;
    let new = ddi::new_of(&call.app, &registry, bytes)?;
    let dataset = create::store_in(call, alias, registry, new).await?;
    Ok(json!({"id": dataset.id, "persistentId": dataset.pid, "message": "Dataset imported"}))
}

/// Creates datasets from the codebooks in a folder, or in one file, of the server's machine; superusers only. A file
/// that is refused does not stop the others: the answer states the outcome of each.
async fn import_folder(call: Call) -> Answer {
    call.asker.superuser("Not a superuser")?;
    let path = call.query.filled("path").or_else(|| call.query.filled("fileDir"));
    let path = PathBuf::from(path.ok_or_else(|| ApiError::bad_request("The parameter path is missing."))?);
    let alias = collection(&call).await?;
    let mut files = vec![];
    let found = tokio::fs::metadata(&path).await;
    let found = found.map_err(|error| ApiError::bad_request(format!("{}: {error}", path.display())))?;
    if found.is_dir() {
        let failed = |error| ApiError::bad_request(format!("{}: {error}", path.display()));
        let mut entries = tokio::fs::read_dir(&path).await.map_err(failed)?;
        while let Some(entry) = entries.next_entry().await.map_err(failed)? {
            let is_xml = entry.path().extension().is_some_and(|it| it.eq_ignore_ascii_case("xml"));
            if is_xml && files.len() < FILES {
                files.push(entry.path());
            }
        }
        files.sort();
    } else {
        files.push(path);
    }
    let mut outcomes = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let outcome = match read_file(&file).await {
            Ok(bytes) => import(&call, &alias, &bytes).await,
            Err(fault) => Err(ApiError::bad_request(fault)),
        };
        outcomes.push(match outcome {
            Ok(mut made) => {
                made["file"] = name.into();
                made
            }
            Err(error) => json!({"file": name, "error": error.message}),
        });
    }
    let body = json!({"status": "WORKFLOW_IN_PROGRESS", "data": outcomes});
    Ok(envelope::raw_json(StatusCode::ACCEPTED, &body).into_response())
}

async fn read_file(file: &std::path::Path) -> Result<Vec<u8>, String> {
    let found = tokio::fs::metadata(file).await.map_err(|error| error.to_string())?;
    if FILE_BYTES < found.len() {
        return Err(format!("the file has {} bytes, {FILE_BYTES} are read", found.len()));
    }
    tokio::fs::read(file).await.map_err(|error| error.to_string())
}
