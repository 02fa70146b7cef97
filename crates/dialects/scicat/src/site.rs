//! Routes of the site as a whole: health, the frontend's configuration, metadata keys (section 9 of the
//! contract).

mod metadata_keys;
mod runtime_config;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;
use pinakes_http::answer;
use serde_json::json;

pub(crate) use self::runtime_config::RUNTIME_CONFIG;
use crate::app::{Asker, Scicat};
use crate::error::Answer;
use crate::resource::Resource;

/// The routes and kind of the site's configuration.
pub(crate) static RESOURCE: Resource = Resource { kinds: &[&RUNTIME_CONFIG], ..Resource::of_routes(routes) };

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/health", get(health))
        .route("/api/v4/health", get(health))
        .merge(runtime_config::routes())
        .merge(metadata_keys::routes())
}

/// Says whether the tenant's data can be read. The name is the original's, as monitoring systems use it.
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
