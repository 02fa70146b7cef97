//! Administration of the search index. Its documents are written together with what they describe, so reindexing
//! everything only repairs it, or rewrites documents that an earlier release wrote.

use std::time::Duration;

use http::StatusCode;
use pinakes_store::{Expr, Txn, View, Weight};
use serde_json::json;

use crate::app::Call;
use crate::collections::{self, COLLECTION};
use crate::datasets::DATASET;
use crate::datasets::wanted::Wanted;
use crate::error::{Answer, ApiError};
use crate::files::rows;
use crate::routing::Routes;
use crate::search;
use crate::search::document::{self, DOCUMENT};
use crate::{changes, envelope};

/// Datasets and collections indexed per transaction.
const BATCH: usize = 100;
/// Time that an answer waits for the end of the work.
const WAIT: Duration = Duration::from_secs(20);

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/index", index_all)
        .get("/admin/index/continue", index_all)
        .get("/admin/index/clear", clear_all)
        .get("/admin/index/status", status)
        .get("/admin/index/dataset", index_dataset)
        .get("/admin/index/datasets/{id}", index_dataset)
        .delete("/admin/index/datasets/{id}", clear_dataset)
        .get("/admin/index/dataverses/{id}", index_collection)
        .post("/admin/index/perms", done)
        .get("/admin/index/perms", done)
        .get("/admin/index/clear-orphans", done)
}

async fn done(_: Call) -> Answer {
    envelope::message("Done.")
}

async fn status(_: Call) -> Answer {
    envelope::ok(json!({"contentInDatabaseButStaleInOrMissingFromIndex": {"dataverses": [], "datasets": []}}))
}

/// Rewrites the documents of every collection and dataset, a few in each transaction.
async fn index_all(call: Call) -> Answer {
    let all = |view: &mut View<'_>| -> Result<(Vec<i64>, Vec<i64>), ApiError> {
        let mut ids = [Vec::new(), Vec::new()];
        for (list, kind) in ids.iter_mut().zip([&COLLECTION, &DATASET]) {
            let found = rows::ids_of(view, kind, Expr::All)?;
            list.extend(found.iter().filter_map(|it| it.parse::<i64>().ok()));
        }
        let [collections, datasets] = ids;
        Ok((collections, datasets))
    };
    let (collections, datasets) = call.db().read(Weight::Scan, all).await?;
    let n_all = (collections.len(), datasets.len());
    let (app, db) = (call.app.clone(), call.db().clone());
    let work = async move {
        for part in collections.chunks(BATCH) {
            let (app, part) = (app.clone(), part.to_vec());
            let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
                part.iter().try_for_each(|id| changes::collection(txn, &app, *id))
            };
            db.write(write).await?;
        }
        for part in datasets.chunks(BATCH) {
            let (app, part) = (app.clone(), part.to_vec());
            let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
                txn.read_ahead(&DATASET, part.iter().map(i64::to_string))?;
                part.iter().try_for_each(|id| search::index::index_whole_dataset(txn, &app, *id))
            };
            db.write(write).await?;
        }
        Ok(())
    };
    let has_ended = in_background(work).await?;
    envelope::ok(json!({
        "message": if has_ended { "indexing has ended" } else { "indexing has begun" },
        "availablePartitionIds": [0],
        "args": {"numPartitions": 1, "partitionIdToProcess": 0},
        "numberOfDataverses": n_all.0,
        "numberOfDatasets": n_all.1,
    }))
}

/// Does work that goes on when its requester leaves. Returns whether it has ended within [`WAIT`].
async fn in_background(
    work: impl Future<Output = Result<(), ApiError>> + Send + 'static,
) -> Result<bool, ApiError> {
    let logged = async move {
        work.await
            .inspect_err(|error| tracing::error!(error = error.message, "the search index is not rewritten"))
    };
    match tokio::time::timeout(WAIT, tokio::spawn(logged)).await {
        Ok(Ok(ended)) => ended.map(|()| true),
        Ok(Err(error)) => Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
        Err(_) => Ok(false),
    }
}

/// Deletes all documents; they are written again when their objects change, or when everything is reindexed.
async fn clear_all(call: Call) -> Answer {
    let all = |view: &mut View<'_>| rows::ids_of(view, &DOCUMENT, Expr::All);
    let ids = call.db().read(Weight::Scan, all).await?;
    let db = call.db().clone();
    let work = async move {
        for part in ids.chunks(BATCH) {
            let part = part.to_vec();
            let write = move |txn: &mut Txn<'_>| part.iter().try_for_each(|id| document::forget(txn, id));
            db.write(write).await?;
        }
        Ok(())
    };
    in_background(work).await?;
    envelope::message("Solr index was cleared.")
}

/// Returns the dataset named by number, or by the parameter `persistentId`.
fn wanted(call: &Call) -> Result<Wanted, ApiError> {
    match call.param("id") {
        "" => {
            let pid = call.query.filled("persistentId");
            Ok(Wanted::pid(pid.ok_or_else(|| ApiError::bad_request("persistentId is missing"))?))
        }
        _ => Wanted::of(call),
    }
}

async fn index_dataset(call: Call) -> Answer {
    let (wanted, app) = (wanted(&call)?, call.app.clone());
    let write = move |txn: &mut Txn<'_>| -> Result<i64, ApiError> {
        let dataset = wanted.find(txn)?;
        search::index::index_whole_dataset(txn, &app, dataset.id)?;
        Ok(dataset.id)
    };
    let id = call.db().write(write).await?;
    envelope::ok(json!({"message": format!("Indexed dataset {id}"), "id": id}))
}

async fn clear_dataset(call: Call) -> Answer {
    let wanted = wanted(&call)?;
    let write = move |txn: &mut Txn<'_>| -> Result<i64, ApiError> {
        let dataset = wanted.find(txn)?;
        search::index::forget_dataset(txn, dataset.id)?;
        Ok(dataset.id)
    };
    let id = call.db().write(write).await?;
    envelope::message(format!("Sent request to clear Solr documents of dataset {id}"))
}

async fn index_collection(call: Call) -> Answer {
    let (id, app) = (call.param("id").to_owned(), call.app.clone());
    let write = move |txn: &mut Txn<'_>| -> Result<i64, ApiError> {
        let collection = collections::find(txn, &id)?;
        changes::collection(txn, &app, collection.id)?;
        Ok(collection.id)
    };
    let id = call.db().write(write).await?;
    envelope::message(format!("Indexed dataverse {id}"))
}
