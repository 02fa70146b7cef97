//! Arcs: one, those of a topic, those at a topic.

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::Weight;
use serde_json::{Value, json};

use super::Answer;
use super::members::{each, parent};
use super::neighbours::{Which, page_of_arcs, pointing};
use crate::app::Conclave;
use crate::call::{Editing, Reading};
use crate::document;
use crate::edit::{pointing_topics, update_labels};
use crate::error::ConclaveError;
use crate::model::{DEFAULT_SCOPE, Metadata};

/// Topics whose arcs are relabelled in one transaction.
const RELABELLED_AT_ONCE: usize = 500;

pub(super) fn routes() -> Router<Conclave> {
    Router::new()
        .route("/topics/v1/{map}/associations", get(arcs).post(put_arcs).delete(remove_arcs))
        .route("/topics/v1/{map}/association", get(arc).put(put_arc).delete(remove_arc))
        .route("/topics/v1/{map}/associations/labels", post(labels))
}

/// Of a topic (`parent`), or at a topic (`reference`).
async fn arcs(call: Reading) -> Answer {
    let Some(id) = call.params.0.get("parent") else {
        call.params.required("reference")?;
        return pointing(call).await;
    };
    let topic = parent(&call, id).await?;
    let limit = call.params.limit()? as usize;
    let (arcs, next) = page_of_arcs(&topic, &Which::of(&call.params), call.params.0.text("after"), limit);
    let items: Vec<Value> = arcs.into_iter().map(|it| document::arc(&topic.id, it)).collect();
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": next})))
}

async fn put_arcs(call: Editing, body: Body) -> Answer {
    let list = each(&call, body, |it| document::read_arc(it, None, &mut || call.app.new_uuid())).await?;
    let ids: Vec<String> = list.iter().map(|it| it.1.id.clone()).collect();
    call.write(move |edit| list.iter().try_for_each(|(topic, it)| edit.put_arc(topic, it.clone()))).await?;
    Ok(answer::json(StatusCode::CREATED, &json!({"ids": ids})))
}

async fn remove_arcs(call: Editing) -> Answer {
    let of = |name: &str| call.params.0.get(name).map(str::to_owned);
    match (of("parent"), of("reference")) {
        (Some(id), None) => {
            call.write(move |edit| {
                edit.topic(&id)?.arcs.clear();
                Ok(())
            })
            .await?;
        }
        (None, Some(id)) => {
            call.write(move |edit| edit.remove_pointing(&id)).await?;
        }
        _ => return Err(ConclaveError::bad_request("one of parent and reference is needed")),
    }
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn arc(call: Reading) -> Answer {
    let id = call.params.required("id")?;
    let none = || ConclaveError::not_found(format!("there is no association {id:?}"));
    let topic = parent(&call, id).await?;
    let arc = topic.arcs.iter().find(|it| it.id == id).ok_or_else(none)?;
    Ok(answer::json(StatusCode::OK, &document::arc(&topic.id, arc)))
}

async fn put_arc(call: Editing, body: Body) -> Answer {
    let id = call.params.required("id")?.to_owned();
    let value = call.json(body).await?;
    let (topic, arc) = document::read_arc(&value, None, &mut || id.clone())?;
    if arc.id != id {
        let stated = &arc.id;
        return Err(ConclaveError::bad_request(format!(
            "the body states the id {stated:?}, the address {id:?}"
        )));
    }
    let (is_new, _) = call
        .write(move |edit| {
            let is_new = edit.owner(&arc.id)?.is_none();
            edit.put_arc(&topic, arc.clone())?;
            Ok(is_new)
        })
        .await?;
    Ok(answer::empty(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT }))
}

async fn remove_arc(call: Editing) -> Answer {
    let id = call.params.required("id")?.to_owned();
    call.write(move |edit| edit.remove_arc(&id)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Sets a metadata on every arc at a topic, of one type and role: some hundred owners in each transaction.
async fn labels(call: Editing, body: Body) -> Answer {
    let value = call.json(body).await?;
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
        let reference = reference.clone();
        call.read(Weight::Scan, move |view, map| pointing_topics(view, map, &reference)).await?
    };
    let mut n_updated = 0;
    for owners in owners.chunks(RELABELLED_AT_ONCE) {
        let (owners, it) = (owners.to_vec(), it.clone());
        let (reference, ty, role) = (reference.clone(), ty.clone(), role.clone());
        let (n, _) =
            call.write(move |edit| update_labels(edit, &owners, (&reference, &ty, &role), &it)).await?;
        n_updated += n;
    }
    Ok(answer::json(StatusCode::OK, &json!({"updated": n_updated})))
}
