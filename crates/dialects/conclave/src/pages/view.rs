//! A topic's page, and the topic in other formats under the same address.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::ETAG;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use minijinja::context;
use percent_encoding::percent_decode_str;
use pinakes_http::{Stage, answer, stages};
use pinakes_store::{Record, View, Weight};
use pinakes_topicmap::Format;
use serde::Deserialize;

use super::leaf::{AboutIt, Frame, Leaf};
use super::parts;
use super::shown::Shown;
use crate::api::written;
use crate::app::{Conclave, map_name};
use crate::call::Reading;
use crate::document;
use crate::edit::Found;
use crate::error::{ConclaveError, Result};
use crate::facts::OfMap;
use crate::kinds::TOPIC;
use crate::markup::{self, Resolver};
use crate::model::{Topic, key};
use crate::names::DEFAULT_SCOPE;
use crate::pages::negotiation::{Form, SUFFIXES, preferred};
use crate::pages::templates::Pages;
use crate::projection::beside;
use crate::text::topic_href_raw;
use crate::validators::{cached, is_known, mark, not_modified};

/// Maximum number of topics shown within another: further ones are links without their labels.
const INCLUDED_MAX: usize = 20;

/// A record of another dialect that has an identifier of the topic: its kind and id.
type Joined = (String, String);

/// Returns the topic with this id, or with the id without a suffix that names a format.
fn look(view: &mut View<'_>, map: &str, id: &str) -> Result<(Option<Record>, Option<Form>)> {
    if let Some(found) = view.get(&TOPIC, &key(map, id))? {
        return Ok((Some(found), None));
    }
    for (suffix, form) in SUFFIXES {
        if let Some(stem) = id.strip_suffix(suffix).filter(|it| !it.is_empty()) {
            return Ok((view.get(&TOPIC, &key(map, stem))?, Some(form)));
        }
    }
    Ok((None, None))
}

/// Returns the records of other dialects about a topic; topics without such identifiers cost no look-ups.
fn joined(view: &mut View<'_>, topic: &Topic, kinds: &[String]) -> Result<Vec<Joined>> {
    let mut out: Vec<Joined> = Vec::new();
    if kinds.is_empty() {
        return Ok(out);
    }
    for (scheme, value) in crate::model::of_topic(topic).into_iter().take(20) {
        for it in view.by_identifier(scheme, value)? {
            if it.0 != TOPIC.name && kinds.contains(&it.0) && !out.contains(&it) {
                out.push(it);
            }
        }
    }
    Ok(out)
}

/// Returns the topics that a topic's occurrences include; most topics have none.
fn included(view: &mut View<'_>, map: &str, topic: &Topic) -> Result<Vec<Found>> {
    let named = topic.occurrences.iter().filter(|it| it.behaviour == markup::TOPIC);
    let keys: Vec<String> = named.map(|it| key(map, &it.reference)).take(INCLUDED_MAX).collect();
    let mut out = Vec::new();
    for it in view.get_many(&TOPIC, &keys)?.into_iter().flatten() {
        let topic = Topic::stored(&it.body)?;
        out.push(Found { topic, version: it.version, sequence: it.sequence });
    }
    Ok(out)
}

/// The data of a page, from one read.
struct Read {
    found: Option<Record>,
    form: Option<Form>,
    records: Vec<Joined>,
    included: Vec<Found>,
}

impl Read {
    fn of(view: &mut View<'_>, map: &str, id: &str, kinds: &[String]) -> Result<Read> {
        let (found, form) = look(view, map, id)?;
        let (mut records, mut others) = (Vec::new(), Vec::new());
        if let Some(found) = &found {
            // Quotes within a text are escaped, so these strings occur in the body only as its own keys and values.
            let holds = |it: &str| memchr::memmem::find(&found.body, it.as_bytes()).is_some();
            let has_subjects = !kinds.is_empty() && !holds("\"subjects\":{}");
            let has_topics = holds("\"behaviour\":\"topic\"");
            if has_subjects || has_topics {
                let topic = Topic::stored(&found.body)?;
                records = joined(view, &topic, kinds)?;
                others = included(view, map, &topic)?;
            }
        }
        Ok(Read { found, form, records, included: others })
    }
}

/// `/t/{map}/{id}`: the rest of the path is the id. Clients that want pages get refusals as pages.
pub(super) async fn view(State(app): State<Conclave>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let wants_page = crate::pages::refused::wants_page(&parts.headers, parts.uri.path());
    match viewed(&app, &mut parts).await {
        Ok(response) => response,
        Err(error) if wants_page => crate::pages::refused::told(&app, error.into_response(), &parts.uri),
        Err(error) => error.into_response(),
    }
}

fn decoded(part: &str) -> Result<Cow<'_, str>> {
    let text = percent_decode_str(part).decode_utf8();
    text.map_err(|_| ConclaveError::bad_request("the path is no UTF-8 once it is decoded"))
}

async fn viewed(app: &Conclave, parts: &mut Parts) -> Result<Response> {
    let path = parts.uri.path().strip_prefix("/t/").and_then(|it| it.split_once('/'));
    let (map, id) = path.ok_or_else(|| ConclaveError::bad_request("expected /t/, a map, / and an id"))?;
    let (map, id) = (map_name(&decoded(map)?)?.to_owned(), decoded(id)?.into_owned());
    let call = Reading::unchecked(parts, app, map).await?;
    call.asker.may_read()?;
    show(call, &id, None).await
}

/// Answers with a topic in the given format; without one, its suffix or `Accept` decides.
pub(super) async fn show(call: Reading, id: &str, fixed: Option<Form>) -> Result<Response> {
    let started = Instant::now();
    call.renew_templates()?;
    let kinds: Vec<String> = call.app.settings.records.keys().cloned().collect();
    let wanted = id.to_owned();
    let read = call.read(Weight::Point, move |view, map| Read::of(view, map, &wanted, &kinds)).await?;
    let form = fixed.or(read.form).unwrap_or_else(|| preferred(&call.headers));
    let Some(found) = read.found else {
        return match form {
            Form::Html => missing(&call, id),
            _ => Err(ConclaveError::no_topic(id)),
        };
    };
    let scope = call.params.0.get("scope").unwrap_or(DEFAULT_SCOPE);
    let pages = call.app.pages.now();
    let revision = (found.version, found.sequence);
    let galleries = galleries_of(&call, &found.body)?;
    let mark = match form {
        Form::Html => {
            mark_of_page(&call, &pages, revision, scope, (&read.records, &read.included), galleries)
        }
        form => {
            let sight = call.asker.sight();
            let others = galleries.iter().map(String::as_str);
            mark(revision, &[form.name(), &sight, scope].into_iter().chain(others).collect::<Vec<_>>())
        }
    };
    let tag = format!("W/\"{mark}\"");
    let (mut response, modified_ms) = match is_known(&call.headers, &tag) {
        true => {
            // A 304 updates the header fields in a cache's copy of the page: without its own fields it would carry the
            // shell's, and the page would be shown without its style.
            let mut response = not_modified(&tag);
            if form == Form::Html {
                crate::pages::page::harden(&mut response);
            }
            (response, Stamp::of(&found.body)?.modified_ms)
        }
        false if form == Form::Html => {
            html(&call, &pages, &found.body, scope, (read.records, read.included), started)?
        }
        false => {
            let topic = Topic::stored(&found.body)?;
            let topic = call.asker.filtered(Found { topic, version: revision.0, sequence: revision.1 }).topic;
            let modified_ms = topic.modified_ms;
            (plain(&call, form, topic.within(call.params.0.get("scope"))).await?, modified_ms)
        }
    };
    if let Ok(value) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, value);
    }
    Ok(cached(&call, response, modified_ms))
}

/// Returns the part of the galleries' state that affects how a topic is rendered. Most topics have no gallery, which
/// shows without parsing their bodies.
fn galleries_of(call: &Reading, body: &[u8]) -> Result<Vec<String>> {
    if call.galleries().is_none() || memchr::memmem::find(body, b"\"behaviour\":\"gallery\"").is_none() {
        return Ok(Vec::new());
    }
    Ok(call.mark_of_galleries(&Topic::stored(body)?))
}

/// The time of the last change, from a topic's body.
#[derive(Deserialize)]
struct Stamp {
    #[serde(rename = "at", default)]
    modified_ms: i64,
}

impl Stamp {
    fn of(body: &[u8]) -> Result<Stamp> {
        serde_json::from_slice(body).map_err(|error| ConclaveError::damaged(error.to_string()))
    }
}

/// Returns a mark of everything that the bytes of a page depend on, including the user's name and the token of the
/// session.
fn mark_of_page(
    call: &Reading,
    pages: &Pages,
    revision: (u64, u64),
    scope: &str,
    (records, included): (&[Joined], &[Found]),
    galleries: Vec<String>,
) -> String {
    let (sight, templates) = (call.asker.sight(), format!("{:x}", pages.revision));
    let csrf = call.asker.csrf().unwrap_or_default();
    let editor = if call.asker.is_editor() { "true" } else { "false" };
    let user = call.asker.caller.username().unwrap_or_default();
    let mut of_form = vec![Form::Html.name(), &sight, scope, &templates, user, &csrf, editor];
    let records = records.iter().map(|it| format!("{}/{}", it.0, it.1));
    let included = included.iter().map(|it| format!("{}-{}", it.version, it.sequence));
    let others: Vec<String> = records.chain(included).chain(galleries).collect();
    of_form.extend(others.iter().map(String::as_str));
    mark(revision, &of_form)
}

/// Answers with a topic in a format for programs.
async fn plain(call: &Reading, form: Form, topic: Topic) -> Result<Response> {
    let bytes = |name, text: String| Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static(name), text));
    match form {
        Form::Json | Form::Html => Ok(answer::json(StatusCode::OK, &document::topic(&topic, None))),
        Form::Xml => {
            let base = call.link_base();
            let resolver = Resolver::new(&base).and_galleries(call.galleries());
            bytes("application/xml", document::topic_xml(&topic, Some(&resolver)))
        }
        Form::Jtm | Form::Xtm => {
            let format = if form == Form::Jtm { Format::Jtm } else { Format::Xtm };
            let mut topic = topic;
            topic.retain_variants(|it| call.asker.sees(it));
            let topics = vec![topic];
            let (topics, beside) = call
                .read(Weight::Scan, move |view, map| Ok((topics.clone(), beside(view, map, &topics)?)))
                .await?;
            written(format, &topics, (&beside, &OfMap::default()), "")
        }
        Form::Markdown => {
            let text = topic.occurrences.into_iter().find(|it| it.role == "wiki").map(|it| it.data);
            bytes("text/markdown; charset=utf-8", text.unwrap_or_default())
        }
    }
}

/// Returns the page of a topic, and the time when the topic was last changed.
fn html(
    call: &Reading,
    pages: &Pages,
    body: &[u8],
    scope: &str,
    (records, included): (Vec<Joined>, Vec<Found>),
    started: Instant,
) -> Result<(Response, i64)> {
    let made = stages::timed(Stage::Render, || {
        let mut topic = Shown::of(body)?;
        if !call.asker.sees_all() {
            topic.retain(|it| call.asker.sees(it));
        }
        let others = included.into_iter().map(|it| call.asker.filtered(it).topic);
        let others: BTreeMap<String, Topic> = others.map(|it| (it.id.clone(), it)).collect();
        let base = call.link_base();
        let resolver = Resolver::with_topics(&base, &others).and_galleries(call.galleries());
        let about = |(kind, id): Joined| {
            let address = call.app.settings.records.get(&kind)?;
            let href = address.replace("{id}", &topic_href_raw("", &id));
            Some(AboutIt { kind: parts::words(&kind), id, href })
        };
        let leaf = Leaf {
            topic: &topic,
            scope,
            resolver: &resolver,
            records: records.into_iter().filter_map(about).collect(),
            timer_ms: call.params.0.is_set("timer").then(|| started.elapsed().as_millis()),
        };
        let frame = Frame::of(call);
        let page = match pages.has_own_leaf {
            true => Ok(leaf.write(&frame)),
            false => Err(pages.framed(&frame, leaf.values())),
        };
        Ok::<_, ConclaveError>((page, topic.modified_ms))
    });
    let (page, modified_ms) = made?;
    let page = page.or_else(|values| pages.render("topic.html", values))?;
    Ok((crate::pages::page::finished(StatusCode::OK, page)?, modified_ms))
}

/// Returns the page for a topic that does not exist, with a link to create it.
pub(super) fn missing(call: &Reading, id: &str) -> Result<Response> {
    let href = topic_href_raw("", id);
    let page = context! { title => id, id => id, href => href, is_missing => true, tab => "view" };
    call.page(StatusCode::NOT_FOUND, "topic.html", page)
}
