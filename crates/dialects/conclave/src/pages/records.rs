//! The view state of Conclave's own addresses, as JSON and as XML (section 6 of the contract): the items of `records`,
//! or the one that the parameter `model-item` names.

use std::fmt::Write as _;
use std::time::Instant;

use axum::response::Response;
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;
use serde_json::{Map, Value, json};

use crate::api::navigation_view;
use crate::app::Asker;
use crate::call::Reading;
use crate::document;
use crate::error::{ConclaveError, Result};
use crate::markup::Resolver;
use crate::model::Topic;
use crate::text::push_escaped;

/// Bits of a user's mask: user, trusted user, moderator, administrator.
const MASK_USER: u32 = 1;
const MASK_TRUSTED: u32 = 2;
const MASK_MODERATOR: u32 = 4;
const MASK_ADMIN: u32 = 8;

/// The format of a view state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    Json,
    Xml,
}

/// The subject of a page of the original.
pub(super) struct About<'a> {
    /// The topic that is shown.
    pub(super) topic: Option<&'a str>,
    /// The arc of it that is being edited.
    pub(super) arc: Option<&'a str>,
    /// Whether the page creates a topic: an id is proposed for it.
    pub(super) makes_topic: bool,
    /// Whether the page creates an arc.
    pub(super) makes_arc: bool,
}

fn mask(asker: &Asker) -> u32 {
    if asker.caller.is_anonymous() {
        return 0;
    }
    let editor = if asker.is_editor() { MASK_TRUSTED | MASK_MODERATOR } else { 0 };
    let admin = if asker.is_administrator() { MASK_ADMIN } else { 0 };
    MASK_USER | editor | admin
}

/// Answers with the view state of a page.
pub(super) async fn answer(call: &Reading, notation: Notation, about: About<'_>) -> Result<Response> {
    let started = Instant::now();
    let topic = match about.topic {
        Some(id) => call.found(id).await?.map(|it| call.asker.filtered(it).topic),
        None => None,
    };
    let missing = about.topic.filter(|_| topic.is_none());
    let status = if missing.is_none() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let shown = call.params.0.pairs().filter(|it| !it.0.starts_with('_'));
    let flags: Vec<&str> = shown.clone().filter(|it| it.1.is_empty()).map(|it| it.0).collect();
    let params: Map<String, Value> =
        shown.filter(|it| !it.1.is_empty()).map(|it| (it.0.to_owned(), json!(it.1))).collect();
    let errors: Vec<String> = missing.iter().map(|id| format!("there is no topic {id:?}")).collect();
    let name = call.asker.caller.username().unwrap_or("anon");
    // Times would make the answers for one topic differ.
    let timers = match call.params.0.is_set("timer") {
        true => json!({"total": started.elapsed().as_millis().to_string()}),
        false => json!({}),
    };
    let mut records = json!({
        "messages": [], "errors": errors, "flags": flags, "timers": timers, "params": params,
        "user": {"id": name, "name": name, "mask": mask(&call.asker)},
    });
    let base = call.link_base();
    let resolver = Resolver::new(&base).and_galleries(call.galleries());
    if let Some(topic) = &topic {
        records["topic"] = document::topic(topic, Some(&resolver));
        records["navigation-view"] = navigation_view(topic);
        let arc = about.arc.and_then(|id| topic.arcs.iter().find(|it| it.id == id));
        if let Some(arc) = arc {
            records["assoc"] = document::arc(&topic.id, arc);
        }
    }
    if about.makes_topic {
        records["new-topic-id"] =
            json!(call.params.0.get("id").map_or_else(|| call.app.new_uuid(), str::to_owned));
    }
    if about.makes_arc {
        records["new-assoc-id"] = json!(call.app.new_uuid());
    }
    let item = call.params.0.get("model-item");
    if let Some(name) = item.filter(|it| records.get(*it).is_none()) {
        return Err(ConclaveError::not_found(match missing {
            Some(id) => format!("there is no topic {id:?}"),
            None => format!("the view state has no item {name:?}"),
        }));
    }
    Ok(match (notation, item) {
        (Notation::Json, Some(name)) => answer::json(status, &records[name]),
        (Notation::Json, None) => answer::json(status, &records),
        (Notation::Xml, _) => {
            let body = match (item, &topic) {
                (Some("topic"), Some(topic)) => document::topic_xml(topic, Some(&resolver)),
                _ => xml(&records, item, topic.as_ref(), &resolver),
            };
            answer::bytes(status, HeaderValue::from_static("text/xml; charset=utf-8"), body)
        }
    })
}

/// Returns `<records>` with an item for each value; the topic is written in its usual XML form.
fn xml(records: &Value, one: Option<&str>, topic: Option<&Topic>, resolver: &Resolver<'_>) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<records>");
    for (name, value) in records.as_object().into_iter().flatten() {
        if one.is_some_and(|it| it != name) {
            continue;
        }
        match (name.as_str(), topic) {
            ("topic", Some(topic)) => {
                let whole = document::topic_xml(topic, Some(resolver));
                let inner = whole.split_once('\n').map_or("", |it| it.1).trim();
                let _ = write!(out, "<item name=\"topic\">{inner}</item>");
            }
            _ => item(&mut out, Some(name), value),
        }
    }
    out.push_str("</records>\n");
    out
}

/// Writes simple values as the attribute `value`, lists as `<list>`, members by their names.
fn item(out: &mut String, name: Option<&str>, value: &Value) {
    out.push_str("<item");
    if let Some(name) = name {
        out.push_str(" name=\"");
        push_escaped(out, name);
        out.push('"');
    }
    match value {
        Value::Array(list) => {
            out.push_str("><list>");
            list.iter().for_each(|it| item(out, None, it));
            out.push_str("</list></item>");
        }
        Value::Object(members) => {
            out.push('>');
            members.iter().for_each(|(name, it)| item(out, Some(name), it));
            out.push_str("</item>");
        }
        simple => {
            out.push_str(" value=\"");
            match simple {
                Value::String(text) => push_escaped(out, text),
                Value::Null => {}
                other => push_escaped(out, &other.to_string()),
            }
            out.push_str("\"/>");
        }
    }
}
