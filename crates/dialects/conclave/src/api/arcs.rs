//! Arcs: a single arc, the arcs of a topic, the arcs that point at a topic.

use std::ops::ControlFlow;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Direction, End, Expr, Query, Weight};
use serde_json::{Value, json};

use super::members::{each, parent};
use super::neighbours::{Which, page_of_arcs, pointing_page};
use crate::api::position::{cursor, cursor_parts};
use crate::app::Conclave;
use crate::call::Answer;
use crate::call::{Editing, Reading};
use crate::document;
use crate::edit::{pointing_topics, update_labels};
use crate::error::{ConclaveError, Result};
use crate::kinds::TOPIC;
use crate::model::{Arc, Metadata, Topic, key};
use crate::names::DEFAULT_SCOPE;
use crate::text::after_prefix;
use crate::validators::Condition;

/// Maximum number of topics that one page of all arcs reads.
const SEEN_TOPICS: u64 = 1_000;
/// Topics whose arcs are relabelled in one transaction.
const RELABELLED_AT_ONCE: usize = 500;

pub(super) fn routes() -> Router<Conclave> {
    Router::new()
        .route("/topics/v1/{map}/associations", get(arcs).post(put_arcs).delete(remove_arcs))
        .route("/topics/v1/{map}/association", get(arc).put(put_arc).delete(remove_arc))
        .route("/topics/v1/{map}/associations/labels", post(labels))
}

/// Lists the arcs that a topic owns (`parent`), those that point at it (`reference`), or those of the whole map.
async fn arcs(call: Reading) -> Answer {
    let Some(id) = call.params.0.get("parent") else {
        return match call.params.0.get("reference") {
            Some(id) => {
                let id = id.to_owned();
                at_topic(&call, id).await
            }
            None => of_map(call).await,
        };
    };
    let topic = parent(&call, id).await?;
    let limit = call.params.limit()? as usize;
    let (arcs, next) = page_of_arcs(&topic, &Which::of(&call.params), call.params.0.text("after"), limit);
    let is_ids = is_ids(&call)?;
    let items: Vec<Value> = arcs.into_iter().map(|it| told(&topic.id, it, is_ids)).collect();
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": next})))
}

/// Lists the arcs that point at a topic, in the same form as those that a topic owns.
async fn at_topic(call: &Reading, id: String) -> Answer {
    let (which, limit) = (Which::of(&call.params), call.params.limit()? as usize);
    let (after, is_ids) = (call.params.0.get("after").map(str::to_owned), is_ids(call)?);
    let asker = call.asker.clone();
    let (items, next) = call
        .read(Weight::Scan, move |view, map| {
            let page = pointing_page(view, (map, &id), &which, &asker, after.as_deref(), limit)?;
            let keys: Vec<String> = page.links.iter().map(|it| key(map, &it.owner)).collect();
            let mut items: Vec<Value> = Vec::with_capacity(page.links.len());
            for (link, record) in page.links.iter().zip(view.get_many(&TOPIC, &keys)?) {
                let Some(record) = record else { continue };
                let mut topic = Topic::stored(&record.body)?;
                topic.retain(|it| asker.sees(it));
                let meant = topic.arcs.iter().filter(|it| link.is_of(it) && it.reference == id);
                items.extend(meant.map(|it| told(&topic.id, it, is_ids)));
            }
            Ok((items, page.next))
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": next})))
}

/// Returns whether only ids are requested.
fn is_ids(call: &Reading) -> Result<bool> {
    match call.params.0.get("view") {
        None => Ok(false),
        Some("ids") => Ok(true),
        Some(other) => Err(ConclaveError::bad_request(format!("view is {other:?}; expected ids or nothing"))),
    }
}

fn told(parent: &str, arc: &Arc, is_ids: bool) -> Value {
    if is_ids { json!(arc.id) } else { document::arc(parent, arc) }
}

/// Lists all arcs of a map, ordered by topic and id. A page reads a limited number of topics, so it may hold fewer arcs
/// than requested, or none; the list goes on for as long as a page names where the next one begins.
async fn of_map(call: Reading) -> Answer {
    let (which, limit) = (Which::of(&call.params), call.params.limit()? as usize);
    let is_ids = is_ids(&call)?;
    let after = match call.params.0.get("after") {
        None => (String::new(), String::new()),
        Some(text) => match cursor_parts(text)?.as_slice() {
            [topic, arc] => (topic.clone(), arc.clone()),
            _ => return Err(ConclaveError::bad_request("after is not what an earlier answer gave as next")),
        },
    };
    let asker = call.asker.clone();
    let (items, next) = call
        .read(Weight::Scan, move |view, map| {
            let own = key(map, "");
            let low = End::Included(key(map, &after.0).into());
            let range = Expr::Range("key".into(), low, End::Excluded(after_prefix(&own).into()));
            let query = Query::filter(range).sorted("key", Direction::Ascending).window(0, SEEN_TOPICS + 1);
            let (mut items, mut next): (Vec<Value>, Option<String>) = (Vec::new(), None);
            let (mut n_seen, mut damaged) = (0, None);
            view.for_each(&TOPIC, &query, |record| {
                let mut topic = match Topic::stored(&record.body) {
                    Ok(topic) => topic,
                    Err(error) => {
                        damaged = Some(error);
                        return ControlFlow::Break(());
                    }
                };
                topic.retain(|it| asker.sees(it));
                if n_seen == SEEN_TOPICS {
                    next = Some(cursor(&[&topic.id, ""]));
                    return ControlFlow::Break(());
                }
                n_seen += 1;
                let from = if topic.id == after.0 { after.1.as_str() } else { "" };
                let left = limit - items.len();
                let (arcs, more) = page_of_arcs(&topic, &which, from, left);
                items.extend(arcs.into_iter().map(|it| told(&topic.id, it, is_ids)));
                match (more, items.len() == limit) {
                    (Some(last), _) => next = Some(cursor(&[&topic.id, &last])),
                    // All arcs of this topic are listed, and the page is full.
                    (None, true) => next = Some(cursor(&[&topic.id, &char::MAX.to_string()])),
                    (None, false) => return ControlFlow::Continue(()),
                }
                ControlFlow::Break(())
            })?;
            damaged.map_or(Ok((items, next)), Err)
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": next})))
}

async fn put_arcs(call: Editing, body: Body) -> Answer {
    let read = |it: &Value| document::read_arc(it, None, &mut || call.app.new_uuid());
    let list = each(&call, body, &[], read).await?;
    let ids: Vec<String> = list.iter().map(|it| it.1.id.clone()).collect();
    let condition = Condition::of(&call.headers);
    call.write(move |edit| {
        list.iter().try_for_each(|(topic, it)| {
            condition.check_match(edit, topic)?;
            edit.put_arc(topic, it.clone())
        })
    })
    .await?;
    Ok(answer::json(StatusCode::CREATED, &json!({"ids": ids})))
}

async fn remove_arcs(call: Editing) -> Answer {
    let condition = Condition::of(&call.headers);
    let of = |name: &str| call.params.0.get(name).map(str::to_owned);
    match (of("parent"), of("reference")) {
        (Some(id), None) => {
            call.write(move |edit| {
                condition.check_match(edit, &id)?;
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
    let condition = Condition::of(&call.headers);
    let (is_new, _) = call
        .write(move |edit| {
            condition.check_match(edit, &topic)?;
            let is_new = edit.owner(&arc.id)?.is_none();
            edit.put_arc(&topic, arc.clone())?;
            Ok(is_new)
        })
        .await?;
    Ok(answer::empty(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT }))
}

async fn remove_arc(call: Editing) -> Answer {
    let id = call.params.required("id")?.to_owned();
    let condition = Condition::of(&call.headers);
    call.write(move |edit| {
        condition.check_match(edit, &id)?;
        edit.remove_arc(&id)
    })
    .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Sets a metadata entry on every arc of one type and role that points at a topic, for some hundred owners per
/// transaction.
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
