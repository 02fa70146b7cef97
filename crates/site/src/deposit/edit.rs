//! New deposits, and changes of their metadata.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::description::Block;
use super::form::{Faults, Form, fields_of};
use super::view::View;
use super::{done, gone_on, path_of, refusal};
use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::{Fields, encoded, encoded_rest};
use crate::record::{Link, items, text};

/// What a page of the form shows in addition to the form itself.
#[derive(Default)]
struct Around<'a> {
    /// The deposit that is being changed; empty for a new one.
    pid: &'a str,
    /// The collection that was chosen, or that contains the deposit.
    collection: String,
    /// The collections to choose from.
    collections: Vec<Link>,
    blocks: Arc<[Block]>,
    /// When the version that the form was filled from was last changed.
    since: String,
    /// The field for which more rows were requested.
    more: &'a str,
    /// Faults by inputs and fields.
    faults: Faults,
    /// Dataverse's error message, if it is about no field.
    refused: Option<String>,
}

impl Around<'_> {
    /// Adds Dataverse's error message about the form.
    fn refused(mut self, visitor: &Visitor, message: &str, form: &Form) -> Self {
        (self.faults, self.refused) = refusal::places(message, &self.blocks, form, |key| visitor.text(key));
        self
    }
}

/// Returns faults that Dataverse does not check.
fn own_faults(visitor: &Visitor, form: &Form, blocks: &[Block]) -> Faults {
    form.bad_orcids(blocks).into_iter().map(|it| (it, visitor.text("fault_orcid"))).collect()
}

/// Returns the blocks that a collection has enabled, with the fields that it uses.
async fn blocks_of(site: &Site, visitor: &Visitor, collection: &str, sort: &str) -> Result<Arc<[Block]>> {
    let path = format!("/api/dataverses/{}/metadatablocks?returnDatasetFieldTypes=true", encoded(collection));
    let path = if sort.is_empty() { path } else { format!("{path}&datasetType={}", encoded(sort)) };
    site.described(visitor, &path).await
}

/// Returns the surroundings of a new deposit, in the requested collection, or else in the first one.
async fn around_new<'a>(
    site: &Site,
    visitor: &Visitor,
    me: &Value,
    wanted: &str,
    more: &'a str,
) -> Result<Around<'a>> {
    let name = text(me, "identifier");
    let path = format!("/api/users/{}/allowedCollections/AddDataset", encoded(name.trim_start_matches('@')));
    let said = site.read(visitor, "dataverse", &path).await?;
    let of = |it: &Value| Link { text: text(it, "name"), href: Some(text(it, "alias")) };
    let collections: Vec<Link> = items(&said, "data/items").iter().map(of).collect();
    let chosen =
        collections.iter().find(|it| it.href.as_deref() == Some(wanted)).or_else(|| collections.first());
    let Some(collection) = chosen.and_then(|it| it.href.clone()) else { return Ok(Around::default()) };
    let blocks = blocks_of(site, visitor, &collection, "").await?;
    Ok(Around { collection, collections, blocks, more, ..Around::default() })
}

/// `GET /site/deposits/new?in=`
pub(crate) async fn new(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let page = empty(&site, &visitor, &fields).await;
    site.shown(&visitor, page)
}

async fn empty(site: &Site, visitor: &Visitor, fields: &Fields) -> Result<Response> {
    let Some(me) = site.depositor(visitor).await? else { return Ok(gone_on("/site/deposits")) };
    let around = around_new(site, visitor, &me, fields.text("in"), "").await?;
    let mut form = Form::default();
    suggest_contact(&mut form, &around.blocks, &me);
    shown(site, visitor, &form.with_empty_rows(&around.blocks, ""), around).await
}

/// Suggests the depositor as the first contact.
fn suggest_contact(form: &mut Form, blocks: &[Block], me: &Value) {
    let contact =
        [("datasetContactName", text(me, "displayName")), ("datasetContactEmail", text(me, "email"))];
    form.suggest(blocks, "datasetContact", &contact);
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
    let around = around_new(site, visitor, &me, sent.text("collection"), sent.text("more")).await?;
    let form = Form::of_sent(&sent, &around.blocks);
    if !around.more.is_empty() {
        return shown(site, visitor, &form.with_empty_rows(&around.blocks, around.more), around).await;
    }
    let faults = own_faults(visitor, &form, &around.blocks);
    if !faults.is_empty() || around.collection != sent.text("collection") {
        let refused = faults.is_empty().then(|| visitor.text("fault_collection"));
        let form = form.with_empty_rows(&around.blocks, AS_SENT);
        return shown(site, visitor, &form, Around { faults, refused, ..around }).await;
    }
    let mut version = json!({"metadataBlocks": {"citation": {"fields": []}}});
    put_blocks(&mut version, &form, &around.blocks);
    if !form.license.is_empty() {
        version["license"] = json!({"name": form.license});
    }
    let path = format!("/api/dataverses/{}/datasets", encoded(&around.collection));
    let wanted = json!({"datasetVersion": version});
    let said = site.ask(visitor, "dataverse", Method::POST, &path, Some(&wanted)).await?;
    match done(&said)? {
        Ok(data) => {
            Ok(gone_on(&format!("/site/deposits/files/{}", encoded_rest(&text(&data, "persistentId")))))
        }
        Err(message) => {
            let form = form.with_empty_rows(&around.blocks, AS_SENT);
            let around = around.refused(visitor, &message, &form);
            shown(site, visitor, &form, around).await
        }
    }
}

/// Used instead of a field's name if no more rows are requested, so that none are added.
const AS_SENT: &str = "/";

/// Puts the values of the form into the blocks of a version.
fn put_blocks(version: &mut Value, form: &Form, blocks: &[Block]) {
    for block in blocks {
        let before = fields_of(version, &block.name);
        let fields = form.applied(block, before);
        if !fields.is_empty() || !before.is_empty() {
            version["metadataBlocks"][&block.name]["fields"] = fields.into();
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
    if site.depositor(visitor).await?.is_none() {
        return Ok(gone_on("/site/deposits"));
    }
    let (version, around) = latest(site, visitor, pid).await?;
    let form = Form::of_version(&version, &around.blocks).with_empty_rows(&around.blocks, "");
    shown(site, visitor, &form, around).await
}

/// Returns the newest version of a deposit that the visitor may change, and the surroundings of its form.
///
/// Errors: there is none.
async fn latest<'a>(site: &Site, visitor: &Visitor, pid: &'a str) -> Result<(Value, Around<'a>)> {
    let (may, path) = (path_of(pid, "/userPermissions"), path_of(pid, "/versions/:latest"));
    let may = site.read(visitor, "dataverse", &may).await?;
    if may["data"]["canEditDataset"] != true {
        return Err(SiteError::Forbidden);
    }
    // A visitor who may change the deposit gets its mail addresses even if the server hides them: otherwise
    // they would be lost.
    let path = format!("{path}&excludeFiles=true&returnOwners=true&ignoreSettingExcludeEmailFromExport=true");
    let said = site.read(visitor, "dataverse", &path).await?;
    let version = said["data"].clone();
    let collection = text(&version, "isPartOf/identifier");
    let blocks = blocks_of(site, visitor, &collection, &text(&version, "datasetType")).await?;
    let since = text(&version, "lastUpdateTime");
    Ok((version, Around { pid, collection, blocks, since, ..Around::default() }))
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
    if site.depositor(visitor).await?.is_none() {
        return Ok(gone_on("/site/deposits"));
    }
    let (mut version, around) = latest(site, visitor, pid).await?;
    let around = Around { since: sent.text("since").to_owned(), more: sent.text("more"), ..around };
    let form = Form::of_sent(&sent, &around.blocks);
    if !around.more.is_empty() {
        return shown(site, visitor, &form.with_empty_rows(&around.blocks, around.more), around).await;
    }
    let faults = own_faults(visitor, &form, &around.blocks);
    if !faults.is_empty() {
        let form = form.with_empty_rows(&around.blocks, AS_SENT);
        return shown(site, visitor, &form, Around { faults, ..around }).await;
    }
    put_blocks(&mut version, &form, &around.blocks);
    if let Some(map) = version.as_object_mut() {
        map.retain(|name, _| !matches!(name.as_str(), "files" | "isPartOf"));
        if !form.license.is_empty() && text(&map["license"], "name") != form.license {
            map.insert("license".to_owned(), json!({"name": form.license}));
        }
    }
    let path =
        format!("{}&sourceLastUpdateTime={}", path_of(pid, "/versions/:draft"), encoded(&around.since));
    let said = site.ask(visitor, "dataverse", Method::PUT, &path, Some(&version)).await?;
    match done(&said)? {
        Ok(_) => Ok(gone_on(&format!("/site/deposits/files/{}", encoded_rest(pid)))),
        Err(message) => {
            let form = form.with_empty_rows(&around.blocks, AS_SENT);
            let around = around.refused(visitor, &message, &form);
            shown(site, visitor, &form, around).await
        }
    }
}

/// Returns the page of the form, with the options to choose from.
async fn shown(site: &Site, visitor: &Visitor, form: &Form, around: Around<'_>) -> Result<Response> {
    let is_new = around.pid.is_empty();
    let licenses = site.read(visitor, "dataverse", "/api/licenses").await?;
    let offered: Vec<&Value> = items(&licenses, "data").iter().filter(|it| it["active"] != false).collect();
    let default = offered.iter().find(|it| it["isDefault"] == true).map(|it| text(it, "name"));
    let chosen =
        if is_new && form.license.is_empty() { default.unwrap_or_default() } else { form.license.clone() };
    let mut licenses: Vec<String> = offered.iter().map(|it| text(it, "name")).collect();
    if !chosen.is_empty() && !licenses.contains(&chosen) {
        licenses.push(chosen.clone());
    }
    let is_wrong = !around.faults.is_empty() || around.refused.is_some();
    let status = if is_wrong { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let action = match is_new {
        true => "/site/deposits/new".to_owned(),
        false => format!("/site/deposits/edit/{}", encoded_rest(around.pid)),
    };
    let view = View { language: visitor.language, form, faults: &around.faults, more: around.more };
    let page = json!({
        "title_key": if is_new { "new_deposit" } else { "edit_deposit" }, "blocks": view.blocks(&around.blocks),
        "licenses": licenses, "license": chosen, "collections": around.collections, "collection": around.collection,
        "faults": view.faults(&around.blocks), "refused": around.refused, "is_new": is_new, "action": action,
        "since": around.since, "back": format!("/site/deposit/{}", encoded_rest(around.pid)),
    });
    site.page(visitor, status, "deposit_form.html", page)
}
