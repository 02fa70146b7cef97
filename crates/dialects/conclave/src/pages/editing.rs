//! Editing topics in the browser, with a preview and a check that nobody else changed the topic meanwhile.

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::LOCATION;
use minijinja::{Value, context};
use pinakes_http::answer;

use super::form::Form;
use crate::call::{Editing, Reading};
use crate::error::{ConclaveError, Result};
use crate::markup::Resolver;
use crate::model::Topic;
use crate::text::topic_href_raw;

/// Parts of the page around the form.
#[derive(Default)]
struct Around {
    preview: Option<String>,
    error: Option<String>,
}

/// Returns the form for a topic, or for one that is to be created.
fn form_page(
    call: &Reading,
    id: &str,
    (topic, version): (Option<&Topic>, u64),
    form: &Form,
    around: Around,
) -> Result<Response> {
    let nothing = Topic::default();
    let (arcs, occurrences) = form.removable(topic.unwrap_or(&nothing));
    let status = if around.error.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let label = topic.map_or(id, |it| it.label.as_str());
    let page = context! {
        title => if topic.is_some() { format!("Edit {label}") } else { "New topic".to_owned() },
        id => id, href => topic_href_raw("", id), version => version, is_new => topic.is_none(),
        form => form.values(), arcs => arcs, occurrences => occurrences,
        preview => around.preview.map(Value::from_safe_string), error => around.error,
        tab => if topic.is_some() { "edit" } else { "create" },
    };
    call.page(status, "edit.html", page)
}

/// Checks that the caller is an editor. Requests for the page change nothing, so no token is checked.
fn only_editors(call: &Reading) -> Result<()> {
    match (call.asker.is_editor(), call.asker.caller.is_anonymous()) {
        (true, _) => Ok(()),
        (false, true) => Err(ConclaveError::unauthenticated()),
        (false, false) => Err(ConclaveError::forbidden("editing needs one of the groups of editors")),
    }
}

pub(super) async fn form(call: Reading) -> Result<Response> {
    only_editors(&call)?;
    let id = call.params.required("id")?;
    let Some(found) = call.found(id).await? else { return super::view::missing(&call, id) };
    let version = found.version;
    let topic = call.asker.filtered(found).topic;
    form_page(&call, id, (Some(&topic), version), &Form::of(&topic), Around::default())
}

pub(super) async fn create_form(call: Reading) -> Result<Response> {
    only_editors(&call)?;
    let id = call.params.0.get("id").map_or_else(|| call.app.new_uuid(), str::to_owned);
    let label = call.params.0.text("id").rsplit('/').next().unwrap_or_default().replace('_', " ");
    form_page(&call, &id, (None, 0), &Form::blank(&label), Around::default())
}

/// Previews the input, or saves it if the topic is still at the revision that the editing began with.
pub(super) async fn save(call: Reading, body: Body) -> Result<Response> {
    let (call, fields) = Editing::posted(call, body).await?;
    let id = fields.get("id").ok_or_else(|| ConclaveError::bad_request("id is missing"))?.trim().to_owned();
    let form = Form::read(&fields);
    let version: u64 = fields.text("version").parse().unwrap_or(0);
    if fields.text("action") == "preview" {
        let preview = Resolver::of_page(&call.link_base()).render(&form.behaviour, &form.text);
        let found = call.found(&id).await?.map(|it| call.asker.filtered(it).topic);
        return form_page(&call, &id, (found.as_ref(), version), &form, Around { preview, error: None });
    }
    let (typed, own_id, new_arc) = (form.clone(), id.clone(), call.app.new_uuid());
    let written = call.write(move |edit| {
        let now = edit.version(&own_id)?;
        if now != version {
            return Err(ConclaveError::precondition(match version {
                0 => "There is a topic of this id already. Your text is still here; saving again replaces theirs.",
                _ => "Somebody else saved this topic meanwhile. Your text is still here; saving again replaces theirs.",
            }));
        }
        if now == 0 {
            edit.create(Topic::new(edit.map(), &own_id))?;
        }
        typed.apply(edit, &own_id, &new_arc)
    });
    match written.await {
        Ok(_) => Ok(to_topic(&call, &id)),
        Err(error) if error.status() == StatusCode::PRECONDITION_FAILED => {
            let found = call.found(&id).await?;
            let version = found.as_ref().map_or(0, |it| it.version);
            let topic = found.map(|it| call.asker.filtered(it).topic);
            let around = Around { preview: None, error: Some(error.detail()) };
            form_page(&call, &id, (topic.as_ref(), version), &form, around)
        }
        Err(error) => Err(error),
    }
}

/// Redirects to the page of a topic.
pub(super) fn to_topic(call: &Reading, id: &str) -> Response {
    let href = topic_href_raw(&call.link_base(), id);
    answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, &href)
}

pub(super) async fn remove(call: Reading, body: Body) -> Result<Response> {
    let (call, fields) = Editing::posted(call, body).await?;
    let id = fields.get("id").ok_or_else(|| ConclaveError::bad_request("id is missing"))?.to_owned();
    call.write(move |edit| edit.remove(&id)).await?;
    let next = format!("/conclave/{}", call.map);
    Ok(answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, &next))
}
