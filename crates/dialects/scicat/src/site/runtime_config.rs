//! The frontend's configuration: from the site's settings until an admin replaces it.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::Kind;
use serde_json::{Map, Value};

use crate::app::{Asker, Path, Scicat};
use crate::documents::{object, stamp};
use crate::error::{Answer, ScicatError};
use crate::listing;

/// Configurations by name.
pub(crate) static RUNTIME_CONFIG: Kind =
    Kind { id_path: Some("cid"), ..Kind::named("scicat_runtime_config") };

/// The frontend's configuration.
const CONFIG: &str = "frontendConfig";
/// The frontend's theme.
const THEME: &str = "frontendTheme";

/// The creator of configurations from the settings.
const SITE: &str = "system";

pub(super) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/admin/config", get(config))
        .route("/api/v3/admin/theme", get(theme))
        .route("/api/v3/runtime-config/{cid}", get(by_name).put(put))
}

fn unknown(cid: &str) -> ScicatError {
    ScicatError::not_found(format!("Config '{cid}' not found"))
}

/// The frontend's configuration and theme for a site without its own: an empty one would leave the frontend blank.
const BUILT_IN_CONFIG: &str = include_str!("../../data/frontend_config.json");
const BUILT_IN_THEME: &str = include_str!("../../data/frontend_theme.json");

/// Returns a configuration from the settings; `None` for an unknown name.
fn of_settings(app: &Scicat, cid: &str) -> Option<Value> {
    let (text, built_in) = match cid {
        CONFIG => (&app.settings.frontend_config, BUILT_IN_CONFIG),
        THEME => (&app.settings.frontend_theme, BUILT_IN_THEME),
        _ => return None,
    };
    let own: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    if !own.is_empty() {
        return Some(own.into());
    }
    let mut data: Value = serde_json::from_str(built_in).unwrap_or_default();
    if cid == CONFIG {
        data["facility"] = app.settings.site.as_str().into();
    }
    Some(data)
}

/// Returns a configuration that nobody has changed yet; its timestamps are 1970-01-01.
fn initial(app: &Scicat, cid: &str) -> Option<Map<String, Value>> {
    let data = of_settings(app, cid)?;
    let begin = crate::dates::format_ms(0);
    let mut config = Map::new();
    config.insert("cid".to_owned(), cid.into());
    config.insert("data".to_owned(), data);
    crate::documents::sign(&mut config, SITE, &begin);
    config.insert("_id".to_owned(), cid.into());
    Some(config)
}

async fn current(app: &Scicat, asker: &Asker, cid: &str) -> Result<Map<String, Value>, ScicatError> {
    match listing::get(asker, &RUNTIME_CONFIG, cid).await? {
        Some(record) => object(&record),
        None => initial(app, cid).ok_or_else(|| unknown(cid)),
    }
}

async fn data(app: &Scicat, asker: &Asker, cid: &str) -> Answer {
    let config = current(app, asker, cid).await?;
    Ok(answer::json(StatusCode::OK, config.get("data").unwrap_or(&Value::Null)))
}

async fn config(app: State<Scicat>, asker: Asker) -> Answer {
    data(&app, &asker, CONFIG).await
}

async fn theme(app: State<Scicat>, asker: Asker) -> Answer {
    data(&app, &asker, THEME).await
}

async fn by_name(app: State<Scicat>, asker: Asker, Path(cid): Path<String>) -> Answer {
    Ok(answer::json(StatusCode::OK, &current(&app, &asker, &cid).await?))
}

/// `PUT /runtime-config/{cid}` `{"data":{…}}`: replaces the data of a known configuration; for admins.
async fn put(
    app: State<Scicat>,
    asker: Asker,
    Path(cid): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    if !asker.rights.is_admin {
        return Err(ScicatError::forbidden_resource());
    }
    let mut body = app.object(&headers, body).await?;
    let Some(data @ Value::Object(_)) = body.shift_remove("data") else {
        return Err(ScicatError::bad_request(serde_json::json!(["data must be an object"])));
    };
    let mut fresh = initial(&app, &cid);
    if let Some(config) = &mut fresh {
        config.insert("_id".to_owned(), app.new_object_id().into());
        config.insert("createdAt".to_owned(), app.now().into());
    }
    let (username, now) = (asker.username(), app.now());
    let config = asker
        .db
        .write(move |txn| {
            let stored = txn.get(&RUNTIME_CONFIG, &cid)?;
            let mut config = match &stored {
                Some(record) => object(record)?,
                None => fresh.clone().ok_or_else(|| unknown(&cid))?,
            };
            config.insert("data".to_owned(), data.clone());
            stamp(&mut config, &username, &now);
            txn.put(&RUNTIME_CONFIG, &cid, &Value::Object(config.clone()))?;
            Ok::<_, ScicatError>(config)
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_can_be_read() -> serde_json::Result<()> {
        let config: Value = serde_json::from_str(BUILT_IN_CONFIG)?;
        let theme: Value = serde_json::from_str(BUILT_IN_THEME)?;
        assert!(
            config["facility"].is_string() && theme["name"].is_string() && theme["properties"].is_object()
        );
        Ok(())
    }
}
