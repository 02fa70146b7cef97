//! Changing the description of files in a version, and removing files from it (section 6.2 of the contract).

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Txn, View};
use serde_json::{Map, Value};

use super::described::{Described, TAGS};
use super::kinds::{DataFile, Row};
use super::{Found, Wanted, rows};
use crate::app::{Call, Dataverse};
use crate::datasets::{self, wanted};
use crate::error::{Answer, ApiError};
use crate::files::checksum::Algorithm;
use crate::files::draft::{self, require_edit};
use crate::grants::Permission;
use crate::ids::Ids;
use crate::routing::Routes;
use crate::{envelope, permissions, site_settings};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/files/{id}/metadata", change)
        .post("/datasets/{id}/files/metadata", change_many)
        .put("/files/{id}/restrict", restrict)
        .post("/files/{id}/metadata/categories", categories)
        .post("/files/{id}/metadata/tabularTags", tabular_tags)
        .delete("/files/{id}", delete)
        .put("/datasets/{id}/deleteFiles", delete_many)
}

/// A file being changed in the draft of its dataset, which is created if there is none.
pub(super) struct Editing {
    found: Found,
    row: Row,
    ordinal: i64,
}

impl Editing {
    /// Begins a change. Errors: 403 without the permission; 400 if the newest version no longer contains the file.
    pub(super) fn begin(
        txn: &mut Txn<'_>,
        call: &Editor,
        wanted: &Wanted,
        ids: &mut Ids,
    ) -> Result<Self, ApiError> {
        let file = wanted.find(txn)?;
        let mut found = Found::of(txn, file)?;
        require_edit(txn, &call.asker, &found.dataset)?;
        let row = found.open_row().cloned().ok_or_else(|| {
            ApiError::bad_request(
                "You cannot edit metadata on a dataFile that has been deleted or replaced in a newer version.",
            )
        })?;
        let draft = draft::open_draft(txn, &call.app, &call.asker, &call.now, &mut found.dataset, ids)?;
        Ok(Self { found, row, ordinal: draft.ordinal })
    }

    /// Changes the row and updates the search index.
    pub(super) fn row(
        &mut self,
        txn: &mut Txn<'_>,
        app: &Dataverse,
        ids: &mut Ids,
        edit: impl FnOnce(&mut Row),
    ) -> Result<(), ApiError> {
        let checksum = self.found.file.checksum.clone();
        self.row = rows::change(txn, self.row.clone(), self.ordinal, ids.next()?, &checksum, edit)?;
        crate::search::index_file(txn, app, &self.found.dataset, &self.found.file)
    }

    /// Changes the data file itself and updates the search index.
    fn file(
        &mut self,
        txn: &mut Txn<'_>,
        app: &Dataverse,
        edit: impl FnOnce(&mut DataFile),
    ) -> Result<(), ApiError> {
        edit(&mut self.found.file);
        rows::put_file(txn, &self.found.file)?;
        crate::search::index_file(txn, app, &self.found.dataset, &self.found.file)
    }
}

/// The parts of the request that a change needs in its transaction.
#[derive(Clone)]
pub(super) struct Editor {
    pub(super) app: Dataverse,
    pub(super) asker: crate::asker::Asker,
    now: String,
}

impl Editor {
    pub(super) fn of(call: &Call) -> Self {
        Self { app: call.app.clone(), asker: call.asker.clone(), now: call.app.now() }
    }
}

/// Returns the JSON of a request: the part `jsonData` of a form, or the body itself.
async fn json_data(call: &mut Call) -> Result<String, ApiError> {
    let is_form = call.header("content-type").is_some_and(|it| it.starts_with("multipart/form-data"));
    if !is_form {
        return call.text().await;
    }
    let target = super::receive::Target {
        blobs: call.app.context.blobs().clone(),
        tenant: call.tenant().to_owned(),
        algorithm: Algorithm::Md5,
        most_bytes: Some(0),
    };
    let limits = call.app.context.limits().clone();
    let body = call.take_body();
    let form = super::receive::form(&call.headers, body, &limits, &target).await?;
    Ok(form.get("jsonData").unwrap_or_default().to_owned())
}

async fn change(mut call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let since = call.query.filled("sourceLastUpdateTime").map(str::to_owned);
    let text = json_data(&mut call).await?;
    let given = Described::parse(Some(&text))?;
    let (editor, ids) = (Editor::of(&call), call.ids(2).await?);
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        if let Some(since) = &since {
            let file = wanted.find(txn)?;
            let dataset = super::dataset_of(txn, &file)?;
            check_time(&dataset, since)?;
        }
        let mut editing = Editing::begin(txn, &editor, &wanted, &mut ids)?;
        apply(txn, &editor, &mut editing, &given, &mut ids)?;
        Ok::<_, ApiError>(metadata_json(&editing.found.file, &editing.row))
    };
    let json = call.db().write(write).await?;
    let text = format!("File Metadata update has been completed: {json}");
    Ok(answer::bytes(StatusCode::OK, envelope::TEXT, text))
}

/// Checks that the version was not changed after the client read it. Errors: 400.
pub(crate) fn check_time(dataset: &datasets::Dataset, since: &str) -> Result<(), ApiError> {
    let Some(draft) = &dataset.draft else { return Ok(()) };
    let given = crate::clock::parse(since)
        .ok_or_else(|| ApiError::bad_request(format!("Error parsing date: {since}")))?;
    if crate::clock::parse(&draft.last_update_time).is_some_and(|it| given < it) {
        return Err(ApiError::bad_request(format!("Internal version timestamp {since} is outdated")));
    }
    Ok(())
}

fn apply(
    txn: &mut Txn<'_>,
    editor: &Editor,
    editing: &mut Editing,
    given: &Described,
    ids: &mut Ids,
) -> Result<(), ApiError> {
    let mut next = editing.row.clone();
    if let Some(label) = &given.label {
        next.label = checked_label(label)?;
    }
    if let Some(directory) = &given.directory {
        next.directory.clone_from(directory);
    }
    if next.path() != editing.row.path() && rows::is_taken(txn, next.dataset, &next.path())? {
        return Err(ApiError::bad_request(format!("Filename already exists at {}", next.path())));
    }
    if let Some(description) = &given.description {
        next.description.clone_from(description);
    }
    if let Some(categories) = &given.categories {
        next.categories.clone_from(categories);
    }
    if let Some(restrict) = given.restrict {
        next.restricted = restrict;
    }
    if let Some(provenance) = &given.provenance {
        next.provenance = Some(provenance.clone());
    }
    editing.row(txn, &editor.app, ids, |row| *row = next)?;
    if let Some(tags) = &given.tags {
        check_tags(&editing.found.file, tags)?;
        editing.file(txn, &editor.app, |file| file.tags.clone_from(tags))?;
    }
    Ok(())
}

/// Checks a file name. Errors: 400 for characters that are not allowed, and for an empty name.
fn checked_label(label: &str) -> Result<String, ApiError> {
    let label = label.trim();
    if label.is_empty() {
        return Err(ApiError::bad_request("Please specify a file name."));
    }
    if super::unzip::clean_name(label) != label {
        return Err(ApiError::bad_request(
            "File Name cannot contain any of the following characters:  / : * ? \" < > | ; # .",
        ));
    }
    Ok(label.to_owned())
}

fn check_tags(file: &DataFile, tags: &[String]) -> Result<(), ApiError> {
    if file.original.is_none() {
        return Err(ApiError::bad_request("You cannot add Tabular Data Tags to a non-tabular file."));
    }
    match tags.iter().find(|it| !TAGS.contains(&it.as_str())) {
        Some(tag) => Err(ApiError::bad_request(format!("Not a valid Tabular Data Tag: {tag}"))),
        None => Ok(()),
    }
}

/// Returns the JSON of `GET /api/files/{id}/metadata`.
pub(super) fn metadata_json(file: &DataFile, row: &Row) -> Value {
    let mut map = Map::new();
    map.insert("label".into(), row.label.as_str().into());
    map.insert("description".into(), row.description.as_str().into());
    if !row.directory.is_empty() {
        map.insert("directoryLabel".into(), row.directory.as_str().into());
    }
    map.insert("restricted".into(), row.restricted.into());
    if let Some(provenance) = &row.provenance {
        map.insert("provFreeForm".into(), provenance.as_str().into());
    }
    if !row.categories.is_empty() {
        map.insert("categories".into(), row.categories.clone().into());
    }
    if !file.tags.is_empty() {
        map.insert("dataFileTags".into(), file.tags.clone().into());
    }
    map.insert("id".into(), row.id.into());
    map.into()
}

/// `POST /datasets/{id}/files/metadata`: describes several files of the newest version anew, all of them or none.
async fn change_many(mut call: Call) -> Answer {
    let wanted = wanted::Wanted::of(&call)?;
    let list = call.json().await?;
    let list =
        list.as_array().cloned().ok_or_else(|| ApiError::bad_request("Error in parsing provided json"))?;
    let mut changes = Vec::new();
    for it in &list {
        let map = it.as_object().ok_or_else(|| ApiError::bad_request("Error in parsing provided json"))?;
        let id = map.get("dataFileId").and_then(Value::as_i64);
        let id = id.ok_or_else(|| ApiError::bad_request("Each entry must have a dataFileId."))?;
        changes.push((id, Described::of(map)?));
    }
    let n = i64::try_from(changes.len()).unwrap_or(i64::MAX / 4);
    let (editor, ids) = (Editor::of(&call), call.ids(n + 1).await?);
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let dataset = wanted.find(txn)?;
        require_edit(txn, &editor.asker, &dataset)?;
        let mut strangers = Vec::new();
        for (id, _) in &changes {
            let is_here = rows::data_file(txn, *id)?.is_some_and(|it| it.dataset == dataset.id)
                && rows::of_file(txn, *id)?.iter().any(|it| it.until.is_none());
            if !is_here {
                strangers.push(*id);
            }
        }
        if !strangers.is_empty() {
            return Err(ApiError::bad_request(format!(
                "The following dataFileIds are not part of the current version of the Dataset: {strangers:?}"
            )));
        }
        for (id, given) in &changes {
            let mut editing = Editing::begin(txn, &editor, &Wanted::number(*id), &mut ids)?;
            apply(txn, &editor, &mut editing, given, &mut ids)?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    envelope::message("File metadata updates have been completed.")
}

async fn restrict(mut call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let text = call.text().await?;
    let parsed: Option<Value> = serde_json::from_str(&text).ok();
    let (wish, access, terms) = match &parsed {
        Some(Value::Object(map)) => (
            map.get("restrict").and_then(Value::as_bool),
            map.get("enableAccessRequest").and_then(Value::as_bool),
            map.get("termsOfAccess").and_then(Value::as_str).map(str::to_owned),
        ),
        // Only `false` makes a file public.
        _ => (text.trim().to_lowercase().parse().ok(), None, None),
    };
    let wish = wish.ok_or_else(|| {
        ApiError::bad_request(
            "Error parsing Json: the body must be true or false, or an object with restrict",
        )
    })?;
    let (editor, ids) = (Editor::of(&call), call.ids(2).await?);
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let file = wanted.find(txn)?;
        let found = Found::of(txn, file)?;
        require_edit_or_401(txn, &editor, &found)?;
        let label = found.newest_row().map(|it| it.label.clone()).unwrap_or_default();
        if site_settings::is_true(txn, ":PublicInstall", false)? && wish {
            return Err(ApiError::bad_request(format!(
                "Problem trying to update restriction status on {label}: Restricting files is not permitted on a public \
                 installation."
            )));
        }
        let mut editing = Editing::begin(txn, &editor, &wanted, &mut ids)?;
        if editing.row.restricted == wish {
            let state = if wish { "restricted" } else { "unrestricted" };
            return Err(ApiError::bad_request(format!(
                "Problem trying to update restriction status on {label}: File {label} is already {state}"
            )));
        }
        let mut notes = Vec::new();
        if access.is_some() || terms.is_some() {
            let mut version =
                datasets::draft::open_draft(txn, &editor.now, &mut editing.found.dataset, &mut ids)?;
            if let Some(access) = access {
                version.file_access_request = access;
                notes.push(if access { "Access Request is enabled." } else { "Access Request is disabled." });
            }
            if let Some(terms) = &terms {
                version.terms.insert("termsOfAccess".into(), terms.as_str().into());
                notes.push("Terms of Access have been updated.");
            }
            datasets::version::put(txn, &version)?;
            datasets::put(txn, &editing.found.dataset)?;
        }
        if wish {
            let draft = editing.found.dataset.draft.as_ref().map(|it| it.version);
            let shown = draft.or_else(|| editing.found.dataset.last.as_ref().map(|it| it.version));
            let version =
                datasets::version::of_dataset(txn, &editing.found.dataset, shown.unwrap_or_default())?;
            if !version.file_access_request && !version.terms.contains_key("termsOfAccess") {
                return Err(ApiError::conflict(
                    "Terms of Use and Access are invalid. You must enable request access or add terms of access in \
                     datasets with restricted files.",
                ));
            }
        }
        editing.row(txn, &editor.app, &mut ids, |row| row.restricted = wish)?;
        let state = if wish { "restricted" } else { "unrestricted" };
        let mut text = format!("File {label} {state}.");
        for note in notes {
            text.push(' ');
            text.push_str(note);
        }
        Ok(text)
    };
    envelope::message(call.db().write(write).await?)
}

pub(super) fn require_edit_or_401(
    view: &mut View<'_>,
    editor: &Editor,
    found: &Found,
) -> Result<(), ApiError> {
    permissions::require(view, &editor.asker, found.dataset.place(), Permission::EditDataset)
}

/// Returns the list of texts under a name in the body. Errors: 400.
async fn texts(call: &mut Call, name: &str) -> Result<Vec<String>, ApiError> {
    let body = call.object().await?;
    let list = body.get(name).and_then(Value::as_array);
    let list =
        list.ok_or_else(|| ApiError::bad_request(format!("Error parsing Json: {name} is required")))?;
    let mut kept: Vec<String> = Vec::new();
    for it in list.iter().filter_map(Value::as_str).map(str::trim).filter(|it| !it.is_empty()) {
        if !kept.iter().any(|there| there == it) {
            kept.push(it.to_owned());
        }
    }
    Ok(kept)
}

fn merged(there: &[String], given: &[String], replaces: bool) -> Vec<String> {
    let mut list = if replaces { Vec::new() } else { there.to_vec() };
    for it in given {
        if !list.contains(it) {
            list.push(it.clone());
        }
    }
    list
}

/// Checks that the caller may edit the file's dataset. Errors: 401.
fn require_editor(txn: &mut Txn<'_>, editor: &Editor, wanted: &Wanted) -> Result<(), ApiError> {
    let file = wanted.find(txn)?;
    let place = Found::of(txn, file)?.dataset.place();
    permissions::require(txn, &editor.asker, place, Permission::EditDataset)
}

async fn categories(mut call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let replaces = call.query.is_true("replace");
    let given = texts(&mut call, "categories").await?;
    let (editor, ids) = (Editor::of(&call), call.ids(2).await?);
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        require_editor(txn, &editor, &wanted)?;
        let mut editing = Editing::begin(txn, &editor, &wanted, &mut ids)?;
        let list = merged(&editing.row.categories, &given, replaces);
        editing.row(txn, &editor.app, &mut ids, |row| row.categories = list)?;
        Ok::<_, ApiError>(editing.found.file.id)
    };
    let id = call.db().write(write).await?;
    envelope::message(format!("Categories of file {id} updated."))
}

async fn tabular_tags(mut call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let replaces = call.query.is_true("replace");
    let given = texts(&mut call, "tabularTags").await?;
    let (editor, ids) = (Editor::of(&call), call.ids(2).await?);
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        require_editor(txn, &editor, &wanted)?;
        let mut editing = Editing::begin(txn, &editor, &wanted, &mut ids)?;
        if editing.found.file.original.is_none() {
            return Err(ApiError::bad_request("This operation is only available for tabular files."));
        }
        check_tags(&editing.found.file, &given)?;
        let list = merged(&editing.found.file.tags, &given, replaces);
        editing.file(txn, &editor.app, |file| file.tags = list)?;
        Ok(editing.found.file.id)
    };
    let id = call.db().write(write).await?;
    envelope::message(format!("Tabular tags of file {id} updated."))
}

/// Removes a file from the draft with that ordinal. Deletes the file if no other version contains it, and returns
/// whether it did.
pub(crate) fn remove_from_draft(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    found: &Found,
    ordinal: i64,
) -> Result<bool, ApiError> {
    let Some(row) = found.open_row() else { return Ok(false) };
    rows::close(txn, row.clone(), ordinal)?;
    if rows::of_file(txn, found.file.id)?.is_empty() {
        rows::forget_file(txn, found.file.id)?;
        return Ok(true);
    }
    crate::search::index_file(txn, app, &found.dataset, &found.file)?;
    Ok(false)
}

/// Deletes a file from the draft of its dataset. Returns whether the file itself was deleted.
pub(crate) fn delete_one(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    asker: &crate::asker::Asker,
    now: &str,
    wanted: &Wanted,
    ids: &mut Ids,
) -> Result<bool, ApiError> {
    let file = wanted.find(txn)?;
    let mut found = Found::of(txn, file)?;
    let held = crate::permissions::held(txn, asker, found.dataset.place())?;
    if !held.contains(&crate::grants::Permission::EditDataset) {
        return Err(crate::permissions::refusal(asker));
    }
    if !found.dataset.locks.is_empty() {
        require_edit(txn, asker, &found.dataset)?;
    }
    if found.open_row().is_none() {
        return Err(ApiError::bad_request(
            "This file has already been deleted (or replaced) in the current version. It may not be edited.",
        ));
    }
    let draft = draft::open_draft(txn, app, asker, now, &mut found.dataset, ids)?;
    remove_from_draft(txn, app, &found, draft.ordinal)
}

async fn delete(call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let (editor, ids) = (Editor::of(&call), call.ids(1).await?);
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        delete_one(txn, &editor.app, &editor.asker, &editor.now, &wanted, &mut ids)
    };
    envelope::ok(call.db().write(write).await?)
}

async fn delete_many(mut call: Call) -> Answer {
    let wanted = wanted::Wanted::of(&call)?;
    let body = call.json().await?;
    let files: Option<Vec<i64>> = body.as_array().and_then(|list| list.iter().map(Value::as_i64).collect());
    let files =
        files.ok_or_else(|| ApiError::bad_request("Error parsing Json: expected a list of file ids"))?;
    let (editor, ids) = (Editor::of(&call), call.ids(1).await?);
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let dataset = wanted.find(txn)?;
        let held = crate::permissions::held(txn, &editor.asker, dataset.place())?;
        if !held.contains(&crate::grants::Permission::EditDataset) {
            return Err(ApiError::forbidden("You do not have permission to edit this dataset."));
        }
        if files.is_empty() {
            return Err(ApiError::bad_request("There are no files to delete."));
        }
        for id in &files {
            if rows::data_file(txn, *id)?.is_none_or(|it| it.dataset != dataset.id) {
                return Err(ApiError::bad_request(format!(
                    "No files were deleted: the dataset {} has no file of the id {id}.",
                    dataset.id
                )));
            }
            delete_one(txn, &editor.app, &editor.asker, &editor.now, &Wanted::number(*id), &mut ids)?;
        }
        Ok::<_, ApiError>(files.len())
    };
    let n = call.db().write(write).await?;
    envelope::message(format!("{n} files deleted successfully"))
}
