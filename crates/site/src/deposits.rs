//! Pages of deposits (Dataverse).

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::Value;

use crate::app::{Site, Visitor};
use crate::deposit::metadata::blocks_of;
use crate::deposit::path_of;
use crate::error::Result;
use crate::fields::{Fields, encoded, encoded_rest};
use crate::preview::Showing;
use crate::record::{Action, Citable, Link, Record, bytes_shown, doi_of, items, text};
use crate::versions::{self, version_name};

/// Maximum number of files that a page lists.
const FILES_MAX: usize = 200;

pub(crate) async fn page(
    State(site): State<Site>,
    visitor: Visitor,
    Path(pid): Path<String>,
    fields: Fields,
) -> Result<Response> {
    let wanted = Some(fields.text("version")).filter(|it| !it.is_empty());
    let record = deposit(&site, &visitor, &pid, wanted).await;
    let shown = record.and_then(|it| site.record_page(&visitor, &it));
    site.shown(&visitor, shown)
}

/// Returns a version of a deposit; without a choice, the newest one that the visitor may see.
async fn deposit(site: &Site, visitor: &Visitor, pid: &str, wanted: Option<&str>) -> Result<Record> {
    let (path, may) = match wanted {
        Some(id) => (path_of(pid, &format!("/versions/{}", encoded(id).replace("%3A", ":"))), String::new()),
        None => (path_of(pid, ""), path_of(pid, "/userPermissions")),
    };
    let path = format!("{path}&excludeFiles=true");
    let (said, versions) = tokio::join!(site.read(visitor, "dataverse", &path), site.versions(visitor, pid));
    let said = said?;
    let it = &said["data"];
    let version = if wanted.is_some() { it } else { &it["latestVersion"] };
    let fields = items(version, "metadataBlocks/citation/fields");
    let field = |name: &str| fields.iter().find(|it| it["typeName"] == name).map(|it| &it["value"]);
    let parts = |name: &str, part: &str| field(name).map(|it| parts_of(it, part)).unwrap_or_default();
    let mut record = Record { kind_key: "deposit", ..Record::default() };
    record.title = field("title").and_then(Value::as_str).unwrap_or(pid).to_owned();
    record.lead = parts("dsDescription", "dsDescriptionValue").join("\n\n");
    let doi = doi_of(pid);
    let address =
        if doi.is_empty() { String::new() } else { format!("https://doi.org/{}", encoded_rest(&doi)) };
    record.fact("identifier", [Link::to(pid, address)]);
    record.plain("creator", parts("author", "authorName"));
    record.plain("contact", parts("datasetContact", "datasetContactName"));
    record.plain("publisher", [text(it, "publisher")]);
    record.plain("date", [text(it, "publicationDate")]);
    let like =
        |word: String| Link::to(word.clone(), format!("/site/search?q={}&in=deposits", encoded(&word)));
    let keywords = parts("keyword", "keywordValue");
    record.fact("keywords", keywords.iter().cloned().map(like));
    let subjects = field("subject").and_then(Value::as_array).into_iter().flatten();
    record.plain("subjects", subjects.filter_map(|it| it.as_str().map(str::to_owned)));
    record.fact("license", [Link::to(text(version, "license/name"), text(version, "license/uri"))]);
    record.plain("version", [version_name(version)]);
    record.blocks = blocks_of(site, visitor, version).await;
    let words = visitor.language.texts();
    if let Ok(list) = versions {
        let rows = versions::rows(pid, &list, words.get("differences_to").copied().unwrap_or_default());
        if 1 < rows.len() {
            record.table("versions", &["version", "date", "note", "differences"], rows, None);
        }
    }
    if !may.is_empty() && !visitor.caller.is_anonymous() {
        let may = site.read(visitor, "dataverse", &may).await.unwrap_or_default();
        if may["data"]["canEditDataset"] == true {
            let to = |what: &str| format!("/site/deposits/{what}/{}", encoded_rest(pid));
            record.actions.push(Action { key: "edit_deposit", href: to("edit") });
            record.actions.push(Action { key: "deposit_files", href: to("files") });
        }
    }
    let (files, n_files) = site.first_files(visitor, pid, version, FILES_MAX).await?;
    let look = words.get("look").copied().unwrap_or_default();
    let rows = files.iter().map(|it| file_row(site, visitor, it, look)).collect();
    record.table("files", &["file", "size", "type", "preview_head"], rows, Some(n_files));
    for (name, exporter) in
        [("Dublin Core", "oai_dc"), ("DataCite", "Datacite"), ("DDI", "ddi"), ("schema.org", "schema.org")]
    {
        let path = format!("/api/datasets/export?exporter={exporter}&persistentId={}", encoded(pid));
        let is_out = text(version, "versionState") == "RELEASED";
        if let Some(href) = site.href(visitor, "dataverse", &path).filter(|_| is_out) {
            record.exports.push(Link { text: name.to_owned(), href: Some(href) });
        }
    }
    record.cited_as(&Citable {
        title: record.title.clone(),
        creators: parts("author", "authorName"),
        date: text(it, "publicationDate"),
        publisher: text(it, "publisher"),
        doi,
        url: site.whole_url(visitor, &format!("/site/deposit/{}", encoded_rest(pid))),
        description: record.lead.clone(),
        keywords,
        license: text(version, "license/uri"),
    });
    Ok(record)
}

/// Returns a part of a compound field from each of its values.
fn parts_of(value: &Value, part: &str) -> Vec<String> {
    let list = value.as_array().map_or(&[][..], Vec::as_slice);
    list.iter().map(|it| text(it, &format!("{part}/value"))).filter(|it| !it.is_empty()).collect()
}

fn file_row(site: &Site, visitor: &Visitor, it: &Value, look: &str) -> Vec<Link> {
    let file = &it["dataFile"];
    let name = Some(text(it, "label")).filter(|it| !it.is_empty()).unwrap_or_else(|| text(file, "filename"));
    let folder = text(it, "directoryLabel");
    let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
    let path = format!("/api/access/datafile/{}", encoded(&text(file, "id")));
    let href = site.href(visitor, "dataverse", &path).filter(|_| it["restricted"] != true);
    let size = file["filesize"].as_f64().map(bytes_shown).unwrap_or_default();
    let content_type = text(file, "contentType");
    let preview = Showing::of(&content_type, &name).filter(|_| href.is_some());
    let preview =
        preview.map(|_| Link::to(look.to_owned(), format!("/site/preview/{}", encoded(&text(file, "id")))));
    vec![Link { text: name, href }, Link::plain(size), Link::plain(content_type), preview.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_have_two_numbers_or_are_drafts() {
        assert_eq!(version_name(&json!({"versionNumber": 2, "versionMinorNumber": 1})), "2.1");
        assert_eq!(version_name(&json!({"versionState": "DRAFT"})), "DRAFT");
    }
}
