//! The addresses of Conclave's own pages: `/conclave.cms/public/topic/view.aspx[/view]?id=` (section 6 of the contract).
//!
//! The last two directories are concern and the action's area, the stem of the file is the action, and the path after
//! the file names the format of the answer. `topic/view` is served here; the editing pages are those below
//! `/conclave/`; forms are processed here as by the original.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use serde_json::json;

use super::editing::to_topic;
use super::records::{self, About, Notation};
use super::session;
use super::view::show;
use crate::app::Conclave;
use crate::call::Reading;
use crate::edit::Edit;
use crate::error::{ConclaveError, Result};
use crate::model::{Arc, Metadata, Occurrence, Topic, set};
use crate::names::{DEFAULT_MAP, DEFAULT_SCOPE, LABEL, SELF};
use crate::pages::negotiation::Form;
use crate::text::{Fields, topic_href_raw};

/// The parts of an address.
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

    /// Returns the format of the view state that the end of the address names; `None` for a page. Errors: 404 for an
    /// unknown one.
    fn notation(&self) -> Result<Option<Notation>> {
        match self.view.as_deref().unwrap_or("html") {
            "html" | "xsl" | "st" | "rzr" => Ok(None),
            "xml" | "xslt" => Ok(Some(Notation::Xml)),
            "json" => Ok(Some(Notation::Json)),
            other => Err(ConclaveError::not_found(format!(
                "the view {other:?} is not known; known are html, json, xml"
            ))),
        }
    }

    fn unknown(&self) -> ConclaveError {
        ConclaveError::not_found(format!("there is no page {}/{}", self.concern, self.action))
    }
}

pub(super) async fn get(Path(path): Path<String>, call: Reading) -> Result<Response> {
    let address = Address::of(&path)?;
    if let Some(notation) = address.notation()? {
        return state(&address, &call, notation).await;
    }
    match (address.concern.as_str(), address.action.as_str()) {
        ("topic", "view") => {
            let id = call.params.required("id")?.to_owned();
            show(call, &id, Some(Form::Html)).await
        }
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

/// Answers with the view state of a page.
async fn state(address: &Address, call: &Reading, notation: Notation) -> Result<Response> {
    let pair = (address.concern.as_str(), address.action.as_str());
    let (makes_topic, makes_arc) = (pair == ("topic", "create"), pair == ("association", "create"));
    let topic = match pair {
        ("topic", "create") => None,
        ("topic", "view" | "edit")
        | ("association", "edit" | "create")
        | ("metadata" | "occurrence", "edit") => Some(call.params.required("id")?),
        _ => return Err(address.unknown()),
    };
    let about = About { topic, arc: call.params.0.get("assoc"), makes_topic, makes_arc };
    records::answer(call, notation, about).await
}

/// Processes a form of the original as one change. If it contains a name and password (`_uname`, `_upwd`), signs the
/// user in instead.
pub(super) async fn post(
    Path(path): Path<String>,
    State(app): State<Conclave>,
    request: Request,
) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let own = parts.uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
    let call = Reading::unchecked(&mut parts, &app, DEFAULT_MAP.to_owned()).await?;
    let (call, fields) = call.form(body).await?;
    if let (Some(name), Some(password)) = (fields.get("_uname"), fields.get("_upwd")) {
        return session::enter(&call, (name, password), &own).await;
    }
    call.asker.may_read()?;
    let address = Address::of(&path)?;
    let notation = address.notation()?;
    let call = call.editing()?;
    // As in the original, query parameters count as fields.
    let all = fields.followed_by(&call.params.0);
    let is_inline = address.action.starts_with("inline-update");
    let new_id = call.app.new_uuid();
    let (id, _) = call.write(move |edit| change(edit, &address, &all, &new_id)).await?;
    match (is_inline, id, notation) {
        (true, _, _) => Ok(answer::json(StatusCode::OK, &json!({"success": true}))),
        (false, Some(id), Some(notation)) => {
            let about = About { topic: Some(&id), arc: None, makes_topic: false, makes_arc: false };
            records::answer(&call, notation, about).await
        }
        (false, Some(id), None) => Ok(to_topic(&call, &id)),
        (false, None, _) => Ok(elsewhere(&format!("/conclave/{}", call.map))),
    }
}

/// Returns a required field.
fn required(fields: &Fields, name: &str) -> Result<String> {
    let value = fields.get(name).map(str::to_owned);
    value.ok_or_else(|| ConclaveError::bad_request(format!("the field {name} is missing")))
}

/// Returns the parts of `pk`. Errors: 400 when an id that contains `::` makes them ambiguous.
fn parts<const N: usize>(fields: &Fields) -> Result<[String; N]> {
    let pk = required(fields, "pk")?;
    let parts: Vec<String> = pk.split("::").map(str::to_owned).collect();
    let n_parts = parts.len();
    parts.try_into().map_err(|_| {
        ConclaveError::bad_request(format!("pk has {n_parts} parts; expected {N}. The JSON API takes any id"))
    })
}

/// Makes the change that a form asks for. Returns the id of the topic to show next.
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

/// Sets a metadata entry; without a value, removes it.
fn set_metadata(edit: &mut Edit<'_, '_>, parent: &str, scope: &str, name: &str, value: String) -> Result<()> {
    if value.is_empty() {
        return edit.remove_metadata(parent, (Some(scope), Some(name))).map(|_| ());
    }
    edit.put_metadata(parent, Metadata { scope: scope.to_owned(), name: name.to_owned(), value })
}

/// Returns the topic of a parent that may be an arc.
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

/// Adds a changed copy of an occurrence, as the original does. Errors: 404; 409 if one with the same key exists.
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
