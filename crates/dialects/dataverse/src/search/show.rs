//! Search results as JSON.

use pinakes_store::{Expr, View};
use serde_json::{Map, Value, json};

use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::blocks::fields::Metadata;
use crate::citation::Cited;
use crate::collections::COLLECTION;
use crate::datasets::show::{Showing, publisher, shown_blocks};
use crate::datasets::version::VERSION;
use crate::datasets::{self, DATASET, Dataset, version};
use crate::error::ApiError;
use crate::files::kinds::{DATA_FILE, LOGO, ROW};
use crate::files::{Found, Row, rows, types};
use crate::search::document::DOCUMENT;
use crate::{clock, collections, stored};

/// Optional parts of an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shows {
    pub(crate) relevance: bool,
    pub(crate) facets: bool,
    pub(crate) entity_ids: bool,
    pub(crate) api_urls: bool,
    pub(crate) type_counts: bool,
    pub(crate) collections: bool,
    /// The metadata to show of a dataset.
    pub(crate) metadata: Vec<ShownField>,
}

/// A field of a metadata block, or all fields of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownField {
    block: String,
    /// `None` for all fields.
    field: Option<String>,
}

impl ShownField {
    /// Reads `block:field` or `block:*`; returns `None` for anything else.
    fn named(text: &str) -> Option<Self> {
        let (block, field) = text.split_once(':')?;
        let field = (field != "*").then(|| field.to_owned());
        Some(Self { block: block.to_owned(), field })
    }
}

/// Returns the wanted fields of a dataset's metadata, by block.
fn only(metadata: Value, wanted: &[ShownField]) -> Value {
    let Value::Object(mut blocks) = metadata else { return metadata };
    blocks.retain(|block, content| {
        let mut of_block = wanted.iter().filter(|it| it.block == *block).peekable();
        if of_block.peek().is_none() {
            return false;
        }
        let names: Option<Vec<&str>> = of_block.map(|it| it.field.as_deref()).collect();
        if let (Some(names), Some(fields)) = (names, content["fields"].as_array_mut()) {
            fields.retain(|it| it["typeName"].as_str().is_some_and(|name| names.contains(&name)));
        }
        true
    });
    blocks.into()
}

impl Shows {
    pub(super) fn of(call: &Call) -> Self {
        let is = |name| call.query.is_true(name);
        Self {
            relevance: is("show_relevance"),
            facets: is("show_facets"),
            entity_ids: is("show_entity_ids"),
            api_urls: is("show_api_urls"),
            type_counts: is("show_type_counts"),
            collections: is("show_collections"),
            metadata: call.query.all("metadata_fields").filter_map(ShownField::named).collect(),
        }
    }
}

/// Returns highlighted snippets with the words.
pub(super) fn matches(document: &Value, words: &[String]) -> Value {
    let mut list = Vec::new();
    let mut look = |field: &str, text: &str| {
        let Some(snippet) = marked(text, words) else { return };
        list.push(json!({field: {"snippets": [snippet]}}));
    };
    look("name", document["name"].as_str().unwrap_or_default());
    for (field, value) in document["fields"].as_object().into_iter().flatten() {
        match value {
            Value::String(text) => look(field, text),
            Value::Array(texts) => texts.iter().filter_map(Value::as_str).for_each(|it| look(field, it)),
            _ => {}
        }
    }
    list.into()
}

/// Number of characters shown around a match.
const AROUND: usize = 100;

fn marked(text: &str, words: &[String]) -> Option<String> {
    let lower = text.to_lowercase();
    if lower.len() != text.len() {
        return None;
    }
    let (at, length) = words.iter().find_map(|word| {
        let word = word.to_lowercase();
        lower.find(&word).map(|at| (at, word.len()))
    })?;
    let floor = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (floor(at.saturating_sub(AROUND)), floor((at + length + AROUND).min(text.len())));
    let escaped = crate::exports::xml::escaped;
    Some(format!(
        "{}<span class=\"search-term-match\">{}</span>{}",
        escaped(&text[start..at]),
        escaped(&text[at..at + length]),
        escaped(&text[at + length..end])
    ))
}

/// Results that are shown in one step.
pub(crate) const STEP_ITEMS: usize = 50;

/// Reads together what some results of a page show, for [`item`] to find: where each read takes a round trip.
pub(crate) fn read_ahead<'a>(
    view: &mut View<'_>,
    documents: impl Iterator<Item = &'a Value> + Clone,
) -> Result<(), ApiError> {
    if !view.is_remote() {
        return Ok(());
    }
    let ids = |ty: &'static str, name: &'static str| {
        let numbers = documents.clone().filter(move |it| it["type"] == ty).map(move |it| number(it, name));
        numbers.filter(|it| *it != 0).map(|it| it.to_string())
    };
    view.read_ahead(&DATA_FILE, ids("files", "entity"))?;
    view.read_ahead(&ROW, ids("files", "row"))?;
    view.read_ahead(&DATASET, ids("datasets", "dataset").chain(ids("files", "dataset")))?;
    view.read_ahead(&LOGO, ids("datasets", "dataset"))?;
    let collections =
        ids("datasets", "parent").chain(ids("dataverses", "entity")).chain(ids("dataverses", "parent"));
    view.read_ahead(&COLLECTION, collections)?;
    let mut versions: Vec<String> = ids("datasets", "version").collect();
    for id in ids("files", "dataset") {
        let Some(dataset) = stored::get::<Dataset>(view, &DATASET, &id)? else { continue };
        versions.extend(dataset.draft.map(|it| it.version.to_string()));
        versions.extend(dataset.released.or(dataset.last).map(|it| it.version.to_string()));
    }
    Ok(view.read_ahead(&VERSION, versions)?)
}

/// Returns a result; `None` if its object no longer exists.
pub(crate) fn item(
    view: &mut View<'_>,
    app: &Dataverse,
    asker: &Asker,
    site_url: &str,
    document: &Value,
    shows: &Shows,
) -> Result<Option<Value>, ApiError> {
    let item = match document["type"].as_str() {
        Some("dataverses") => collection(view, site_url, document)?,
        Some("datasets") => dataset(view, site_url, document, shows)?,
        _ => file(view, app, asker, site_url, document)?,
    };
    Ok(item.map(|mut map| {
        if shows.entity_ids {
            let id: i64 = document["entity"].as_str().and_then(|it| it.parse().ok()).unwrap_or_default();
            map.insert("entity_id".into(), id.into());
        }
        map.into()
    }))
}

fn kept(json: Value) -> Map<String, Value> {
    crate::envelope::object(json)
}

fn number(document: &Value, name: &str) -> i64 {
    match &document[name] {
        Value::String(text) => text.parse().unwrap_or_default(),
        other => other.as_i64().unwrap_or_default(),
    }
}

fn collection(
    view: &mut View<'_>,
    site_url: &str,
    document: &Value,
) -> Result<Option<Map<String, Value>>, ApiError> {
    let Some(it) = collections::by_id(view, number(document, "entity"))? else { return Ok(None) };
    let parent = it.parent.map(|id| collections::by_id(view, id)).transpose()?.flatten();
    let inside = Expr::Is("parent".into(), it.id.to_string().into())
        .and(Expr::Is("type".into(), "datasets".into()))
        .and(Expr::Is("public".into(), true.into()));
    let n_datasets = view.count(&DOCUMENT, &inside)?;
    let status = if it.is_released() { "Published" } else { "Unpublished" };
    Ok(Some(kept(json!({
        "name": it.name,
        "type": "dataverse",
        "url": format!("{site_url}/dataverse/{}", it.alias),
        "identifier": it.alias,
        "description": it.description,
        "published_at": it.publication_date.as_deref().unwrap_or(&it.creation_date),
        "publicationStatuses": [status],
        "affiliation": it.affiliation,
        "parentDataverseName": parent.as_ref().map(|it| it.name.clone()),
        "parentDataverseIdentifier": parent.as_ref().map(|it| it.alias.clone()),
        "image_url": collections::logo::url(view, site_url, it.id)?,
        "datasetCount": n_datasets,
    }))))
}

fn dataset(
    view: &mut View<'_>,
    site_url: &str,
    document: &Value,
    shows: &Shows,
) -> Result<Option<Map<String, Value>>, ApiError> {
    let Some(it) = datasets::by_id(view, number(document, "dataset"))? else { return Ok(None) };
    let Ok(version) = version::of_dataset(view, &it, number(document, "version")) else { return Ok(None) };
    let owner = collections::named_by_record(view, it.owner)?;
    let publisher = publisher(view)?;
    let cited = Cited::of(&it, &version, &publisher);
    let blocks = Value::Object(version.metadata_blocks.clone());
    let metadata = Metadata(&blocks);
    let list = |values: Vec<&str>| (!values.is_empty()).then(|| Value::from(values));
    let contacts: Vec<Value> = metadata
        .compounds("datasetContact")
        .iter()
        .map(|it| json!({"name": it.get("datasetContactName").unwrap_or_default(), "affiliation": it.get("datasetContactAffiliation").unwrap_or_default()}))
        .collect();
    let publications: Vec<Value> = metadata
        .compounds("publication")
        .iter()
        .map(|it| {
            kept(json!({
                "citation": it.get("publicationCitation"),
                "url": it.get("publicationURL"),
            }))
            .into()
        })
        .collect();
    let places: Vec<Value> = metadata
        .compounds("geographicCoverage")
        .iter()
        .map(|it| {
            kept(json!({
                "country": it.get("country"), "state": it.get("state"), "city": it.get("city"),
                "other": it.get("otherGeographicCoverage"),
            }))
            .into()
        })
        .collect();
    let n_files = crate::files::n_files(view, it.id, version.ordinal)?;
    let mut map = kept(json!({
        "name": metadata.one("title").unwrap_or_default(),
        "type": "dataset",
        "url": it.persistent_url(),
        "image_url": crate::thumbnails::url_of_dataset(view, site_url, &it, &version)?,
        "global_id": it.pid,
        "description": metadata.children("dsDescription", "dsDescriptionValue").join(" "),
        "published_at": version.release_time.as_deref().unwrap_or(&version.create_time),
        "publisher": owner.name,
        "citationHtml": cited.html(),
        "identifier_of_dataverse": owner.alias,
        "name_of_dataverse": owner.name,
        "citation": cited.text(),
        "publicationStatuses": document["statuses"],
        "storageIdentifier": it.storage_identifier,
        "keywords": list(metadata.children("keyword", "keywordValue")),
        "subjects": metadata.many("subject"),
        "fileCount": n_files,
        "versionId": version.id,
        "versionState": version.state.name(),
        "majorVersion": version.number,
        "minorVersion": version.minor,
        "createdAt": it.create_time,
        "updatedAt": version.last_update_time,
        "contacts": contacts,
        "publications": (!publications.is_empty()).then_some(publications),
        "producers": list(metadata.children("producer", "producerName")),
        "relatedMaterial": list(metadata.many("relatedMaterial")),
        "geographicCoverage": (!places.is_empty()).then_some(places),
        "dataSources": list(metadata.many("dataSources")),
        "authors": metadata.children("author", "authorName"),
    }));
    if !shows.metadata.is_empty() {
        let all = shown_blocks(view, &version, Showing::default())?;
        map.insert("metadataBlocks".into(), only(all, &shows.metadata));
    }
    if shows.collections {
        let mut holders = vec![owner];
        for link in crate::links::of(view, it.id)? {
            holders.extend(collections::by_id(view, link.collection)?);
        }
        let shown = holders.iter().map(|it| json!({"id": it.id, "name": it.name, "alias": it.alias}));
        map.insert("collections".into(), shown.collect());
    }
    if shows.api_urls {
        map.insert("api_url".into(), format!("{site_url}/api/datasets/{}", it.id).into());
    }
    Ok(Some(map))
}

fn file(
    view: &mut View<'_>,
    app: &Dataverse,
    asker: &Asker,
    site_url: &str,
    document: &Value,
) -> Result<Option<Map<String, Value>>, ApiError> {
    let Some(file) = rows::data_file(view, number(document, "entity"))? else { return Ok(None) };
    let row: Option<Row> = stored::get(view, &ROW, &number(document, "row").to_string())?;
    let Some(row) = row else { return Ok(None) };
    let found = Found::of(view, file)?;
    let (file, dataset) = (&found.file, &found.dataset);
    let is_public = document["public"] == true;
    let newest = if is_public {
        dataset.released.as_ref().map(|it| it.version)
    } else {
        dataset.draft.as_ref().map(|it| it.version)
    };
    let newest = newest.or_else(|| dataset.last.as_ref().map(|it| it.version)).unwrap_or_default();
    let Ok(version) = version::of_dataset(view, dataset, newest) else { return Ok(None) };
    let publisher = publisher(view)?;
    let cited = Cited::of(dataset, &version, &publisher);
    let today = clock::date(app.now_ms());
    let may = found.may_download(view, asker, &today)?;
    let is_image = crate::thumbnails::is_image(&file.content_type) && may;
    let url = format!("{site_url}/api/access/datafile/{}", file.id);
    let created = clock::instant(file.created_ms);
    Ok(Some(kept(json!({
        "name": file.original.as_ref().map_or(&row.label, |it| &it.name),
        "type": "file",
        "url": url,
        "image_url": is_image.then(|| format!("{url}?imageThumb=true")),
        "file_id": file.id.to_string(),
        "description": row.description,
        "published_at": created,
        "file_type": types::friendly(&file.content_type),
        "file_content_type": file.content_type,
        "size_in_bytes": file.size,
        "md5": (file.checksum_type == "MD5").then_some(&file.checksum),
        "checksum": {"type": file.checksum_type, "value": file.checksum},
        "unf": file.unf,
        "file_persistent_id": file.pid,
        "dataset_name": cited.title,
        "dataset_id": dataset.id.to_string(),
        "dataset_persistent_id": dataset.pid,
        "dataset_citation": cited.text(),
        "restricted": row.restricted,
        "variables": file.shape.map(|it| it.0),
        "observations": file.shape.map(|it| it.1),
        "canDownloadFile": may,
        "categories": (!row.categories.is_empty()).then_some(&row.categories),
        "tabularTags": (!file.tags.is_empty()).then_some(&file.tags),
        "publicationStatuses": document["statuses"],
        "releaseOrCreateDate": created,
    }))))
}
