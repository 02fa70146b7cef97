//! Who points at a topic, and where its own arcs lead.

use std::collections::BTreeMap;

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{View, Weight};
use serde_json::{Value, json};

use super::{Answer, cursor, cursor_parts};
use crate::app::{Conclave, Params};
use crate::call::Reading;
use crate::document;
use crate::edit::range;
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
    pub(super) fn of(params: &Params) -> Which {
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

    /// The range of links in which all that are meant lie.
    fn range(&self, map: &str, reference: &str) -> (String, String) {
        let prefix = self.prefix(map, reference);
        match prefix.ends_with(UNIT) {
            true => range(&prefix),
            false => (prefix.clone(), format!("{prefix}\u{1}")),
        }
    }
}

/// Arcs of a topic that are meant, by id, after one; and the id after which the rest comes.
pub(super) fn page_of_arcs<'t>(
    topic: &'t Topic,
    which: &Which,
    after: &str,
    limit: usize,
) -> (Vec<&'t Arc>, Option<String>) {
    let is_meant = |it: &&Arc| which.takes(&it.ty, &it.role, &it.scope) && after < it.id.as_str();
    let mut meant: Vec<&Arc> = topic.arcs.iter().filter(is_meant).collect();
    meant.sort_by(|it, other| it.id.cmp(&other.id));
    let has_more = meant.len() > limit;
    meant.truncate(limit);
    let next = meant.last().filter(|_| has_more).map(|it| it.id.clone());
    (meant, next)
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
    let (low, high) = which.range(map, reference);
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

/// How many links of those that are meant there are that a reader may see; up to [`COUNTED_MAX`] are looked at.
fn count(view: &mut View<'_>, (map, id): (&str, &str), which: &Which, call: &Reading) -> Result<usize> {
    let (low, high) = which.range(map, id);
    let most = u32::try_from(COUNTED_MAX).unwrap_or(u32::MAX);
    let rows = view.links_within(&TOPIC, POINTS, (&low, &high), (&low, ""), most)?;
    let takes = |target: &str| {
        let parts: Vec<&str> = target.split(UNIT).skip(1).collect();
        matches!(parts.as_slice(), [ty, role, scope] if which.takes(ty, role, scope) && call.asker.sees(scope))
    };
    Ok(rows.iter().filter(|it| takes(&it.0)).count())
}

/// What the items of a list of pointing topics hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Ids,
    Labels,
    Topics,
}

impl Shown {
    fn of(params: &Params) -> Result<Shown> {
        match params.0.get("view").unwrap_or("labels") {
            "ids" => Ok(Shown::Ids),
            "labels" => Ok(Shown::Labels),
            "topics" => Ok(Shown::Topics),
            other => {
                Err(ConclaveError::bad_request(format!("view is {other:?}; expected ids, labels or topics")))
            }
        }
    }
}

pub(super) async fn pointing(call: Reading) -> Answer {
    let id = call.params.0.get("id").or(call.params.0.get("reference"));
    let id = id.ok_or_else(|| ConclaveError::bad_request("the parameter id is missing"))?.to_owned();
    let (which, limit) = (Which::of(&call.params), call.params.limit()? as usize);
    let shown = Shown::of(&call.params)?;
    match call.params.0.get("order") {
        None | Some("id") => {}
        Some("timestamp") => return leaves(&call, &id, which).await,
        Some(other) => {
            return Err(ConclaveError::bad_request(format!("order is {other:?}; expected id or timestamp")));
        }
    }
    let after = call.params.0.get("after").map(str::to_owned);
    let (is_resolved, wants_count) = (call.params.0.is_set("resolve"), call.params.0.is_set("count"));
    let (reader, wanted) = (call.clone(), id.clone());
    let (items, next, total) = call
        .read(Weight::Scan, move |view, map| {
            let page = pointing_page(view, (map, &wanted), &which, after.as_deref(), limit)?;
            let total = wants_count.then(|| count(view, (map, &wanted), &which, &reader)).transpose()?;
            let mut items = Vec::with_capacity(page.links.len());
            let keys: Vec<String> = page.links.iter().map(|it| key(map, &it.owner)).collect();
            let records = if shown == Shown::Ids { Vec::new() } else { view.get_many(&TOPIC, &keys)? };
            let base = reader.link_base();
            let resolver = Resolver::new(&base);
            for (at, link) in page.links.iter().enumerate().filter(|it| reader.asker.sees(&it.1.scope)) {
                if shown == Shown::Ids {
                    items.push(json!({
                        "topic": link.owner, "type": link.ty, "role": link.role, "scope": link.scope,
                    }));
                    continue;
                }
                let Some(record) = records.get(at).and_then(Option::as_ref) else { continue };
                let mut topic = Topic::stored(&record.body)?;
                topic.retain(|it| reader.asker.sees(it));
                let is_it = |it: &&Arc| {
                    it.reference == wanted
                        && (&it.ty, &it.role, &it.scope) == (&link.ty, &link.role, &link.scope)
                };
                let owner = match shown {
                    Shown::Topics => {
                        let whole = topic.clone().within(which.scope.as_deref());
                        document::topic(&whole, is_resolved.then_some(&resolver))
                    }
                    _ => json!({"id": topic.id, "label": topic.label}),
                };
                for arc in topic.arcs.iter().filter(is_it) {
                    items.push(json!({"association": document::arc(&topic.id, arc), "topic": owner}));
                }
            }
            Ok((items, page.next, total))
        })
        .await?;
    let mut body = json!({"id": id, "items": items, "next": next});
    if let Some(total) = total {
        body["total"] = json!(total);
    }
    Ok(answer::json(StatusCode::OK, &body))
}

/// Pointing topics by their metadata `timestamp`, newest first: what blogs and comments ask for.
async fn leaves(call: &Reading, id: &str, which: Which) -> Answer {
    let (id, limit) = (id.to_owned(), call.params.limit()? as usize);
    let is_resolved = call.params.0.is_set("resolve");
    let reader = call.clone();
    let items = call
        .read(Weight::Scan, move |view, map| {
            let mut found: Vec<(String, Topic)> = Vec::new();
            let mut after = None;
            loop {
                let page = pointing_page(view, (map, &id), &which, after.as_deref(), 1_000)?;
                let seen = page.links.iter().filter(|it| reader.asker.sees(&it.scope));
                let keys: Vec<String> = seen.map(|it| key(map, &it.owner)).collect();
                for record in view.get_many(&TOPIC, &keys)?.into_iter().flatten() {
                    let mut topic = Topic::stored(&record.body)?;
                    topic.retain(|it| reader.asker.sees(it));
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
            let base = reader.link_base();
            let resolver = Resolver::new(&base);
            let show = |it: &Topic| document::topic(it, is_resolved.then_some(&resolver));
            Ok(found.iter().map(|it| show(&it.1)).collect::<Vec<Value>>())
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": null})))
}

async fn related(call: Reading) -> Answer {
    let topic = call.topic(call.params.required("id")?).await?;
    let limit = call.params.limit()? as usize;
    let (arcs, next) = page_of_arcs(&topic, &Which::of(&call.params), call.params.0.text("after"), limit);
    let with_topics = Shown::of(&call.params)? == Shown::Topics;
    let mut items: Vec<Value> =
        arcs.iter().map(|it| json!({"association": document::arc(&topic.id, it)})).collect();
    if with_topics {
        let keys: Vec<String> = arcs.iter().map(|it| key(&call.map, &it.reference)).collect();
        let records = call.read(Weight::Scan, move |view, _| Ok(view.get_many(&TOPIC, &keys)?)).await?;
        for (item, record) in items.iter_mut().zip(records) {
            let Some(record) = record else { continue };
            let mut other = Topic::stored(&record.body)?;
            other.retain(|it| call.asker.sees(it));
            item["topic"] = document::topic(&other, None);
        }
    }
    Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": next})))
}

/// Arcs of a topic by type and role.
async fn navigation(call: Reading) -> Answer {
    let topic = call.topic(call.params.required("id")?).await?;
    Ok(answer::json(StatusCode::OK, &navigation_view(&topic)))
}

/// Type -> role -> arcs.
pub(crate) fn navigation_view(topic: &Topic) -> Value {
    let mut out: BTreeMap<&str, BTreeMap<&str, Vec<Value>>> = BTreeMap::new();
    for arc in &topic.arcs {
        out.entry(&arc.ty).or_default().entry(&arc.role).or_default().push(document::arc(&topic.id, arc));
    }
    json!(out)
}
