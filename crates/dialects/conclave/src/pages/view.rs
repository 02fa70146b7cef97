//! A topic's page, and the topic in other formats under the same address.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, LAST_MODIFIED, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use minijinja::context;
use percent_encoding::percent_decode_str;
use pinakes_http::{Stage, answer, stages};
use pinakes_store::{Record, View, Weight};
use pinakes_topicmap::Format;
use serde::Deserialize;

use super::leaf::{AboutIt, Frame, Leaf};
use super::shown::Shown;
use super::{Pages, parts};
use crate::api::{is_known, mark, not_modified, written};
use crate::app::{Conclave, map_name};
use crate::call::Reading;
use crate::document;
use crate::edit::Found;
use crate::error::{ConclaveError, Result};
use crate::facts::OfMap;
use crate::kinds::TOPIC;
use crate::markup::{self, Resolver};
use crate::model::{DEFAULT_SCOPE, Topic, key};
use crate::projection::beside;
use crate::subjects;
use crate::text::topic_href_raw;

/// Topics shown within another: further ones are links without their labels.
const INCLUDED_MAX: usize = 20;

/// How a topic is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Html,
    Json,
    Xml,
    Jtm,
    Xtm,
    Markdown,
}

impl Form {
    /// As it stands in tags.
    fn name(self) -> &'static str {
        match self {
            Form::Html => "html",
            Form::Json => "json",
            Form::Xml => "xml",
            Form::Jtm => "jtm",
            Form::Xtm => "xtm",
            Form::Markdown => "md",
        }
    }
}

const SUFFIXES: [(&str, Form); 6] = [
    (".html", Form::Html),
    (".json", Form::Json),
    (".xml", Form::Xml),
    (".jtm", Form::Jtm),
    (".xtm", Form::Xtm),
    (".md", Form::Markdown),
];

/// The form that a suffix of an address asks for.
pub(super) fn form_of(path: &str) -> Option<Form> {
    SUFFIXES.into_iter().find(|it| path.ends_with(it.0)).map(|it| it.1)
}

/// The form that the client likes best; pages for browsers and for those who do not say.
pub(super) fn preferred(headers: &HeaderMap) -> Form {
    let accept = headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    if accept.is_empty() || accept.starts_with("text/html") || accept.starts_with("*/*") {
        return Form::Html;
    }
    let known = [
        ("text/html", Form::Html),
        ("application/xhtml+xml", Form::Html),
        ("application/json", Form::Json),
        ("application/x-tm+jtm", Form::Jtm),
        ("application/xtm+xml", Form::Xtm),
        ("application/x-tm+xtm", Form::Xtm),
        ("application/xml", Form::Xml),
        ("text/xml", Form::Xml),
        ("text/markdown", Form::Markdown),
    ];
    let mut best = (0.0, Form::Html);
    for part in accept.split(',') {
        let mut pieces = part.split(';').map(str::trim);
        let name = pieces.next().unwrap_or_default();
        let quality = pieces.find_map(|it| it.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
        let form = known.iter().find(|it| name.eq_ignore_ascii_case(it.0)).map(|it| it.1);
        if let Some(form) = form.filter(|_| quality > best.0) {
            best = (quality, form);
        }
    }
    best.1
}

/// A record of another dialect that has an identifier of the topic: its kind and id.
type Joined = (String, String);

/// The topic under this id, or under the id without a suffix that names a form.
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

/// Records of other dialects; only topics that have such identifiers cost the look-ups.
fn joined(view: &mut View<'_>, topic: &Topic, kinds: &[String]) -> Result<Vec<Joined>> {
    let mut out: Vec<Joined> = Vec::new();
    if kinds.is_empty() {
        return Ok(out);
    }
    for (scheme, value) in subjects::of_topic(topic).into_iter().take(20) {
        for it in view.by_identifier(scheme, value)? {
            if it.0 != TOPIC.name && kinds.contains(&it.0) && !out.contains(&it) {
                out.push(it);
            }
        }
    }
    Ok(out)
}

/// Topics that occurrences of one name; most topics have none.
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

/// What a page is made of: one read.
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
            // Within a text quotes are escaped: these words stand in the body where they are its own, and nowhere else.
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

/// `/t/{map}/{id}`: the rest of the path is the id. A refusal is told as a page to those who read pages.
pub(super) async fn view(State(app): State<Conclave>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let wants_page = super::wants_page(&parts.headers, parts.uri.path());
    match viewed(&app, &mut parts).await {
        Ok(response) => response,
        Err(error) if wants_page => super::told(&app, error.into_response(), &parts.uri),
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

/// A topic in the form asked for, which an address may fix; else its suffix or `Accept` decides.
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
    let mark = match form {
        Form::Html => mark_of_page(&call, &pages, revision, scope, (&read.records, &read.included)),
        form => mark(revision, &[form.name(), &call.asker.sight(), scope]),
    };
    let tag = format!("W/\"{mark}\"");
    let (mut response, modified_ms) = match is_known(&call.headers, &tag) {
        true => {
            // A 304 updates what a cache keeps of the page: without its own fields the shell's would take their place, and
            // the page would be shown without its style.
            let mut response = not_modified(&tag);
            if form == Form::Html {
                super::harden(&mut response);
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

/// The same answer with what caches go by.
pub(crate) fn cached(call: &Reading, mut response: Response, modified_ms: i64) -> Response {
    let headers = response.headers_mut();
    let cache = match (call.asker.caller.is_anonymous(), call.app.settings.max_age_s) {
        (true, seconds) if seconds > 0 => HeaderValue::from_str(&format!("public, max-age={seconds}")).ok(),
        _ => None,
    };
    headers.insert(CACHE_CONTROL, cache.unwrap_or(HeaderValue::from_static("no-cache")));
    headers.insert(VARY, HeaderValue::from_static("Accept, Cookie"));
    if let Some(value) = http_date(modified_ms) {
        headers.insert(LAST_MODIFIED, value);
    }
    response
}

/// Of a topic's body, when it was last changed.
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

/// Everything that decides the bytes of a page: it says who is signed in, and carries the token of the session.
fn mark_of_page(
    call: &Reading,
    pages: &Pages,
    revision: (u64, u64),
    scope: &str,
    (records, included): (&[Joined], &[Found]),
) -> String {
    let (sight, templates) = (call.asker.sight(), format!("{:x}", pages.revision));
    let csrf = call.asker.csrf().unwrap_or_default();
    let editor = if call.asker.is_editor() { "true" } else { "false" };
    let user = call.asker.caller.username().unwrap_or_default();
    let mut of_form = vec![Form::Html.name(), &sight, scope, &templates, user, &csrf, editor];
    let records = records.iter().map(|it| format!("{}/{}", it.0, it.1));
    let included = included.iter().map(|it| format!("{}-{}", it.version, it.sequence));
    let others: Vec<String> = records.chain(included).collect();
    of_form.extend(others.iter().map(String::as_str));
    mark(revision, &of_form)
}

/// A topic in a form for programs.
async fn plain(call: &Reading, form: Form, topic: Topic) -> Result<Response> {
    let bytes = |name, text: String| Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static(name), text));
    match form {
        Form::Json | Form::Html => Ok(answer::json(StatusCode::OK, &document::topic(&topic, None))),
        Form::Xml => {
            let base = call.link_base();
            bytes("application/xml", document::topic_xml(&topic, Some(&Resolver::new(&base))))
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

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time as HTTP writes it (RFC 9110, section 5.6.7).
fn http_date(ms: i64) -> Option<HeaderValue> {
    let at = time::OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000)).ok().filter(|_| ms > 0)?;
    let (date, time) = (at.date(), at.time());
    let day = DAYS[usize::from(date.weekday().number_days_from_monday())];
    let month = MONTHS[usize::from(u8::from(date.month())) - 1];
    let (hour, minute, second) = time.as_hms();
    let text =
        format!("{day}, {:02} {month} {} {hour:02}:{minute:02}:{second:02} GMT", date.day(), date.year());
    HeaderValue::try_from(text).ok()
}

/// The page of a topic, and when the topic was last changed.
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
        let resolver = Resolver::with_topics(&base, &others);
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
    Ok((super::finished(StatusCode::OK, page)?, modified_ms))
}

/// The page of a topic that is not there: with a link to make it.
pub(super) fn missing(call: &Reading, id: &str) -> Result<Response> {
    let href = topic_href_raw("", id);
    let page = context! { title => id, id => id, href => href, is_missing => true, tab => "view" };
    call.page(StatusCode::NOT_FOUND, "topic.html", page)
}
