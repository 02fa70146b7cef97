//! Settings that can be changed at run time: `/api/admin/settings`.

mod names;

use pinakes_store::{Expr, Kind, Query, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::envelope;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;

/// Settings by name, such as `:AllowSignUp`; body `{"value": "yes"}`. A setting for a language has the id
/// `:Name/lang/de`.
pub(crate) static SETTING: Kind = Kind::named("dataverse_setting");

/// Returns the value of a setting.
pub(crate) fn get(view: &mut View<'_>, name: &str) -> Result<Option<String>, ApiError> {
    let Some(record) = view.get(&SETTING, name)? else { return Ok(None) };
    Ok(record.json()?["value"].as_str().map(str::to_owned))
}

/// Returns whether a setting is `true` or `yes`.
pub(crate) fn is_true(view: &mut View<'_>, name: &str, default: bool) -> Result<bool, ApiError> {
    let value = get(view, name)?;
    Ok(value.map_or(default, |it| it.eq_ignore_ascii_case("true") || it.eq_ignore_ascii_case("yes")))
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/settings", list)
        .put("/admin/settings", replace_all)
        .get("/admin/settings/{name}", show)
        .put("/admin/settings/{name}", set)
        .delete("/admin/settings/{name}", delete)
        .get("/admin/settings/{name}/lang/{language}", show)
        .put("/admin/settings/{name}/lang/{language}", set)
        .delete("/admin/settings/{name}/lang/{language}", delete)
}

/// Returns the id of the setting that a path names.
fn id_of(call: &Call) -> String {
    match call.param("language") {
        "" => call.param("name").to_owned(),
        language => format!("{}/lang/{language}", call.param("name")),
    }
}

async fn list(call: Call) -> Answer {
    let all = |view: &mut View<'_>| -> Result<Map<String, Value>, ApiError> {
        let mut all = Map::new();
        for record in view.find(&SETTING, &Query::filter(Expr::All))? {
            let text = record.json()?["value"].as_str().unwrap_or_default().to_owned();
            all.insert(record.id, as_json(text));
        }
        Ok(all)
    };
    envelope::ok(call.db().read(Weight::Scan, all).await?)
}

/// Returns a setting as JSON if it is an object or a list, otherwise as text.
fn as_json(text: String) -> Value {
    match serde_json::from_str::<Value>(&text) {
        Ok(value) if value.is_object() || value.is_array() => value,
        _ => Value::String(text),
    }
}

async fn show(call: Call) -> Answer {
    let id = id_of(&call);
    let wanted = id.clone();
    match call.db().read(Weight::Point, move |view| get(view, &wanted)).await? {
        Some(value) => envelope::message(value),
        None => Err(ApiError::not_found(format!("Setting {id} not found."))),
    }
}

fn put(txn: &mut Txn<'_>, id: &str, value: &str) -> Result<(), ApiError> {
    txn.put(&SETTING, id, &json!({"value": value}))?;
    Ok(())
}

async fn set(mut call: Call) -> Answer {
    let value = call.text().await?;
    let id = id_of(&call);
    check(&id, &value)?;
    let (wanted, stored) = (id.clone(), value.clone());
    call.db().write(move |txn: &mut Txn<'_>| put(txn, &wanted, &stored)).await?;
    envelope::ok(json!({ "message": format!("Setting {id} added."), id: value }))
}

/// Checks that there is such a setting, and that the value of one that must be JSON is valid. Errors: 400.
fn check(id: &str, value: &str) -> Result<(), ApiError> {
    names::check(id)?;
    let is_json = matches!(id, ":AllowedCurationLabels" | ":MetadataLanguages" | ":CVocConf");
    if is_json && !value.is_empty() && serde_json::from_str::<Value>(value).is_err() {
        return Err(ApiError::bad_request(format!("Could not parse the value of {id} as JSON")));
    }
    Ok(())
}

async fn delete(call: Call) -> Answer {
    let id = id_of(&call);
    let wanted = id.clone();
    call.db().write(move |txn: &mut Txn<'_>| Ok::<_, ApiError>(txn.delete(&SETTING, &wanted)?)).await?;
    envelope::message(format!("Setting {id} deleted."))
}

/// Replaces all settings: those that the body does not name are deleted.
async fn replace_all(mut call: Call) -> Answer {
    let body = match call.json().await {
        Ok(Value::Object(body)) if !body.is_empty() => body,
        _ => return Err(ApiError::bad_request("Empty or invalid JSON object")),
    };
    for (name, value) in &body {
        check(name, &text_of(value))?;
    }
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let (mut updated, mut created, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        for record in txn.find(&SETTING, &Query::filter(Expr::All))? {
            if !body.contains_key(&record.id) {
                txn.delete(&SETTING, &record.id)?;
                deleted.push(record.id);
            }
        }
        for (name, value) in &body {
            let there = get(txn, name)?;
            let text = text_of(value);
            if there.is_none() {
                created.push(name.clone());
            } else if there.as_ref() != Some(&text) {
                updated.push(name.clone());
            }
            put(txn, name, &text)?;
        }
        Ok(json!({"updated": updated, "created": created, "deleted": deleted}))
    };
    let data = call.db().write(write).await?;
    let message = "All settings successfully updated";
    Ok(envelope::raw_json(http::StatusCode::OK, &json!({"status": "OK", "message": message, "data": data})))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
