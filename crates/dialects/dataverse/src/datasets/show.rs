//! Reading datasets and versions (sections 4.1 to 4.3 of the contract).

use http::{HeaderValue, StatusCode};
use pinakes_store::{View, Weight};
use serde_json::{Map, Value, json};

use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::citation::{Cited, Format};
use crate::collections::json::owner_json;
use crate::datasets::version::{self, Withdrawn};
use crate::datasets::wanted::Wanted;
use crate::datasets::{Dataset, State, Version, terms};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{collections, envelope, files, permissions, site_settings};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/{id}", show)
        .get("/datasets/{id}/versions", list_versions)
        .get("/datasets/{id}/versions/{version}", show_version)
        .get("/datasets/{id}/versions/{version}/metadata", show_blocks)
        .get("/datasets/{id}/versions/{version}/metadata/{block}", show_block)
        .get("/datasets/{id}/versions/{version}/citation", cite)
        .get("/datasets/{id}/versions/{version}/citation/{format}", cite_as)
        .get("/datasets/summaryFieldNames", summary_fields)
        .get("/datasets/privateUrlDatasetVersion/{token}", preview_version)
        .get("/datasets/privateUrlDatasetVersion/{token}/citation", preview_citation)
        .get("/datasets/previewUrlDatasetVersion/{token}", preview_version)
        .get("/datasets/previewUrlDatasetVersion/{token}/citation", preview_citation)
        .get("/datasets/{id}/timestamps", timestamps)
}

/// Fields in the summary of a dataset on its page.
const SUMMARY_FIELDS: [&str; 5] = ["dsDescription", "subject", "keyword", "publication", "notesText"];

/// Returns the name of the root collection, which is the publisher.
pub(crate) fn publisher(view: &mut View<'_>) -> Result<String, ApiError> {
    Ok(collections::named_by_record(view, collections::ROOT)?.name)
}

/// Returns a dataset as JSON without its versions (section 4.1).
pub(crate) fn dataset_map(
    view: &mut View<'_>,
    _app: &Dataverse,
    it: &Dataset,
) -> Result<Map<String, Value>, ApiError> {
    let (limit, left) = file_limit(view, it)?;
    let locks: Vec<Value> = it.locks.iter().map(|it| it.lock_type.as_str().into()).collect();
    Ok(envelope::object(json!({
        "id": it.id,
        "identifier": it.identifier,
        "persistentUrl": it.persistent_url(),
        "protocol": it.protocol,
        "authority": it.authority,
        "separator": "/",
        "publisher": publisher(view)?,
        "publicationDate": it.publication_date,
        "storageIdentifier": it.storage_identifier,
        "guestbookId": it.guestbook,
        "effectiveDatasetFileCountLimit": limit,
        "datasetFileCountLimit": it.file_count_limit,
        "datasetFileUploadsAvailable": left,
        "metadataLanguage": it.metadata_language,
        "datasetType": it.dataset_type,
        "locks": locks,
    })))
}

/// Returns the maximum number of files of a dataset, and how many more may be added.
fn file_limit(view: &mut View<'_>, it: &Dataset) -> Result<(Option<i64>, Option<i64>), ApiError> {
    let Some(limit) = effective_limit(view, it)? else { return Ok((None, None)) };
    let ordinal = it.draft.as_ref().map_or(it.last_ordinal, |draft| draft.ordinal);
    let n_files = i64::try_from(files::n_files(view, it.id, ordinal)?).unwrap_or(i64::MAX);
    Ok((Some(limit), Some((limit - n_files).max(0))))
}

/// Returns the maximum number of files of a dataset: its own limit, or that of the nearest collection with one.
pub(crate) fn effective_limit(view: &mut View<'_>, it: &Dataset) -> Result<Option<i64>, ApiError> {
    if it.file_count_limit.is_some() {
        return Ok(it.file_count_limit);
    }
    let owner = collections::named_by_record(view, it.owner)?;
    Ok(collections::with_owners(view, owner)?.iter().find_map(|it| it.file_count_limit))
}

/// Parts of a version that are included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Showing {
    /// Its files.
    pub files: bool,
    /// Its metadata.
    pub metadata: bool,
    /// The collections above it.
    pub owners: bool,
    /// Mail addresses, even if the site hides them.
    pub hidden_mail: bool,
    /// Whether fields that name authors are withheld.
    pub anonymized: bool,
}

impl Default for Showing {
    fn default() -> Self {
        Self { files: true, metadata: true, owners: false, hidden_mail: false, anonymized: false }
    }
}

impl Showing {
    /// Reads the request's parameters; those reserved for editors are checked by [`Showing::to`].
    fn of(call: &Call) -> Self {
        Self {
            files: !call.query.is_true("excludeFiles"),
            metadata: !call.query.is_true("excludeMetadataBlocks"),
            owners: call.query.is_true("returnOwners"),
            hidden_mail: call.query.is_true("ignoreSettingExcludeEmailFromExport"),
            anonymized: false,
        }
    }

    /// Drops what the caller may not see: hidden mail addresses are for callers who may edit the dataset.
    fn to(mut self, view: &mut View<'_>, asker: &Asker, dataset: &Dataset) -> Result<Self, ApiError> {
        self.hidden_mail =
            self.hidden_mail && permissions::may(view, asker, dataset.place(), Permission::EditDataset)?;
        Ok(self)
    }
}

/// Returns a version as JSON (section 4.2).
pub(crate) fn version_json(
    view: &mut View<'_>,
    dataset: &Dataset,
    version: &Version,
    showing: Showing,
) -> Result<Value, ApiError> {
    version_json_among(view, dataset, version, None, showing)
}

/// As [`version_json`], with all versions of the dataset, the newest first, if they are at hand.
fn version_json_among(
    view: &mut View<'_>,
    dataset: &Dataset,
    version: &Version,
    all: Option<&[Version]>,
    showing: Showing,
) -> Result<Value, ApiError> {
    let (limit, left) = file_limit(view, dataset)?;
    let latest_state = if dataset.draft.is_some() { State::Draft } else { latest_state(view, dataset)? };
    let mut map = envelope::object(json!({
        "id": version.id,
        "datasetId": dataset.id,
        "datasetPersistentId": dataset.pid,
        "datasetType": dataset.dataset_type,
        "storageIdentifier": dataset.storage_identifier,
        "versionNumber": version.number,
        "internalVersionNumber": version.internal,
        "versionMinorNumber": version.minor,
        "versionState": version.state.name(),
        "latestVersionPublishingState": latest_state.name(),
        "deaccessionNote": version.deaccession_note,
        "deaccessionLink": version.deaccession_link,
        "distributionDate": metadata_text(version, "distributionDate"),
        "productionDate": metadata_text(version, "productionDate"),
        "archiveTime": version.archive_time,
        "lastUpdateTime": version.last_update_time,
        "releaseTime": version.release_time,
        "createTime": version.create_time,
        "publicationDate": dataset.publication_date,
        "citationDate": citation_date(dataset, version),
        "versionNote": version.version_note,
        "guestbookId": dataset.guestbook,
        "effectiveDatasetFileCountLimit": limit,
        "datasetFileCountLimit": dataset.file_count_limit,
        "datasetFileUploadsAvailable": left,
    }));
    terms::put_json(view, version, &mut map)?;
    if showing.metadata {
        map.insert("metadataBlocks".into(), shown_blocks(view, version, showing)?);
    }
    if showing.owners {
        map.insert("isPartOf".into(), is_part_of(view, dataset)?);
    }
    if showing.files {
        let around = match all {
            Some(all) => files::Around::among(all, version),
            None => files::Around::with(view, dataset, version.clone())?,
        };
        map.insert("files".into(), files::list_json(view, dataset.id, &around)?.into());
    }
    Ok(Value::Object(map))
}

/// Returns the collections above a dataset as nested JSON, the nearest one outermost.
pub(crate) fn is_part_of(view: &mut View<'_>, dataset: &Dataset) -> Result<Value, ApiError> {
    let owner = collections::named_by_record(view, dataset.owner)?;
    Ok(owner_json(&collections::with_owners(view, owner)?))
}

fn latest_state(view: &mut View<'_>, dataset: &Dataset) -> Result<State, ApiError> {
    match &dataset.last {
        Some(last) if Some(last) == dataset.released.as_ref() => Ok(State::Released),
        Some(last) => Ok(version::of_dataset(view, dataset, last.version)?.state),
        None => Ok(State::Draft),
    }
}

fn metadata_text(version: &Version, field: &str) -> Option<String> {
    let fields = version.metadata_blocks.get("citation")?.get("fields")?.as_array()?;
    fields.iter().find(|it| it["typeName"] == field)?["value"].as_str().map(str::to_owned)
}

/// Returns the date that citations show.
pub(crate) fn citation_date(dataset: &Dataset, version: &Version) -> Option<String> {
    let by_field = dataset.citation_date_field.as_deref().and_then(|it| metadata_text(version, it));
    by_field.or_else(|| dataset.publication_date.clone())
}

/// Replaces a value that is withheld.
const WITHHELD: &str = "withheld";

/// Returns the metadata, without mail addresses if the site hides them, and without fields that an anonymous preview
/// withholds.
pub(crate) fn shown_blocks(
    view: &mut View<'_>,
    version: &Version,
    showing: Showing,
) -> Result<Value, ApiError> {
    let hides_mail = !showing.hidden_mail && site_settings::is_true(view, ":ExcludeEmailFromExport", false)?;
    let mut blocks = version.metadata_blocks.clone();
    let withheld = match showing.anonymized {
        true => site_settings::get(view, ":AnonymizedFieldTypeNames")?.unwrap_or_default(),
        false => String::new(),
    };
    let withheld: Vec<&str> = withheld.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
    for block in blocks.values_mut() {
        let Some(fields) = block.get_mut("fields").and_then(Value::as_array_mut) else { continue };
        for field in fields {
            let name = field["typeName"].as_str().unwrap_or_default().to_owned();
            if withheld.contains(&name.as_str()) {
                *field = json!({
                    "typeName": name, "multiple": false, "typeClass": "primitive", "value": WITHHELD,
                });
            } else if hides_mail && name == "datasetContact" {
                for contact in field["value"].as_array_mut().into_iter().flatten() {
                    contact.as_object_mut().map(|it| it.remove("datasetContactEmail"));
                }
            }
        }
    }
    Ok(Value::Object(blocks))
}

/// Returns a dataset with one of its versions (sections 4.1 and 4.2), from which exports and search documents are made.
pub(crate) fn native_json(
    view: &mut View<'_>,
    app: &Dataverse,
    dataset: &Dataset,
    version: &Version,
) -> Result<Value, ApiError> {
    let mut map = dataset_map(view, app, dataset)?;
    let publisher = publisher(view)?;
    let mut json = version_json(view, dataset, version, Showing::default())?;
    json["citation"] = Cited::of(dataset, version, &publisher).text().into();
    map.insert("datasetVersion".into(), json);
    Ok(Value::Object(map))
}

async fn show(call: Call) -> Answer {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(&call)?);
    let (showing, site_url) = (Showing::of(&call), call.site_url());
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let dataset = wanted.find(view)?;
        let sees_draft = permissions::may(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
        if dataset.last.is_none() && !sees_draft {
            return Err(permissions::refusal(&asker));
        }
        let mut map = dataset_map(view, &app, &dataset)?;
        if showing.owners {
            map.insert("isPartOf".into(), is_part_of(view, &dataset)?);
        }
        let id = match &dataset.draft {
            Some(draft) if sees_draft => Some(draft.version),
            _ if sees_draft => dataset.last.as_ref().map(|it| it.version),
            _ => dataset.released.as_ref().map(|it| it.version),
        };
        if let Some(id) = id {
            let version = version::of_dataset(view, &dataset, id)?;
            if let Some(url) = crate::thumbnails::url_of_dataset(view, &site_url, &dataset, &version)? {
                map.insert("image_url".into(), url.into());
            }
            let showing = Showing { owners: false, ..showing }.to(view, &asker, &dataset)?;
            map.insert("latestVersion".into(), version_json(view, &dataset, &version, showing)?);
        }
        Ok(Value::Object(map))
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

/// Default number of versions per page.
const MAX_VERSIONS: i64 = 1000;

async fn list_versions(call: Call) -> Answer {
    let (asker, wanted, showing) = (call.asker.clone(), Wanted::of(&call)?, Showing::of(&call));
    let (limit, offset) = window(&call)?;
    let limit = limit.unwrap_or(MAX_VERSIONS);
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let dataset = wanted.find(view)?;
        let sees_draft = permissions::may(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
        let sees_withdrawn = permissions::may(view, &asker, dataset.place(), Permission::EditDataset)?;
        let all = version::newest_first(view, &dataset)?;
        let showing = showing.to(view, &asker, &dataset)?;
        let seen = all.iter().filter(|it| match it.state {
            State::Draft => sees_draft,
            State::Deaccessioned => sees_withdrawn,
            State::Released => true,
        });
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        let take = usize::try_from(limit).unwrap_or(usize::MAX);
        let seen = seen.skip(skip).take(take);
        seen.map(|it| version_json_among(view, &dataset, it, Some(&all), showing)).collect()
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

/// Returns the parameters `limit` and `offset`. Errors: 400 for a negative one.
pub(crate) fn window(call: &Call) -> Result<(Option<i64>, i64), ApiError> {
    let (limit, offset) = (call.query.number("limit")?, call.query.number("offset")?);
    if limit.is_some_and(|it| it < 0) {
        return Err(ApiError::bad_request("The limit parameter cannot be negative."));
    }
    if offset.is_some_and(|it| it < 0) {
        return Err(ApiError::bad_request("The offset parameter cannot be negative."));
    }
    Ok((limit, offset.unwrap_or(0)))
}

/// Returns whether the parameter asks for deaccessioned versions as well.
pub(crate) fn withdrawn(call: &Call) -> Withdrawn {
    match call.query.is_true("includeDeaccessioned") {
        true => Withdrawn::Shown,
        false => Withdrawn::Hidden,
    }
}

/// Runs `read` with the dataset and version that the path names, in the same transaction.
pub(crate) async fn with_version<R: Send + 'static>(
    call: &Call,
    weight: Weight,
    mut read: impl FnMut(&mut View<'_>, &Asker, &Dataset, &Version) -> Result<R, ApiError> + Send + 'static,
) -> Result<R, ApiError> {
    let (asker, wanted, withdrawn) = (call.asker.clone(), Wanted::of(call)?, withdrawn(call));
    let text = call.param("version").to_owned();
    let find = move |view: &mut View<'_>| -> Result<R, ApiError> {
        let dataset = wanted.find(view)?;
        let version = version::find(view, &asker, &dataset, &text, withdrawn)?;
        read(view, &asker, &dataset, &version)
    };
    call.db().read(weight, find).await
}

/// Checks that the caller may see a version's files: those of a deaccessioned version are only for users who may edit
/// the dataset. Errors: 404.
pub(crate) fn require_files(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
    version: &Version,
) -> Result<(), ApiError> {
    let is_withdrawn = version.state == State::Deaccessioned;
    if is_withdrawn && !permissions::may(view, asker, dataset.place(), Permission::EditDataset)? {
        let shown = version.friendly_number();
        return Err(ApiError::not_found(format!(
            "Dataset version {shown} of dataset {} not found",
            dataset.id
        )));
    }
    Ok(())
}

async fn show_version(call: Call) -> Answer {
    let showing = Showing::of(&call);
    let json = with_version(&call, Weight::Scan, move |view, asker, dataset, version| {
        if showing.files {
            require_files(view, asker, dataset, version)?;
        }
        let showing = showing.to(view, asker, dataset)?;
        version_json(view, dataset, version, showing)
    });
    envelope::ok(json.await?)
}

async fn show_blocks(call: Call) -> Answer {
    let showing = Showing::of(&call);
    let json = with_version(&call, Weight::Point, move |view, asker, dataset, version| {
        let showing = showing.to(view, asker, dataset)?;
        shown_blocks(view, version, showing)
    });
    envelope::ok(json.await?)
}

async fn show_block(call: Call) -> Answer {
    let (showing, name) = (Showing::of(&call), call.param("block").to_owned());
    let json = with_version(&call, Weight::Point, move |view, asker, dataset, version| {
        let showing = showing.to(view, asker, dataset)?;
        let blocks = shown_blocks(view, version, showing)?;
        let missing = || ApiError::not_found(format!("metadata block named {name} not found"));
        blocks.get(&name).cloned().ok_or_else(missing)
    });
    envelope::ok(json.await?)
}

async fn cite(call: Call) -> Answer {
    let text = with_version(&call, Weight::Point, |view, _, dataset, version| {
        Ok::<_, ApiError>(Cited::of(dataset, version, &publisher(view)?).html())
    });
    envelope::message(text.await?)
}

/// `…/citation/{format}`: answers in BibTeX, EndNote, RIS, CSL or Internal.
async fn cite_as(call: Call) -> Answer {
    let format = Format::named(call.param("format"))?;
    let text = with_version(&call, Weight::Point, move |view, _, dataset, version| {
        Ok::<_, ApiError>(format.write(&Cited::of(dataset, version, &publisher(view)?)))
    });
    text_answer(format.media_type(), text.await?)
}

/// Reads the draft that a private URL's token gives access to. Errors: 404.
pub(crate) async fn previewed<R: Send + 'static>(
    call: &Call,
    token: &str,
    mut read: impl FnMut(&mut View<'_>, &Dataset, &Version, bool) -> Result<R, ApiError> + Send + 'static,
) -> Result<R, ApiError> {
    let (token, now_ms) = (crate::tokens::id_of(token), call.app.now_ms());
    let find = move |view: &mut View<'_>| -> Result<R, ApiError> {
        let missing = || ApiError::not_found("Private URL user not found");
        let preview = match crate::tokens::bearer(view, &token, now_ms)? {
            Some(crate::tokens::Bearer::Preview(preview)) => preview,
            _ => return Err(missing()),
        };
        let dataset = crate::datasets::by_id(view, preview.dataset)?.ok_or_else(missing)?;
        let draft = dataset.draft.as_ref().map(|it| it.version).ok_or_else(missing)?;
        let version = version::of_dataset(view, &dataset, draft)?;
        read(view, &dataset, &version, preview.anonymized)
    };
    call.db().read(Weight::Scan, find).await
}

async fn preview_version(call: Call) -> Answer {
    let showing = Showing::of(&call);
    let json = previewed(&call, call.param("token"), move |view, dataset, version, anonymized| {
        version_json(view, dataset, version, Showing { anonymized, hidden_mail: false, ..showing })
    });
    envelope::ok(json.await?)
}

async fn preview_citation(call: Call) -> Answer {
    let text = previewed(&call, call.param("token"), |view, dataset, version, anonymized| {
        let publisher = publisher(view)?;
        let mut cited = Cited::of(dataset, version, &publisher);
        if anonymized {
            cited.withhold_authors();
        }
        Ok(cited.html())
    });
    envelope::message(text.await?)
}

async fn summary_fields(call: Call) -> Answer {
    let set = call.db().read(Weight::Point, |view| site_settings::get(view, ":CustomDatasetSummaryFields"));
    let names: Vec<String> = match set.await? {
        Some(text) => text.split(',').map(|it| it.trim().to_owned()).collect(),
        None => SUMMARY_FIELDS.map(str::to_owned).to_vec(),
    };
    envelope::ok(names)
}

/// Answers with the times of events in a dataset's life.
async fn timestamps(call: Call) -> Answer {
    let now = crate::clock::precise(call.app.now_ms()).replace(' ', "T");
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let dataset = wanted.find(view)?;
        let sees_draft = permissions::may(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
        if dataset.last.is_none() && !sees_draft {
            return Err(permissions::refusal(&asker));
        }
        let updated = match &dataset.draft {
            Some(draft) if sees_draft => Some(draft.last_update_time.clone()),
            _ => match &dataset.last {
                Some(last) => Some(version::of_dataset(view, &dataset, last.version)?.last_update_time),
                None => None,
            },
        };
        // Without a zone, like local times.
        let local = |text: String| text.trim_end_matches('Z').to_owned();
        let published = match &dataset.released {
            Some(last) => version::of_dataset(view, &dataset, last.version)?.release_time,
            None => None,
        };
        let published = published.or_else(|| dataset.publication_date.clone()).map(local);
        let private = |text: Option<String>| text.filter(|_| sees_draft).map(local);
        Ok(Value::Object(envelope::object(json!({
            "createTime": local(dataset.create_time.clone()),
            "publicationTime": published,
            // Exports are generated on request.
            "lastMetadataExportTime": published.as_ref().map(|_| now.clone()),
            "lastMajorVersionReleaseTime": published,
            "lastUpdateTime": private(updated.clone()),
            "globalIdCreateTime": local(dataset.create_time.clone()),
            "modificationTime": private(updated.clone()),
            "indexTime": private(Some(now.clone())),
            "permissionModificationTime": private(Some(dataset.create_time.clone())),
            "permissionIndexTime": private(Some(now.clone())),
            "hasStaleIndex": sees_draft.then_some(false),
            "hasStalePermissionIndex": sees_draft.then_some(false),
        }))))
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

/// Returns an answer with text that is not JSON.
pub(crate) fn text_answer(content_type: &'static str, body: impl Into<bytes::Bytes>) -> Answer {
    Ok(pinakes_http::answer::bytes(StatusCode::OK, HeaderValue::from_static(content_type), body))
}
