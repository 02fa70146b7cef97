//! New deposits, and changes of their metadata.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::form::{Contact, Form};
use super::{done, gone_on, path_of};
use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::{Fields, encoded, encoded_rest};
use crate::record::{Link, items, text};

/// What a page of the form shows beside the form itself.
#[derive(Default)]
struct Around<'a> {
    /// The deposit that is changed; empty for a new one.
    pid: &'a str,
    /// The collection that was chosen.
    collection: &'a str,
    /// When the version that the form began with was changed last.
    since: String,
    /// Keys of faults of the form.
    faults: Vec<&'static str>,
    /// What Dataverse said against it.
    refused: Option<String>,
}

/// `GET /site/deposits/new?in=`
pub(crate) async fn new(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let page = empty(&site, &visitor, &fields).await;
    site.shown(&visitor, page)
}

async fn empty(site: &Site, visitor: &Visitor, fields: &Fields) -> Result<Response> {
    let Some(me) = site.depositor(visitor).await? else { return Ok(gone_on("/site/deposits")) };
    let contact = Contact { name: text(&me, "displayName"), email: text(&me, "email") };
    let form = Form { contacts: vec![contact], ..Form::default() }.with_empty_rows("");
    let around = Around { collection: fields.text("in"), ..Around::default() };
    shown(site, visitor, &form, &me, around).await
}

/// `POST /site/deposits/new`
pub(crate) async fn create(State(site): State<Site>, visitor: Visitor, body: Body) -> Result<Response> {
    let page = created(&site, &visitor, body).await;
    site.shown(&visitor, page)
}

async fn created(site: &Site, visitor: &Visitor, body: Body) -> Result<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    let Some(me) = site.depositor(visitor).await? else { return Ok(gone_on("/site/deposits")) };
    let form = Form::of_sent(&sent);
    let collection = sent.text("collection");
    let around = Around { collection, ..Around::default() };
    let more = sent.text("more");
    if !more.is_empty() {
        return shown(site, visitor, &form.with_empty_rows(more), &me, around).await;
    }
    let mut faults = form.faults();
    if collection.is_empty() {
        faults.push("fault_collection");
    }
    if !faults.is_empty() {
        return shown(site, visitor, &form.with_empty_rows("none"), &me, Around { faults, ..around }).await;
    }
    let blocks = json!({"citation": {"fields": form.applied(&[])}});
    let mut version = json!({"metadataBlocks": blocks});
    if !form.license.is_empty() {
        version["license"] = json!({"name": form.license});
    }
    let path = format!("/api/dataverses/{}/datasets", encoded(collection));
    let wanted = json!({"datasetVersion": version});
    let said = site.ask(visitor, "dataverse", Method::POST, &path, Some(&wanted)).await?;
    match done(&said)? {
        Ok(data) => {
            Ok(gone_on(&format!("/site/deposits/files/{}", encoded_rest(&text(&data, "persistentId")))))
        }
        Err(refused) => {
            let around = Around { refused: Some(refused), ..around };
            shown(site, visitor, &form.with_empty_rows("none"), &me, around).await
        }
    }
}

/// `GET /site/deposits/edit/{pid}`
pub(crate) async fn edit(
    State(site): State<Site>,
    visitor: Visitor,
    Path(pid): Path<String>,
) -> Result<Response> {
    let page = begun(&site, &visitor, &pid).await;
    site.shown(&visitor, page)
}

async fn begun(site: &Site, visitor: &Visitor, pid: &str) -> Result<Response> {
    let Some(me) = site.depositor(visitor).await? else { return Ok(gone_on("/site/deposits")) };
    let version = latest(site, visitor, pid).await?;
    let form = Form::of_version(&version).with_empty_rows("");
    let around = Around { pid, since: text(&version, "lastUpdateTime"), ..Around::default() };
    shown(site, visitor, &form, &me, around).await
}

/// The newest version of a deposit that the visitor may change.
///
/// Errors: there is none.
async fn latest(site: &Site, visitor: &Visitor, pid: &str) -> Result<Value> {
    let (may, path) = (path_of(pid, "/userPermissions"), path_of(pid, "/versions/:latest"));
    let may = site.read(visitor, "dataverse", &may).await?;
    if may["data"]["canEditDataset"] != true {
        return Err(SiteError::Forbidden);
    }
    let said = site.read(visitor, "dataverse", &format!("{path}&excludeFiles=true")).await?;
    Ok(said["data"].clone())
}

/// `POST /site/deposits/edit/{pid}`
pub(crate) async fn save(
    State(site): State<Site>,
    visitor: Visitor,
    Path(pid): Path<String>,
    body: Body,
) -> Result<Response> {
    let page = saved(&site, &visitor, &pid, body).await;
    site.shown(&visitor, page)
}

async fn saved(site: &Site, visitor: &Visitor, pid: &str, body: Body) -> Result<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    let Some(me) = site.depositor(visitor).await? else { return Ok(gone_on("/site/deposits")) };
    let form = Form::of_sent(&sent);
    let since = sent.text("since").to_owned();
    let around = Around { pid, since, ..Around::default() };
    let more = sent.text("more");
    if !more.is_empty() {
        return shown(site, visitor, &form.with_empty_rows(more), &me, around).await;
    }
    let faults = form.faults();
    if !faults.is_empty() {
        return shown(site, visitor, &form.with_empty_rows("none"), &me, Around { faults, ..around }).await;
    }
    let mut version = latest(site, visitor, pid).await?;
    let fields = form.applied(items(&version, "metadataBlocks/citation/fields"));
    version["metadataBlocks"]["citation"]["fields"] = fields.into();
    if let Some(map) = version.as_object_mut() {
        map.remove("files");
        if !form.license.is_empty() && text(&map["license"], "name") != form.license {
            map.insert("license".to_owned(), json!({"name": form.license}));
        }
    }
    let path =
        format!("{}&sourceLastUpdateTime={}", path_of(pid, "/versions/:draft"), encoded(&around.since));
    let said = site.ask(visitor, "dataverse", Method::PUT, &path, Some(&version)).await?;
    match done(&said)? {
        Ok(_) => Ok(gone_on(&format!("/site/deposits/files/{}", encoded_rest(pid)))),
        Err(refused) => {
            let around = Around { refused: Some(refused), ..around };
            shown(site, visitor, &form.with_empty_rows("none"), &me, around).await
        }
    }
}

/// The page of the form, with what can be chosen in it.
async fn shown(
    site: &Site,
    visitor: &Visitor,
    form: &Form,
    me: &Value,
    around: Around<'_>,
) -> Result<Response> {
    let is_new = around.pid.is_empty();
    let name = text(me, "identifier");
    let path = format!("/api/users/{}/allowedCollections/AddDataset", encoded(name.trim_start_matches('@')));
    let (blocks, licenses) = tokio::join!(
        site.read(visitor, "dataverse", "/api/metadatablocks/citation"),
        site.read(visitor, "dataverse", "/api/licenses"),
    );
    let (blocks, licenses) = (blocks?, licenses?);
    let mut collections: Vec<Link> = Vec::new();
    if is_new {
        let said = site.read(visitor, "dataverse", &path).await?;
        let of = |it: &Value| Link { text: text(it, "name"), href: Some(text(it, "alias")) };
        collections = items(&said, "data/items").iter().map(of).collect();
    }
    let subjects = items(&blocks, "data/fields/subject/controlledVocabularyValues");
    let subjects: Vec<(&str, bool)> = subjects
        .iter()
        .filter_map(Value::as_str)
        .map(|it| (it, form.subjects.iter().any(|chosen| chosen == it)))
        .collect();
    let offered: Vec<&Value> = items(&licenses, "data").iter().filter(|it| it["active"] != false).collect();
    let default = offered.iter().find(|it| it["isDefault"] == true).map(|it| text(it, "name"));
    let chosen =
        if is_new && form.license.is_empty() { default.unwrap_or_default() } else { form.license.clone() };
    let licenses: Vec<String> = offered.iter().map(|it| text(it, "name")).collect();
    let is_wrong = !around.faults.is_empty() || around.refused.is_some();
    let status = if is_wrong { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let action = match is_new {
        true => "/site/deposits/new".to_owned(),
        false => format!("/site/deposits/edit/{}", encoded_rest(around.pid)),
    };
    let page = json!({
        "title_key": if is_new { "new_deposit" } else { "edit_deposit" }, "form": form, "subjects": subjects,
        "licenses": licenses, "license": chosen, "collections": collections, "collection": around.collection,
        "faults": around.faults, "refused": around.refused, "is_new": is_new, "action": action,
        "since": around.since, "back": format!("/site/deposit/{}", encoded_rest(around.pid)),
    });
    site.page(visitor, status, "deposit_form.html", page)
}
