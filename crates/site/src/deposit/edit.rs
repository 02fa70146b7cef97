//! New deposits, and changes of their metadata.

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

/// What a page of the form shows beside the form itself.
#[derive(Default)]
struct Around<'a> {
    /// The deposit that is changed; empty for a new one.
    pid: &'a str,
    /// The collection that was chosen, or that the deposit is in.
    collection: String,
    /// What may be chosen.
    collections: Vec<Link>,
    blocks: Vec<Block>,
    /// When the version that the form began with was changed last.
    since: String,
    /// The field that more rows were asked for.
    more: &'a str,
    /// What is wrong, by inputs and fields.
    faults: Faults,
    /// What Dataverse said against it that is about no field.
    refused: Option<String>,
}

impl Around<'_> {
    /// The same with what Dataverse said against the form.
    fn refused(mut self, visitor: &Visitor, message: &str, form: &Form) -> Self {
        (self.faults, self.refused) = refusal::places(message, &self.blocks, form, |key| visitor.text(key));
        self
    }
}

/// Faults that Dataverse does not look for.
fn own_faults(visitor: &Visitor, form: &Form, blocks: &[Block]) -> Faults {
    form.bad_orcids(blocks).into_iter().map(|it| (it, visitor.text("fault_orcid"))).collect()
}

/// The blocks that a collection has turned on, with the fields that it uses.
async fn blocks_of(site: &Site, visitor: &Visitor, collection: &str, sort: &str) -> Result<Vec<Block>> {
    let path = format!("/api/dataverses/{}/metadatablocks?returnDatasetFieldTypes=true", encoded(collection));
    let path = if sort.is_empty() { path } else { format!("{path}&datasetType={}", encoded(sort)) };
    Ok(Block::list(&site.read(visitor, "dataverse", &path).await?["data"]))
}

/// What a new deposit begins with, in the collection that is wanted, or else the first that there is.
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

/// Whoever deposits is the first to be written to.
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

/// What stands in place of a field's name where no more rows are asked for, and none are added.
const AS_SENT: &str = "/";

/// The blocks of a version with what the form says in them.
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

/// The newest version of a deposit that the visitor may change, and what stands around its form.
///
/// Errors: there is none.
async fn latest<'a>(site: &Site, visitor: &Visitor, pid: &'a str) -> Result<(Value, Around<'a>)> {
    let (may, path) = (path_of(pid, "/userPermissions"), path_of(pid, "/versions/:latest"));
    let may = site.read(visitor, "dataverse", &may).await?;
    if may["data"]["canEditDataset"] != true {
        return Err(SiteError::Forbidden);
    }
    // Who may change it sees its mail addresses, also where the server hides them: they would be lost.
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

/// The page of the form, with what can be chosen in it.
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
