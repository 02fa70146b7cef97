//! The topics that the arcs of a topic point at, and what lists of neighbours in either direction have in common.

use std::collections::BTreeMap;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{View, Weight};
use serde_json::{Value, json};

use crate::api::position::{cursor, cursor_parts};
use crate::app::{Asker, Conclave, Params};
use crate::call::Answer;
use crate::call::Reading;
use crate::dated;
use crate::document;
use crate::edit::range;
use crate::error::{ConclaveError, Result};
use crate::kinds::{POINTS, TOPIC, UNIT};
use crate::markup::Resolver;
use crate::model::{Arc, Topic, key, target};
use crate::names::DEFAULT_SCOPE;

/// Maximum number of link ranges that one page reads.
const SEEKS_MAX: usize = 1_000;
/// Topics read per step when the newest of those that a topic points at are sought.
const NEWEST_STEP: usize = 1_000;

pub(super) fn routes() -> Router<Conclave> {
    Router::new()
        .route("/topics/v1/{map}/related", get(related))
        .route("/topics/v1/{map}/navigation", get(navigation))
}

/// Filter of arcs.
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

    pub(super) fn takes(&self, ty: &str, role: &str, scope: &str) -> bool {
        let agrees = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|it| it == value);
        agrees(&self.ty, ty) && agrees(&self.role, role) && agrees(&self.scope, scope)
    }

    /// Returns the known beginning of the link target.
    fn prefix(&self, map: &str, reference: &str) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for part in [&self.ty, &self.role, &self.scope] {
            let Some(part) = part else { break };
            parts.push(part);
        }
        // With all three parts this is the link itself, otherwise a prefix.
        if parts.len() < 3 {
            parts.push("");
        }
        target(map, reference, &parts)
    }

    /// Returns the range of links in which all matching ones lie.
    pub(super) fn range(&self, map: &str, reference: &str) -> (String, String) {
        let prefix = self.prefix(map, reference);
        match prefix.ends_with(UNIT) {
            true => range(&prefix),
            false => (prefix.clone(), format!("{prefix}\u{1}")),
        }
    }
}

/// Returns the matching arcs of a topic, by id, after a given one; and the id after which the next page begins.
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

/// A page of links that point at a topic: type, role, scope and owner of each, and where the next page begins.
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
    /// Date of the owner, backwards, if the link says it.
    pub(super) date: Option<String>,
}

impl Link {
    /// Returns whether the link comes from this arc of its owner, as far as type, role and scope tell.
    pub(super) fn is_of(&self, arc: &Arc) -> bool {
        (&arc.ty, &arc.role, &arc.scope) == (&self.ty, &self.role, &self.scope)
    }

    /// Returns whether its owner, reduced to what the reader may see, has the date that the link says.
    fn has_date_of(&self, owner: &Topic) -> bool {
        self.date.as_ref().is_none_or(|it| *it == dated::backwards(owner.date(&self.scope)))
    }
}

/// Returns type, role and scope from the target of a link.
pub(super) fn parts_of(target: &str) -> [&str; 3] {
    let mut parts = target.split(UNIT).skip(1);
    std::array::from_fn(|_| parts.next().unwrap_or(""))
}

/// Returns the links to a topic that the reader may see, ordered by type, role, scope and owner. Without a filter, or
/// filtered by type, or by type and role, they are one range of the index; filtered by role alone they are one range
/// per existing type. Hidden links do not shorten a page, and no page begins at one, because `next` discloses where it
/// begins.
pub(crate) fn pointing_page(
    view: &mut View<'_>,
    (map, reference): (&str, &str),
    which: &Which,
    asker: &Asker,
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
    // The last position that may be disclosed to the reader.
    let mut told = at.clone();
    let mut n_seeks = 0;
    while n_seeks < SEEKS_MAX {
        let most = u32::try_from(limit + 1 - links.len()).unwrap_or(1);
        let rows = view.links_within(&TOPIC, POINTS, (&low, &high), (&at.0, &at.1), most)?;
        let n_rows = rows.len();
        let mut is_other = false;
        for (target, id) in rows {
            let [ty, role, scope] = parts_of(&target);
            let is_seen = asker.sees(scope);
            if !is_seen || !which.takes(ty, role, scope) {
                // Skips to the next target: no other link of this one matches. No page ends at a hidden link.
                at = (target, char::MAX.to_string());
                if is_seen {
                    told.clone_from(&at);
                    n_seeks += 1;
                }
                is_other = true;
                break;
            }
            if links.len() == limit {
                return Ok(Page { links, next: Some(cursor(&[&told.0, &told.1])) });
            }
            let owner = id.split_once('/').map_or("", |it| it.1).to_owned();
            let [ty, role, scope] = [ty, role, scope].map(str::to_owned);
            links.push(Link { ty, role, scope, owner, date: None });
            at = (target, id);
            told.clone_from(&at);
        }
        if !is_other && n_rows < most as usize {
            return Ok(Page { links, next: None });
        }
    }
    Ok(Page { links, next: Some(cursor(&[&told.0, &told.1])) })
}

/// What the items of a list of pointing topics contain.
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

/// Order of neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By id, in pages.
    Id,
    /// By the date of the topics, newest first: for blogs and comments. One page.
    Timestamp,
}

impl Order {
    fn of(params: &Params) -> Result<Order> {
        match params.0.get("order").unwrap_or("id") {
            "id" => Ok(Order::Id),
            "timestamp" => Ok(Order::Timestamp),
            other => Err(ConclaveError::bad_request(format!("order is {other:?}; expected id or timestamp"))),
        }
    }
}

/// Parameters of a list of neighbours.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) id: String,
    pub(super) which: Which,
    pub(super) limit: usize,
    shown: Shown,
    pub(super) order: Order,
    is_resolved: bool,
    pub(super) is_counted: bool,
    pub(super) after: Option<String>,
}

impl Wanted {
    pub(super) fn of(params: &Params) -> Result<Wanted> {
        let id = params.0.get("id").or(params.0.get("reference"));
        let id = id.ok_or_else(|| ConclaveError::bad_request("the parameter id is missing"))?.to_owned();
        let order = Order::of(params)?;
        let shown = match (order, params.0.get("view")) {
            // Clients that ask for the newest topics want to display them.
            (Order::Timestamp, None) => Shown::Topics,
            _ => Shown::of(params)?,
        };
        Ok(Wanted {
            id,
            which: Which::of(params),
            limit: params.limit()? as usize,
            shown,
            order,
            is_resolved: params.0.is_set("resolve"),
            is_counted: params.0.is_set("count"),
            after: params.0.get("after").map(str::to_owned),
        })
    }

    /// Returns an arc with the topic at its other end, reduced to what the reader may see. Without a topic, the label
    /// is that of the arc.
    fn item(&self, parent: &str, arc: &Arc, other: Option<&Topic>, resolver: &Resolver<'_>) -> Value {
        let topic = match (self.shown, other) {
            (Shown::Topics, Some(other)) => {
                let whole = other.clone().within(self.which.scope.as_deref());
                document::topic(&whole, self.is_resolved.then_some(resolver))
            }
            (_, Some(other)) => json!({"id": other.id, "label": other.label}),
            (_, None) => json!({"id": arc.reference, "label": arc.label(DEFAULT_SCOPE)}),
        };
        json!({"association": document::arc(parent, arc), "topic": topic})
    }

    pub(super) fn answer(&self, items: Vec<Value>, next: Option<String>, total: Option<usize>) -> Response {
        let mut body = json!({"id": self.id});
        if let Some(total) = total {
            body["total"] = json!(total);
        }
        body["items"] = Value::Array(items);
        body["next"] = json!(next);
        answer::json(StatusCode::OK, &body)
    }
}

/// Returns the list items for some links, each with the id of its topic.
pub(super) fn pointing_items(
    view: &mut View<'_>,
    reader: &Reading,
    wanted: &Wanted,
    links: &[Link],
) -> Result<Vec<(String, Value)>> {
    if (wanted.shown, wanted.order) == (Shown::Ids, Order::Id) {
        let item = |it: &Link| {
            let value = json!({"topic": it.owner, "type": it.ty, "role": it.role, "scope": it.scope});
            (it.owner.clone(), value)
        };
        return Ok(links.iter().map(item).collect());
    }
    let keys: Vec<String> = links.iter().map(|it| key(&reader.map, &it.owner)).collect();
    let records = view.get_many(&TOPIC, &keys)?;
    let base = reader.link_base();
    let resolver = Resolver::new(&base).and_galleries(reader.galleries());
    let mut items = Vec::with_capacity(links.len());
    for (link, record) in links.iter().zip(records) {
        let Some(record) = record else { continue };
        let mut topic = Topic::stored(&record.body)?;
        topic.retain(|it| reader.asker.sees(it));
        let is_it = |it: &&Arc| it.reference == wanted.id && link.is_of(it);
        if !link.has_date_of(&topic) {
            continue;
        }
        for arc in topic.arcs.iter().filter(is_it) {
            let item = match wanted.shown {
                Shown::Ids => {
                    json!({"topic": link.owner, "type": link.ty, "role": link.role, "scope": link.scope})
                }
                _ => wanted.item(&topic.id, arc, Some(&topic), &resolver),
            };
            items.push((topic.id.clone(), item));
        }
    }
    Ok(items)
}

/// An item with its sort key: date and topic.
type Dated = (String, String, Value);

/// Keeps only the newest items seen so far.
fn keep_newest(found: &mut Vec<Dated>, limit: usize) {
    found.sort_by(|it, other| other.0.cmp(&it.0).then_with(|| it.1.cmp(&other.1)));
    found.truncate(limit);
}

async fn related(call: Reading) -> Answer {
    let wanted = Wanted::of(&call.params)?;
    let topic = call.topic(&wanted.id).await?;
    let is_meant = |it: &&Arc| wanted.which.takes(&it.ty, &it.role, &it.scope);
    let total = wanted.is_counted.then(|| topic.arcs.iter().filter(is_meant).count());
    let (arcs, next) = match wanted.order {
        Order::Id => {
            page_of_arcs(&topic, &wanted.which, wanted.after.as_deref().unwrap_or_default(), wanted.limit)
        }
        Order::Timestamp => (topic.arcs.iter().filter(is_meant).collect(), None),
    };
    if (wanted.shown, wanted.order) == (Shown::Ids, Order::Id) {
        let item =
            |it: &&Arc| json!({"topic": it.reference, "type": it.ty, "role": it.role, "scope": it.scope});
        let items = arcs.iter().map(item).collect();
        return Ok(wanted.answer(items, next, total));
    }
    let (parent, arcs): (String, Vec<Arc>) = (topic.id.clone(), arcs.into_iter().cloned().collect());
    let (reader, asked) = (call.clone(), wanted.clone());
    let items = call
        .read(Weight::Scan, move |view, map| {
            let base = reader.link_base();
            let resolver = Resolver::new(&base).and_galleries(reader.galleries());
            let mut found: Vec<Dated> = Vec::new();
            for step in arcs.chunks(NEWEST_STEP) {
                let keys: Vec<String> = step.iter().map(|it| key(map, &it.reference)).collect();
                for (arc, record) in step.iter().zip(view.get_many(&TOPIC, &keys)?) {
                    let other = record.map(|it| Topic::stored(&it.body)).transpose()?.map(|mut it| {
                        it.retain(|scope| reader.asker.sees(scope));
                        it
                    });
                    let date = other.as_ref().map_or("", |it| it.date(&arc.scope)).to_owned();
                    let item = match asked.shown {
                        Shown::Ids => {
                            json!({"topic": arc.reference, "type": arc.ty, "role": arc.role, "scope": arc.scope})
                        }
                        _ => asked.item(&parent, arc, other.as_ref(), &resolver),
                    };
                    found.push((date, arc.reference.clone(), item));
                }
                if asked.order == Order::Timestamp {
                    keep_newest(&mut found, asked.limit);
                }
            }
            Ok(found.into_iter().map(|it| it.2).collect::<Vec<Value>>())
        })
        .await?;
    Ok(wanted.answer(items, next, total))
}

/// Answers with the arcs of a topic by type and role.
async fn navigation(call: Reading) -> Answer {
    let topic = call.topic(call.params.required("id")?).await?;
    let topic = topic.within(call.params.0.get("scope"));
    Ok(answer::json(StatusCode::OK, &navigation_view(&topic)))
}

/// Returns arcs grouped by type and role.
pub(crate) fn navigation_view(topic: &Topic) -> Value {
    let mut out: BTreeMap<&str, BTreeMap<&str, Vec<Value>>> = BTreeMap::new();
    for arc in &topic.arcs {
        out.entry(&arc.ty).or_default().entry(&arc.role).or_default().push(document::arc(&topic.id, arc));
    }
    json!(out)
}
