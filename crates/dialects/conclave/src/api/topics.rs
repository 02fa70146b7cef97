//! Whole topics: reading, writing, removing, listing, finding.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use http::header::{ETAG, LOCATION};
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Direction, End, Expr, Query, TextQuery, Value as Cell, View, Weight};
use serde_json::{Value, json};

use super::{Answer, Condition, is_known, not_modified, tag};
use crate::app::{Asker, Conclave, Params, map_name};
use crate::document;
use crate::edit::{Done, Edit, Found, History, find};
use crate::error::{ConclaveError, Result};
use crate::kinds::{ITEM_IDENTIFIER, SUBJECT_IDENTIFIER, SUBJECT_LOCATOR, TOPIC};
use crate::markup::Resolver;
use crate::model::{Topic, identity, key};
use crate::text::topic_href_raw;

/// Records that a search looks at, of each of its two ways.
const SEARCH_LIMIT_MAX: u32 = 200;

pub(super) fn routes() -> Router<Conclave> {
    Router::new()
        .route("/topics/v1/{map}/topic", get(read).put(put).delete(remove))
        .route("/topics/v1/{map}/topics", get(list).post(create))
        .route("/topics/v1/{map}/search", get(search))
        .route("/topics/v1/{map}/random", get(random))
        .route("/topics/v1/{map}/identity", get(by_identity))
        .route("/topics/v1/{map}/about", get(about))
        .route("/topics/v1/{map}/merge", post(merge))
        .route("/topics/v1/{map}/stats", get(stats))
        .route("/topics/v1/{map}/features", get(features))
        .route("/topics/v1/render", post(render))
}

async fn read(
    State(_): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    asker.may_read()?;
    let (map, id) = (map_name(&map)?.to_owned(), params.required("id")?.to_owned());
    let found = {
        let (map, id) = (map.clone(), id.clone());
        asker.db.read(Weight::Point, move |view| find(view, &map, &id)).await?
    };
    let found = found.ok_or_else(|| ConclaveError::not_found(format!("there is no topic {id:?}")))?;
    let sight = asker.sight();
    let scope = params.0.get("scope");
    let is_resolved = params.0.is_set("resolve");
    let form = format!("json{sight}{}{}", scope.unwrap_or_default(), if is_resolved { "r" } else { "" });
    let tag = tag(found.version, found.sequence, &form);
    if is_known(&headers, &tag) {
        return Ok(not_modified(&tag));
    }
    let topic = asker.filtered(found).topic.within(scope);
    let base = match params.0.get("linkBase") {
        Some(base) => base.to_owned(),
        None => format!("/t/{map}/"),
    };
    let resolver = Resolver { link_base: &base };
    let body = document::topic(&topic, is_resolved.then_some(&resolver));
    Ok(answer::with_header(answer::json(StatusCode::OK, &body), ETAG, &tag))
}

async fn put(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_edit()?;
    let (map, id) = (map_name(&map)?.to_owned(), params.required("id")?.to_owned());
    let value = app.json(&headers, body).await?;
    let topic = document::read_topic(&value, &map, &id, &mut || app.new_uuid())?;
    let condition = Condition::of(&headers);
    let (is_new, done) = write(&app, &asker, &map, move |edit| {
        let version = edit.version(&topic.id)?;
        condition.check(version)?;
        edit.put(topic.clone())?;
        Ok(version == 0)
    })
    .await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    answer_of_write(&asker, &map, &id, status, done).await
}

/// Runs changes to a map in one transaction.
pub(super) async fn write<R: Send + 'static>(
    app: &Conclave,
    asker: &Asker,
    map: &str,
    mut change: impl FnMut(&mut Edit<'_, '_>) -> Result<R> + Send + 'static,
) -> Result<(R, Done)> {
    let (map, author) = (map.to_owned(), asker.author(app.now_ms()));
    asker
        .db
        .write(move |txn| {
            let mut edit = Edit::new(txn, &map, &author, History::Kept);
            let given = change(&mut edit)?;
            Ok::<_, ConclaveError>((given, edit.finish()?))
        })
        .await
}

/// The topic as it is now, after a write.
pub(super) async fn answer_of_write(
    asker: &Asker,
    map: &str,
    id: &str,
    status: StatusCode,
    done: Done,
) -> Answer {
    let (own_map, own_id) = (map.to_owned(), id.to_owned());
    let found = asker.db.read(Weight::Point, move |view| find(view, &own_map, &own_id)).await?;
    let Some(found) = found else { return Ok(answer::empty(StatusCode::NO_CONTENT)) };
    let tag = tag(found.version, found.sequence, &format!("json{}", asker.sight()));
    let topic = asker.filtered(found).topic;
    let response = answer::json(status, &document::topic(&topic, None));
    let response = answer::with_header(response, ETAG, &tag);
    let base = format!("/topics/v1/{map}/topic?id=");
    let response = match status {
        StatusCode::CREATED => answer::with_header(response, LOCATION, &topic_href_raw(&base, id)),
        _ => response,
    };
    Ok(match done.has_stale_labels {
        true => answer::with_header(
            response,
            http::HeaderName::from_static("x-stale-labels"),
            "many associations point here; POST associations/labels brings their labels up to date",
        ),
        false => response,
    })
}

async fn create(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_edit()?;
    let map = map_name(&map)?.to_owned();
    let value = app.json(&headers, body).await?;
    let id = match value.get("id") {
        None | Some(Value::Null) => app.new_uuid(),
        Some(Value::String(id)) => id.clone(),
        Some(_) => return Err(ConclaveError::bad_request("topic: id is no string")),
    };
    let topic = document::read_topic(&value, &map, &id, &mut || app.new_uuid())?;
    let ((), done) = write(&app, &asker, &map, move |edit| edit.create(topic.clone())).await?;
    answer_of_write(&asker, &map, &id, StatusCode::CREATED, done).await
}

async fn remove(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    asker.may_edit()?;
    let (map, id) = (map_name(&map)?.to_owned(), params.required("id")?.to_owned());
    let (with_pointing, condition) = (params.0.is_set("pointing"), Condition::of(&headers));
    write(&app, &asker, &map, move |edit| {
        let version = edit.version(&id)?;
        condition.check(version)?;
        if with_pointing {
            edit.remove_pointing(&id)?;
        }
        edit.remove(&id)
    })
    .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Ids and labels of topics, in id order.
async fn list(State(_): State<Conclave>, asker: Asker, Path(map): Path<String>, params: Params) -> Answer {
    asker.may_read()?;
    let map = map_name(&map)?.to_owned();
    let limit = params.limit()?;
    let (prefix, after) = (params.0.text("prefix").to_owned(), params.0.text("after").to_owned());
    let mut found = asker
        .db
        .read(Weight::Scan, move |view| {
            let low = if after.is_empty() {
                End::Included(key(&map, &prefix).into())
            } else {
                End::Excluded(key(&map, &after).into())
            };
            let high = End::Excluded(after_prefix(&key(&map, &prefix)).into());
            let query = Query::filter(Expr::Range("key".into(), low, high))
                .sorted("key", Direction::Ascending)
                .window(0, u64::from(limit) + 1);
            listed(view, &query)
        })
        .await?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| has_more).map(|it| it.topic.id.clone());
    let items: Vec<Value> = found.into_iter().map(|it| item(&asker, it)).collect();
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": next})))
}

/// The first text that comes after all that begin with `prefix`.
pub(crate) fn after_prefix(prefix: &str) -> String {
    let mut out = prefix.to_owned();
    out.push(char::MAX);
    out
}

fn item(asker: &Asker, found: Found) -> Value {
    let topic = asker.filtered(found).topic;
    json!({"id": topic.id, "label": topic.label})
}

fn listed(view: &mut View<'_>, query: &Query) -> Result<Vec<Found>> {
    view.find(&TOPIC, query)?
        .into_iter()
        .map(|it| Ok(Found { topic: Topic::stored(&it.body)?, version: it.version, sequence: it.sequence }))
        .collect()
}

/// Topics whose label begins with the text, then those that hold its words.
pub(crate) async fn find_topics(asker: &Asker, map: &str, text: &str, limit: u32) -> Result<Vec<Found>> {
    let (map, text) = (map.to_owned(), text.trim().to_owned());
    let limit = limit.min(SEARCH_LIMIT_MAX);
    asker
        .db
        .read(Weight::Scan, move |view| {
            let mut out = labelled(view, &map, &text, limit)?;
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            if (out.len() as u32) < limit && !words.is_empty() {
                // Each word must be there: they are asked for as phrases of one word.
                let query = TextQuery { phrases: words, ..TextQuery::default() };
                let filter = Expr::Is("map".into(), map.as_str().into()).and(Expr::Text(query));
                for it in listed(view, &Query::filter(filter).window(0, u64::from(limit)))? {
                    if !out.iter().any(|known| known.topic.id == it.topic.id) {
                        out.push(it);
                    }
                }
            }
            out.truncate(limit as usize);
            Ok::<_, ConclaveError>(out)
        })
        .await
}

/// Topics whose label begins with the text, in the order of labels, without regard to case and accents.
pub(crate) fn labelled(view: &mut View<'_>, map: &str, text: &str, limit: u32) -> Result<Vec<Found>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let folded = pinakes_store::fold(text);
    let low = End::Included(Cell::Folded(folded.clone()));
    let high = End::Excluded(Cell::Folded(after_prefix(&folded)));
    let filter = Expr::Is("map".into(), map.into()).and(Expr::Range("label".into(), low, high));
    let query = Query::filter(filter).sorted("label", Direction::Ascending).window(0, u64::from(limit));
    listed(view, &query)
}

async fn search(State(_): State<Conclave>, asker: Asker, Path(map): Path<String>, params: Params) -> Answer {
    asker.may_read()?;
    let map = map_name(&map)?;
    let limit = params.limit()?;
    let scope = params.0.get("scope");
    let found = match params.0.is_set("labels") {
        true => {
            let (map, text) = (map.to_owned(), params.required("q")?.to_owned());
            asker.db.read(Weight::Scan, move |view| labelled(view, &map, &text, limit)).await?
        }
        false => find_topics(&asker, map, params.required("q")?, limit).await?,
    };
    let items: Vec<Value> = found
        .into_iter()
        .map(|it| asker.filtered(it).topic.within(scope))
        .map(|it| json!({"id": it.id, "label": it.label, "description": it.get("default", "description")}))
        .collect();
    Ok(answer::json(StatusCode::OK, &json!({"items": items})))
}

/// Ids of topics, chosen at random: the first ones after random points of the order in which they were made.
async fn random(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Answer {
    asker.may_read()?;
    let map = map_name(&map)?.to_owned();
    let wanted = params.0.get("n").map_or(Ok(1), str::parse::<usize>);
    let wanted = wanted.ok().filter(|it| (1..=10_000).contains(it));
    let wanted = wanted.ok_or_else(|| ConclaveError::bad_request("n is a number from 1 to 10000"))?;
    let mut seed = u64::from_le_bytes(app.context.entropy().bytes::<8>()) | 1;
    let ids = asker
        .db
        .read(Weight::Scan, move |view| {
            let filter = Expr::Is("map".into(), map.as_str().into());
            let n_topics = view.count(&TOPIC, &filter)?;
            let mut out = Vec::with_capacity(wanted);
            for _ in 0..wanted.min(usize::try_from(n_topics).unwrap_or(usize::MAX)) {
                // xorshift: which topics are shown is no secret.
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let query = Query::filter(filter.clone()).window(seed % n_topics, 1);
                out.extend(listed(view, &query)?.into_iter().map(|it| it.topic.id));
            }
            Ok::<_, ConclaveError>(out)
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"ids": ids})))
}

/// The topic of a subject identifier, subject locator or item identifier.
async fn by_identity(
    State(_): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Answer {
    asker.may_read()?;
    let map = map_name(&map)?.to_owned();
    let schemes = [("si", SUBJECT_IDENTIFIER), ("sl", SUBJECT_LOCATOR), ("ii", ITEM_IDENTIFIER)];
    let asked = schemes.into_iter().find_map(|(name, scheme)| Some((scheme, params.0.get(name)?.to_owned())));
    let (scheme, iri) = asked.ok_or_else(|| ConclaveError::bad_request("one of si, sl and ii is needed"))?;
    let value = identity(&map, &iri);
    let found = asker.db.read(Weight::Point, move |view| view.by_identifier(scheme, &value)).await?;
    let id = found.into_iter().find(|it| it.0 == TOPIC.name);
    let id = id.and_then(|(_, id)| Some(id.split_once('/')?.1.to_owned()));
    let id = id.ok_or_else(|| ConclaveError::not_found(format!("no topic of the map has {iri}")))?;
    Ok(answer::json(StatusCode::OK, &json!({"id": id})))
}

/// The topics about a record of any dialect: those with its identifier.
async fn about(State(_): State<Conclave>, asker: Asker, Path(map): Path<String>, params: Params) -> Answer {
    asker.may_read()?;
    let map = map_name(&map)?.to_owned();
    let (scheme, value) = (params.required("scheme")?.to_owned(), params.required("value")?.to_owned());
    let found = asker
        .db
        .read(Weight::Scan, move |view| {
            let own = format!("{map}/");
            let named = view.by_identifier(&scheme, &value)?;
            let keys = named.into_iter().filter(|it| it.0 == TOPIC.name && it.1.starts_with(&own));
            let keys: Vec<String> = keys.map(|it| it.1).take(1000).collect();
            let mut out = Vec::new();
            for it in view.get_many(&TOPIC, &keys)?.into_iter().flatten() {
                let topic = Topic::stored(&it.body)?;
                out.push(Found { topic, version: it.version, sequence: it.sequence });
            }
            Ok::<_, ConclaveError>(out)
        })
        .await?;
    let items: Vec<Value> = found.into_iter().map(|it| item(&asker, it)).collect();
    Ok(answer::json(StatusCode::OK, &json!({"items": items})))
}

/// Makes one topic of two; with `dry=1` says what that would do.
async fn merge(State(app): State<Conclave>, asker: Asker, Path(map): Path<String>, params: Params) -> Answer {
    asker.may_edit()?;
    let map = map_name(&map)?.to_owned();
    let (from, into) = (params.required("from")?.to_owned(), params.required("into")?.to_owned());
    let is_dry = params.0.is_set("dry");
    let author = asker.author(app.now_ms());
    let (done, topic) = asker
        .db
        .write(move |txn| {
            let mut edit = Edit::new(txn, &map, &author, History::Kept);
            edit.merge(&from, &into)?;
            let topic = edit.get(&into)?.map(|it| document::topic(it, None));
            let done = if is_dry { edit.tally() } else { edit.finish()? };
            Ok::<_, ConclaveError>((done, topic))
        })
        .await?;
    let body = json!({
        "dry": is_dry, "written": done.n_written, "removed": done.n_removed, "topic": topic,
    });
    Ok(answer::json(StatusCode::OK, &body))
}

async fn stats(State(_): State<Conclave>, asker: Asker, Path(map): Path<String>) -> Answer {
    asker.may_read()?;
    let map = map_name(&map)?.to_owned();
    let n_topics = asker
        .db
        .read(Weight::Scan, move |view| view.count(&TOPIC, &Expr::Is("map".into(), map.as_str().into())))
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"topics": n_topics})))
}

async fn features() -> Answer {
    let formats: Vec<&str> = pinakes_topicmap::Format::ALL.iter().map(|it| it.0).collect();
    let body = json!({
        "features": ["IdentityEnumeration", "PointingTopics", "FullText", "Formats"], "formats": formats,
    });
    Ok(answer::json(StatusCode::OK, &body))
}

/// The HTML of a text: what the editor's preview asks for.
async fn render(State(app): State<Conclave>, asker: Asker, headers: HeaderMap, body: Body) -> Answer {
    asker.may_read()?;
    let value = app.json(&headers, body).await?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let base = match text("linkBase") {
        "" => "/t/default/",
        base => base,
    };
    let html = Resolver { link_base: base }.render(text("behaviour"), text("text"));
    let html =
        html.ok_or_else(|| ConclaveError::bad_request("behaviour is none of markdown, wiki, text and html"))?;
    Ok(answer::bytes(StatusCode::OK, crate::pages::HTML, html))
}
