//! A topic's page, and the topic in other formats under the same address.

use std::collections::BTreeMap;
use std::time::Instant;

use axum::extract::Path;
use axum::response::Response;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, LAST_MODIFIED, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use minijinja::{Value, context};
use pinakes_http::{Stage, answer, stages};
use pinakes_store::{View, Weight};
use pinakes_topicmap::Format;

use super::parts;
use crate::api::{is_known, mark, not_modified, written};
use crate::call::Reading;
use crate::document;
use crate::edit::{Found, find};
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
    found: Option<Found>,
    form: Option<Form>,
    records: Vec<Joined>,
    included: Vec<Found>,
}

impl Read {
    fn of(view: &mut View<'_>, map: &str, id: &str, kinds: &[String]) -> Result<Read> {
        let (found, form) = look(view, map, id)?;
        let (mut records, mut others) = (Vec::new(), Vec::new());
        if let Some(found) = &found {
            records = joined(view, &found.topic, kinds)?;
            if found.topic.occurrences.iter().any(|it| it.behaviour == markup::TOPIC) {
                others = included(view, map, &found.topic)?;
            }
        }
        Ok(Read { found, form, records, included: others })
    }
}

/// `/t/{map}/{id}`: the rest of the path is the id.
pub(super) async fn view(Path((_, id)): Path<(String, String)>, call: Reading) -> Result<Response> {
    show(call, &id, None).await
}

/// A topic in the form asked for, which an address may fix; else its suffix or `Accept` decides.
pub(super) async fn show(call: Reading, id: &str, fixed: Option<Form>) -> Result<Response> {
    let started = Instant::now();
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
    let scope = call.params.0.get("scope").unwrap_or(DEFAULT_SCOPE).to_owned();
    // Everything that decides the bytes; the page says who is signed in, and carries the token of the session.
    let mut of_form = vec![format!("{form:?}"), call.asker.sight(), scope.clone()];
    if form == Form::Html {
        of_form.push(format!("{:x}", call.app.pages.revision));
        of_form.push(call.asker.caller.username().unwrap_or_default().to_owned());
        of_form.push(call.asker.csrf().unwrap_or_default());
        of_form.push(format!("{}", call.asker.is_editor()));
        of_form.extend(read.records.iter().map(|it| format!("{}/{}", it.0, it.1)));
        of_form.extend(read.included.iter().map(|it| format!("{}-{}", it.version, it.sequence)));
    }
    let tag = format!("W/\"{}\"", mark(&found, &of_form));
    let modified_ms = found.topic.modified_ms;
    let mut response = match is_known(&call.headers, &tag) {
        true => {
            // A 304 updates what a cache keeps of the page: without its own fields the shell's would take their place, and
            // the page would be shown without its style.
            let mut response = not_modified(&tag);
            if form == Form::Html {
                super::harden(&mut response);
            }
            response
        }
        false => {
            let topic = call.asker.filtered(found).topic;
            match form {
                Form::Html => {
                    let others = read.included.into_iter().map(|it| call.asker.filtered(it).topic);
                    let others = others.map(|it| (it.id.clone(), it)).collect();
                    html(&call, &topic, &scope, (&read.records, &others), started)?
                }
                form => plain(&call, form, topic.within(call.params.0.get("scope"))).await?,
            }
        }
    };
    let headers = response.headers_mut();
    let cache = match (call.asker.caller.is_anonymous(), call.app.settings.max_age_s) {
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

/// A time as HTTP writes it (RFC 9110, section 5.6.7).
fn http_date(ms: i64) -> Option<HeaderValue> {
    let at = time::OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000)).ok().filter(|_| ms > 0)?;
    let (date, time) = (at.date(), at.time());
    let (day, month) = (date.weekday().to_string(), date.month().to_string());
    let (hour, minute, second) = time.as_hms();
    let text = format!(
        "{}, {:02} {} {} {hour:02}:{minute:02}:{second:02} GMT",
        &day[..3],
        date.day(),
        &month[..3],
        date.year()
    );
    HeaderValue::from_str(&text).ok()
}

fn html(
    call: &Reading,
    topic: &Topic,
    scope: &str,
    (records, others): (&[Joined], &BTreeMap<String, Topic>),
    started: Instant,
) -> Result<Response> {
    let page = stages::timed(Stage::Render, || {
        let records: Vec<Value> = records
            .iter()
            .filter_map(|(kind, id)| {
                let address = call.app.settings.records.get(kind)?;
                let href = address.replace("{id}", &topic_href_raw("", id));
                Some(context! { kind => parts::words(kind), id => id, href => href })
            })
            .collect();
        let timer = call.params.0.is_set("timer").then(|| started.elapsed().as_millis());
        let safe = Value::from_safe_string;
        let own = topic.get(scope, "description").or_else(|| topic.get(DEFAULT_SCOPE, "description"));
        let base = call.link_base();
        let resolver = Resolver::with_topics(&base, others);
        context! {
            title => topic.label_in(scope), id => &topic.id, href => topic_href_raw("", &topic.id),
            description => own, n_arcs => topic.arcs.len(),
            relations => safe(parts::relations(topic, scope)), body => safe(parts::texts(topic, &resolver)),
            resources => safe(parts::resources(topic, &resolver)),
            neighbours => safe(parts::neighbours(topic, scope)), facts => safe(parts::facts(topic, scope)),
            records => records, timer => timer, tab => "view",
        }
    });
    call.page(StatusCode::OK, "topic.html", page)
}

/// The page of a topic that is not there: with a link to make it.
pub(super) fn missing(call: &Reading, id: &str) -> Result<Response> {
    let href = topic_href_raw("", id);
    let page = context! { title => id, id => id, href => href, is_missing => true, tab => "view" };
    call.page(StatusCode::NOT_FOUND, "topic.html", page)
}
