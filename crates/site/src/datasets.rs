//! Pages of datasets and published data (SciCat).

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::Result;
use crate::fields::{encoded, encoded_rest};
use crate::record::{Action, Citable, Link, Record, bytes_shown, doi_of, items, text, texts};

/// Maximum number of files that a page lists.
const FILES_MAX: u32 = 100;
/// Maximum number of values of scientific metadata that a page lists.
const VALUES_MAX: usize = 300;

pub(crate) async fn page(
    State(site): State<Site>,
    visitor: Visitor,
    Path(pid): Path<String>,
) -> Result<Response> {
    let record = dataset(&site, &visitor, &pid).await;
    let shown = record.and_then(|it| site.record_page(&visitor, &it));
    site.shown(&visitor, shown)
}

impl Site {
    /// Returns the page of a record.
    pub(crate) fn record_page(&self, visitor: &Visitor, record: &Record) -> Result<Response> {
        let page = json!({ "title_key": record.kind_key, "record": record });
        self.page(visitor, StatusCode::OK, "record.html", page)
    }

    /// Returns the full address of a page, for citations.
    pub(crate) fn whole_url(&self, visitor: &Visitor, path: &str) -> String {
        format!("{}{path}", pinakes_http::origin(&visitor.headers, &http::Extensions::new()))
    }
}

/// Returns a dataset that the visitor may see.
pub(crate) async fn dataset(site: &Site, visitor: &Visitor, pid: &str) -> Result<Record> {
    let path = format!("/api/v3/datasets/{}", encoded(pid));
    let it = site.read(visitor, "scicat", &path).await?;
    let of_dataset = encoded(&json!({"datasetId": pid}).to_string());
    let limits = encoded(&json!({"limit": FILES_MAX}).to_string());
    let files = format!("/api/v3/origdatablocks/fullquery/files?fields={of_dataset}&limits={limits}");
    let attachments = format!("{path}/attachments");
    let (files, attachments) =
        tokio::join!(site.read(visitor, "scicat", &files), site.read(visitor, "scicat", &attachments));
    let mut record = Record { kind_key: "dataset", lead: text(&it, "description"), ..Record::default() };
    let name = text(&it, "datasetName");
    record.title = if name.is_empty() { pid.to_owned() } else { name };
    record.image = attachments.ok().and_then(|it| it.as_array()?.iter().find_map(picture));
    facts(site, visitor, &it, &mut record);
    record.table("scientific_metadata", &["name", "value", "unit"], values(&it["scientificMetadata"]), None);
    if let Ok(files) = files {
        let rows = files.as_array().map_or(&[][..], Vec::as_slice).iter().map(file_row).collect();
        record.table("files", &["file", "size", "changed"], rows, it["numberOfFiles"].as_u64());
    }
    // A guess; SciCat checks the right when the dataset is changed.
    if visitor.caller.is_in_any(&[text(&it, "ownerGroup")]) || site.is_operator(visitor) {
        let href = format!("/site/edit/dataset/{}", encoded_rest(pid));
        record.actions.push(Action { key: "edit_metadata", href });
    }
    if let Some(href) = site.href(visitor, "scicat", &path) {
        record.exports.push(Link { text: "JSON".to_owned(), href: Some(href) });
    }
    let creators = [texts(&it, "owner", ""), texts(&it, "principalInvestigator", "")].concat();
    let date = text(&it, "creationTime");
    record.cited_as(&Citable {
        title: record.title.clone(),
        creators: distinct(creators),
        date: date.get(..10).unwrap_or_default().to_owned(),
        doi: doi_of(pid),
        url: site.whole_url(visitor, &format!("/site/dataset/{}", encoded_rest(pid))),
        description: record.lead.clone(),
        keywords: texts(&it, "keywords", ""),
        license: text(&it, "license"),
        ..Citable::default()
    });
    Ok(record)
}

fn facts(site: &Site, visitor: &Visitor, it: &Value, record: &mut Record) {
    let day = |name: &str| text(it, name).get(..10).unwrap_or_default().to_owned();
    record.plain("identifier", [text(it, "pid")]);
    record.plain("type", [text(it, "type")]);
    record.plain("owner", [text(it, "owner")]);
    let investigators =
        [texts(it, "principalInvestigators", ""), texts(it, "principalInvestigator", "")].concat();
    record.plain("investigator", distinct(investigators));
    record.plain("date", [day("creationTime")]);
    record.plain("location", [text(it, "creationLocation")]);
    let like =
        |word: String| Link::to(word.clone(), format!("/site/search?q={}&in=datasets", encoded(&word)));
    record.fact("keywords", texts(it, "keywords", "").into_iter().map(like));
    record.plain("techniques", texts(it, "techniques", "name"));
    record.plain("size", it["size"].as_f64().filter(|it| *it > 0.0).map(bytes_shown));
    record.plain("n_files", it["numberOfFiles"].as_u64().filter(|it| *it > 0).map(|it| it.to_string()));
    let datasets = texts(it, "inputDatasets", "").into_iter();
    record.fact(
        "input_datasets",
        datasets.map(|it| Link::to(it.clone(), format!("/site/dataset/{}", encoded_rest(&it)))),
    );
    let api = |path: &str, id: &str| site.href(visitor, "scicat", &format!("/api/v3/{path}/{}", encoded(id)));
    for (key, names, path) in [
        ("proposal", ["proposalIds", "proposalId"], "proposals"),
        ("sample", ["sampleIds", "sampleId"], "samples"),
        ("instrument", ["instrumentIds", "instrumentId"], "instruments"),
    ] {
        let ids = distinct(names.iter().flat_map(|name| texts(it, name, "")).collect());
        record.fact(key, ids.into_iter().map(|id| Link { href: api(path, &id), text: id }));
    }
    record.plain("license", [text(it, "license")]);
    record.plain("access", [if it["isPublished"] == true { "public" } else { "restricted" }.to_owned()]);
}

/// Returns a thumbnail that is a picture, as an address that browsers can display.
fn picture(it: &Value) -> Option<String> {
    let data = it.get("thumbnail")?.as_str()?;
    let kinds = ["data:image/png;base64,", "data:image/jpeg;base64,", "data:image/jpg;base64,"];
    let base64 = kinds.iter().find_map(|kind| data.strip_prefix(kind))?;
    let is_base64 = base64.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'='));
    is_base64.then(|| data.to_owned())
}

/// Returns rows of the scientific metadata: a value with its unit links to datasets with the same value.
fn values(metadata: &Value) -> Vec<Vec<Link>> {
    let mut rows = Vec::new();
    for (name, it) in metadata.as_object().into_iter().flatten().take(VALUES_MAX) {
        let (value, unit) = match it.get("value") {
            Some(value) => (value.clone(), text(it, "unit")),
            None => (it.clone(), String::new()),
        };
        let shown = match &value {
            Value::String(text) => text.clone(),
            Value::Null => continue,
            other => other.to_string(),
        };
        let is_searchable = (value.is_number() || value.is_string()) && shown.len() <= 200;
        let (in_name, in_value, in_unit) = (encoded(name), encoded(&shown), encoded(&unit));
        let like = format!("/site/search?in=datasets&name={in_name}&value={in_value}&unit={in_unit}");
        let value = if is_searchable { Link::to(shown, like) } else { Link::plain(shown) };
        rows.push(vec![Link::plain(name.clone()), value, Link::plain(unit)]);
    }
    rows
}

fn file_row(it: &Value) -> Vec<Link> {
    let file = it.get("dataFileList").unwrap_or(it);
    let size = file.get("size").and_then(Value::as_f64).map(bytes_shown).unwrap_or_default();
    let time = text(file, "time");
    let day = time.get(..10).unwrap_or_default();
    vec![Link::plain(text(file, "path")), Link::plain(size), Link::plain(day)]
}

fn distinct(names: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(names.len());
    for name in names.iter().flat_map(|it| it.split(';')).map(str::trim).filter(|it| !it.is_empty()) {
        if !out.iter().any(|it| it == name) {
            out.push(name.to_owned());
        }
    }
    out
}

pub(crate) async fn publication(
    State(site): State<Site>,
    visitor: Visitor,
    Path(doi): Path<String>,
) -> Result<Response> {
    let record = published(&site, &visitor, &doi).await;
    let shown = record.and_then(|it| site.record_page(&visitor, &it));
    site.shown(&visitor, shown)
}

/// Returns published data: the landing page of a SciCat DOI.
pub(crate) async fn published(site: &Site, visitor: &Visitor, doi: &str) -> Result<Record> {
    let path = format!("/api/v3/publisheddata/{}", encoded(doi));
    let it = site.read(visitor, "scicat", &path).await?;
    let mut record = Record {
        kind_key: "publication",
        title: text(&it, "title"),
        lead: text(&it, "abstract"),
        ..Record::default()
    };
    record.fact("identifier", [Link::to(doi, format!("https://doi.org/{}", encoded_rest(doi)))]);
    record.plain("creator", texts(&it, "creator", "name"));
    record.plain("publisher", [text(&it, "publisher")]);
    record.plain("year", [text(&it, "publicationYear")]);
    record.plain("type", [text(&it, "resourceType")]);
    record.plain("description", [text(&it, "dataDescription")]);
    let datasets = texts(&it, "pidArray", "").into_iter();
    record.fact(
        "datasets",
        datasets.map(|it| Link::to(it.clone(), format!("/site/dataset/{}", encoded_rest(&it)))),
    );
    record.fact("download", [text(&it, "downloadLink")].map(|it| Link::to(it.clone(), it)));
    record.plain(
        "related",
        items(&it, "relatedPublications").iter().filter_map(|it| it.as_str().map(str::to_owned)),
    );
    if let Some(href) = site.href(visitor, "scicat", &path) {
        record.exports.push(Link { text: "JSON".to_owned(), href: Some(href) });
    }
    record.cited_as(&Citable {
        title: record.title.clone(),
        creators: texts(&it, "creator", "name"),
        date: text(&it, "publicationYear"),
        publisher: text(&it, "publisher"),
        doi: doi.to_owned(),
        url: site.whole_url(visitor, &format!("/site/publication/{}", encoded_rest(doi))),
        description: record.lead.clone(),
        ..Citable::default()
    });
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_are_shown_as_pictures() {
        for (data, is_shown) in [
            ("data:image/png;base64,aGVsbG8=", true),
            ("data:image/svg+xml;base64,aGVsbG8=", false),
            ("data:image/png;base64,\"><script>", false),
            ("https://elsewhere.example.org/a.png", false),
        ] {
            assert_eq!(picture(&json!({"thumbnail": data})).is_some(), is_shown, "{data}");
        }
    }

    #[test]
    fn values_lead_to_their_like() {
        let rows = values(
            &json!({"T": {"value": 60, "unit": "C"}, "mode": "fast scan", "none": null, "list": [1, 2]}),
        );
        let row = |at: usize| rows.get(at).map(|it| it.iter().map(|it| it.text.as_str()).collect::<Vec<_>>());
        assert_eq!((row(0), rows.len()), (Some(vec!["T", "60", "C"]), 3));
        let href = |at: usize| rows[at][1].href.as_deref();
        assert_eq!(href(0), Some("/site/search?in=datasets&name=T&value=60&unit=C"));
        assert_eq!(href(1), Some("/site/search?in=datasets&name=mode&value=fast%20scan&unit="));
        assert_eq!(href(2), None);
    }
}
