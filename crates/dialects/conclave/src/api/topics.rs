//! Whole topics: reading, writing, removing, listing, merging.

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use http::StatusCode;
use http::header::{ETAG, LOCATION};
use pinakes_http::answer;
use pinakes_store::{Direction, End, Expr, Query, Weight};
use serde_json::{Value, json};

use crate::call::Answer;
use crate::call::{Editing, Reading};
use crate::document;
use crate::edit::{Done, Found};
use crate::error::ConclaveError;
use crate::kinds::{DRAW_END, TOPIC};
use crate::markup::Resolver;
use crate::model::key;
use crate::text::{after_prefix, topic_href_raw};
use crate::validators::cached;
use crate::validators::{Condition, is_known, not_modified, tag};

use super::finding::{item, listed};

/// Number of topics after a random point from which one is drawn: the gaps between points differ, and this evens them
/// out.
const DRAWN_FROM: u64 = 8;

pub(super) fn routes() -> Router<crate::app::Conclave> {
    Router::new()
        .route("/topics/v1/{map}/topic", get(read).put(put).delete(remove))
        .route("/topics/v1/{map}/topics", get(list).post(create))
        .route("/topics/v1/{map}/random", get(random))
        .route("/topics/v1/{map}/merge", post(merge))
        .route("/topics/v1/{map}/stats", get(stats))
        .route("/topics/v1/{map}/features", get(features))
        .route("/topics/v1/render", post(render))
}

async fn read(call: Reading) -> Answer {
    let id = call.params.required("id")?;
    let found = call.found(id).await?.ok_or_else(|| ConclaveError::no_topic(id))?;
    let scope = call.params.0.get("scope");
    let is_resolved = call.params.0.is_set("resolve");
    let base = call.params.0.get("linkBase").map_or_else(|| call.link_base(), str::to_owned);
    let mut form = vec!["json".to_owned(), call.asker.sight()];
    form.extend(scope.map(|it| format!("s{it}")));
    if is_resolved {
        form.push(format!("r{base}"));
        form.extend(call.mark_of_galleries(&found.topic));
    }
    let tag = tag(&found, &form);
    let modified_ms = found.topic.modified_ms;
    if is_known(&call.headers, &tag) {
        return Ok(cached(&call, not_modified(&tag), modified_ms));
    }
    let topic = call.asker.filtered(found).topic.within(scope);
    let resolver = Resolver::new(&base).and_galleries(call.galleries());
    let body = document::topic(&topic, is_resolved.then_some(&resolver));
    let response = answer::with_header(answer::json(StatusCode::OK, &body), ETAG, &tag);
    Ok(cached(&call, response, modified_ms))
}

async fn put(call: Editing, body: Body) -> Answer {
    let id = call.params.required("id")?.to_owned();
    let value = call.json(body).await?;
    let topic = document::read_topic(&value, &call.map, &id, &mut || call.app.new_uuid())?;
    let condition = Condition::of(&call.headers);
    let (is_new, done) = call
        .write(move |edit| {
            let version = edit.version(&topic.id)?;
            condition.check(version)?;
            edit.put(topic.clone())?;
            Ok(version == 0)
        })
        .await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    written(&call, &id, status, done).await
}

async fn create(call: Editing, body: Body) -> Answer {
    let value = call.json(body).await?;
    let id = match value.get("id") {
        None | Some(Value::Null) => call.app.new_uuid(),
        Some(Value::String(id)) => id.clone(),
        Some(_) => return Err(ConclaveError::bad_request("topic: id is no string")),
    };
    let topic = document::read_topic(&value, &call.map, &id, &mut || call.app.new_uuid())?;
    let ((), done) = call.write(move |edit| edit.create(topic.clone())).await?;
    written(&call, &id, StatusCode::CREATED, done).await
}

/// Answers with the topic in its state after a write.
async fn written(call: &Editing, id: &str, status: StatusCode, done: Done) -> Answer {
    let Some(found) = call.found(id).await? else { return Ok(answer::empty(StatusCode::NO_CONTENT)) };
    let tag = tag(&found, &["json".to_owned(), call.asker.sight()]);
    let topic = call.asker.filtered(found).topic;
    let mut response = answer::with_header(answer::json(status, &document::topic(&topic, None)), ETAG, &tag);
    if status == StatusCode::CREATED {
        let address = topic_href_raw(&format!("/topics/v1/{}/topic?id=", call.map), id);
        response = answer::with_header(response, LOCATION, &address);
    }
    if done.has_stale_labels {
        let advice = "many associations point here; POST associations/labels brings their labels up to date";
        response = answer::with_header(response, http::HeaderName::from_static("x-stale-labels"), advice);
    }
    Ok(response)
}

async fn remove(call: Editing) -> Answer {
    let id = call.params.required("id")?.to_owned();
    let (with_pointing, condition) = (call.params.0.is_set("pointing"), Condition::of(&call.headers));
    call.write(move |edit| {
        condition.check(edit.version(&id)?)?;
        if with_pointing {
            edit.remove_pointing(&id)?;
        }
        edit.remove(&id)
    })
    .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Lists ids and labels of topics, in id order.
async fn list(call: Reading) -> Answer {
    let limit = call.params.limit()?;
    let (prefix, after) = (call.params.0.text("prefix").to_owned(), call.params.0.text("after").to_owned());
    let mut found = call
        .read(Weight::Scan, move |view, map| {
            let low = match after.is_empty() {
                true => End::Included(key(map, &prefix).into()),
                false => End::Excluded(key(map, &after).into()),
            };
            let high = End::Excluded(after_prefix(&key(map, &prefix)).into());
            let query = Query::filter(Expr::Range("key".into(), low, high))
                .sorted("key", Direction::Ascending)
                .window(0, u64::from(limit) + 1);
            listed(view, &query)
        })
        .await?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| has_more).map(|it| it.topic.id.clone());
    let items: Vec<Value> = found.into_iter().map(|it| item(&call.asker, it)).collect();
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": next})))
}

/// Lists ids of randomly chosen topics. Each topic lies at a point derived from its id ([`crate::kinds::draw_of`]); a
/// random point costs one seek in the index, and one of the topics after it is taken.
async fn random(call: Reading) -> Answer {
    let wanted = call.params.0.get("n").map_or(Ok(1), str::parse::<usize>);
    let wanted = wanted.ok().filter(|it| (1..=10_000).contains(it));
    let wanted = wanted.ok_or_else(|| ConclaveError::bad_request("n is a number from 1 to 10000"))?;
    let mut seed = u64::from_le_bytes(call.app.context.entropy().bytes::<8>()) | 1;
    let ids = call
        .read(Weight::Scan, move |view, map| {
            let of_map = Expr::Is("map".into(), map.into());
            let mut out: Vec<String> = Vec::with_capacity(wanted);
            let mut near: Vec<Found> = Vec::new();
            for n in 0..wanted {
                // xorshift: the choice of topics need not be unpredictable.
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                // Load tests ask for many at once: those may lie close together.
                if n.is_multiple_of(wanted.div_ceil(1_000)) || near.is_empty() {
                    let at = i64::try_from(seed >> 11).unwrap_or_default() % DRAW_END;
                    let from = Expr::Range("draw".into(), End::Included(at.into()), End::Open);
                    let query = Query::filter(of_map.clone().and(from)).sorted("draw", Direction::Ascending);
                    near = listed(view, &query.window(0, DRAWN_FROM))?;
                    if near.is_empty() {
                        let first = Query::filter(of_map.clone()).sorted("draw", Direction::Ascending);
                        near = listed(view, &first.window(0, DRAWN_FROM))?;
                    }
                }
                if near.is_empty() {
                    break;
                }
                let at = usize::try_from(seed >> 40).unwrap_or_default() % near.len();
                out.push(near.swap_remove(at).topic.id);
            }
            Ok(out)
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"ids": ids})))
}

/// Merges two topics into one; with `dry=1` reports what that would do.
async fn merge(call: Editing) -> Answer {
    let from = call.params.required("from")?.to_owned();
    let into = call.params.required("into")?.to_owned();
    let is_dry = call.params.0.is_set("dry");
    let asker = call.asker.clone();
    let (topic, done) = call
        .write_if(!is_dry, move |edit| {
            let same = edit.merge(&from, &into)?;
            edit.merge_all(same)?;
            let mut topic = edit.get(&into)?.cloned();
            if let Some(topic) = &mut topic {
                topic.retain(|it| asker.sees(it));
                topic.put_in_order();
            }
            Ok(topic.map(|it| document::topic(&it, None)))
        })
        .await?;
    let body = json!({
        "dry": is_dry, "written": done.n_written, "removed": done.n_removed, "topic": topic,
    });
    Ok(answer::json(StatusCode::OK, &body))
}

async fn stats(call: Reading) -> Answer {
    let n_topics =
        call.read(Weight::Scan, |view, map| Ok(view.count(&TOPIC, &Expr::Is("map".into(), map.into()))?));
    Ok(answer::json(StatusCode::OK, &json!({"topics": n_topics.await?})))
}

async fn features(_: Reading) -> Answer {
    let formats: Vec<&str> = pinakes_topicmap::Format::ALL.iter().map(|it| it.0).collect();
    let body = json!({
        "features": ["IdentityEnumeration", "PointingTopics", "FullText", "Formats"], "formats": formats,
    });
    Ok(answer::json(StatusCode::OK, &body))
}

/// Renders a text as HTML, for the editor's preview.
async fn render(call: Reading, body: Body) -> Answer {
    let value = call.json(body).await?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let base = match text("linkBase") {
        "" => call.link_base(),
        base => base.to_owned(),
    };
    let html = Resolver::new(&base).render(text("behaviour"), text("text"));
    let html =
        html.ok_or_else(|| ConclaveError::bad_request("behaviour is none of markdown, wiki, text and html"))?;
    Ok(answer::bytes(StatusCode::OK, crate::text::HTML, html))
}
