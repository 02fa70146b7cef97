//! Changing topics in the browser: with a preview, a check that nobody else changed the topic meanwhile, and a history.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use minijinja::{Value, context};
use pinakes_http::answer;
use pinakes_store::{Direction, Expr, Query, Weight};

use crate::app::{Asker, Conclave, Params, map_name};
use crate::edit::{Edit, Found, History, find};
use crate::error::{ConclaveError, Result};
use crate::kinds::REVISION;
use crate::markup::Resolver;
use crate::model::{Arc, DEFAULT_SCOPE, LABEL, Occurrence, SELF, Topic, key};
use crate::text::{Fields, topic_href_raw};

/// Relations that the form lists for removal.
const LISTED_MAX: usize = 200;

async fn found(asker: &Asker, map: &str, id: &str) -> Result<Option<Found>> {
    let (map, id) = (map.to_owned(), id.to_owned());
    asker.db.read(Weight::Point, move |view| find(view, &map, &id)).await
}

/// What the form shows of a topic.
#[derive(Debug, Default)]
struct Form {
    label: String,
    description: String,
    keywords: String,
    text: String,
    behaviour: String,
}

impl Form {
    fn of(topic: &Topic) -> Form {
        let text = |name: &str| topic.get(DEFAULT_SCOPE, name).unwrap_or_default().to_owned();
        let wiki = wiki_of(topic);
        Form {
            label: topic.get(DEFAULT_SCOPE, LABEL).unwrap_or(&topic.id).to_owned(),
            description: text("description"),
            keywords: text("keywords"),
            text: wiki.map_or(String::new(), |it| it.data.clone()),
            behaviour: wiki.map_or("markdown", |it| &it.behaviour).to_owned(),
        }
    }

    fn read(fields: &Fields) -> Form {
        let text = |name: &str| fields.text(name).trim().to_owned();
        Form {
            label: text("label"),
            description: text("description"),
            keywords: text("keywords"),
            // Browsers send lines as CR LF.
            text: fields.text("text").replace("\r\n", "\n"),
            behaviour: if fields.text("behaviour") == "wiki" { "wiki" } else { "markdown" }.to_owned(),
        }
    }

    fn apply(&self, topic: &mut Topic) {
        for (name, value) in
            [(LABEL, &self.label), ("description", &self.description), ("keywords", &self.keywords)]
        {
            if value.is_empty() {
                topic.metadata.retain(|it| it.scope != DEFAULT_SCOPE || it.name != name);
            } else {
                topic.set(DEFAULT_SCOPE, name, value.clone());
            }
        }
        let at = topic.occurrences.iter().position(is_wiki);
        match at {
            Some(at) if self.text.is_empty() => {
                topic.occurrences.remove(at);
            }
            Some(at) => topic.occurrences[at].data.clone_from(&self.text),
            None if self.text.is_empty() => {}
            None => topic.occurrences.push(Occurrence {
                scope: DEFAULT_SCOPE.to_owned(),
                role: "wiki".to_owned(),
                behaviour: self.behaviour.clone(),
                reference: SELF.to_owned(),
                data: self.text.clone(),
                base64: None,
            }),
        }
    }

    fn values(&self) -> Value {
        context! {
            label => &self.label, description => &self.description, keywords => &self.keywords, text => &self.text,
            behaviour => &self.behaviour,
        }
    }
}

fn is_wiki(it: &Occurrence) -> bool {
    it.role == "wiki" && it.scope == DEFAULT_SCOPE && it.reference == SELF && it.base64.is_none()
}

fn wiki_of(topic: &Topic) -> Option<&Occurrence> {
    topic.occurrences.iter().find(|it| is_wiki(it))
}

/// The form of a topic, with what the caller typed where something is to be shown beside it.
fn form_page(
    app: &Conclave,
    asker: &Asker,
    (map, id): (&str, &str),
    (topic, version): (Option<&Topic>, u64),
    form: &Form,
    (preview, error): (Option<String>, Option<String>),
) -> Result<Response> {
    let arcs: Vec<Value> = topic
        .map_or(&[][..], |it| it.arcs.as_slice())
        .iter()
        .take(LISTED_MAX)
        .map(|it| context! { id => &it.id, ty => &it.ty, role => &it.role, label => it.label(DEFAULT_SCOPE) })
        .collect();
    let status = if error.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let page = context! {
        title => if topic.is_some() { format!("Edit {id}") } else { "New topic".to_owned() },
        id => id, href => topic_href_raw("", id), version => version, is_new => topic.is_none(),
        form => form.values(), arcs => arcs, preview => preview.map(Value::from_safe_string), error => error,
        tab => if topic.is_some() { "edit" } else { "create" },
    };
    app.page(asker, map, status, "edit.html", page)
}

pub(super) async fn form(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Result<Response> {
    let (map, id) = (map_name(&map)?, params.required("id")?);
    if !asker.is_editor() {
        return app.error_page(&asker, map, &ConclaveError::unauthenticated());
    }
    let found = found(&asker, map, id).await?;
    let Some(found) = found else { return super::view::missing(&app, &asker, map, id) };
    let form = Form::of(&found.topic);
    form_page(&app, &asker, (map, id), (Some(&found.topic), found.version), &form, (None, None))
}

pub(super) async fn create_form(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Result<Response> {
    let map = map_name(&map)?;
    if !asker.is_editor() {
        return app.error_page(&asker, map, &ConclaveError::unauthenticated());
    }
    let id = params.0.get("id").map_or_else(|| app.new_uuid(), str::to_owned);
    let form =
        Form { label: params.0.text("id").to_owned(), behaviour: "markdown".to_owned(), ..Form::default() };
    form_page(&app, &asker, (map, &id), (None, 0), &form, (None, None))
}

/// Previews, or saves what was typed over the revision that it began with.
pub(super) async fn save(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let map = map_name(&map)?.to_owned();
    let bytes = app.received(&headers, body).await?;
    let fields = Fields::parse(&String::from_utf8_lossy(&bytes));
    let asker = asker.with_form(&fields);
    asker.may_edit()?;
    let id = fields.get("id").ok_or_else(|| ConclaveError::bad_request("id is missing"))?.to_owned();
    let form = Form::read(&fields);
    let version: u64 = fields.text("version").parse().unwrap_or(0);
    if fields.text("action") == "preview" {
        let base = format!("/t/{map}/");
        let html = Resolver { link_base: &base }.render(&form.behaviour, &form.text);
        let found = found(&asker, &map, &id).await?;
        let topic = found.as_ref().map(|it| &it.topic);
        return form_page(&app, &asker, (&map, &id), (topic, version), &form, (html, None));
    }
    let written = {
        let (map, id, author) = (map.clone(), id.clone(), asker.author(app.now_ms()));
        let (fields, form) = (fields.clone(), Form::read(&fields));
        let new_arc = app.new_uuid();
        asker
            .db
            .write(move |txn| {
                let mut edit = Edit::new(txn, &map, &author, History::Kept);
                let now = edit.version(&id)?;
                if now != version {
                    return Err(ConclaveError::precondition(
                        "Somebody else saved this topic meanwhile. Your text is still here; saving again replaces theirs.",
                    ));
                }
                if now == 0 {
                    edit.create(Topic::new(&map, &id))?;
                }
                let topic = edit.topic(&id)?;
                form.apply(topic);
                let dropped: Vec<&str> =
                    fields.0.iter().filter(|it| it.0 == "drop").map(|it| it.1.as_str()).collect();
                topic.arcs.retain(|it| !dropped.contains(&it.id.as_str()));
                if let Some(reference) = fields.get("add-reference") {
                    let text = |name: &str, fallback: &str| fields.get(name).unwrap_or(fallback).trim().to_owned();
                    let arc = Arc {
                        id: new_arc.clone(),
                        ty: text("add-type", "navigation"),
                        scope: DEFAULT_SCOPE.to_owned(),
                        reference: reference.trim().to_owned(),
                        role: text("add-role", "related"),
                        metadata: Vec::new(),
                    };
                    edit.put_arc(&id, arc)?;
                }
                edit.finish()
            })
            .await
    };
    match written {
        Ok(_) => {
            let href = topic_href_raw(&format!("/t/{map}/"), &id);
            Ok(answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, &href))
        }
        Err(error) if error.status() == StatusCode::PRECONDITION_FAILED => {
            let found = found(&asker, &map, &id).await?;
            let (topic, version) = found.as_ref().map_or((None, 0), |it| (Some(&it.topic), it.version));
            form_page(&app, &asker, (&map, &id), (topic, version), &form, (None, Some(error.detail())))
        }
        Err(error) => app.error_page(&asker, &map, &error),
    }
}

pub(super) async fn remove(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let map = map_name(&map)?.to_owned();
    let bytes = app.received(&headers, body).await?;
    let fields = Fields::parse(&String::from_utf8_lossy(&bytes));
    let asker = asker.with_form(&fields);
    asker.may_edit()?;
    let id = fields.get("id").ok_or_else(|| ConclaveError::bad_request("id is missing"))?.to_owned();
    let (own_map, author) = (map.clone(), asker.author(app.now_ms()));
    asker
        .db
        .write(move |txn| {
            let mut edit = Edit::new(txn, &own_map, &author, History::Kept);
            edit.remove(&id)?;
            edit.finish()
        })
        .await?;
    let next = format!("/conclave/{map}");
    Ok(answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, &next))
}

pub(super) async fn history(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
) -> Result<Response> {
    asker.may_read()?;
    let (map, id) = (map_name(&map)?, params.required("id")?);
    // What a topic was may hold what its readers may not see any more.
    if !asker.is_editor() {
        return app.error_page(&asker, map, &ConclaveError::unauthenticated());
    }
    let of_topic = key(map, id);
    let revisions = asker
        .db
        .read(Weight::Scan, move |view| {
            let filter = Expr::Is("topic".into(), of_topic.as_str().into());
            let query = Query::filter(filter).sorted("key", Direction::Descending).window(0, 50);
            view.find(&REVISION, &query)
        })
        .await
        .map_err(ConclaveError::from)?;
    let mut items: Vec<Value> = Vec::new();
    for record in revisions {
        let body = record.json()?;
        let was: Topic = serde_json::from_value(body["was"].clone())
            .map_err(|error| ConclaveError::damaged(error.to_string()))?;
        let at = body["at"].as_i64().unwrap_or_default();
        let at = time::OffsetDateTime::from_unix_timestamp(at.div_euclid(1000)).ok();
        let at = at.map(|it| format!("{} {:02}:{:02} UTC", it.date(), it.hour(), it.minute()));
        items.push(context! {
            key => record.id, version => body["version"].as_u64(), by => body["by"].as_str(), at => at,
            label => &was.label, text => wiki_of(&was).map(|it| it.data.clone()),
            n_arcs => was.arcs.len(), n_occurrences => was.occurrences.len(),
        });
    }
    let page = context! {
        title => format!("History of {id}"), id => id, href => topic_href_raw("", id), items => items,
        tab => "history",
    };
    app.page(&asker, map, StatusCode::OK, "history.html", page)
}

/// Makes a topic what it was; what it is now becomes a revision.
pub(super) async fn restore(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let map = map_name(&map)?.to_owned();
    let bytes = app.received(&headers, body).await?;
    let fields = Fields::parse(&String::from_utf8_lossy(&bytes));
    let asker = asker.with_form(&fields);
    asker.may_edit()?;
    let revision = fields.text("revision").to_owned();
    let (own_map, author) = (map.clone(), asker.author(app.now_ms()));
    let id = asker
        .db
        .write(move |txn| {
            let record = txn.get(&REVISION, &revision)?;
            let record = record.ok_or_else(|| ConclaveError::not_found("there is no such revision"))?;
            let was: Topic = serde_json::from_value(record.json()?["was"].clone())
                .map_err(|error| ConclaveError::damaged(error.to_string()))?;
            if was.map != own_map {
                return Err(ConclaveError::not_found("the map has no such revision"));
            }
            let id = was.id.clone();
            let mut edit = Edit::new(txn, &own_map, &author, History::Kept);
            edit.put(was)?;
            edit.finish()?;
            Ok(id)
        })
        .await?;
    let href = topic_href_raw(&format!("/t/{map}/"), &id);
    Ok(answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, &href))
}
