//! Indexing: one document for each collection, and for each published and each unpublished state of a dataset and of a
//! file, written in the transaction that changes them.

use pinakes_store::{Expr, Query, Txn, View};
use serde_json::{Map, Value, json};

use super::place;
use super::query::{HARVESTED, facet_value};
use crate::app::Dataverse;
use crate::asker::Asker;
use crate::blocks::FieldKind;
use crate::blocks::fields::Metadata;
use crate::datasets::{self, Dataset, Version, version};
use crate::error::ApiError;
use crate::files::json::publications;
use crate::files::kinds::DATA_FILE;
use crate::files::{DataFile, Found, rows, types};
use crate::search::document::{self, DOCUMENT};
use crate::search::visible;
use crate::{clock, collections, licenses, stored};

/// Deletes all documents of a dataset and of its files.
pub(crate) fn forget_dataset(txn: &mut Txn<'_>, dataset: i64) -> Result<(), ApiError> {
    for id in rows::ids_of(txn, &DOCUMENT, Expr::Is("dataset".into(), dataset.into()))? {
        txn.delete(&DOCUMENT, &id)?;
    }
    Ok(())
}

/// Deletes the documents of a collection or dataset that was deleted.
pub(crate) fn forget_object(txn: &mut Txn<'_>, id: i64) -> Result<(), ApiError> {
    document::forget(txn, &format!("dataverse_{id}"))?;
    forget_dataset(txn, id)
}

/// Returns a collection and those above it, the root first.
fn chain(view: &mut View<'_>, collection: i64) -> Result<Vec<i64>, ApiError> {
    let nearest = collections::named_by_record(view, collection)?;
    let mut above = collections::with_owners(view, nearest)?;
    above.sort_by_key(|it| it.parent.is_some());
    let mut chain: Vec<i64> = Vec::new();
    let mut at = Some(collection);
    while let Some(id) = at {
        chain.push(id);
        at = above.iter().find(|it| it.id == id).and_then(|it| it.parent);
        if collections::DEPTH < chain.len() {
            break;
        }
    }
    chain.reverse();
    Ok(chain)
}

/// Returns the paths of a collection and of those above it: `/1/42/57`.
fn paths(view: &mut View<'_>, collection: i64) -> Result<Vec<String>, ApiError> {
    let mut path = String::new();
    Ok(chain(view, collection)?
        .into_iter()
        .map(|id| {
            path.push_str(&format!("/{id}"));
            path.clone()
        })
        .collect())
}

/// Stores a document, unless it is stored so already: a publication concerns all files of a dataset and changes few.
fn put(txn: &mut Txn<'_>, id: &str, mut document: Value) -> Result<(), ApiError> {
    document["id"] = id.into();
    match txn.get(&DOCUMENT, id)? {
        Some(before) if before.json()? == document => Ok(()),
        _ => stored::put(txn, &DOCUMENT, id, &document),
    }
}

fn sort_name(name: &str) -> String {
    name.to_lowercase().chars().take(200).collect()
}

/// Indexes a collection that was created or changed.
pub(crate) fn index_collection(txn: &mut Txn<'_>, id: i64) -> Result<(), ApiError> {
    let Some(it) = collections::by_id(txn, id)? else {
        return document::forget(txn, &format!("dataverse_{id}"));
    };
    // The root collection is not searchable.
    let Some(parent) = it.parent else { return Ok(()) };
    let is_public = it.is_released();
    let mut facets =
        vec![facet_value("publicationStatus", if is_public { "Published" } else { "Unpublished" })];
    if it.dataverse_type != "UNCATEGORIZED" {
        facets.push(facet_value("dvCategory", &category(&it.dataverse_type)));
    }
    facets.push(facet_value("metadataSource", &collections::named_by_record(txn, collections::ROOT)?.name));
    let mut subtree = paths(txn, parent)?;
    for link in crate::links::of(txn, id)? {
        subtree.extend(paths(txn, link.collection)?);
    }
    let text = [
        &it.name,
        &it.alias,
        it.affiliation.as_deref().unwrap_or_default(),
        it.description.as_deref().unwrap_or_default(),
    ]
    .map(str::to_owned);
    let document = json!({
        "type": "dataverses",
        "entity": id.to_string(),
        "identifier": it.alias,
        "parent": parent.to_string(),
        "name": it.name,
        "sortName": sort_name(&it.name),
        "date": it.publication_date.as_deref().unwrap_or(&it.creation_date),
        "public": is_public,
        "seenBy": if is_public { vec![] } else { vec![document::seen_by(id)] },
        "subtree": subtree,
        "above": chain(txn, id)?,
        "facetValues": facets,
        "fields": {
            "affiliation": it.affiliation, "name": it.name, "dvDescription": it.description,
            "parentName": collections::named_by_record(txn, parent)?.name,
        },
        "text": text.join("\n"),
    });
    put(txn, &format!("dataverse_{id}"), document)
}

/// Returns the display name of a type of collections, such as `LABORATORY`.
pub(crate) fn category(kind: &str) -> String {
    match kind {
        "RESEARCHERS" => "Researcher".to_owned(),
        "RESEARCH_PROJECTS" => "Research Project".to_owned(),
        "JOURNALS" => "Journal".to_owned(),
        "ORGANIZATIONS_INSTITUTIONS" => "Organization or Institution".to_owned(),
        "TEACHING_COURSES" => "Teaching Course".to_owned(),
        other => {
            let words = other.split('_').map(|it| {
                let lower = it.to_lowercase();
                let mut letters = lower.chars();
                letters.next().map_or(String::new(), |first| {
                    first.to_uppercase().collect::<String>() + letters.as_str()
                })
            });
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

/// Indexes a dataset after it, or one of its versions, was created or changed. Indexes its files only if necessary.
pub(crate) fn index_dataset(txn: &mut Txn<'_>, app: &Dataverse, id: i64) -> Result<(), ApiError> {
    let Some(dataset) = datasets::by_id(txn, id)? else { return forget_dataset(txn, id) };
    let (public_id, draft_id) = (format!("dataset_{id}"), format!("dataset_{id}_draft"));
    let released = dataset.released.as_ref().map(|it| it.version);
    let before = txn.get(&DOCUMENT, &public_id)?.map(|it| it.json()).transpose()?;
    let before_draft = txn.get(&DOCUMENT, &draft_id)?.is_some();
    let withdrawn = dataset.last.as_ref().map(|it| it.version).filter(|_| released.is_none());
    match released {
        Some(version) => {
            let version = version::of_dataset(txn, &dataset, version)?;
            let document = dataset_document(txn, &dataset, &version)?;
            put(txn, &public_id, document)?;
        }
        None => document::forget(txn, &public_id)?,
    }
    let deaccessioned_id = format!("dataset_{id}_deaccessioned");
    match withdrawn {
        Some(version) => {
            let version = version::of_dataset(txn, &dataset, version)?;
            let document = dataset_document(txn, &dataset, &version)?;
            put(txn, &deaccessioned_id, document)?;
        }
        None => document::forget(txn, &deaccessioned_id)?,
    }
    match &dataset.draft {
        Some(draft) => {
            let version = version::of_dataset(txn, &dataset, draft.version)?;
            let document = dataset_document(txn, &dataset, &version)?;
            put(txn, &draft_id, document)?;
        }
        None => document::forget(txn, &draft_id)?,
    }
    // A publication, deaccession, deleted draft or move also changes the documents of the files.
    let shown = before.as_ref().and_then(|it| it["version"].as_i64());
    let moved = before.as_ref().is_some_and(|it| it["parent"] != dataset.owner);
    if shown != released || moved || (before_draft && dataset.draft.is_none()) {
        index_files(txn, app, &dataset)?;
    }
    Ok(())
}

/// Indexes a dataset and all its files.
pub(crate) fn index_whole_dataset(txn: &mut Txn<'_>, app: &Dataverse, id: i64) -> Result<(), ApiError> {
    index_dataset(txn, app, id)?;
    match datasets::by_id(txn, id)? {
        Some(dataset) => index_files(txn, app, &dataset),
        None => Ok(()),
    }
}

/// Indexes all files of a dataset.
fn index_files(txn: &mut Txn<'_>, app: &Dataverse, dataset: &Dataset) -> Result<(), ApiError> {
    let of = Expr::Is("dataset".into(), dataset.id.into());
    let shared = Shared::of(txn, app, dataset)?;
    for step in rows::ids_of(txn, &DATA_FILE, of)?.chunks(rows::STEP_FILES) {
        txn.read_ahead(&DATA_FILE, step.iter().cloned())?;
        for id in step {
            if let Some(file) = stored::get(txn, &DATA_FILE, id)? {
                index_file_of(txn, &shared, dataset, file)?;
            }
        }
    }
    Ok(())
}

/// Returns the publication statuses: `Published`, `Unpublished`, `Draft`, `In Review`, `Deaccessioned`.
fn statuses(dataset: &Dataset, version: &Version) -> Vec<&'static str> {
    let mut list = Vec::new();
    match version.state {
        datasets::State::Released => list.push("Published"),
        datasets::State::Deaccessioned => list.push("Deaccessioned"),
        datasets::State::Draft => {
            if !dataset.was_released() {
                list.push("Unpublished");
            }
            list.push("Draft");
            if dataset.locks.iter().any(|it| it.lock_type == "InReview") {
                list.push("In Review");
            }
        }
    }
    list
}

/// Returns the date that results are ordered by: when the version was created or, once it is released, when its major
/// version was.
fn sort_date(view: &mut View<'_>, dataset: &Dataset, version: &Version) -> Result<String, ApiError> {
    let own = version.release_time.as_ref().unwrap_or(&version.create_time).clone();
    let Some(number) = version.number.filter(|_| version.minor.is_some_and(|it| it != 0)) else {
        return Ok(own);
    };
    let all = version::newest_first(view, dataset)?;
    let major = all.into_iter().find(|it| it.number == Some(number) && it.minor == Some(0));
    Ok(major.and_then(|it| it.release_time).unwrap_or(own))
}

fn dataset_document(view: &mut View<'_>, dataset: &Dataset, version: &Version) -> Result<Value, ApiError> {
    let blocks = Value::Object(version.metadata_blocks.clone());
    let metadata = Metadata(&blocks);
    let is_public = version.state == datasets::State::Released;
    let statuses = statuses(dataset, version);
    let mut facets: Vec<String> = statuses.iter().map(|it| facet_value("publicationStatus", it)).collect();
    let (mut fields, mut numbers) = (Map::new(), Map::new());
    let mut text = vec![dataset.pid.clone(), dataset.identifier.clone(), dataset.persistent_url()];
    let registry = crate::registry::of_view(view)?;
    // Mail addresses are not indexed, because a site may hide them.
    let is_mail = |name: &str| registry.field(name).is_some_and(|it| it.kind == FieldKind::Email);
    let mut note = |name: &str, values: &[&str]| {
        note(name, values, &mut fields, &mut text, &mut numbers);
        if registry.field(name).is_some_and(|it| it.is_facetable) {
            facets.extend(facets_of(name, values));
        }
    };
    for (_, list) in metadata.blocks() {
        for field in list {
            let name = field["typeName"].as_str().unwrap_or_default();
            let own = if is_mail(name) { Vec::new() } else { metadata.many(name) };
            if !own.is_empty() {
                note(name, &own);
            }
            for it in metadata.compounds(name) {
                for (child, values) in it.children().into_iter().filter(|it| !is_mail(it.0)) {
                    note(child, &values);
                }
            }
        }
    }
    fields.insert("datasetType".to_owned(), dataset.dataset_type.as_str().into());
    let root = collections::named_by_record(view, collections::ROOT)?.name;
    facets.push(facet_value("metadataSource", dataset.harvest_source.as_ref().unwrap_or(&root)));
    if dataset.harvested_by.is_some() {
        facets.push(facet_value(HARVESTED, "true"));
    }
    facets.push(facet_value("datasetType", &dataset.dataset_type));
    let owner = collections::named_by_record(view, dataset.owner)?;
    fields.insert("parentName".to_owned(), owner.name.as_str().into());
    if owner.dataverse_type != "UNCATEGORIZED" {
        facets.push(facet_value("dvCategory", &category(&owner.dataverse_type)));
    }
    if let Some(license) = version.license.map(|id| licenses::by_id(view, id)).transpose()?.flatten() {
        facets.push(facet_value("license", &license.name));
    }
    if let Some(year) = dataset.publication_date.as_deref().and_then(|it| it.get(..4)) {
        facets.push(facet_value("publicationDate", year));
    }
    let mut subtree = paths(view, dataset.owner)?;
    for link in crate::links::of(view, dataset.id)? {
        subtree.extend(paths(view, link.collection)?);
    }
    let title = metadata.one("title").unwrap_or_default();
    facets.sort();
    facets.dedup();
    let mut document = json!({
        "type": "datasets",
        "entity": dataset.id.to_string(),
        "dataset": dataset.id,
        "version": version.id,
        "pid": dataset.pid,
        "identifier": dataset.identifier,
        "parent": dataset.owner.to_string(),
        "name": title,
        "sortName": sort_name(title),
        "date": sort_date(view, dataset, version)?,
        "changed": version.published(),
        "public": is_public,
        "seenBy": if is_public { vec![] } else { vec![document::seen_by(dataset.id), document::seen_by(dataset.owner)] },
        "subtree": subtree,
        "above": chain(view, dataset.owner)?,
        "statuses": statuses,
        "facetValues": facets,
        "fields": fields,
        "numbers": numbers,
        "text": text.join("\n"),
    });
    if let Some(place) = place::document_part(&metadata) {
        document["place"] = place;
    }
    Ok(document)
}

/// Longest value of a facet, in bytes.
const FACET_BYTES: usize = 500;

/// Returns the facet values of a field; of dates, the year.
fn facets_of<'v>(name: &'v str, values: &'v [&'v str]) -> impl Iterator<Item = String> + 'v {
    let is_date = name.to_lowercase().contains("date");
    values
        .iter()
        .filter(|it| it.len() <= FACET_BYTES)
        .map(move |value| facet_value(name, if is_date { value.get(..4).unwrap_or(value) } else { value }))
}

fn note(
    name: &str,
    values: &[&str],
    fields: &mut Map<String, Value>,
    text: &mut Vec<String>,
    numbers: &mut Map<String, Value>,
) {
    for number in values.iter().filter_map(|it| super::query::number(it)) {
        if let Some(list) = numbers.entry(name.to_owned()).or_insert_with(|| json!([])).as_array_mut() {
            list.push(number.into());
        }
    }
    let list = fields.entry(name.to_owned()).or_insert_with(|| json!([]));
    for value in values {
        if let Some(list) = list.as_array_mut() {
            list.push((*value).into());
        }
        text.push((*value).to_owned());
    }
}

/// Indexes a file that was added or changed.
pub(crate) fn index_file(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    dataset: &Dataset,
    file: &DataFile,
) -> Result<(), ApiError> {
    let shared = Shared::of(txn, app, dataset)?;
    index_file_of(txn, &shared, dataset, file.clone())
}

/// What the documents of all files of a dataset share.
struct Shared {
    paths: Vec<String>,
    chain: Vec<i64>,
    /// The name of the root collection.
    source: String,
    /// Ordinals of the versions that are published and not deaccessioned, the newest first.
    released: Vec<i64>,
    /// The ordinal and the date of each publication, the oldest first.
    publications: Vec<(i64, String)>,
    released_title: String,
    draft_title: String,
    today: String,
}

impl Shared {
    fn of(view: &mut View<'_>, app: &Dataverse, dataset: &Dataset) -> Result<Self, ApiError> {
        let mut title = |version: Option<i64>| match version {
            Some(id) => Ok(version::title_of(&version::of_dataset(view, dataset, id)?)),
            None => Ok::<_, ApiError>(String::new()),
        };
        let released = dataset.released.as_ref().map(|it| it.version);
        let draft = dataset.draft.as_ref().map(|it| it.version);
        let (released_title, draft_title) = (title(released)?, title(draft.or(released))?);
        let all = if dataset.was_released() { version::newest_first(view, dataset)? } else { Vec::new() };
        let released = all.iter().filter(|it| it.state == datasets::State::Released);
        Ok(Self {
            released: released.map(|it| it.ordinal).collect(),
            publications: publications(&all),
            released_title,
            draft_title,
            paths: paths(view, dataset.owner)?,
            chain: chain(view, dataset.owner)?,
            source: collections::named_by_record(view, collections::ROOT)?.name,
            today: clock::date(app.now_ms()),
        })
    }
}

fn index_file_of(
    txn: &mut Txn<'_>,
    shared: &Shared,
    dataset: &Dataset,
    file: DataFile,
) -> Result<(), ApiError> {
    let rows = rows::of_file(txn, file.id)?;
    let found = Found { file, dataset: dataset.clone(), rows, released: shared.released.clone() };
    let file = &found.file;
    let (public_id, draft_id) = (format!("datafile_{}", file.id), format!("datafile_{}_draft", file.id));
    let public = found.published_row().filter(|row| {
        // Only the newest published version is searchable.
        found.released.first().is_some_and(|ordinal| row.is_in(*ordinal))
    });
    match public.cloned() {
        Some(row) => {
            let document = file_document(txn, shared, &found, &row, true)?;
            put(txn, &public_id, document)?;
        }
        None => document::forget(txn, &public_id)?,
    }
    let draft = dataset.draft.as_ref().map(|it| it.ordinal);
    let open = found.open_row().filter(|row| draft == Some(row.since)).cloned();
    let open = open.or_else(|| if public.is_none() { found.open_row().cloned() } else { None });
    match open {
        Some(row) => {
            let document = file_document(txn, shared, &found, &row, false)?;
            put(txn, &draft_id, document)
        }
        None => document::forget(txn, &draft_id),
    }
}

fn file_document(
    view: &mut View<'_>,
    shared: &Shared,
    found: &Found,
    row: &crate::files::Row,
    is_public: bool,
) -> Result<Value, ApiError> {
    let today = shared.today.as_str();
    let (file, dataset) = (&found.file, &found.dataset);
    let status: &[&str] = match (is_public, dataset.was_released()) {
        (true, _) => &["Published"],
        (false, true) => &["Draft"],
        (false, false) => &["Unpublished", "Draft"],
    };
    let access = match (crate::files::is_held_back(file, today), row.restricted) {
        (true, true) => "Embargoed then Restricted",
        (true, false) => "Embargoed then Public",
        (false, true) => "Restricted",
        (false, false) => "Public",
    };
    let mut facets: Vec<String> = status.iter().map(|it| facet_value("publicationStatus", it)).collect();
    facets.push(facet_value("fileTypeGroupFacet", types::group(&file.content_type)));
    facets.push(facet_value("fileAccess", access));
    facets.extend(row.categories.iter().map(|it| facet_value("fileTag", it)));
    facets.extend(file.tags.iter().map(|it| facet_value("tabularDataTag", it)));
    facets.push(facet_value("metadataSource", &shared.source));
    let mut text =
        vec![row.label.clone(), row.description.clone(), row.directory.clone(), file.checksum.clone()];
    text.extend(file.original.as_ref().map(|it| it.name.clone()));
    text.extend(file.pid.clone());
    // For files that are not openly accessible, variable names are not indexed in the public document.
    let is_kept_back = is_public && (row.restricted || crate::files::is_held_back(file, today));
    let tables = rows::tables(view, file.id)?.filter(|_| !is_kept_back).unwrap_or_default();
    let variables = tables[0]["dataVariables"].as_array().map_or(&[][..], Vec::as_slice);
    let of_variables =
        |key: &str| -> Vec<&str> { variables.iter().filter_map(|it| it[key].as_str()).collect() };
    let (names, labels) = (of_variables("name"), of_variables("label"));
    text.extend(names.iter().chain(&labels).map(|it| (*it).to_owned()));
    let name = file.original.as_ref().map_or(&row.label, |it| &it.name);
    let title = if is_public { &shared.released_title } else { &shared.draft_title };
    let published = shared.publications.iter().find(|it| is_public && file.first <= it.0);
    Ok(json!({
        "type": "files",
        "entity": file.id.to_string(),
        "dataset": dataset.id,
        "row": row.id,
        "pid": dataset.pid,
        "contentType": file.content_type,
        "parent": dataset.id.to_string(),
        "name": name,
        "sortName": sort_name(name),
        "date": clock::instant(file.created_ms),
        "published": published.map(|it| &it.1),
        "public": is_public,
        "seenBy": if is_public { vec![] } else { vec![document::seen_by(dataset.id), document::seen_by(dataset.owner)] },
        "subtree": shared.paths,
        "above": shared.chain,
        "statuses": status,
        "facetValues": facets,
        "fields": {
            "fileDescription": row.description, "fileName": row.label, "parentName": title,
            "variableName": names, "variableLabel": labels,
        },
        "text": text.join("\n"),
    }))
}

/// Returns the condition on documents of published datasets.
pub(crate) fn is_public_dataset() -> Expr {
    Expr::Is("type".into(), "datasets".into()).and(Expr::Is("public".into(), true.into()))
}

/// Returns the public datasets that match a filter, for sets offered to harvesters.
pub(crate) fn public_datasets(view: &mut View<'_>, filter: Expr) -> Result<Vec<i64>, ApiError> {
    let visible = visible::visible(view, &Asker::default())?;
    let query = Query::filter(is_public_dataset().and(visible).and(filter));
    let mut list = Vec::new();
    view.for_each(&DOCUMENT, &query, |record| {
        list.extend(record.json().ok().and_then(|it| it["dataset"].as_i64()));
        std::ops::ControlFlow::Continue(())
    })?;
    Ok(list)
}
