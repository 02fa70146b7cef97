//! A topic's page, and the topic in other formats under the same address.

use std::time::Instant;

use axum::extract::{Path, State};
use axum::response::Response;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, LAST_MODIFIED, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use minijinja::{Value, context};
use pinakes_http::{Stage, answer, stages};
use pinakes_store::{View, Weight};
use pinakes_topicmap::Format;

use super::parts;
use crate::api::{is_known, not_modified, written};
use crate::app::{Asker, Conclave, Params, map_name};
use crate::document;
use crate::edit::{Found, find};
use crate::error::{ConclaveError, Result};
use crate::kinds::TOPIC;
use crate::markup::Resolver;
use crate::model::{DEFAULT_SCOPE, Topic};
use crate::subjects;
use crate::text::topic_href_raw;

/// How a topic is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Json,
    Xml,
    Jtm,
    Xtm,
    Markdown,
}

const SUFFIXES: [(&str, Form); 6] = [
    (".html", Form::Html),
    (".json", Form::Json),
    (".xml", Form::Xml),
    (".jtm", Form::Jtm),
    (".xtm", Form::Xtm),
    (".md", Form::Markdown),
];

/// The form that the client likes best; pages for browsers and for those who do not say.
fn preferred(headers: &HeaderMap) -> Form {
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

/// A record of another dialect that has an identifier of the topic.
type Joined = (String, String);

/// The topic under this id, or under the id without a suffix that names a form.
fn look(view: &mut View<'_>, map: &str, id: &str) -> Result<(Option<Found>, Option<Form>)> {
    if let Some(found) = find(view, map, id)? {
        return Ok((Some(found), None));
    }
    for (suffix, form) in SUFFIXES {
        if let Some(stem) = id.strip_suffix(suffix).filter(|it| !it.is_empty()) {
            return Ok((find(view, map, stem)?, Some(form)));
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

pub(super) async fn view(
    State(app): State<Conclave>,
    asker: Asker,
    Path((map, id)): Path<(String, String)>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response> {
    asker.may_read()?;
    let map = map_name(&map)?.to_owned();
    let started = Instant::now();
    let kinds: Vec<String> = app.settings.records.keys().cloned().collect();
    let (found, form, records) = {
        let (map, id) = (map.clone(), id.clone());
        let read = move |view: &mut View<'_>| {
            let (found, form) = look(view, &map, &id)?;
            let records = match &found {
                Some(found) => joined(view, &found.topic, &kinds)?,
                None => Vec::new(),
            };
            Ok::<_, ConclaveError>((found, form, records))
        };
        asker.db.read(Weight::Point, read).await?
    };
    let form = form.unwrap_or_else(|| preferred(&headers));
    let Some(found) = found else {
        if form == Form::Html {
            return missing(&app, &asker, &map, &id);
        }
        return Err(ConclaveError::not_found(format!("there is no topic {id:?}")));
    };
    let scope = params.0.get("scope").unwrap_or(DEFAULT_SCOPE);
    let reader = if asker.is_editor() {
        "e"
    } else if asker.caller.is_anonymous() {
        "a"
    } else {
        "u"
    };
    let tag = format!(
        "W/\"{:x}-{:x}-{form:?}{reader}{}{scope}-{:x}-{:x}\"",
        found.version,
        found.sequence,
        asker.sight(),
        app.pages.revision,
        user_mark(&asker),
    );
    if is_known(&headers, &tag) && tag.is_ascii() {
        return Ok(not_modified(&tag));
    }
    let modified_ms = found.topic.modified_ms;
    let topic = asker.filtered(found).topic;
    let mut response = match form {
        Form::Html => html(&app, &asker, &topic, scope, &records, started.elapsed(), &params)?,
        Form::Json => answer::json(StatusCode::OK, &document::topic(&topic, None)),
        Form::Xml => {
            let base = format!("/t/{map}/");
            let xml = document::topic_xml(&topic, Some(&Resolver { link_base: &base }));
            answer::bytes(StatusCode::OK, HeaderValue::from_static("application/xml"), xml)
        }
        Form::Jtm => written(Format::Jtm, &[topic], "")?,
        Form::Xtm => written(Format::Xtm, &[topic], "")?,
        Form::Markdown => {
            let text = topic.occurrences.iter().find(|it| it.role == "wiki").map_or("", |it| &it.data);
            answer::bytes(
                StatusCode::OK,
                HeaderValue::from_static("text/markdown; charset=utf-8"),
                text.to_owned(),
            )
        }
    };
    let headers = response.headers_mut();
    let cache = match (asker.caller.is_anonymous(), app.settings.max_age_s) {
        (true, seconds) if seconds > 0 => HeaderValue::from_str(&format!("public, max-age={seconds}")).ok(),
        _ => None,
    };
    headers.insert(CACHE_CONTROL, cache.unwrap_or(HeaderValue::from_static("no-cache")));
    headers.insert(VARY, HeaderValue::from_static("Accept, Cookie"));
    if let Ok(value) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, value);
    }
    if let Some(value) = http_date(modified_ms) {
        headers.insert(LAST_MODIFIED, value);
    }
    Ok(response)
}

/// Tells users apart in tags: the page shows who is signed in.
fn user_mark(asker: &Asker) -> u64 {
    let name = asker.caller.username().unwrap_or_default();
    let session = asker.csrf().unwrap_or_default();
    let bytes = name.bytes().chain(session.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, it| (hash ^ u64::from(it)).wrapping_mul(0x0100_0000_01b3))
}

fn http_date(ms: i64) -> Option<HeaderValue> {
    let at = time::OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000)).ok().filter(|_| ms > 0)?;
    let day = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        [usize::from(at.weekday().number_days_from_monday())];
    let month = at.month().to_string();
    let text = format!(
        "{day}, {:02} {} {} {:02}:{:02}:{:02} GMT",
        at.day(),
        &month[..3],
        at.year(),
        at.hour(),
        at.minute(),
        at.second()
    );
    HeaderValue::from_str(&text).ok()
}

fn html(
    app: &Conclave,
    asker: &Asker,
    topic: &Topic,
    scope: &str,
    records: &[Joined],
    elapsed: std::time::Duration,
    params: &Params,
) -> Result<Response> {
    let page = stages::timed(Stage::Render, || {
        let records: Vec<Value> = records
            .iter()
            .filter_map(|(kind, id)| {
                let address = app.settings.records.get(kind)?;
                let encoded = topic_href_raw("", id);
                Some(context! { kind => kind, id => id, href => address.replace("{id}", &encoded) })
            })
            .collect();
        let timer = params.0.is_set("timer").then_some(elapsed.as_millis());
        let encoded = topic_href_raw("", &topic.id);
        context! {
            title => topic.label_in(scope), id => &topic.id, href => encoded,
            description => topic.get(scope, "description").or_else(|| topic.get(DEFAULT_SCOPE, "description")),
            relations => Value::from_safe_string(parts::relations(topic, scope)),
            body => Value::from_safe_string(parts::body(topic)),
            neighbours => Value::from_safe_string(parts::neighbours(topic, scope)),
            facts => Value::from_safe_string(parts::facts(topic, scope)),
            records => records, timer => timer, tab => "view",
        }
    });
    app.page(asker, &topic.map, StatusCode::OK, "topic.html", page)
}

/// The page of a topic that is not there: with a link to make it.
pub(super) fn missing(app: &Conclave, asker: &Asker, map: &str, id: &str) -> Result<Response> {
    let encoded = topic_href_raw("", id);
    let page = context! { title => id, id => id, href => encoded, is_missing => true, tab => "view" };
    app.page(asker, map, StatusCode::NOT_FOUND, "topic.html", page)
}
