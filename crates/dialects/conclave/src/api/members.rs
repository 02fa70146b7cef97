//! Members of topics: metadata and occurrences. Arcs are in `arcs.rs`.

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;
use pinakes_store::Weight;
use serde_json::{Value, json};

use crate::app::{Conclave, Params};
use crate::call::Answer;
use crate::call::{Editing, Reading};
use crate::document;
use crate::edit::{find, owner_of_arc};
use crate::error::{ConclaveError, Result};
use crate::model::{Occurrence, Topic};
use crate::names::{DEFAULT_SCOPE, SELF};
use crate::validators::Condition;

pub(super) fn routes() -> Router<Conclave> {
    let occurrences = get(occurrences).put(put_occurrences).delete(remove_occurrences);
    Router::new()
        .route("/topics/v1/{map}/metadata", get(metadata).put(put_metadata).delete(remove_metadata))
        .route("/topics/v1/{map}/occurrences", occurrences)
        .route("/topics/v1/{map}/occurrence/data", get(data).put(put_data))
        .route("/topics/v1/{map}/occurrence/rename", post(rename))
}

/// Returns the topic with that id, or the topic that owns the arc with that id. Errors: 404.
pub(super) async fn parent(call: &Reading, id: &str) -> Result<Topic> {
    let wanted = id.to_owned();
    let found = call
        .read(Weight::Scan, move |view, map| {
            if let Some(found) = find(view, map, &wanted)? {
                return Ok(Some(found));
            }
            let Some(owner) = owner_of_arc(view, map, &wanted)? else { return Ok(None) };
            find(view, map, &owner)
        })
        .await?;
    let topic = call.asker.filtered(found.ok_or_else(|| no_parent(id))?).topic;
    // The owner of an arc is disclosed only for arcs that the reader may see.
    let is_there = topic.id == id || topic.arcs.iter().any(|it| it.id == id);
    if is_there { Ok(topic) } else { Err(no_parent(id)) }
}

fn no_parent(id: &str) -> ConclaveError {
    ConclaveError::not_found(format!("there is neither a topic nor an association {id:?}"))
}

async fn metadata(call: Reading) -> Answer {
    let id = call.params.required("for")?;
    let topic = parent(&call, id).await?;
    let list = match topic.id == id {
        true => &topic.metadata,
        false => &topic.arcs.iter().find(|it| it.id == id).ok_or_else(|| no_parent(id))?.metadata,
    };
    let (scope, name) = (call.params.0.get("scope"), call.params.0.get("name"));
    let mut items = list
        .iter()
        .filter(|it| scope.is_none_or(|scope| scope == it.scope) && name.is_none_or(|name| name == it.name))
        .map(|it| document::metadata(id, it));
    if name.is_some() && scope.is_some() {
        let one = items.next().ok_or_else(|| ConclaveError::not_found("there is no such metadata"))?;
        return Ok(answer::json(StatusCode::OK, &one));
    }
    Ok(answer::json(StatusCode::OK, &items.collect::<Vec<Value>>()))
}

/// Parses the body, one member or a list of them, with `read`. Members may leave out those parts of their key (listed
/// in `names`) that the parameters state.
pub(super) async fn each<T>(
    call: &Reading,
    body: Body,
    names: &[&str],
    mut read: impl FnMut(&Value) -> Result<T>,
) -> Result<Vec<T>> {
    let stated: Vec<(&str, &str)> =
        names.iter().filter_map(|name| Some((*name, call.params.0.get(name)?))).collect();
    let completed = |mut it: Value| {
        if let Value::Object(member) = &mut it {
            for (name, value) in &stated {
                member.entry(*name).or_insert_with(|| json!(value));
            }
        }
        read(&it)
    };
    match call.json(body).await? {
        Value::Array(list) => list.into_iter().map(completed).collect(),
        one => std::iter::once(one).map(completed).collect(),
    }
}

async fn put_metadata(call: Editing, body: Body) -> Answer {
    let read = |it: &Value| document::read_metadata(it, call.params.0.get("for"));
    let list = each(&call, body, &["scope", "name"], read).await?;
    let (n_set, condition) = (list.len(), Condition::of(&call.headers));
    call.write(move |edit| {
        list.iter().try_for_each(|(parent, it)| {
            condition.check_match(edit, parent)?;
            edit.put_metadata(parent, it.clone())
        })
    })
    .await?;
    Ok(answer::json(StatusCode::OK, &json!({"set": n_set})))
}

async fn remove_metadata(call: Editing) -> Answer {
    let id = call.params.required("for")?.to_owned();
    let part = |name: &str| call.params.0.get(name).map(str::to_owned);
    let (scope, name) = (part("scope"), part("name"));
    let condition = Condition::of(&call.headers);
    call.write(move |edit| {
        condition.check_match(edit, &id)?;
        edit.remove_metadata(&id, (scope.as_deref(), name.as_deref()))
    })
    .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Returns whether an occurrence matches the parameters: each one that is given must agree.
fn is_meant(params: &Params, it: &Occurrence) -> bool {
    let agrees = |name: &str, value: &str| params.0.get(name).is_none_or(|wanted| wanted == value);
    agrees("scope", &it.scope)
        && agrees("role", &it.role)
        && agrees("behaviour", &it.behaviour)
        && agrees("reference", &it.reference)
}

/// Returns the key that the parameters state in full.
fn key_of(params: &Params) -> Result<Occurrence> {
    Ok(Occurrence {
        scope: params.0.get("scope").unwrap_or(DEFAULT_SCOPE).to_owned(),
        role: params.required("role")?.to_owned(),
        behaviour: params.required("behaviour")?.to_owned(),
        reference: params.0.get("reference").unwrap_or(SELF).to_owned(),
        data: String::new(),
        base64: None,
    })
}

fn no_occurrence() -> ConclaveError {
    ConclaveError::not_found("the topic has no such occurrence")
}

async fn occurrences(call: Reading) -> Answer {
    let topic = call.topic(call.params.required("for")?).await?;
    let meant = topic.occurrences.iter().filter(|it| is_meant(&call.params, it));
    let items: Vec<Value> = meant.map(|it| document::occurrence(&topic.id, it, None)).collect();
    let is_one = ["scope", "role", "behaviour", "reference"].iter().all(|it| call.params.0.get(it).is_some());
    match (is_one, items.first()) {
        (true, None) => Err(no_occurrence()),
        (true, Some(one)) => Ok(answer::json(StatusCode::OK, one)),
        (false, _) => Ok(answer::json(StatusCode::OK, &items)),
    }
}

async fn put_occurrences(call: Editing, body: Body) -> Answer {
    let read = |it: &Value| document::read_occurrence(it, call.params.0.get("for"));
    let list = each(&call, body, &["scope", "role", "behaviour", "reference"], read).await?;
    let (n_set, condition) = (list.len(), Condition::of(&call.headers));
    call.write(move |edit| {
        list.iter().try_for_each(|(topic, it, has_data)| {
            condition.check_match(edit, topic)?;
            edit.put_occurrence(topic, it.clone(), *has_data)
        })
    })
    .await?;
    Ok(answer::json(StatusCode::OK, &json!({"set": n_set})))
}

async fn remove_occurrences(call: Editing) -> Answer {
    let id = call.params.required("for")?.to_owned();
    let (params, condition) = (call.params.clone(), Condition::of(&call.headers));
    call.write(move |edit| {
        condition.check_match(edit, &id)?;
        edit.remove_occurrences(&id, |it| is_meant(&params, it))
    })
    .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn data(call: Reading) -> Answer {
    let topic = call.topic(call.params.required("for")?).await?;
    let key = key_of(&call.params)?;
    let found = topic.occurrences.iter().find(|it| it.has_key_of(&key)).ok_or_else(no_occurrence)?;
    let response =
        answer::bytes(StatusCode::OK, HeaderValue::from_static("application/octet-stream"), found.bytes());
    // Files that editors upload must never be displayed as a page of this site.
    let response = answer::with_header(response, http::header::CONTENT_DISPOSITION, "attachment");
    Ok(answer::with_header(response, http::header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
}

async fn put_data(call: Editing, body: Body) -> Answer {
    let (id, mut it) = (call.params.required("for")?.to_owned(), key_of(&call.params)?);
    it.set_bytes(call.received(body).await?.to_vec());
    let condition = Condition::of(&call.headers);
    call.write(move |edit| {
        condition.check_match(edit, &id)?;
        edit.put_occurrence(&id, it.clone(), true)
    })
    .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Renames an occurrence: `{key: {for, scope, role, behaviour, reference}, changes: {...}}`.
async fn rename(call: Editing, body: Body) -> Answer {
    let value = call.json(body).await?;
    let part = |name: &str| value.get(name).and_then(Value::as_object).cloned();
    let (Some(key), Some(changes)) = (part("key"), part("changes")) else {
        return Err(ConclaveError::bad_request("expected {\"key\":{...},\"changes\":{...}}"));
    };
    let mut to = key.clone();
    to.extend(changes);
    let (topic, from, _) = document::read_occurrence(&Value::Object(key), None)?;
    let (_, to, _) = document::read_occurrence(&Value::Object(to), Some(&topic))?;
    let condition = Condition::of(&call.headers);
    call.write(move |edit| {
        condition.check_match(edit, &topic)?;
        edit.rename_occurrence(&topic, &from, to.clone())
    })
    .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
