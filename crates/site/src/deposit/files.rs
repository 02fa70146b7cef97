//! The files of a deposit, and actions on its draft: review, publication, deletion.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use super::{done, gone_on, path_of, upload};
use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::{Fields, encoded, encoded_rest};
use crate::record::{bytes_shown, items, text};

/// Maximum number of files that the page lists.
const FILES_MAX: usize = 500;

/// A file on the page.
#[derive(Serialize)]
struct File {
    id: String,
    name: String,
    size: String,
    content_type: String,
}

/// `GET /site/deposits/files/{pid}`
pub(crate) async fn page(
    State(site): State<Site>,
    visitor: Visitor,
    Path(pid): Path<String>,
) -> Result<Response> {
    let page = shown(&site, &visitor, &pid, Vec::new()).await;
    site.shown(&visitor, page)
}

/// Returns the page, with the errors of refused files at the top.
async fn shown(
    site: &Site,
    visitor: &Visitor,
    pid: &str,
    refused: Vec<(String, String)>,
) -> Result<Response> {
    if site.depositor(visitor).await?.is_none() {
        return Ok(gone_on("/site/deposits"));
    }
    let whole = format!("{}&excludeFiles=true", path_of(pid, ""));
    let (may, locks) = (path_of(pid, "/userPermissions"), path_of(pid, "/locks"));
    let (may, locks, whole) = tokio::join!(
        site.read(visitor, "dataverse", &may),
        site.read(visitor, "dataverse", &locks),
        site.read(visitor, "dataverse", &whole),
    );
    let (may, locks, whole) = (may?, locks?, whole?);
    let may = &may["data"];
    if may["canEditDataset"] != true && may["canPublishDataset"] != true {
        return Err(SiteError::Forbidden);
    }
    let version = &whole["data"]["latestVersion"];
    let locks: Vec<String> = items(&locks, "data").iter().map(|it| text(it, "lockType")).collect();
    let file = |it: &Value| {
        let folder = text(it, "directoryLabel");
        let name = text(it, "label");
        File {
            id: text(it, "dataFile/id"),
            name: if folder.is_empty() { name } else { format!("{folder}/{name}") },
            size: it["dataFile"]["filesize"].as_f64().map(bytes_shown).unwrap_or_default(),
            content_type: text(it, "dataFile/contentType"),
        }
    };
    let (files, n_files) = site.first_files(visitor, pid, version, FILES_MAX).await?;
    let files: Vec<File> = files.iter().map(file).collect();
    let is_draft = text(version, "versionState") == "DRAFT";
    let is_in_review = locks.iter().any(|it| it == "InReview");
    let citation = items(version, "metadataBlocks/citation/fields");
    let title = citation.iter().find(|it| it["typeName"] == "title").map(|it| text(it, "value"));
    let status_key = match (is_draft, is_in_review) {
        (true, true) => "in_review",
        (true, false) => "draft",
        _ => "released",
    };
    let other_locks: Vec<&String> = locks.iter().filter(|it| *it != "InReview").collect();
    let status = if refused.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let rest = encoded_rest(pid);
    let page = json!({
        "title_key": "deposit_files", "name": title.unwrap_or_else(|| pid.to_owned()), "pid": pid, "files": files,
        "n_all": n_files, "status_key": status_key, "is_draft": is_draft, "is_in_review": is_in_review,
        "was_released": !text(&whole, "data/publicationDate").is_empty(), "locks": other_locks,
        "can_edit": may["canEditDataset"], "can_publish": may["canPublishDataset"],
        "can_discard": may["canDeleteDatasetDraft"], "refused": refused, "here": format!("/site/deposits/files/{rest}"),
        "act": format!("/site/deposits/act/{rest}"), "edit": format!("/site/deposits/edit/{rest}"),
        "view": format!("/site/deposit/{rest}"),
    });
    site.page_with_script(visitor, status, "deposit_files.html", page, "upload.js")
}

/// `POST /site/deposits/files/{pid}`: a multipart form with files.
pub(crate) async fn upload(
    State(site): State<Site>,
    visitor: Visitor,
    Path(pid): Path<String>,
    body: Body,
) -> Result<Response> {
    let page = taken(&site, &visitor, &pid, body).await;
    site.shown(&visitor, page)
}

async fn taken(site: &Site, visitor: &Visitor, pid: &str, body: Body) -> Result<Response> {
    visitor.expect_own_page()?;
    if site.depositor(visitor).await?.is_none() {
        return Err(SiteError::Forbidden);
    }
    let outcome = upload::take(site, visitor, pid, body).await?;
    if outcome.refused.is_empty() {
        return Ok(gone_on(&format!("/site/deposits/files/{}", encoded_rest(pid))));
    }
    shown(site, visitor, pid, outcome.refused).await
}

/// `POST /site/deposits/act/{pid}`
pub(crate) async fn act(
    State(site): State<Site>,
    visitor: Visitor,
    Path(pid): Path<String>,
    body: Body,
) -> Result<Response> {
    let page = acted(&site, &visitor, &pid, body).await;
    site.shown(&visitor, page)
}

async fn acted(site: &Site, visitor: &Visitor, pid: &str, body: Body) -> Result<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    let (method, path, wanted) = asked(pid, &sent).ok_or(SiteError::NotFound)?;
    let is_sure = sent.text("sure") == "yes" || sent.text("action") != "discard";
    if !is_sure {
        return shown(site, visitor, pid, vec![(String::new(), "not_sure".to_owned())]).await;
    }
    let said = site.ask(visitor, "dataverse", method, &path, wanted.as_ref()).await?;
    if let Err(reason) = done(&said)? {
        return shown(site, visitor, pid, vec![(String::new(), reason)]).await;
    }
    let rest = encoded_rest(pid);
    Ok(match sent.text("action") {
        "publish" => gone_on(&format!("/site/deposit/{rest}")),
        "discard" => gone_on("/site/deposits"),
        _ => gone_on(&format!("/site/deposits/files/{rest}")),
    })
}

/// Returns the request that corresponds to an action.
fn asked(pid: &str, sent: &Fields) -> Option<(Method, String, Option<Value>)> {
    Some(match sent.text("action") {
        "publish" => {
            let kind = if sent.text("type") == "minor" { "minor" } else { "major" };
            (Method::POST, format!("{}&type={kind}", path_of(pid, "/actions/:publish")), None)
        }
        "submit" => (Method::POST, path_of(pid, "/submitForReview"), None),
        "return" => {
            let reason = json!({"reasonForReturn": sent.text("reason")});
            (Method::POST, path_of(pid, "/returnToAuthor"), Some(reason))
        }
        "discard" => (Method::DELETE, path_of(pid, "/versions/:draft"), None),
        "remove" => (Method::DELETE, format!("/api/files/{}", encoded(sent.text("file"))), None),
        _ => return None,
    })
}
