//! Who points at a topic, and where its own arcs lead.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{View, Weight};
use serde_json::{Value, json};

use super::{Answer, cursor, cursor_parts};
use crate::app::{Asker, Conclave, Params, map_name};
use crate::document;
use crate::edit::{find, range};
use crate::error::{ConclaveError, Result};
use crate::kinds::{POINTS, TOPIC, UNIT};
use crate::markup::Resolver;
use crate::model::{Arc, Topic, key, target};

/// Ranges of links that one page may look into.
const SEEKS_MAX: usize = 1_000;
/// Links that a count looks at.
const COUNTED_MAX: usize = 1_000_000;

pub(super) fn routes() -> Router<Conclave> {
    Router::new()
        .route("/topics/v1/{map}/pointing", get(pointing))
        .route("/topics/v1/{map}/related", get(related))
        .route("/topics/v1/{map}/navigation", get(navigation))
}

/// Which arcs are meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Which {
    pub(crate) ty: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) scope: Option<String>,
}

impl Which {
    fn of(params: &Params) -> Which {
        let text = |name: &str| params.0.get(name).map(str::to_owned);
        Which { ty: text("type"), role: text("role"), scope: text("scope") }
    }

    fn takes(&self, ty: &str, role: &str, scope: &str) -> bool {
        let agrees = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|it| it == value);
        agrees(&self.ty, ty) && agrees(&self.role, role) && agrees(&self.scope, scope)
    }

    /// As much of the link as is known from its beginning.
    fn prefix(&self, map: &str, reference: &str) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for part in [&self.ty, &self.role, &self.scope] {
            let Some(part) = part else { break };
            parts.push(part);
        }
        // All three: the link itself; else what begins so.
        if parts.len() < 3 {
            parts.push("");
        }
        target(map, reference, &parts)
    }
}

/// A page of links at a topic: type, role, scope and owner of each, and where the next page begins.
pub(crate) struct Page {
    pub(crate) links: Vec<Link>,
    pub(crate) next: Option<String>,
}

/// One link.
pub(crate) struct Link {
    pub(crate) ty: String,
    pub(crate) role: String,
    pub(crate) scope: String,
    /// Id of the topic that owns the arc.
    pub(crate) owner: String,
}

/// Links at a topic, by type, role, scope and owner. Those of one type, of one type and role, or of all are one range
/// of the index; of one role alone they are a range for each type that there is.
pub(crate) fn pointing_page(
    view: &mut View<'_>,
    (map, reference): (&str, &str),
    which: &Which,
    after: Option<&str>,
    limit: usize,
) -> Result<Page> {
    let prefix = which.prefix(map, reference);
    let (low, high) = match prefix.ends_with(UNIT) {
        true => range(&prefix),
        false => (prefix.clone(), format!("{prefix}\u{1}")),
    };
    let mut at = match after {
        None => (low.clone(), String::new()),
        Some(text) => {
            let parts = cursor_parts(text)?;
            let [target, id] = parts.as_slice() else {
                return Err(ConclaveError::bad_request("after is not what an earlier answer gave as next"));
            };
            (target.clone(), id.clone())
        }
    };
    let mut links: Vec<Link> = Vec::new();
    for _ in 0..SEEKS_MAX {
        let most = u32::try_from(limit + 1 - links.len()).unwrap_or(1);
        let rows = view.links_within(&TOPIC, POINTS, (&low, &high), (&at.0, &at.1), most)?;
        let n_rows = rows.len();
        let mut is_other = false;
        for (target, id) in rows {
            let mut parts = target.split(UNIT).skip(1);
            let (ty, role, scope) =
                (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
            if !which.takes(ty, role, scope) {
                // On to the next target: nothing else of this one is meant.
                at = (target, char::MAX.to_string());
                is_other = true;
                break;
            }
            if links.len() == limit {
                return Ok(Page { links, next: Some(cursor(&[&at.0, &at.1])) });
            }
            let owner = id.split_once('/').map_or("", |it| it.1).to_owned();
            links.push(Link { ty: ty.to_owned(), role: role.to_owned(), scope: scope.to_owned(), owner });
            at = (target, id);
        }
        if !is_other && n_rows < most as usize {
            return Ok(Page { links, next: None });
        }
    }
    Ok(Page { links, next: Some(cursor(&[&at.0, &at.1])) })
}

pub(super) async fn pointing(
    State(_): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Answer {
    asker.may_read()?;
    let map = map_name(&map)?.to_owned();
    let id = params.0.get("id").or(params.0.get("reference"));
    let id = id.ok_or_else(|| ConclaveError::bad_request("the parameter id is missing"))?.to_owned();
    let (which, limit) = (Which::of(&params), params.limit()? as usize);
    let after = params.0.get("after").map(str::to_owned);
    let view_as = params.0.get("view").unwrap_or("labels").to_owned();
    if !matches!(view_as.as_str(), "ids" | "labels" | "topics") {
        return Err(ConclaveError::bad_request(format!(
            "view is {view_as:?}; expected ids, labels or topics"
        )));
    }
    if params.0.get("order").is_some_and(|it| it != "id") {
        return leaves(&asker, &map, &id, which, &params).await;
    }
    let is_resolved = params.0.is_set("resolve");
    let wants_count = params.0.is_set("count");
    let reader = asker.clone();
    let (items, next, total) = asker
        .db
        .read(Weight::Scan, move |view| {
            let page = pointing_page(view, (&map, &id), &which, after.as_deref(), limit)?;
            let mut total = None;
            if wants_count {
                let prefix = which.prefix(&map, &id);
                let (low, high) = if prefix.ends_with(UNIT) {
                    range(&prefix)
                } else {
                    (prefix.clone(), format!("{prefix}\u{1}"))
                };
                let most = u32::try_from(COUNTED_MAX).unwrap_or(u32::MAX);
                let rows = view.links_within(&TOPIC, POINTS, (&low, &high), (&low, ""), most)?;
                let takes = |target: &str| {
                    let parts: Vec<&str> = target.split(UNIT).skip(1).collect();
                    matches!(parts.as_slice(), [ty, role, scope] if which.takes(ty, role, scope))
                };
                total = Some(rows.iter().filter(|it| takes(&it.0)).count());
            }
            let mut items = Vec::with_capacity(page.links.len());
            let keys: Vec<String> = page.links.iter().map(|it| key(&map, &it.owner)).collect();
            let records = if view_as == "ids" { Vec::new() } else { view.get_many(&TOPIC, &keys)? };
            for (at, link) in page.links.iter().enumerate() {
                if !reader.sees(&link.scope) {
                    continue;
                }
                if view_as == "ids" {
                    items.push(json!({
                        "topic": link.owner, "type": link.ty, "role": link.role, "scope": link.scope,
                    }));
                    continue;
                }
                let Some(record) = records.get(at).and_then(Option::as_ref) else { continue };
                let mut topic = Topic::stored(&record.body)?;
                topic.retain(|it| reader.sees(it));
                let is_it = |it: &&Arc| {
                    it.reference == id && (&it.ty, &it.role, &it.scope) == (&link.ty, &link.role, &link.scope)
                };
                for arc in topic.arcs.iter().filter(is_it) {
                    let shown = match view_as.as_str() {
                        "topics" => {
                            let scope = which.scope.as_deref();
                            let base = format!("/t/{map}/");
                            let resolver = Resolver { link_base: &base };
                            let whole = topic.clone().within(scope);
                            document::topic(&whole, is_resolved.then_some(&resolver))
                        }
                        _ => json!({"id": topic.id, "label": topic.label}),
                    };
                    items.push(json!({"association": document::arc(&topic.id, arc), "topic": shown}));
                }
            }
            Ok::<_, ConclaveError>((items, page.next, total))
        })
        .await?;
    let mut body = json!({"id": params.0.get("id"), "items": items, "next": next});
    if let Some(total) = total {
        body["total"] = json!(total);
    }
    Ok(answer::json(StatusCode::OK, &body))
}

/// Pointing topics by their metadata `timestamp`, newest first: what blogs and comments ask for.
async fn leaves(asker: &Asker, map: &str, id: &str, which: Which, params: &Params) -> Answer {
    let (map, id, limit) = (map.to_owned(), id.to_owned(), params.limit()? as usize);
    let is_resolved = params.0.is_set("resolve");
    let reader = asker.clone();
    let items = asker
        .db
        .read(Weight::Scan, move |view| {
            let mut found: Vec<(String, Topic)> = Vec::new();
            let mut after = None;
            loop {
                let page = pointing_page(view, (&map, &id), &which, after.as_deref(), 1_000)?;
                let keys: Vec<String> = page.links.iter().map(|it| key(&map, &it.owner)).collect();
                for record in view.get_many(&TOPIC, &keys)?.into_iter().flatten() {
                    let mut topic = Topic::stored(&record.body)?;
                    topic.retain(|it| reader.sees(it));
                    let stamp = topic.metadata.iter().find(|it| it.name == "timestamp");
                    found.push((stamp.map_or(String::new(), |it| it.value.clone()), topic));
                }
                // Of those seen so far only the newest can be in the answer.
                found.sort_by(|it, other| other.0.cmp(&it.0).then_with(|| it.1.id.cmp(&other.1.id)));
                found.dedup_by(|it, kept| it.1.id == kept.1.id);
                found.truncate(limit);
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            let base = format!("/t/{map}/");
            let resolver = Resolver { link_base: &base };
            let show = |it: &Topic| document::topic(it, is_resolved.then_some(&resolver));
            Ok::<_, ConclaveError>(found.iter().map(|it| show(&it.1)).collect::<Vec<Value>>())
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": null})))
}

async fn related(State(_): State<Conclave>, asker: Asker, Path(map): Path<String>, params: Params) -> Answer {
    asker.may_read()?;
    let (map, id) = (map_name(&map)?.to_owned(), params.required("id")?.to_owned());
    let (which, limit) = (Which::of(&params), params.limit()? as usize);
    let after = params.0.text("after").to_owned();
    let with_topics = params.0.get("view") == Some("topics");
    let reader = asker.clone();
    let (items, next) = asker
        .db
        .read(Weight::Scan, move |view| {
            let found = find(view, &map, &id)?;
            let found = found.ok_or_else(|| ConclaveError::not_found(format!("there is no topic {id:?}")))?;
            let topic = reader.filtered(found).topic;
            let mut meant: Vec<&Arc> = topic
                .arcs
                .iter()
                .filter(|it| which.takes(&it.ty, &it.role, &it.scope) && after < it.id)
                .collect();
            meant.sort_by(|it, other| it.id.cmp(&other.id));
            let next = meant.get(limit).and(meant.get(limit.wrapping_sub(1))).map(|it| it.id.clone());
            meant.truncate(limit);
            let keys: Vec<String> = meant.iter().map(|it| key(&map, &it.reference)).collect();
            let records = if with_topics { view.get_many(&TOPIC, &keys)? } else { Vec::new() };
            let mut items = Vec::new();
            for (at, arc) in meant.iter().enumerate() {
                let mut item = json!({"association": document::arc(&topic.id, arc)});
                if let Some(record) = records.get(at).and_then(Option::as_ref) {
                    let mut other = Topic::stored(&record.body)?;
                    other.retain(|it| reader.sees(it));
                    item["topic"] = document::topic(&other, None);
                }
                items.push(item);
            }
            Ok::<_, ConclaveError>((items, next))
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": next})))
}

/// Arcs of a topic by type and role.
async fn navigation(
    State(_): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Answer {
    asker.may_read()?;
    let (map, id) = (map_name(&map)?.to_owned(), params.required("id")?.to_owned());
    let name = id.clone();
    let found = asker.db.read(Weight::Point, move |view| find(view, &map, &id)).await?;
    let found = found.ok_or_else(|| ConclaveError::not_found(format!("there is no topic {name:?}")))?;
    Ok(answer::json(StatusCode::OK, &navigation_view(&asker.filtered(found).topic)))
}

/// Type -> role -> arcs.
pub(crate) fn navigation_view(topic: &Topic) -> Value {
    let mut out: BTreeMap<&str, BTreeMap<&str, Vec<Value>>> = BTreeMap::new();
    for arc in &topic.arcs {
        out.entry(&arc.ty).or_default().entry(&arc.role).or_default().push(document::arc(&topic.id, arc));
    }
    json!(out)
}
