//! What topics own: metadata, occurrences, associations.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use http::{HeaderMap, HeaderValue, StatusCode};
use pinakes_http::answer;
use pinakes_store::Weight;
use serde_json::{Value, json};

use super::topics::write;
use super::{Answer, neighbours};
use crate::app::{Asker, Conclave, Params, map_name};
use crate::document;
use crate::edit::{find, owner_of_arc, pointing_topics, update_labels};
use crate::error::{ConclaveError, Result};
use crate::model::{DEFAULT_SCOPE, Metadata, Occurrence, SELF, Topic};

/// Topics whose arcs are relabelled in one transaction.
const RELABELLED_AT_ONCE: usize = 500;

pub(super) fn routes() -> Router<Conclave> {
    Router::new()
        .route("/topics/v1/{map}/metadata", get(metadata).put(put_metadata).delete(remove_metadata))
        .route(
            "/topics/v1/{map}/occurrences",
            get(occurrences).put(put_occurrences).delete(remove_occurrences),
        )
        .route("/topics/v1/{map}/occurrence/data", get(data).put(put_data))
        .route("/topics/v1/{map}/occurrence/rename", post(rename))
        .route("/topics/v1/{map}/associations", get(arcs).post(put_arcs).delete(remove_arcs))
        .route("/topics/v1/{map}/association", get(arc).put(put_arc).delete(remove_arc))
        .route("/topics/v1/{map}/associations/labels", post(labels))
}

/// The topic, or the topic that owns the arc, of that id.
async fn parent(asker: &Asker, map: &str, id: &str) -> Result<Topic> {
    let (own_map, own_id) = (map.to_owned(), id.to_owned());
    let found = asker
        .db
        .read(Weight::Scan, move |view| {
            if let Some(found) = find(view, &own_map, &own_id)? {
                return Ok::<_, ConclaveError>(Some(found));
            }
            let Some(owner) = owner_of_arc(view, &own_map, &own_id)? else { return Ok(None) };
            find(view, &own_map, &owner)
        })
        .await?;
    let none = || ConclaveError::not_found(format!("there is neither a topic nor an association {id:?}"));
    Ok(asker.filtered(found.ok_or_else(none)?).topic)
}

async fn metadata(
    State(_): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Answer {
    asker.may_read()?;
    let id = params.required("for")?;
    let topic = parent(&asker, map_name(&map)?, id).await?;
    let list = match topic.id == id {
        true => &topic.metadata,
        false => topic.arcs.iter().find(|it| it.id == id).map_or(&topic.metadata, |it| &it.metadata),
    };
    let (scope, name) = (params.0.get("scope"), params.0.get("name"));
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

/// One or a list.
fn each(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        one => vec![one],
    }
}

async fn put_metadata(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_edit()?;
    let list = each(app.json(&headers, body).await?);
    let list: Vec<_> =
        list.iter().map(|it| document::read_metadata(it, params.0.get("for"))).collect::<Result<_>>()?;
    let n_set = list.len();
    write(&app, &asker, map_name(&map)?, move |edit| {
        list.iter().try_for_each(|(parent, it)| edit.put_metadata(parent, it.clone()))
    })
    .await?;
    Ok(answer::json(StatusCode::OK, &json!({"set": n_set})))
}

async fn remove_metadata(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Answer {
    asker.may_edit()?;
    let id = params.required("for")?.to_owned();
    let (scope, name) = (params.0.get("scope").map(str::to_owned), params.0.get("name").map(str::to_owned));
    write(&app, &asker, map_name(&map)?, move |edit| {
        edit.remove_metadata(&id, (scope.as_deref(), name.as_deref()))
    })
    .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Which occurrences the parameters mean: each that they name must agree.
fn is_meant(params: &Params, it: &Occurrence) -> bool {
    let agrees = |name: &str, value: &str| params.0.get(name).is_none_or(|wanted| wanted == value);
    agrees("scope", &it.scope)
        && agrees("role", &it.role)
        && agrees("behaviour", &it.behaviour)
        && agrees("reference", &it.reference)
}

/// The key that the parameters state in full.
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

async fn topic_of(asker: &Asker, map: &str, params: &Params) -> Result<Topic> {
    asker.may_read()?;
    let (map, id) = (map_name(map)?.to_owned(), params.required("for")?.to_owned());
    let name = id.clone();
    let found = asker.db.read(Weight::Point, move |view| find(view, &map, &id)).await?;
    let found = found.ok_or_else(|| ConclaveError::not_found(format!("there is no topic {name:?}")))?;
    Ok(asker.filtered(found).topic)
}

async fn occurrences(
    State(_): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Answer {
    let topic = topic_of(&asker, &map, &params).await?;
    let meant = topic.occurrences.iter().filter(|it| is_meant(&params, it));
    let items: Vec<Value> = meant.map(|it| document::occurrence(&topic.id, it, None)).collect();
    let is_one = ["scope", "role", "behaviour", "reference"].iter().all(|it| params.0.get(it).is_some());
    match (is_one, items.first()) {
        (true, None) => Err(ConclaveError::not_found("the topic has no such occurrence")),
        (true, Some(one)) => Ok(answer::json(StatusCode::OK, one)),
        (false, _) => Ok(answer::json(StatusCode::OK, &items)),
    }
}

async fn put_occurrences(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_edit()?;
    let list = each(app.json(&headers, body).await?);
    let list: Vec<_> =
        list.iter().map(|it| document::read_occurrence(it, params.0.get("for"))).collect::<Result<_>>()?;
    let n_set = list.len();
    write(&app, &asker, map_name(&map)?, move |edit| {
        list.iter().try_for_each(|(topic, it, has_data)| edit.put_occurrence(topic, it.clone(), *has_data))
    })
    .await?;
    Ok(answer::json(StatusCode::OK, &json!({"set": n_set})))
}

async fn remove_occurrences(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Answer {
    asker.may_edit()?;
    let id = params.required("for")?.to_owned();
    write(&app, &asker, map_name(&map)?, move |edit| {
        edit.remove_occurrences(&id, |it| is_meant(&params, it))
    })
    .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn data(State(_): State<Conclave>, asker: Asker, Path(map): Path<String>, params: Params) -> Answer {
    let topic = topic_of(&asker, &map, &params).await?;
    let key = key_of(&params)?;
    let found = topic.occurrences.iter().find(|it| it.has_key_of(&key));
    let found = found.ok_or_else(|| ConclaveError::not_found("the topic has no such occurrence"))?;
    let response =
        answer::bytes(StatusCode::OK, HeaderValue::from_static("application/octet-stream"), found.bytes());
    // What editors upload is never a page of this site.
    let response = answer::with_header(response, http::header::CONTENT_DISPOSITION, "attachment");
    Ok(answer::with_header(response, http::header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
}

async fn put_data(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_edit()?;
    let (id, mut it) = (params.required("for")?.to_owned(), key_of(&params)?);
    it.set_bytes(app.received(&headers, body).await?.to_vec());
    write(&app, &asker, map_name(&map)?, move |edit| edit.put_occurrence(&id, it.clone(), true)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// `{key: {for, scope, role, behaviour, reference}, changes: {...}}`.
async fn rename(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_edit()?;
    let value = app.json(&headers, body).await?;
    let part = |name: &str| value.get(name).and_then(Value::as_object).cloned();
    let (Some(key), Some(changes)) = (part("key"), part("changes")) else {
        return Err(ConclaveError::bad_request("expected {\"key\":{...},\"changes\":{...}}"));
    };
    let mut to = key.clone();
    to.extend(changes);
    let (topic, from, _) = document::read_occurrence(&Value::Object(key), None)?;
    let (_, to, _) = document::read_occurrence(&Value::Object(to), Some(&topic))?;
    write(&app, &asker, map_name(&map)?, move |edit| edit.rename_occurrence(&topic, &from, to.clone()))
        .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Of a topic (`parent`), or at a topic (`reference`).
async fn arcs(State(app): State<Conclave>, asker: Asker, Path(map): Path<String>, params: Params) -> Answer {
    asker.may_read()?;
    if params.0.get("parent").is_none() {
        params.required("reference")?;
        return neighbours::pointing(State(app), asker, Path(map), params).await;
    }
    let id = params.required("parent")?;
    let topic = parent(&asker, map_name(&map)?, id).await?;
    let agrees = |name: &str, value: &str| params.0.get(name).is_none_or(|wanted| wanted == value);
    let after = params.0.text("after");
    let limit = params.limit()? as usize;
    let mut meant: Vec<_> = topic
        .arcs
        .iter()
        .filter(|it| agrees("type", &it.ty) && agrees("role", &it.role) && agrees("scope", &it.scope))
        .filter(|it| after < it.id.as_str())
        .collect();
    meant.sort_by(|it, other| it.id.cmp(&other.id));
    let next = meant.get(limit).and(meant.get(limit.wrapping_sub(1))).map(|it| it.id.clone());
    let items: Vec<Value> = meant.into_iter().take(limit).map(|it| document::arc(&topic.id, it)).collect();
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": next})))
}

async fn put_arcs(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_edit()?;
    let list = each(app.json(&headers, body).await?);
    let list: Vec<_> =
        list.iter().map(|it| document::read_arc(it, None, &mut || app.new_uuid())).collect::<Result<_>>()?;
    let ids: Vec<String> = list.iter().map(|it| it.1.id.clone()).collect();
    write(&app, &asker, map_name(&map)?, move |edit| {
        list.iter().try_for_each(|(topic, it)| edit.put_arc(topic, it.clone()))
    })
    .await?;
    Ok(answer::json(StatusCode::CREATED, &json!({"ids": ids})))
}

async fn remove_arcs(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Answer {
    asker.may_edit()?;
    let map = map_name(&map)?;
    match (params.0.get("parent"), params.0.get("reference")) {
        (Some(id), None) => {
            let id = id.to_owned();
            write(&app, &asker, map, move |edit| {
                edit.topic(&id)?.arcs.clear();
                Ok(())
            })
            .await?;
        }
        (None, Some(id)) => {
            let id = id.to_owned();
            write(&app, &asker, map, move |edit| edit.remove_pointing(&id)).await?;
        }
        _ => return Err(ConclaveError::bad_request("one of parent and reference is needed")),
    }
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn arc(State(_): State<Conclave>, asker: Asker, Path(map): Path<String>, params: Params) -> Answer {
    asker.may_read()?;
    let id = params.required("id")?;
    let none = || ConclaveError::not_found(format!("there is no association {id:?}"));
    let topic = parent(&asker, map_name(&map)?, id).await.map_err(|_| none())?;
    let arc = topic.arcs.iter().find(|it| it.id == id).ok_or_else(none)?;
    Ok(answer::json(StatusCode::OK, &document::arc(&topic.id, arc)))
}

async fn put_arc(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_edit()?;
    let id = params.required("id")?.to_owned();
    let value = app.json(&headers, body).await?;
    let (topic, arc) = document::read_arc(&value, None, &mut || id.clone())?;
    if arc.id != id {
        return Err(ConclaveError::bad_request(format!(
            "the body states the id {:?}, the address {id:?}",
            arc.id
        )));
    }
    let (is_new, _) = write(&app, &asker, map_name(&map)?, move |edit| {
        let is_new = edit.owner(&arc.id)?.is_none();
        edit.put_arc(&topic, arc.clone())?;
        Ok(is_new)
    })
    .await?;
    Ok(answer::empty(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT }))
}

async fn remove_arc(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Answer {
    asker.may_edit()?;
    let id = params.required("id")?.to_owned();
    write(&app, &asker, map_name(&map)?, move |edit| edit.remove_arc(&id)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Sets a metadata on every arc at a topic, of one type and role: some hundred owners in each transaction.
async fn labels(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_edit()?;
    let map = map_name(&map)?.to_owned();
    let value = app.json(&headers, body).await?;
    let text = |name: &str| {
        let text = value.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| ConclaveError::bad_request(format!("{name} is missing")))
    };
    let (reference, ty, role) = (text("reference")?, text("type")?, text("role")?);
    let it = Metadata {
        scope: text("scope").unwrap_or_else(|_| DEFAULT_SCOPE.to_owned()),
        name: text("name")?,
        value: text("value")?,
    };
    let owners = {
        let (map, reference) = (map.clone(), reference.clone());
        asker.db.read(Weight::Scan, move |view| pointing_topics(view, &map, &reference, "", u32::MAX)).await?
    };
    let mut n_updated = 0;
    for owners in owners.chunks(RELABELLED_AT_ONCE) {
        let (owners, it) = (owners.to_vec(), it.clone());
        let (reference, ty, role) = (reference.clone(), ty.clone(), role.clone());
        let (n, _) = write(&app, &asker, &map, move |edit| {
            update_labels(edit, &owners, (&reference, &ty, &role), &it)
        })
        .await?;
        n_updated += n;
    }
    Ok(answer::json(StatusCode::OK, &json!({"updated": n_updated})))
}
