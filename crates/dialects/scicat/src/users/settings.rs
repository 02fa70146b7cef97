//! Settings that the frontend keeps for a user: one record per user, created at the first login.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, patch};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use pinakes_accounts::User;
use pinakes_http::answer;
use pinakes_store::Txn;
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, Scicat};
use crate::documents::object;
use crate::dto::user_settings as dto;
use crate::error::{Answer, ScicatError};
use crate::kinds::USER_SETTINGS;
use crate::users::account::{myself, require_own};
use crate::validate::Form;
use crate::{listing, resource};

/// Maximum depth of a dotted key.
const MAX_DEPTH: usize = 32;
/// The settings and their `externalSettings`, which enclose what a dotted key names.
const LEVELS_ABOVE: usize = 2;
/// Maximum nesting of stored settings that can be parsed again.
const PARSER_DEPTH: usize = 127;

pub(super) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/users/my/settings", get(my_settings))
        .route(
            "/api/v3/users/{id}/settings",
            get(settings).post(replace).put(replace).patch(change).delete(delete),
        )
        .route("/api/v3/users/{id}/settings/external", patch(merge_external))
}

/// Creates the settings of a user who logs in for the first time.
///
/// A full disk does not prevent a login: the settings are then created at the next login, or when they are
/// changed.
pub(crate) async fn remember_login(app: &Scicat, asker: &Asker, user: &User) -> Result<(), ScicatError> {
    if listing::get(asker, &USER_SETTINGS, &user.id).await?.is_some() {
        return Ok(());
    }
    match write(app, asker, &user.id, |_| {}).await {
        Err(ScicatError::Refused(refusal)) if refusal.status() == StatusCode::INSUFFICIENT_STORAGE => {
            tracing::warn!(
                username = user.username,
                "logged in, but no settings were made: the disk is full"
            );
            Ok(())
        }
        written => written.map(drop),
    }
}

/// Applies `change` to a user's settings, which are created if missing, and returns their bytes.
async fn write(
    app: &Scicat,
    asker: &Asker,
    id: &str,
    mut change: impl FnMut(&mut Map<String, Value>) + Send + 'static,
) -> Result<Bytes, ScicatError> {
    let (id, new_id) = (id.to_owned(), app.new_object_id());
    asker
        .db
        .write(move |txn| {
            let stored = txn.get(&USER_SETTINGS, &id)?;
            let mut settings = match &stored {
                Some(record) => object(record)?,
                None => defaults(&id, &new_id),
            };
            change(&mut settings);
            put(txn, &id, settings)
        })
        .await
}

fn put(txn: &mut Txn<'_>, id: &str, settings: Map<String, Value>) -> Result<Bytes, ScicatError> {
    let settings = Value::Object(settings);
    txn.put(&USER_SETTINGS, id, &settings)?;
    Ok(settings.to_string().into())
}

fn defaults(id: &str, new_id: &str) -> Map<String, Value> {
    let mut settings = Map::new();
    settings.insert("userId".to_owned(), id.into());
    dto::USER_SETTINGS.fill_defaults(&mut settings);
    settings.insert("_id".to_owned(), new_id.into());
    settings.insert("__v".to_owned(), 0.into());
    settings.insert("id".to_owned(), new_id.into());
    settings
}

/// Answers with a user's settings, or with defaults for a user who has never logged in with a password.
async fn read(app: &Scicat, asker: &Asker, id: &str) -> Answer {
    Ok(match listing::get(asker, &USER_SETTINGS, id).await? {
        Some(record) => answer::stored_json(StatusCode::OK, record.body),
        None => answer::json(StatusCode::OK, &defaults(id, &app.new_object_id())),
    })
}

async fn my_settings(app: State<Scicat>, asker: Asker) -> Answer {
    let id = myself(&asker)?.id.clone();
    read(&app, &asker, &id).await
}

async fn settings(app: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    require_own(&asker, &id)?;
    read(&app, &asker, &id).await
}

/// Parses the body of a change. Clients send back what they have read; the owner of settings cannot be changed.
async fn body(app: &Scicat, headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, ScicatError> {
    let mut body = app.object(headers, body).await?;
    body.retain(|name, _| !["_id", "id", "__v", "userId"].contains(&name.as_str()));
    resource::require_sound(&dto::USER_SETTINGS.check(&body, Form::Update))?;
    body.retain(|_, value| !value.is_null());
    Ok(body)
}

/// `POST` and `PUT`: fields that are not named get the values of the first login.
async fn replace(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    method: http::Method,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    require_own(&asker, &id)?;
    let given = self::body(&app, &headers, body).await?;
    let stored = write(&app, &asker, &id, move |settings| {
        for field in dto::USER_SETTINGS.fields {
            let default = field.default.map(crate::validate::Default::value);
            if let Some(value) = given.get(field.name).cloned().or(default) {
                settings.insert(field.name.to_owned(), value);
            }
        }
    });
    let status = if method == http::Method::POST { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer::stored_json(status, stored.await?))
}

async fn change(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    require_own(&asker, &id)?;
    let changes = self::body(&app, &headers, body).await?;
    let stored = write(&app, &asker, &id, move |settings| resource::apply(settings, &changes));
    Ok(answer::stored_json(StatusCode::OK, stored.await?))
}

/// `PATCH /users/{id}/settings/external`: each key, a dotted path, replaces its part of `externalSettings`.
async fn merge_external(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    require_own(&asker, &id)?;
    let changes = app.object(&headers, body).await?;
    if let Some(key) = changes.keys().find(|it| MAX_DEPTH < it.split('.').count()) {
        return Err(ScicatError::bad_request(format!("{key} is deeper than {MAX_DEPTH} levels")));
    }
    let most = app.context.limits().json_depth.min(PARSER_DEPTH);
    let is_too_deep =
        |(key, value): (&String, &Value)| most < LEVELS_ABOVE + key.split('.').count() - 1 + depth(value);
    if let Some(key) = changes.iter().find(|it| is_too_deep(*it)).map(|it| it.0) {
        return Err(ScicatError::bad_request(format!(
            "{key} with its value is nested deeper than the {most} levels that settings may have"
        )));
    }
    let stored = write(&app, &asker, &id, move |settings| {
        let external = settings.entry("externalSettings").or_insert_with(|| json!({}));
        for (path, value) in &changes {
            set(external, path, value.clone());
        }
    });
    Ok(answer::stored_json(StatusCode::OK, stored.await?))
}

/// Returns how many objects and lists enclose the innermost value.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Sets the value at a dotted path; anything on the way that is not an object becomes one.
fn set(at: &mut Value, path: &str, value: Value) {
    if !at.is_object() {
        *at = json!({});
    }
    let Value::Object(map) = at else { return };
    match path.split_once('.') {
        Some((first, rest)) => set(map.entry(first).or_insert_with(|| json!({})), rest, value),
        None => {
            map.insert(path.to_owned(), value);
        }
    }
}

async fn delete(_: State<Scicat>, asker: Asker, Path(id): Path<String>) -> Answer {
    require_own(&asker, &id)?;
    let deleted = asker.db.write(move |txn| txn.delete(&USER_SETTINGS, &id)).await;
    Ok(match deleted.map_err(|error: pinakes_store::StoreError| ScicatError::from(error))? {
        Some(record) => answer::stored_json(StatusCode::OK, record.body),
        None => answer::empty(StatusCode::OK),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_keys_lead_inside() {
        let mut external = json!({"columns": [1], "table": {"size": 5, "order": "a"}});
        set(&mut external, "table.size", json!(10));
        set(&mut external, "columns", json!([2]));
        set(&mut external, "filters.open.deep", json!(true));
        assert_eq!(
            external,
            json!({"columns": [2], "table": {"size": 10, "order": "a"}, "filters": {"open": {"deep": true}}})
        );
    }
}
