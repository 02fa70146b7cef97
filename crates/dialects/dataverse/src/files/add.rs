//! Adding files to a dataset, and replacing them (sections 6.1 and 6.2 of the contract).

use std::sync::Arc;

use pinakes_blobs::Blob;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::kinds::{DataFile, PENDING, Row};
use super::receive::{self, Form, Received, Target};
use super::room::{self, Bounds};
use super::{Around, Found, Wanted, direct, file_json, headers, ingest, rows, types, unzip};
use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::collections;
use crate::datasets::{self, Dataset};
use crate::error::{Answer, ApiError};
use crate::ids::Ids;
use crate::permissions::{self, Permission};
use crate::routes::Routes;
use crate::{envelope, stored};

const NO_FILE: &str = "You must upload a file or provide a valid storageidentifier, filename, and mimetype.";
const NO_FILE_OF_LATEST: &str = "You cannot replace a file that is not in the most recently published dataset. (The file is \
                                 unpublished or was deleted from a previous version.)";
const BAD_DIRECTORY: &str = "Directory Name cannot contain invalid characters. Valid characters are a-Z, 0-9, '_', '-', '.', \
                             '\\', '/' and ' ' (white space).";
/// Tags that tables may have.
pub(crate) const TAGS: [&str; 9] = [
    "Survey",
    "Time Series",
    "Panel",
    "Event",
    "Genomics",
    "Network",
    "Geospatial",
    "Simulation",
    "Qualitative",
];

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/datasets/{id}/add", add)
        .post("/datasets/{id}/addFiles", add_files)
        .post("/datasets/{id}/replaceFiles", replace_files)
        .post("/files/{id}/replace", replace)
}

/// What a request says of a file: the part `jsonData`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Described {
    pub(crate) label: Option<String>,
    pub(crate) directory: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) categories: Option<Vec<String>>,
    pub(crate) restrict: Option<bool>,
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) provenance: Option<String>,
    pub(crate) tab_ingest: bool,
    pub(crate) force_replace: bool,
    pub(crate) file_to_replace: Option<i64>,
    /// Of direct uploads.
    pub(crate) storage_identifier: Option<String>,
    pub(crate) file_name: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) checksum: Option<(String, String)>,
    pub(crate) size: Option<u64>,
}

impl Described {
    /// From the JSON text of a form; nothing for no text.
    ///
    /// Errors: 400 for what is no object, and for a folder with characters that folders may not have.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, ApiError> {
        let text = text.map(str::trim).filter(|it| !it.is_empty());
        let Some(text) = text else { return Ok(Self { tab_ingest: true, ..Self::default() }) };
        let parsed: Option<Map<String, Value>> = serde_json::from_str(text).ok();
        let map = parsed.ok_or_else(|| ApiError::bad_request("Error in parsing provided json"))?;
        Self::of(&map)
    }

    /// From an object.
    pub(crate) fn of(map: &Map<String, Value>) -> Result<Self, ApiError> {
        let text = |name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
        let flag = |name: &str| match map.get(name) {
            Some(Value::Bool(it)) => Some(*it),
            Some(Value::String(it)) => Some(it.eq_ignore_ascii_case("true")),
            _ => None,
        };
        let list = |name: &str| {
            let names = map.get(name)?.as_array()?.iter();
            let mut kept: Vec<String> = Vec::new();
            for name in names.filter_map(|it| it.as_str().or_else(|| it["name"].as_str())) {
                if !name.trim().is_empty() && !kept.iter().any(|it| it == name) {
                    kept.push(name.trim().to_owned());
                }
            }
            Some(kept)
        };
        let checksum = map
            .get("checksum")
            .and_then(|it| Some((it["@type"].as_str()?.to_owned(), it["@value"].as_str()?.to_owned())));
        let md5 = text("md5Hash").map(|it| ("MD5".to_owned(), it));
        Ok(Self {
            label: text("label"),
            directory: text("directoryLabel").map(|it| directory(&it)).transpose()?,
            description: text("description"),
            categories: list("categories"),
            restrict: flag("restrict"),
            tags: list("dataFileTags"),
            provenance: text("provFreeForm"),
            tab_ingest: flag("tabIngest").unwrap_or(true),
            force_replace: flag("forceReplace").unwrap_or(false),
            file_to_replace: map.get("fileToReplaceId").and_then(Value::as_i64),
            storage_identifier: text("storageIdentifier"),
            file_name: text("fileName"),
            mime_type: text("mimeType"),
            checksum: checksum.or(md5),
            size: map.get("fileSize").and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok())),
        })
    }
}

/// A folder's name without separators at its ends. Errors: 400 for characters that folders may not have.
pub(crate) fn directory(text: &str) -> Result<String, ApiError> {
    let text = text.trim_matches(|it: char| matches!(it, '/' | '\\' | ' ' | '.' | '-'));
    let is_plain = text.chars().all(unzip::is_folder_character);
    let climbs = text.split(['/', '\\']).any(|it| it == "..");
    if !is_plain || climbs {
        return Err(ApiError::bad_request(BAD_DIRECTORY));
    }
    let steps: Vec<&str> = text.split(['/', '\\']).filter(|it| !it.is_empty()).collect();
    Ok(steps.join("/"))
}

/// A file that is to be added: its bytes are in the store of files already.
#[derive(Debug, Clone, Default)]
pub(crate) struct Incoming {
    pub(crate) name: String,
    pub(crate) directory: String,
    pub(crate) description: String,
    pub(crate) categories: Vec<String>,
    pub(crate) restricted: bool,
    pub(crate) content_type: String,
    pub(crate) storage_identifier: String,
    pub(crate) blob: Option<String>,
    pub(crate) size: u64,
    pub(crate) checksum_type: String,
    pub(crate) checksum: String,
    pub(crate) tags: Vec<String>,
    pub(crate) provenance: Option<String>,
    pub(crate) tab_ingest: bool,
    /// The file that it takes the place of, and the first of those.
    pub(crate) replaces: Option<(i64, i64)>,
    /// What its header says.
    pub(crate) header: Option<Arc<headers::Found>>,
}

impl Incoming {
    fn of(call: &Call, received: &Received, folder: &str, described: &Described, target: &Target) -> Self {
        let name = described.label.as_deref().filter(|_| folder.is_empty()).unwrap_or(&received.name);
        let content_type = types::detect(received.content_type.as_deref(), &received.name, &received.head);
        let within = described.directory.as_deref().unwrap_or_default();
        let directory =
            [within, folder].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("/");
        Self {
            name: unzip::clean_name(name),
            directory,
            description: described.description.clone().unwrap_or_default(),
            categories: described.categories.clone().unwrap_or_default(),
            restricted: described.restrict.unwrap_or(false),
            content_type,
            storage_identifier: new_storage_identifier(&call.app),
            blob: Some(received.blob.to_string()),
            size: received.blob.length,
            checksum_type: target.algorithm.name().to_owned(),
            checksum: received.checksum.clone(),
            tags: described.tags.clone().unwrap_or_default(),
            provenance: described.provenance.clone(),
            tab_ingest: described.tab_ingest,
            replaces: None,
            header: None,
        }
    }
}

/// `file1://18b3972213f-268a1f7a9e5d`.
pub(crate) fn new_storage_identifier(app: &Dataverse) -> String {
    let now_ms = app.now_ms();
    let random = app.context.entropy().uuid_at(now_ms).simple().to_string();
    format!("{}://{now_ms:x}-{}", app.settings.storage_driver, &random[random.len() - 12..])
}

/// The dataset into which files may be added, with what bounds them.
///
/// Errors: 404; 403 `You do not have permission to edit this dataset.`
async fn admit(call: &Call, wanted: datasets::Wanted) -> Result<(Dataset, Bounds), ApiError> {
    let asker = call.asker.clone();
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        require_edit(view, &asker, &dataset)?;
        let collection = collections::by_id(view, dataset.owner)?.unwrap_or_default();
        let bounds = Bounds::of(view, &collection)?;
        Ok::<_, ApiError>((dataset, bounds))
    };
    call.db().read(Weight::Point, read).await
}

/// Lets the caller change the files of a dataset.
///
/// Errors: 403 without the permission, and while a lock forbids it.
pub(crate) fn require_edit(view: &mut View<'_>, asker: &Asker, dataset: &Dataset) -> Result<(), ApiError> {
    let held = permissions::held(view, asker, dataset.place())?;
    if !held.contains(&Permission::EditDataset) {
        return Err(ApiError::forbidden("You do not have permission to edit this dataset."));
    }
    let is_curator = held.contains(&Permission::PublishDataset);
    let forbids = |it: &datasets::Lock| match it.lock_type.as_str() {
        "Ingest" => false,
        "InReview" => !is_curator,
        _ => true,
    };
    if dataset.locks.iter().any(forbids) {
        let is_in_review = dataset.locks.iter().any(|it| it.lock_type == "InReview");
        return Err(match is_in_review {
            true => ApiError::bad_request("Failed to add file to dataset."),
            false => ApiError::forbidden("Dataset cannot be edited due to dataset lock."),
        });
    }
    Ok(())
}

async fn take_form(call: &mut Call, bounds: &Bounds) -> Result<(Form, Target), ApiError> {
    let target = Target {
        blobs: call.app.context.blobs().clone(),
        tenant: call.tenant().to_owned(),
        algorithm: bounds.algorithm,
        most_bytes: bounds.most_bytes,
    };
    let limits = call.app.context.limits().clone();
    let body = call.take_body();
    let form = receive::form(&call.headers, body, &limits, &target).await?;
    Ok((form, target))
}

/// The files that a form brings: one, those of an archive, or one that was uploaded directly.
async fn incoming(
    call: &Call,
    form: Form,
    described: &Described,
    target: &Target,
    bounds: &Bounds,
    dataset: &Dataset,
) -> Result<Vec<Incoming>, ApiError> {
    let Some(received) = form.file.clone() else {
        return Ok(vec![direct::claimed(call, described, dataset).await?]);
    };
    if received.name.trim().is_empty() {
        return Err(ApiError::bad_request(NO_FILE));
    }
    let one = Incoming::of(call, &received, "", described, target);
    if one.content_type != "application/zip" {
        return Ok(vec![one]);
    }
    let (target_, archive, most) = (target.clone(), received, bounds.zip_entries);
    let unpacked = tokio::task::spawn_blocking(move || unzip::unpack(&target_, &archive, most)).await;
    match unpacked.unwrap_or_else(|_| Err(ApiError::internal("The archive cannot be unpacked.")))? {
        unzip::Unpacked::AsItIs => Ok(vec![one]),
        unzip::Unpacked::Files(files) => {
            let described = Described { label: None, ..described.clone() };
            Ok(files.iter().map(|(folder, it)| Incoming::of(call, it, folder, &described, target)).collect())
        }
    }
}

async fn add(mut call: Call) -> Answer {
    let wanted = datasets::Wanted::of(&call)?;
    let (dataset, bounds) = admit(&call, wanted).await?;
    let (form, target) = take_form(&mut call, &bounds).await?;
    let described = Described::parse(form.get("jsonData"))?;
    if form.file.is_none() && described.storage_identifier.is_none() {
        return Err(ApiError::bad_request(NO_FILE));
    }
    let list = incoming(&call, form, &described, &target, &bounds, &dataset).await?;
    let added = write(&call, dataset.id, list, bounds).await?;
    Ok(added.answer())
}

/// Adds the files of an archive that is the whole body of a request; its name stands in `Content-Disposition`.
pub(crate) async fn add_archive(call: &mut Call, dataset: Dataset) -> Result<Dataset, ApiError> {
    let (_, bounds) = admit(call, datasets::Wanted::number(dataset.id)).await?;
    let target = Target {
        blobs: call.app.context.blobs().clone(),
        tenant: call.tenant().to_owned(),
        algorithm: bounds.algorithm,
        most_bytes: bounds.most_bytes,
    };
    let disposition = call.header("content-disposition").unwrap_or_default();
    let name = disposition.split("filename=").nth(1).map(|it| it.trim_matches([' ', '"', ';']));
    let name = name.filter(|it| !it.is_empty()).unwrap_or("archive.zip").to_owned();
    let limits = call.app.context.limits().clone();
    let body = call.take_body();
    let most_bytes = target.blobs.settings().file_bytes;
    let pieces = receive::pieces(&call.headers, body, &limits, most_bytes)?;
    let received = receive::whole(pieces, &target, name, None).await?;
    let form = Form { file: Some(received), ..Form::default() };
    let described = Described { tab_ingest: true, ..Described::default() };
    let list = incoming(call, form, &described, &target, &bounds, &dataset).await?;
    write(call, dataset.id, list, bounds).await?;
    Ok(dataset)
}

/// Files that the JSON of a whole version describes, which only superusers send: their bytes are not at hand.
///
/// Errors: 400 for a file without a name, and for a folder with characters that folders may not have.
pub(crate) fn of_version_json(app: &Dataverse, list: Option<&Value>) -> Result<Vec<Incoming>, ApiError> {
    let list = match list {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(ApiError::bad_request("Error parsing Json: files should be an array.")),
    };
    let mut files = Vec::new();
    for (place, it) in list.iter().enumerate() {
        let map = it.as_object().cloned().unwrap_or_default();
        let described = Described::of(&map)?;
        let data = &it["dataFile"];
        let text = |name: &str| data[name].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
        let name = described.label.or_else(|| text("filename")).filter(|it| !it.trim().is_empty());
        let name = name.ok_or_else(|| {
            ApiError::bad_request(format!("Error parsing Json: files[{place}] has no label"))
        })?;
        let checksum = data["checksum"]["value"].as_str().map(str::to_owned);
        let checksum = checksum.or_else(|| text("md5")).unwrap_or_default();
        let kind = data["checksum"]["type"].as_str().unwrap_or("MD5").to_owned();
        files.push(Incoming {
            name: unzip::clean_name(&name),
            directory: described.directory.unwrap_or_default(),
            description: described.description.or_else(|| text("description")).unwrap_or_default(),
            categories: described.categories.unwrap_or_default(),
            restricted: it["restricted"] == true,
            content_type: text("contentType").unwrap_or_else(|| types::UNKNOWN.to_owned()),
            storage_identifier: text("storageIdentifier").unwrap_or_else(|| new_storage_identifier(app)),
            size: data["filesize"].as_u64().unwrap_or(0),
            checksum_type: kind,
            checksum,
            ..Incoming::default()
        });
    }
    Ok(files)
}

/// What an addition did.
pub(crate) struct Added {
    pub(crate) files: Vec<Value>,
    /// Names of files with the same contents that were there before.
    pub(crate) duplicates: Vec<String>,
    pub(crate) pending: Vec<i64>,
}

impl Added {
    fn answer(self) -> axum::response::Response {
        let mut json = json!({"status": "OK"});
        if !self.duplicates.is_empty() {
            let texts = self
                .duplicates
                .iter()
                .map(|it| format!("This file has the same content as {it} that is in the dataset. "));
            json["message"] = texts.collect::<String>().into();
        }
        json["data"] = json!({"files": self.files});
        envelope::raw_json(http::StatusCode::OK, &json)
    }
}

/// Adds files in one transaction, and waits a moment for tables among them to be read.
async fn write(
    call: &Call,
    dataset: i64,
    mut list: Vec<Incoming>,
    bounds: Bounds,
) -> Result<Added, ApiError> {
    headers::read(call, &mut list).await?;
    let n = i64::try_from(list.len()).unwrap_or(i64::MAX / 4);
    let ids = call.ids(3 * n + 1).await?;
    let (app, asker, now_ms) = (call.app.clone(), call.asker.clone(), call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let mut dataset = datasets::by_id(txn, dataset)?
            .ok_or_else(|| ApiError::not_found(format!("Dataset with ID {dataset} not found.")))?;
        require_edit(txn, &asker, &dataset)?;
        room::check(txn, &asker, &dataset, &list)?;
        add_all(txn, &app, &asker, now_ms, &mut dataset, &mut ids, list.clone(), bounds.pids)
    };
    let added = call.db().write(write).await?;
    ingest::run_soon(&call.app, call.db(), &added.pending).await;
    Ok(added)
}

/// Adds files to the draft of a dataset, which is opened if there is none. Takes three numbers a file and one.
#[expect(
    clippy::too_many_arguments,
    reason = "the transaction, who and when, and what; no two of them belong together"
)]
pub(crate) fn add_all(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    asker: &Asker,
    now_ms: i64,
    dataset: &mut Dataset,
    ids: &mut Ids,
    list: Vec<Incoming>,
    has_pids: bool,
) -> Result<Added, ApiError> {
    let now = crate::clock::instant(now_ms);
    let draft = super::open_draft(txn, app, &now, dataset, ids)?;
    let mut version = datasets::version::of_dataset(txn, dataset, draft.version)?;
    for it in list.iter().filter_map(|it| it.header.as_deref()) {
        it.put_fields(txn, app, dataset, &mut version)?;
    }
    let around = Around::with(txn, dataset, version)?;
    let mut added = Added { files: Vec::new(), duplicates: Vec::new(), pending: Vec::new() };
    for it in list {
        if let Some(same) = rows::same_content(txn, dataset.id, &it.checksum)? {
            added.duplicates.push(same.label);
        }
        let id = ids.next()?;
        let label = rows::free_label(txn, dataset.id, &it.directory, &it.name)?;
        let pid = has_pids.then(|| {
            let random = app.context.entropy().uuid_at(now_ms).simple().to_string().to_uppercase();
            format!("{}/{}", dataset.pid, &random[random.len() - 6..])
        });
        let file = DataFile {
            id,
            dataset: dataset.id,
            pid,
            storage_identifier: it.storage_identifier,
            blob: it.blob,
            content_type: it.content_type,
            size: it.size,
            checksum_type: it.checksum_type,
            checksum: it.checksum,
            created_ms: now_ms,
            creator: asker.user.as_ref().map_or(0, |it| it.id),
            first: draft.ordinal,
            previous: it.replaces.map(|it| it.0),
            root: it.replaces.map(|it| it.1),
            tags: it.tags,
            ..DataFile::default()
        };
        let row = Row {
            id: ids.next()?,
            file: id,
            dataset: dataset.id,
            since: draft.ordinal,
            label,
            directory: it.directory,
            description: described(it.description, it.header.as_deref()),
            categories: it.categories,
            restricted: it.restricted,
            provenance: it.provenance,
            ..Row::default()
        };
        rows::put_file(txn, &file)?;
        if let Some(header) = &it.header {
            header.put_beside(txn, id)?;
        }
        direct::taken(txn, &file.storage_identifier)?;
        let row = rows::put_row(txn, row, &file.checksum)?;
        if it.tab_ingest && file.blob.is_some() && types::tabular(&file.content_type).is_some() {
            stored::put(txn, &PENDING, &id.to_string(), &json!({"file": id}))?;
            added.pending.push(id);
        }
        crate::search::index_file(txn, app, dataset, &file)?;
        added.files.push(file_json(&row, &file, &around));
    }
    if let Some(last) = added.pending.last() {
        let pending = json!({"file": last, "told": added.pending});
        stored::put(txn, &PENDING, &last.to_string(), &pending)?;
    }
    Ok(added)
}

/// What the depositor says of a file, else what its header does.
fn described(said: String, header: Option<&headers::Found>) -> String {
    match header.and_then(|it| it.description.clone()).filter(|_| said.trim().is_empty()) {
        Some(text) => text,
        None => said,
    }
}

/// The file that is to be replaced, if it may be. Errors: 400.
fn replaceable(view: &mut View<'_>, id: &Wanted) -> Result<Found, ApiError> {
    let file = id.find(view)?;
    let found = Found::of(view, file)?;
    if found.open_row().is_none() {
        return Err(ApiError::bad_request(NO_FILE_OF_LATEST));
    }
    Ok(found)
}

/// Errors: 400 when the new file has the same contents, or is of another type and that is not forced.
fn check_replacement(found: &Found, incoming: &Incoming, force: bool) -> Result<(), ApiError> {
    if found.file.checksum == incoming.checksum {
        return Err(ApiError::bad_request(
            "Error! You may not replace a file with a file that has duplicate content.",
        ));
    }
    let before = found.file.original.as_ref().map_or(&found.file.content_type, |it| &it.content_type);
    let (before, after) = (types::friendly(before), types::friendly(&incoming.content_type));
    if before != after && !force {
        return Err(ApiError::bad_request(format!(
            "The original file ({before}) and replacement file ({after}) are different file types."
        )));
    }
    Ok(())
}

async fn replace(mut call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let (asker, find) = (call.asker.clone(), wanted.clone());
    let read = move |view: &mut View<'_>| {
        let file = find.find(view)?;
        let found = Found::of(view, file)?;
        require_edit(view, &asker, &found.dataset)?;
        replaceable(view, &find)?;
        let collection = collections::by_id(view, found.dataset.owner)?.unwrap_or_default();
        Ok::<_, ApiError>((found, Bounds::of(view, &collection)?))
    };
    let (found, bounds) = call.db().read(Weight::Point, read).await?;
    let (form, target) = take_form(&mut call, &bounds).await?;
    let described = Described::parse(form.get("jsonData"))?;
    if form.file.is_none() && described.storage_identifier.is_none() {
        return Err(ApiError::bad_request(NO_FILE));
    }
    let list = incoming(&call, form, &described, &target, &bounds, &found.dataset).await?;
    let [one] = <[Incoming; 1]>::try_from(list).map_err(|_| {
        ApiError::bad_request(
            "You cannot replace a single file with multiple files. The file you uploaded was ingested into multiple files.",
        )
    })?;
    check_replacement(&found, &one, described.force_replace)?;
    let added = write_replacement(&call, wanted, one, bounds).await?;
    Ok(added.answer())
}

async fn write_replacement(
    call: &Call,
    wanted: Wanted,
    mut incoming: Incoming,
    bounds: Bounds,
) -> Result<Added, ApiError> {
    headers::read(call, std::slice::from_mut(&mut incoming)).await?;
    let ids = call.ids(6).await?;
    let (app, asker, now_ms) = (call.app.clone(), call.asker.clone(), call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let found = replaceable(txn, &wanted)?;
        let mut dataset = found.dataset.clone();
        require_edit(txn, &asker, &dataset)?;
        let mut incoming = incoming.clone();
        let was_published = found.published_row().is_some();
        incoming.replaces = Some((found.file.id, found.file.root.unwrap_or(found.file.id)));
        room::check(txn, &asker, &dataset, std::slice::from_ref(&incoming))?;
        if !was_published {
            incoming.replaces = None;
        }
        let now = crate::clock::instant(now_ms);
        let draft = super::open_draft(txn, &app, &now, &mut dataset, &mut ids)?;
        super::remove_from_draft(txn, &app, &found, draft.ordinal)?;
        let list = vec![incoming];
        add_all(txn, &app, &asker, now_ms, &mut dataset, &mut ids, list, bounds.pids)
    };
    let added = call.db().write(write).await?;
    ingest::run_soon(&call.app, call.db(), &added.pending).await;
    Ok(added)
}

/// The list in the part `jsonData` of a form.
async fn described_list(call: &mut Call, bounds: &Bounds) -> Result<Vec<Map<String, Value>>, ApiError> {
    let (form, _) = take_form(call, bounds).await?;
    let text = form.get("jsonData").unwrap_or_default();
    serde_json::from_str(text).map_err(|_| ApiError::bad_request("Error in parsing provided json"))
}

async fn add_files(mut call: Call) -> Answer {
    let wanted = datasets::Wanted::of(&call)?;
    let (dataset, bounds) = admit(&call, wanted).await?;
    let list = described_list(&mut call, &bounds).await?;
    let n_all = list.len();
    let (asker, id) = (call.asker.clone(), dataset.id);
    let count = move |view: &mut View<'_>| {
        let dataset = datasets::by_id(view, id)?.unwrap_or_default();
        room::check_count(view, &asker, &dataset, n_all as u64)
    };
    call.db().read(Weight::Point, count).await?;
    let mut incoming = Vec::new();
    let mut answers = Vec::new();
    for map in &list {
        let identifier = map.get("storageIdentifier").cloned().unwrap_or_default();
        let claimed = match Described::of(map) {
            Ok(described) => direct::claimed(&call, &described, &dataset).await,
            Err(error) => Err(error),
        };
        match claimed {
            Ok(it) => {
                incoming.push(it);
                answers.push(json!({"storageIdentifier": identifier, "successMessage": "Added successfully to the dataset"}));
            }
            Err(error) => answers.push(json!({
                "storageIdentifier": identifier,
                "errorMessage": error.message,
                "fileDetails": map,
            })),
        }
    }
    let n_added = incoming.len();
    let added = match incoming.is_empty() {
        true => Vec::new(),
        false => write(&call, dataset.id, incoming, bounds).await?.files,
    };
    let mut files = added.into_iter();
    for answer in answers.iter_mut().filter(|it| it["successMessage"].is_string()) {
        answer["fileDetails"] = files.next().unwrap_or_default();
    }
    envelope::ok(json!({
        "Files": answers,
        "Result": {"Total number of files": n_all, "Number of files successfully added": n_added},
    }))
}

async fn replace_files(mut call: Call) -> Answer {
    let wanted = datasets::Wanted::of(&call)?;
    let (dataset, bounds) = admit(&call, wanted).await?;
    let list = described_list(&mut call, &bounds).await?;
    let mut answers = Vec::new();
    let mut n_replaced = 0;
    for map in &list {
        let identifier = map.get("storageIdentifier").cloned().unwrap_or_default();
        match replace_one(&call, map, &dataset, &bounds).await {
            Ok(mut added) => {
                n_replaced += 1;
                let details = added.files.pop().unwrap_or_default();
                answers.push(json!({
                    "storageIdentifier": identifier,
                    "successMessage": "Replaced successfully in the dataset",
                    "fileDetails": details,
                }));
            }
            Err(error) => answers.push(json!({
                "storageIdentifier": identifier,
                "errorMessage": error.message,
                "fileDetails": map,
            })),
        }
    }
    envelope::ok(json!({
        "Files": answers,
        "Result": {"Total number of files": list.len(), "Number of files successfully replaced": n_replaced},
    }))
}

async fn replace_one(
    call: &Call,
    map: &Map<String, Value>,
    dataset: &Dataset,
    bounds: &Bounds,
) -> Result<Added, ApiError> {
    let described = Described::of(map)?;
    let id = described
        .file_to_replace
        .ok_or_else(|| ApiError::bad_request("The ID of the existing file to replace must be provided."))?;
    let wanted = Wanted::number(id);
    let find = wanted.clone();
    let found = call.db().read(Weight::Point, move |view| replaceable(view, &find)).await?;
    if found.dataset.id != dataset.id {
        return Err(ApiError::bad_request("The file to replace does not belong to this dataset."));
    }
    let incoming = direct::claimed(call, &described, dataset).await?;
    check_replacement(&found, &incoming, described.force_replace)?;
    write_replacement(call, wanted, incoming, bounds.clone()).await
}

/// A blob's text as a blob.
pub(crate) fn blob_of(text: &str) -> Result<Blob, ApiError> {
    text.parse().map_err(receive::store_fault)
}
