//! Routes of the site as a whole: health, what the frontend is configured with, metadata keys, logbooks, history
//! (section 9 of the contract).

mod metadata_keys;
mod runtime_config;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;
use pinakes_http::answer;
use serde_json::{Value, json};

pub(crate) use self::runtime_config::RUNTIME_CONFIG;
use crate::app::{Asker, QueryText, Scicat};
use crate::error::{Answer, ScicatError};

/// Entries of history in one answer when nothing is said.
const HISTORY_LIMIT: u64 = 100;

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/health", get(health))
        .route("/api/v4/health", get(health))
        .route("/api/v3/logbooks", get(logbooks))
        .route("/api/v3/logbooks/{name}", get(logbook))
        .route("/api/v3/history", get(history))
        .route("/api/v3/history/collection/{subsystem}", get(history))
        .route("/api/v3/history/count", get(history_count))
        .merge(runtime_config::routes())
        .merge(metadata_keys::routes())
}

/// Whether the tenant's data can be read. The name is the original's: monitors look for it.
async fn health(_: State<Scicat>, asker: Asker) -> Answer {
    let read = asker.db.read(pinakes_store::Weight::Point, |view| view.sequence()).await;
    let is_up =
        read.inspect_err(|error| tracing::error!(%error, "health: the store does not answer")).is_ok();
    let up = json!({"mongodb": {"status": if is_up { "up" } else { "down" }}});
    Ok(match is_up {
        true => {
            answer::json(StatusCode::OK, &json!({"status": "ok", "info": up, "error": {}, "details": up}))
        }
        false => answer::json(
            StatusCode::SERVICE_UNAVAILABLE,
            &json!({"status": "error", "info": {}, "error": up, "details": up}),
        ),
    })
}

/// There is no logbook service.
async fn logbooks(_: State<Scicat>, _: Asker) -> Answer {
    Ok(answer::json(StatusCode::OK, &json!([])))
}

async fn logbook(_: State<Scicat>, _: Asker) -> Answer {
    Ok(answer::empty(StatusCode::OK))
}

fn require_historian(app: &Scicat, asker: &Asker) -> Result<(), ScicatError> {
    let is_historian = asker.rights.of_keeper(&app.settings.history_access_dataset_groups).is_admin;
    if is_historian { Ok(()) } else { Err(ScicatError::forbidden_resource()) }
}

/// `GET /history?filter=&skip=&limit=`: no changes are kept, so the list is empty.
async fn history(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    require_historian(&app, &asker)?;
    let number = |name: &str, default: u64| match query.get(name).filter(|it| !it.is_empty()) {
        None => Ok(Value::from(default)),
        Some(text) => text.parse::<u64>().map(Value::from).map_err(|_| {
            ScicatError::bad_request(format!(
                "{name} must be a whole number that is not negative, found {text}"
            ))
        }),
    };
    let (skip, limit) = (number("skip", 0)?, number("limit", HISTORY_LIMIT)?);
    Ok(answer::json(
        StatusCode::OK,
        &json!({"items": [], "count": 0, "totalCount": 0, "skip": skip, "limit": limit}),
    ))
}

async fn history_count(app: State<Scicat>, asker: Asker) -> Answer {
    require_historian(&app, &asker)?;
    Ok(answer::json(StatusCode::OK, &json!({"count": 0})))
}
