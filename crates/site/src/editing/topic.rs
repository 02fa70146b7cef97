//! Topics (Conclave): a list to choose from, and the form of one topic.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::topic_form::{Form, IDENTITIES, PARTS, Row};
use super::{Faults, Trouble, with_empty};
use crate::app::{Site, Visitor};
use crate::deposit::gone_on;
use crate::error::{Result, SiteError};
use crate::fields::{Fields, encoded, encoded_rest};
use crate::record::{Link, items, text};

/// Maximum number of topics that the list shows.
const LISTED_MAX: u32 = 50;
/// Behaviours that are offered; others can be typed.
const BEHAVIOURS: [&str; 6] = ["markdown", "text", "wiki", "html", "link", "topic"];

/// Checks that the site may access a map.
///
/// Errors: the map is not in the settings; nobody is signed in.
fn map_of<'a>(site: &Site, visitor: &Visitor, name: &'a str) -> Result<&'a str> {
    if visitor.caller.is_anonymous() {
        return Err(SiteError::SignIn);
    }
    let known = site.settings.maps.iter().any(|it| it == name);
    if known && site.neighbour("conclave").is_some() { Ok(name) } else { Err(SiteError::NotFound) }
}

fn editor(map: &str, id: &str) -> String {
    format!("/site/edit/topic/{}/{}", encoded(map), encoded_rest(id))
}

/// `GET /site/topics?map=&prefix=&after=`; with `id=` it leads to the form of that topic.
pub(crate) async fn list(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let page = listed(&site, &visitor, &fields).await;
    site.shown(&visitor, page)
}

async fn listed(site: &Site, visitor: &Visitor, fields: &Fields) -> Result<Response> {
    let first = site.settings.maps.first().map_or("", String::as_str);
    let asked = Some(fields.text("map")).filter(|it| !it.is_empty()).unwrap_or(first);
    let map = map_of(site, visitor, asked)?;
    let id = fields.text("id");
    if !id.is_empty() {
        return Ok(gone_on(&editor(map, id)));
    }
    let (prefix, after) = (fields.text("prefix"), fields.text("after"));
    let path = format!(
        "/topics/v1/{}/topics?prefix={}&after={}&limit={LISTED_MAX}",
        encoded(map),
        encoded(prefix),
        encoded(after)
    );
    let said = site.read(visitor, "conclave", &path).await?;
    let row = |it: &Value| {
        let id = text(it, "id");
        vec![Link::to(id.clone(), editor(map, &id)), Link::plain(text(it, "label"))]
    };
    let rows: Vec<Vec<Link>> = items(&said, "items").iter().map(row).collect();
    let next = Some(text(&said, "next")).filter(|it| !it.is_empty());
    let next = next.map(|it| {
        format!("/site/topics?map={}&prefix={}&after={}", encoded(map), encoded(prefix), encoded(&it))
    });
    let page = json!({
        "title_key": "topics", "maps": &site.settings.maps, "map": map, "prefix": prefix, "rows": rows, "next": next,
    });
    site.page(visitor, StatusCode::OK, "topics.html", page)
}

/// Returns a stored topic and its entity tag; an empty topic without a tag if there is none.
async fn read(site: &Site, visitor: &Visitor, map: &str, id: &str) -> Result<(Value, String)> {
    let path = address(map, id);
    let heard = site.hear(visitor, "conclave", (Method::GET, &path), None, None).await?;
    match heard.said.json() {
        Some(topic) => Ok((topic, heard.header(&ETAG).to_owned())),
        None if heard.said.status == StatusCode::NOT_FOUND => Ok((json!({}), String::new())),
        None => Err(SiteError::of_status(heard.said.status)),
    }
}

fn address(map: &str, id: &str) -> String {
    format!("/topics/v1/{}/topic?id={}", encoded(map), encoded(id))
}

/// `GET /site/edit/topic/{map}/{id}`
pub(crate) async fn edit(
    State(site): State<Site>,
    visitor: Visitor,
    Path(place): Path<(String, String)>,
) -> Result<Response> {
    let page = begun(&site, &visitor, &place).await;
    site.shown(&visitor, page)
}

async fn begun(site: &Site, visitor: &Visitor, (map, id): &(String, String)) -> Result<Response> {
    let map = map_of(site, visitor, map)?;
    let (topic, tag) = read(site, visitor, map, id).await?;
    let mut form = Form::of_topic(&topic);
    if tag.is_empty() {
        // A topic's label is its name.
        form = Form::of_sent(&Fields::parse(&format!(
            "metadata.0.was=&metadata.0.name=label&metadata.0.value={}&metadata.0.scope=",
            encoded(id.rsplit('/').next().unwrap_or(id))
        )));
    }
    page(site, visitor, &Place { map, id, tag: &tag }, &form, &Trouble::default(), "")
}

/// The topic that is being edited.
struct Place<'a> {
    map: &'a str,
    id: &'a str,
    /// The entity tag of the topic from which the form was filled; empty for a new one.
    tag: &'a str,
}

/// `POST /site/edit/topic/{map}/{id}`
pub(crate) async fn save(
    State(site): State<Site>,
    visitor: Visitor,
    Path(place): Path<(String, String)>,
    body: Body,
) -> Result<Response> {
    let page = saved(&site, &visitor, &place, body).await;
    site.shown(&visitor, page)
}

async fn saved(site: &Site, visitor: &Visitor, (map, id): &(String, String), body: Body) -> Result<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    let map = map_of(site, visitor, map)?;
    let form = Form::of_sent(&sent);
    let place = Place { map, id, tag: sent.text("since") };
    let more = sent.text("more");
    if !more.is_empty() {
        return page(site, visitor, &place, &form, &Trouble::default(), more);
    }
    let faults = form.faults(visitor);
    if !faults.is_empty() {
        return page(site, visitor, &place, &form, &Trouble::of_faults(faults), "");
    }
    let (topic, tag) = read(site, visitor, map, id).await?;
    if tag != place.tag {
        return page(site, visitor, &Place { tag: &tag, ..place }, &form, &Trouble::conflict(), "");
    }
    let wanted = form.applied(&topic, id);
    let condition = if tag.is_empty() { (IF_NONE_MATCH, "*") } else { (IF_MATCH, tag.as_str()) };
    let path = address(map, id);
    let heard = site.hear(visitor, "conclave", (Method::PUT, &path), Some(&wanted), Some(condition)).await?;
    match Trouble::of(visitor, &heard.said, |_| Faults::new())? {
        None => {
            let view = site.href(visitor, "conclave", &format!("/t/{}/{}", encoded(map), encoded_rest(id)));
            Ok(gone_on(&view.unwrap_or_else(|| "/site/topics".to_owned())))
        }
        Some(trouble) if trouble.is_conflict => {
            let (_, tag) = read(site, visitor, map, id).await?;
            page(site, visitor, &Place { tag: &tag, ..place }, &form, &trouble, "")
        }
        Some(trouble) => page(site, visitor, &place, &form, &trouble, ""),
    }
}

fn page(
    site: &Site,
    visitor: &Visitor,
    place: &Place<'_>,
    form: &Form,
    trouble: &Trouble,
    more: &str,
) -> Result<Response> {
    let identities: Vec<Value> = IDENTITIES
        .iter()
        .zip(&form.identities)
        .map(|((name, key), said)| json!({"name": name, "key": key, "text": said}))
        .collect();
    let part = |(part, rows): (&super::topic_form::Part, &Vec<Row>)| {
        let mut rows = rows.clone();
        rows.resize_with(with_empty(rows.len(), more == part.name), || Row::empty(part));
        json!({"name": part.name, "key": part.key, "cells": part.cells, "rows": rows})
    };
    let parts: Vec<Value> = PARTS.iter().zip(&form.rows).map(part).collect();
    let view = format!("/t/{}/{}", encoded(place.map), encoded_rest(place.id));
    let page = json!({
        "title_key": "edit_topic", "id": place.id, "map": place.map, "is_new": place.tag.is_empty(),
        "identities": identities, "parts": parts, "since": place.tag, "behaviours": BEHAVIOURS,
        "faults": trouble.faults, "refused": trouble.refused, "is_conflict": trouble.is_conflict,
        "action": editor(place.map, place.id), "view": site.href(visitor, "conclave", &view),
    });
    site.page(visitor, trouble.status(), "edit_topic.html", page)
}
