//! Replacing files of a dataset (section 6.2 of the contract).

use http::StatusCode;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::add::{Added, Empty, NO_FILE, add_all, admit, described_list, incoming, take_form};
use super::described::Described;
use super::incoming::Incoming;
use super::room::{self, Bounds};
use super::{Found, Wanted, direct, headers, ingest, types};
use crate::app::Call;
use crate::datasets::{Dataset, wanted};
use crate::error::{Answer, ApiError};
use crate::files::draft::{self, require_edit};
use crate::routing::Routes;
use crate::{collections, envelope};

const NO_FILE_OF_LATEST: &str = "You cannot replace a file that is not in the most recently published dataset. (The file is \
                                 unpublished or was deleted from a previous version.)";

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.post("/datasets/{id}/replaceFiles", replace_files).post("/files/{id}/replace", replace)
}

/// Returns the file that is to be replaced, after checking that it may be. Errors: 400.
fn replaceable(view: &mut View<'_>, id: &Wanted) -> Result<Found, ApiError> {
    let file = id.find(view)?;
    let found = Found::of(view, file)?;
    if found.open_row().is_none() {
        return Err(ApiError::bad_request(NO_FILE_OF_LATEST));
    }
    Ok(found)
}

/// Checks that a file may replace another. Errors: 400 if the contents are the same, or the type differs and `force` is
/// not set.
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
    let named = call.query.filled("persistentId").unwrap_or_else(|| call.param("id")).to_owned();
    let read = move |view: &mut View<'_>| {
        // An unknown file makes the request invalid (400), instead of a 404.
        let unknown = |error: ApiError| match error.status {
            StatusCode::NOT_FOUND => ApiError::bad_request(format!(
                "Replacement file not found. There was no file found for ID: {named}"
            )),
            _ => error,
        };
        let file = find.find(view).map_err(unknown)?;
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
    let list = incoming(&call, form, &described, (&target, &bounds), &found.dataset, Empty::Kept).await?;
    let [one] = <[Incoming; 1]>::try_from(list).map_err(|_| {
        ApiError::bad_request(
            "You cannot replace a single file with multiple files. The file you uploaded was ingested into multiple files.",
        )
    })?;
    check_replacement(&found, &one, described.force_replace)?;
    let added = write_replacement(&call, wanted, found.dataset.id, one, bounds).await?;
    Ok(added.answer())
}

async fn write_replacement(
    call: &Call,
    wanted: Wanted,
    dataset: i64,
    mut incoming: Incoming,
    bounds: Bounds,
) -> Result<Added, ApiError> {
    headers::read(call, std::slice::from_mut(&mut incoming)).await?;
    let left = room::left(call, dataset).await?;
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
        room::check(txn, &asker, &dataset, std::slice::from_ref(&incoming), left)?;
        if !was_published {
            incoming.replaces = None;
        }
        let now = crate::clock::instant(now_ms);
        let draft = draft::open_draft(txn, &app, &asker, &now, &mut dataset, &mut ids)?;
        super::remove_from_draft(txn, &app, &found, draft.ordinal)?;
        let list = vec![incoming];
        add_all(txn, &app, &asker, now_ms, &mut dataset, &mut ids, list, bounds.pids)
    };
    let added = call.db().write(write).await?;
    ingest::run_soon(&call.app, call.db(), &added.pending).await;
    Ok(added)
}

async fn replace_files(mut call: Call) -> Answer {
    let wanted = wanted::Wanted::of(&call)?;
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
    write_replacement(call, wanted, dataset.id, incoming, bounds.clone()).await
}
