//! The addresses of Conclave's own pages: `/conclave.cms/public/topic/view.aspx[/view]?id=` (section 6 of the contract).
//!
//! The last two directories are concern and action's area, the stem of the file is the action, what follows the file
//! names the form of the answer. `topic/view` is served here; pages for editing are those below `/conclave/`; forms are
//! taken here as the original takes them.

use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;
use serde_json::{Map, Value, json};

use super::editing::to_topic;
use super::view::{Form, show};
use crate::api::navigation_view;
use crate::call::{Editing, Reading};
use crate::document;
use crate::edit::Edit;
use crate::error::{ConclaveError, Result};
use crate::markup::Resolver;
use crate::model::{Arc, DEFAULT_SCOPE, LABEL, Metadata, Occurrence, SELF, Topic, set};
use crate::text::{Fields, topic_href_raw};

/// What an address asks for.
struct Address {
    concern: String,
    action: String,
    view: Option<String>,
}

impl Address {
    fn of(path: &str) -> Result<Address> {
        let segments: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
        let file = segments.iter().position(|it| it.contains('.'));
        let file =
            file.ok_or_else(|| ConclaveError::not_found("the address names no page such as view.aspx"))?;
        let concern = file.checked_sub(1).map_or(String::new(), |at| segments[at].to_lowercase());
        let action = segments[file].split('.').next().unwrap_or_default().to_lowercase();
        Ok(Address { concern, action, view: segments.get(file + 1).map(|it| (*it).to_owned()) })
    }

    fn unknown(&self) -> ConclaveError {
        ConclaveError::not_found(format!("there is no page {}/{}", self.concern, self.action))
    }
}

pub(super) async fn get(Path(path): Path<String>, call: Reading) -> Result<Response> {
    let address = Address::of(&path)?;
    match (address.concern.as_str(), address.action.as_str()) {
        ("topic", "view") => view(&address, call).await,
        ("topic", "create") => {
            let id = call.params.0.get("id").map_or(String::new(), |it| topic_href_raw("?id=", it));
            Ok(elsewhere(&format!("/conclave/{}/create{id}", call.map)))
        }
        ("topic" | "metadata" | "association" | "occurrence", "edit" | "create") => {
            let id = topic_href_raw("?id=", call.params.required("id")?);
            let section = if address.concern == "topic" { "" } else { address.concern.as_str() };
            Ok(elsewhere(&format!("/conclave/{}/edit{id}#{section}", call.map)))
        }
        _ => Err(address.unknown()),
    }
}

fn elsewhere(address: &str) -> Response {
    answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, address.trim_end_matches('#'))
}

async fn view(address: &Address, call: Reading) -> Result<Response> {
    let id = call.params.required("id")?.to_owned();
    match address.view.as_deref().unwrap_or("html") {
        "html" | "xsl" | "st" | "rzr" => show(call, &id, Some(Form::Html)).await,
        "xml" | "xslt" => records_xml(&call, &id).await,
        "json" => records_json(&call, &id).await,
        other => Err(ConclaveError::not_found(format!(
            "the view {other:?} is not known; known are html, json, xml"
        ))),
    }
}

async fn records_xml(call: &Reading, id: &str) -> Result<Response> {
    let topic = call.topic(id).await?;
    let xml = document::topic_xml(&topic, Some(&Resolver::new(&call.link_base())));
    let body = match call.params.0.get("model-item") {
        Some("topic") => xml,
        _ => {
            let (declaration, rest) = xml.split_once('\n').unwrap_or(("", &xml));
            format!("{declaration}\n<records><item name=\"topic\">{}</item></records>\n", rest.trim())
        }
    };
    Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static("text/xml; charset=utf-8"), body))
}

async fn records_json(call: &Reading, id: &str) -> Result<Response> {
    let topic = call.found(id).await?.map(|it| call.asker.filtered(it).topic);
    let status = if topic.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let shown = call.params.0.pairs().filter(|it| !it.0.starts_with('_'));
    let flags: Vec<&str> = shown.clone().filter(|it| it.1.is_empty()).map(|it| it.0).collect();
    let params: Map<String, Value> =
        shown.filter(|it| !it.1.is_empty()).map(|it| (it.0.to_owned(), json!(it.1))).collect();
    let errors: Vec<String> = match &topic {
        Some(_) => Vec::new(),
        None => vec![format!("there is no topic {id:?}")],
    };
    let name = call.asker.caller.username().unwrap_or("anon");
    let mut records = json!({
        "messages": [], "errors": errors, "flags": flags, "params": params, "user": {"id": name, "name": name},
    });
    if let Some(topic) = &topic {
        records["topic"] = document::topic(topic, Some(&Resolver::new(&call.link_base())));
        records["navigation-view"] = navigation_view(topic);
    }
    Ok(match call.params.0.get("model-item") {
        Some(item) => answer::json(status, &records[item]),
        None => answer::json(status, &records),
    })
}

/// A form of the original, as one change.
pub(super) async fn post(Path(path): Path<String>, call: Reading, body: Body) -> Result<Response> {
    let address = Address::of(&path)?;
    let (call, fields) = Editing::posted(call, body).await?;
    // Parameters of the address count as fields, as in the original.
    let all = fields.followed_by(&call.params.0);
    let is_inline = address.action.starts_with("inline-update");
    let new_id = call.app.new_uuid();
    let (id, _) = call.write(move |edit| change(edit, &address, &all, &new_id)).await?;
    match (is_inline, id) {
        (false, Some(id)) => Ok(to_topic(&call, &id)),
        (false, None) => Ok(elsewhere(&format!("/conclave/{}", call.map))),
        (true, _) => Ok(answer::json(StatusCode::OK, &json!({"success": true}))),
    }
}

/// A field that must be there.
fn required(fields: &Fields, name: &str) -> Result<String> {
    let value = fields.get(name).map(str::to_owned);
    value.ok_or_else(|| ConclaveError::bad_request(format!("the field {name} is missing")))
}

/// The parts of `pk`. Errors: 400 when an id that holds `::` makes them ambiguous.
fn parts<const N: usize>(fields: &Fields) -> Result<[String; N]> {
    let pk = required(fields, "pk")?;
    let parts: Vec<String> = pk.split("::").map(str::to_owned).collect();
    let n_parts = parts.len();
    parts.try_into().map_err(|_| {
        ConclaveError::bad_request(format!("pk has {n_parts} parts; expected {N}. The JSON API takes any id"))
    })
}

/// Does what a form asks for; gives the id of the topic to go on with.
fn change(
    edit: &mut Edit<'_, '_>,
    address: &Address,
    fields: &Fields,
    new_id: &str,
) -> Result<Option<String>> {
    let scope = || fields.get("scope").unwrap_or(DEFAULT_SCOPE).to_owned();
    let value = fields.text("value").to_owned();
    match (address.concern.as_str(), address.action.as_str()) {
        ("topic", "create") => {
            let id = fields.get("id").unwrap_or(new_id).to_owned();
            let mut topic = Topic::new(edit.map(), &id);
            topic.set(DEFAULT_SCOPE, LABEL, fields.get(LABEL).unwrap_or(&id));
            for name in ["description", "keywords"] {
                if let Some(text) = fields.get(name) {
                    topic.set(DEFAULT_SCOPE, name, text);
                }
            }
            topic.occurrences.push(occurrence(DEFAULT_SCOPE, "wiki", "markdown", SELF, fields.text("text")));
            edit.create(topic)?;
            Ok(Some(id))
        }
        ("topic", "edit") => {
            let id = required(fields, "id")?;
            let (role, behaviour) = (required(fields, "role")?, required(fields, "behaviour")?);
            let reference = fields.get("reference").unwrap_or(SELF);
            let text = fields.text("string-data").replace("\r\n", "\n");
            edit.put_occurrence(&id, occurrence(&scope(), &role, &behaviour, reference, &text), true)?;
            Ok(Some(id))
        }
        ("topic", "remove") => edit.remove(&required(fields, "id")?).map(|_| None),
        ("metadata", "edit") => {
            let parent = required(fields, "parent")?;
            set_metadata(edit, &parent, &scope(), &required(fields, "name")?, value)?;
            owner(edit, parent)
        }
        ("metadata", "inline-update") | ("association", "inline-update-metadata") => {
            let [parent, name, scope] = parts::<3>(fields)?;
            set_metadata(edit, &parent, &scope, &name, value)?;
            Ok(None)
        }
        ("association", "create") => {
            let parent = required(fields, "parent")?;
            let reference = required(fields, "reference")?;
            let mut metadata = Vec::new();
            set(&mut metadata, DEFAULT_SCOPE, LABEL, fields.get(LABEL).unwrap_or(&reference).to_owned());
            let arc = Arc {
                id: fields.get("assoc").unwrap_or(new_id).to_owned(),
                ty: required(fields, "type")?,
                scope: scope(),
                reference,
                role: required(fields, "role")?,
                metadata,
            };
            edit.put_arc(&parent, arc)?;
            Ok(Some(parent))
        }
        ("association", "edit") => {
            let (arc, update) = (required(fields, "assoc")?, required(fields, "update")?);
            let topic = edit.owner(&arc)?;
            update_arc(edit, &arc, &update, value)?;
            Ok(topic)
        }
        ("association", "inline-update") => {
            let [arc, field] = parts::<2>(fields)?;
            update_arc(edit, &arc, &field, value).map(|()| None)
        }
        ("occurrence", "edit") => {
            let parent = required(fields, "parent")?;
            let (role, behaviour) = (required(fields, "role")?, required(fields, "behaviour")?);
            let key = occurrence(&scope(), &role, &behaviour, fields.get("reference").unwrap_or(SELF), "");
            update_occurrence(edit, &parent, &key, &required(fields, "update")?, value)?;
            Ok(Some(parent))
        }
        ("occurrence", "inline-update") => {
            let [parent, scope, role, behaviour, reference, field] = parts::<6>(fields)?;
            let key = occurrence(&scope, &role, &behaviour, &reference, "");
            update_occurrence(edit, &parent, &key, &field, value).map(|()| None)
        }
        _ => Err(address.unknown()),
    }
}

fn occurrence(scope: &str, role: &str, behaviour: &str, reference: &str, data: &str) -> Occurrence {
    Occurrence {
        scope: scope.to_owned(),
        role: role.to_owned(),
        behaviour: behaviour.to_owned(),
        reference: reference.to_owned(),
        data: data.to_owned(),
        base64: None,
    }
}

/// Sets a metadata; without a value it is removed.
fn set_metadata(edit: &mut Edit<'_, '_>, parent: &str, scope: &str, name: &str, value: String) -> Result<()> {
    if value.is_empty() {
        return edit.remove_metadata(parent, (Some(scope), Some(name))).map(|_| ());
    }
    edit.put_metadata(parent, Metadata { scope: scope.to_owned(), name: name.to_owned(), value })
}

/// The topic of a parent that may be an arc.
fn owner(edit: &mut Edit<'_, '_>, parent: String) -> Result<Option<String>> {
    if edit.get(&parent)?.is_some() { Ok(Some(parent)) } else { edit.owner(&parent) }
}

fn update_arc(edit: &mut Edit<'_, '_>, id: &str, field: &str, value: String) -> Result<()> {
    let none = || ConclaveError::not_found(format!("there is no association {id:?}"));
    let topic = edit.owner(id)?.ok_or_else(none)?;
    let arcs = &mut edit.topic(&topic)?.arcs;
    let at = arcs.iter().position(|it| it.id == id).ok_or_else(none)?;
    match field {
        "remove" => drop(arcs.remove(at)),
        "type" => arcs[at].ty = value,
        "role" => arcs[at].role = value,
        other => {
            return Err(ConclaveError::bad_request(format!(
                "update is {other:?}; expected type, role or remove"
            )));
        }
    }
    Ok(())
}

/// A changed copy beside the old one, as the original does it. Errors: 404; 409 if there is one like the copy.
fn update_occurrence(
    edit: &mut Edit<'_, '_>,
    topic: &str,
    key: &Occurrence,
    field: &str,
    value: String,
) -> Result<()> {
    let list = &mut edit.topic(topic)?.occurrences;
    let at = list.iter().position(|it| it.has_key_of(key));
    let at = at.ok_or_else(|| ConclaveError::not_found("the topic has no such occurrence"))?;
    let mut copy = list[at].clone();
    match field {
        "remove" => {
            list.remove(at);
            return Ok(());
        }
        "role" => copy.role = value,
        "behaviour" => copy.behaviour = value,
        "reference" => copy.reference = value,
        other => {
            return Err(ConclaveError::bad_request(format!(
                "update is {other:?}; expected role, behaviour, reference or remove"
            )));
        }
    }
    if list.iter().any(|it| it.has_key_of(&copy)) {
        return Err(ConclaveError::exists("the topic has an occurrence of the new key"));
    }
    list.push(copy);
    Ok(())
}
