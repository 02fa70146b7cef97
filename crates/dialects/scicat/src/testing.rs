//! A route that exists only under `serve --testing`: it empties a kind, so that the test suites of client
//! programs, which clean up in the database, can run here.

use axum::Router;
use axum::extract::State;
use axum::routing::delete;
use http::StatusCode;
use pinakes_http::answer;
use serde_json::json;

use crate::app::{Asker, Path, Scicat};
use crate::error::{Answer, ScicatError};

/// Whether the testing routes exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Testing {
    /// They do not exist.
    Off,
    /// Anyone who can reach the server may empty kinds.
    On,
}

pub(crate) fn routes(testing: Testing) -> Router<Scicat> {
    match testing {
        Testing::Off => Router::new(),
        Testing::On => Router::new().route("/api/v3/testing/{collection}", delete(empty)),
    }
}

/// `DELETE /api/v3/testing/Dataset`: deletes every record of a collection, under MongoDB's name for it.
async fn empty(_: State<Scicat>, asker: Asker, Path(collection): Path<String>) -> Answer {
    let wanted = collection.to_ascii_lowercase();
    let known = crate::resources::KINDS
        .iter()
        .find(|kind| kind.name.strip_prefix("scicat_").is_some_and(|it| it.replace('_', "") == wanted));
    let Some(kind) = known.copied() else {
        return Err(ScicatError::not_found(format!("no collection named {collection}")));
    };
    let count = asker.db.write(move |txn| txn.clear(kind)).await;
    let count: u64 = count.map_err(|error: pinakes_store::StoreError| ScicatError::from(error))?;
    Ok(answer::json(StatusCode::OK, &json!({"count": count})))
}
