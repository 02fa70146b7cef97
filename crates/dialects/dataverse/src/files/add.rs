//! Adding files to a dataset (section 6.1 of the contract).

use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::described::Described;
use super::incoming::Incoming;
use super::kinds::{DataFile, PENDING, Row};
use super::receive::{self, Form, Target};
use super::room::{self, Bounds};
use super::{Around, direct, file_json, headers, ingest, rows, types, unzip};
use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset};
use crate::error::{Answer, ApiError};
use crate::files::draft;
use crate::files::findings::Found;
use crate::ids::Ids;
use crate::routing::Routes;
use crate::{collections, envelope, stored};

pub(super) const NO_FILE: &str =
    "You must upload a file or provide a valid storageidentifier, filename, and mimetype.";
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.post("/datasets/{id}/add", add).post("/datasets/{id}/addFiles", add_files)
}

/// Returns the dataset to which files are to be added, and the limits of the upload, after checking the caller's
/// rights.
///
/// Errors: 404; 403 `You do not have permission to edit this dataset.`
pub(super) async fn admit(call: &Call, wanted: Wanted) -> Result<(Dataset, Bounds), ApiError> {
    let asker = call.asker.clone();
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        draft::require_edit(view, &asker, &dataset)?;
        let collection = collections::by_id(view, dataset.owner)?.unwrap_or_default();
        let bounds = Bounds::of(view, &collection)?;
        Ok::<_, ApiError>((dataset, bounds))
    };
    call.db().read(Weight::Point, read).await
}

pub(super) async fn take_form(call: &mut Call, bounds: &Bounds) -> Result<(Form, Target), ApiError> {
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

/// What becomes of an archive without files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// It is added as a file.
    Kept,
    /// It is refused, because its sender can only have meant its files.
    Refused,
}

/// Returns the files in a form: a single file, the entries of an archive, or a direct upload.
pub(super) async fn incoming(
    call: &Call,
    form: Form,
    described: &Described,
    (target, bounds): (&Target, &Bounds),
    dataset: &Dataset,
    empty: Empty,
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
        unzip::Unpacked::Nothing if empty == Empty::Refused => {
            Err(ApiError::bad_request("No files to add to dataset. Perhaps the zip file was empty."))
        }
        unzip::Unpacked::Nothing | unzip::Unpacked::AsItIs => Ok(vec![one]),
        unzip::Unpacked::Files(files) => {
            let described = Described { label: None, ..described.clone() };
            Ok(files.iter().map(|(folder, it)| Incoming::of(call, it, folder, &described, target)).collect())
        }
    }
}

async fn add(mut call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let (dataset, bounds) = admit(&call, wanted).await?;
    let (form, target) = take_form(&mut call, &bounds).await?;
    let described = Described::parse(form.get("jsonData"))?;
    if form.file.is_none() && described.storage_identifier.is_none() {
        return Err(ApiError::bad_request(NO_FILE));
    }
    let list = incoming(&call, form, &described, (&target, &bounds), &dataset, Empty::Kept).await?;
    let added = write(&call, dataset.id, list, bounds).await?;
    Ok(added.answer())
}

/// Adds the files of an archive that is the whole body of a request; its name is in `Content-Disposition`.
pub(crate) async fn add_archive(call: &mut Call, dataset: Dataset) -> Result<Dataset, ApiError> {
    let (_, bounds) = admit(call, Wanted::number(dataset.id)).await?;
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
    let list = incoming(call, form, &described, (&target, &bounds), &dataset, Empty::Refused).await?;
    write(call, dataset.id, list, bounds).await?;
    Ok(dataset)
}

/// Result of an addition.
pub(crate) struct Added {
    pub(crate) files: Vec<Value>,
    /// Names of existing files with the same contents.
    pub(crate) duplicates: Vec<String>,
    pub(crate) pending: Vec<i64>,
}

impl Added {
    pub(super) fn answer(self) -> axum::response::Response {
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

/// Adds files in one transaction, and waits for a moment for the ingest of tables among them.
async fn write(
    call: &Call,
    dataset: i64,
    mut list: Vec<Incoming>,
    bounds: Bounds,
) -> Result<Added, ApiError> {
    headers::read(call, &mut list).await?;
    let n = i64::try_from(list.len()).unwrap_or(i64::MAX / 4);
    let ids = call.ids(3 * n + 1).await?;
    let left = room::left(call, dataset).await?;
    let (app, asker, now_ms) = (call.app.clone(), call.asker.clone(), call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let mut dataset = datasets::by_id(txn, dataset)?
            .ok_or_else(|| ApiError::not_found(format!("Dataset with ID {dataset} not found.")))?;
        draft::require_edit(txn, &asker, &dataset)?;
        room::check(txn, &asker, &dataset, &list, left)?;
        add_all(txn, &app, &asker, now_ms, &mut dataset, &mut ids, list.clone(), bounds.pids)
    };
    let added = call.db().write(write).await?;
    ingest::run_soon(&call.app, call.db(), &added.pending).await;
    Ok(added)
}

/// Adds files to the draft of a dataset, which is created if there is none. Uses three numbers per file, and one more.
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
    let draft = draft::open_draft(txn, app, asker, &now, dataset, ids)?;
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

/// Returns the depositor's description of a file or, without one, that from its header.
fn described(said: String, header: Option<&Found>) -> String {
    match header.and_then(|it| it.description.clone()).filter(|_| said.trim().is_empty()) {
        Some(text) => text,
        None => said,
    }
}

/// Parses the list in the part `jsonData` of a form.
pub(super) async fn described_list(
    call: &mut Call,
    bounds: &Bounds,
) -> Result<Vec<Map<String, Value>>, ApiError> {
    let (form, _) = take_form(call, bounds).await?;
    let text = form.get("jsonData").unwrap_or_default();
    serde_json::from_str(text).map_err(|_| ApiError::bad_request("Error in parsing provided json"))
}

async fn add_files(mut call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
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
