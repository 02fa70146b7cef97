//! Mapping profiles (FOLIO): the list, and the form of one with a preview on a record that is kept.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::header::IF_MATCH;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::profile_form::{ENTITIES, Form};
use super::{Faults, MORE_ROWS, Trouble, marc_form};
use crate::app::{Site, Visitor};
use crate::deposit::gone_on;
use crate::error::{Result, SiteError};
use crate::fields::encoded;
use crate::record::{Link, items, text};

/// Where FOLIO keeps them.
const PROFILES: &str = "/data-import-profiles/mappingProfiles";
/// Profiles that the list shows.
const LISTED_MAX: u32 = 500;
/// What stands in addresses for a profile that is not saved yet.
const NEW: &str = "new";

/// Staff who may not see profiles are told so; others have to sign in.
fn for_staff(visitor: &Visitor, error: SiteError) -> SiteError {
    match error {
        SiteError::SignIn | SiteError::NotFound if visitor.caller.is_anonymous() => SiteError::SignIn,
        SiteError::SignIn => SiteError::Forbidden,
        other => other,
    }
}

/// `GET /site/mapping`
pub(crate) async fn list(State(site): State<Site>, visitor: Visitor) -> Result<Response> {
    let page = listed(&site, &visitor).await.map_err(|it| for_staff(&visitor, it));
    site.shown(&visitor, page)
}

async fn listed(site: &Site, visitor: &Visitor) -> Result<Response> {
    let query = encoded("cql.allRecords=1 sortBy name");
    let said = site.read(visitor, "folio", &format!("{PROFILES}?limit={LISTED_MAX}&query={query}")).await?;
    let row = |it: &Value| {
        let changed = text(it, "metadata/updatedDate");
        vec![
            Link::to(text(it, "name"), format!("/site/mapping/{}", encoded(&text(it, "id")))),
            Link::plain(text(it, "incomingRecordType")),
            Link::plain(text(it, "existingRecordType")),
            Link::plain(changed.get(..10).unwrap_or_default()),
        ]
    };
    let rows: Vec<Vec<Link>> = items(&said, "mappingProfiles").iter().map(row).collect();
    let page = json!({"title_key": "mapping_profiles", "rows": rows, "n_all": said["totalRecords"]});
    site.page(visitor, StatusCode::OK, "mapping.html", page)
}

/// The profile, or the beginnings of a new one.
async fn read(site: &Site, visitor: &Visitor, id: &str) -> Result<Value> {
    if visitor.caller.is_anonymous() {
        return Err(SiteError::SignIn);
    }
    if id == NEW {
        return Ok(json!({}));
    }
    site.read(visitor, "folio", &format!("{PROFILES}/{}", encoded(id))).await
}

/// `GET /site/mapping/{id}`
pub(crate) async fn edit(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let page = begun(&site, &visitor, &id).await.map_err(|it| for_staff(&visitor, it));
    site.shown(&visitor, page)
}

async fn begun(site: &Site, visitor: &Visitor, id: &str) -> Result<Response> {
    let profile = read(site, visitor, id).await?;
    let since = text(&profile, "metadata/updatedDate");
    let form = Form::of_profile(&profile).with_empty_fields(1).with_empty_marc(1);
    let is_marc_hidden = marc_form::is_hidden(&profile);
    page(
        site,
        visitor,
        Shown { id, since: &since, is_marc_hidden, ..Shown::default() },
        &form,
        &Trouble::default(),
    )
}

/// What a page shows beside the form.
#[derive(Default)]
struct Shown<'a> {
    id: &'a str,
    /// When the profile was changed last as the form knows it.
    since: &'a str,
    /// Whether it has rules for MARC fields that the form does not show.
    is_marc_hidden: bool,
    /// The record that a preview is of.
    record: &'a str,
    preview: Option<Value>,
    /// Why there is no preview.
    preview_fault: Option<String>,
}

/// `POST /site/mapping/{id}`: saves, copies, or tries the profile on a record.
pub(crate) async fn act(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response> {
    let page = acted(&site, &visitor, &id, body).await.map_err(|it| for_staff(&visitor, it));
    site.shown(&visitor, page)
}

async fn acted(site: &Site, visitor: &Visitor, id: &str, body: Body) -> Result<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    let form = Form::of_sent(&sent);
    let around = Shown {
        id,
        since: sent.text("since"),
        record: sent.text("record"),
        is_marc_hidden: sent.has("marc_hidden"),
        ..Shown::default()
    };
    let action = sent.text("action");
    if action == "more" {
        return page(site, visitor, around, &form.with_empty_fields(MORE_ROWS), &Trouble::default());
    }
    if action == "more-marc" {
        return page(site, visitor, around, &form.with_empty_marc(MORE_ROWS), &Trouble::default());
    }
    let faults = form.faults(visitor);
    if !faults.is_empty() {
        return page(site, visitor, around, &form, &Trouble::of_faults(faults));
    }
    let profile = read(site, visitor, id).await?;
    let now = text(&profile, "metadata/updatedDate");
    if now != around.since {
        return page(site, visitor, Shown { since: &now, ..around }, &form, &Trouble::conflict());
    }
    let mut wanted = form.applied(&profile);
    match action {
        "preview" => return previewed(site, visitor, around, &form, &wanted).await,
        "copy" => {
            if let Some(map) = wanted.as_object_mut() {
                map.retain(|name, _| !matches!(name.as_str(), "id" | "metadata" | "userInfo"));
            }
        }
        _ => {}
    }
    let is_new = id == NEW || action == "copy";
    let update = json!({"profile": wanted, "addedRelations": [], "deletedRelations": []});
    let (method, path) = match is_new {
        true => (Method::POST, PROFILES.to_owned()),
        false => (Method::PUT, format!("{PROFILES}/{}", encoded(id))),
    };
    let tag = format!("\"{}\"", around.since);
    let condition = (!is_new).then_some((IF_MATCH, tag.as_str()));
    let heard = site.hear(visitor, "folio", (method, &path), Some(&update), condition).await?;
    let of_name = |answer: &Value| {
        let message = text(answer.get("errors").and_then(|it| it.get(0)).unwrap_or(&Value::Null), "message");
        let is_of_name = message.contains("name") || message.contains("already exists");
        if is_of_name { Faults::from([("name".to_owned(), message)]) } else { Faults::new() }
    };
    match Trouble::of(visitor, &heard.said, of_name)? {
        None => {
            let made = heard.said.json().map(|it| text(&it, "id")).unwrap_or_default();
            let id = if is_new { made.as_str() } else { id };
            Ok(gone_on(&format!("/site/mapping/{}", encoded(id))))
        }
        Some(trouble) if trouble.is_conflict => {
            let now = text(&read(site, visitor, id).await?, "metadata/updatedDate");
            page(site, visitor, Shown { since: &now, ..around }, &form, &trouble)
        }
        Some(trouble) => page(site, visitor, around, &form, &trouble),
    }
}

/// The form, with what the profile makes of a record. Nothing is saved.
async fn previewed(
    site: &Site,
    visitor: &Visitor,
    around: Shown<'_>,
    form: &Form,
    profile: &Value,
) -> Result<Response> {
    let wanted = json!({"profile": profile, "record": around.record});
    let question = (Method::POST, "/mapping-preview");
    let heard = site.hear(visitor, "folio", question, Some(&wanted), None).await?;
    let around = match Trouble::of(visitor, &heard.said, |_| Faults::new())? {
        None => Shown { preview: heard.said.json(), ..around },
        Some(trouble) => Shown { preview_fault: trouble.refused, ..around },
    };
    page(site, visitor, around, form, &Trouble::default())
}

/// What a preview shows: per field what it gave, and the records that an import would make.
fn preview(said: &Value) -> Value {
    let pretty = |it: &Value| serde_json::to_string_pretty(it).unwrap_or_default();
    let joined = |it: &Value, name: &str| {
        items(it, name)
            .iter()
            .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
            .collect::<Vec<_>>()
    };
    let is_asked = |it: &&Value| !text(it, "value").is_empty() || !items(it, "made").is_empty();
    let fields: Vec<Value> = items(said, "fields")
        .iter()
        .filter(is_asked)
        .map(|it| {
            json!({
                "path": text(it, "path"), "value": text(it, "value"), "made": joined(it, "made"),
                "faults": joined(it, "faults"),
            })
        })
        .collect();
    json!({
        "title": text(said, "record/title"), "marc": text(said, "record/marc"), "after": said["marcAfter"],
        "fields": fields, "made": items(said, "made").iter().map(pretty).collect::<Vec<_>>(),
        "faults": joined(said, "faults"),
    })
}

fn page(
    site: &Site,
    visitor: &Visitor,
    around: Shown<'_>,
    form: &Form,
    trouble: &Trouble,
) -> Result<Response> {
    let address = format!("/site/mapping/{}", encoded(around.id));
    let page = json!({
        "title_key": "edit_mapping", "form": form, "entities": ENTITIES, "is_marc_hidden": around.is_marc_hidden,
        "marc": marc_form::shown(&form.marc, &trouble.faults), "actions": marc_form::ACTIONS,
        "subactions": marc_form::SUBACTIONS, "has_marc": form.entity.starts_with("MARC_") || 1 < form.marc.len(), "is_new": around.id == NEW,
        "since": around.since, "record": around.record, "preview": around.preview.as_ref().map(preview),
        "preview_fault": around.preview_fault, "faults": trouble.faults, "refused": trouble.refused,
        "is_conflict": trouble.is_conflict, "action": address, "view": address,
    });
    let status = match trouble.status() {
        StatusCode::OK if around.preview_fault.is_some() => StatusCode::UNPROCESSABLE_ENTITY,
        status => status,
    };
    site.page(visitor, status, "edit_mapping.html", page)
}
