//! Reading files (section 6.2 of the contract).

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use super::kinds::DataFile;
use super::{Around, Found, Wanted, file_json, ingest, rows, types};
use crate::app::Call;
use crate::asker::Asker;
use crate::citation::{Cited, Format};
use crate::datasets::show::{Showing, is_part_of, publisher, text_answer, version_json};
use crate::datasets::version::{self, Withdrawn};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{clock, envelope, permissions};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/files/{id}", show)
        .get("/files/{id}/draft", show_draft)
        .get("/files/{id}/versions/{version}", show)
        .get("/files/{id}/versions/{version}/citation", cite)
        .get("/access/datafile/{id}/citation/{format}", cite_as)
        .get("/files/{id}/metadata", metadata)
        .get("/files/{id}/metadata/draft", draft_metadata)
        .get("/files/{id}/downloadCount", download_count)
        .get("/files/{id}/dataTables", data_tables)
        .get("/files/{id}/hasBeenDeleted", has_been_deleted)
        .get("/files/{id}/versionDifferences", differences)
        .post("/files/{id}/redetect", redetect)
}

/// Returns the version that `text` selects for a file; deaccessioned ones only for callers who may see drafts.
fn version_of(
    view: &mut View<'_>,
    asker: &Asker,
    found: &Found,
    text: &str,
    withdrawn: bool,
) -> Result<version::Version, ApiError> {
    let sees = permissions::may(view, asker, found.dataset.place(), Permission::ViewUnpublishedDataset)?;
    let withdrawn = if withdrawn && sees { Withdrawn::Shown } else { Withdrawn::Hidden };
    version::find(view, asker, &found.dataset, text, withdrawn)
}

async fn show(call: Call) -> Answer {
    let text = call.param("version");
    let text = if text.is_empty() { ":latest" } else { text }.to_owned();
    one(call, text).await
}

async fn show_draft(call: Call) -> Answer {
    one(call, ":draft".to_owned()).await
}

async fn one(call: Call, text: String) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let withdrawn = call.query.is_true("includeDeaccessioned");
    let (with_version, with_owners) =
        (call.query.is_true("returnDatasetVersion"), call.query.is_true("returnOwners"));
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let version = version_of(view, &asker, &found, &text, withdrawn)?;
        let row = found.rows.iter().find(|it| it.is_in(version.ordinal));
        let row = row.ok_or_else(|| {
            ApiError::not_found(format!(
                "\"File metadata for file with id {} in dataset version {text} not found\"",
                found.file.id
            ))
        })?;
        let around = Around::with(view, &found.dataset, version.clone())?;
        let mut json = file_json(row, &found.file, &around);
        if with_version {
            let showing = Showing { files: false, ..Showing::default() };
            json["datasetVersion"] = version_json(view, &found.dataset, &version, showing)?;
        }
        if with_owners {
            let owner = json!({
                "type": "DATASET",
                "identifier": found.dataset.id.to_string(),
                "persistentIdentifier": found.dataset.pid,
                "version": version.friendly_number(),
                "displayName": crate::datasets::version::title_of(&version),
                "isReleased": found.dataset.was_released(),
                "isPartOf": is_part_of(view, &found.dataset)?,
            });
            json["dataFile"]["isPartOf"] = owner;
        }
        Ok::<_, ApiError>(json)
    };
    envelope::ok(call.db().read(Weight::Point, read).await?)
}

async fn cite(call: Call) -> Answer {
    let (wanted, asker, text) = (Wanted::of(&call)?, call.asker.clone(), call.param("version").to_owned());
    let withdrawn = call.query.is_true("includeDeaccessioned");
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let version = version_of(view, &asker, &found, &text, withdrawn)?;
        let row = found.rows.iter().find(|it| it.is_in(version.ordinal));
        let label =
            row.map(|it| it.label.clone()).ok_or_else(|| ApiError::not_found("File could not be found."))?;
        let cited = Cited::of(&found.dataset, &version, &publisher(view)?).html();
        let unf = found.file.unf.as_ref().map(|it| format!(", {it} [fileUNF]")).unwrap_or_default();
        Ok::<_, ApiError>(format!("{cited}; {label} [fileName]{unf}"))
    };
    envelope::message(call.db().read(Weight::Point, read).await?)
}

/// Answers with a file's citation for reference managers, in the newest version that the caller may see.
async fn cite_as(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let format = Format::named(call.param("format"))?;
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let version = version_of(view, &asker, &found, ":latest", false)?;
        let row = found.rows.iter().find(|it| it.is_in(version.ordinal));
        let row = row.ok_or_else(|| ApiError::not_found("File could not be found."))?;
        let mut cited = Cited::of(&found.dataset, &version, &publisher(view)?);
        cited.title = format!("{}: {}", cited.title, row.label);
        Ok::<_, ApiError>(format.write(&cited))
    };
    text_answer(format.media_type(), call.db().read(Weight::Point, read).await?)
}

/// Answers with the description of a file in its newest published version (or, without one, its newest), as JSON with
/// the media type `text/plain`.
async fn metadata(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        if !found.may_see(view, &asker)? {
            return Err(permissions::refusal(&asker));
        }
        let row = found.published_row().or_else(|| found.newest_row());
        let row = row.ok_or_else(|| ApiError::not_found("File could not be found."))?;
        Ok(super::edit::metadata_json(&found.file, row))
    };
    let json = call.db().read(Weight::Point, read).await?;
    Ok(answer::bytes(StatusCode::OK, envelope::TEXT, json.to_string()))
}

async fn draft_metadata(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let may = permissions::may(view, &asker, found.dataset.place(), Permission::ViewUnpublishedDataset)?;
        if !may {
            return Err(ApiError::bad_request("Dataset version cannot be found or unauthorized."));
        }
        let row = found.open_row().filter(|_| found.dataset.draft.is_some());
        let row = row.ok_or_else(|| ApiError::bad_request("No draft available for this file"))?;
        Ok(super::edit::metadata_json(&found.file, row))
    };
    let json = call.db().read(Weight::Point, read).await?;
    Ok(answer::bytes(StatusCode::OK, envelope::TEXT, json.to_string()))
}

/// Returns the file, after checking that the caller may know of its existence. Errors: 401, 404.
async fn seen(call: &Call) -> Result<Found, ApiError> {
    let (wanted, asker) = (Wanted::of(call)?, call.asker.clone());
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        if found.may_see(view, &asker)? { Ok(found) } else { Err(permissions::refusal(&asker)) }
    };
    call.db().read(Weight::Point, read).await
}

async fn download_count(call: Call) -> Answer {
    let found = seen(&call).await?;
    envelope::message(found.file.downloads.to_string())
}

async fn data_tables(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let today = clock::date(call.app.now_ms());
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        if !found.may_download(view, &asker, &today)? {
            return Err(ApiError::forbidden("You do not have permission to download this file."));
        }
        ingest::only_tables(&found.file)?;
        Ok(rows::tables(view, found.file.id)?.unwrap_or_else(|| json!([])))
    };
    envelope::ok(call.db().read(Weight::Point, read).await?)
}

async fn has_been_deleted(call: Call) -> Answer {
    let found = seen(&call).await?;
    envelope::ok(found.open_row().is_none())
}

/// `GET /files/{id}/versionDifferences?limit=&offset=`: how the file changed from version to version, newest first.
async fn differences(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let (limit, offset) = crate::datasets::show::window(&call)?;
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let sees = permissions::may(view, &asker, found.dataset.place(), Permission::ViewUnpublishedDataset)?;
        if !sees && found.published_row().is_none() {
            return Err(permissions::refusal(&asker));
        }
        let mut list = Vec::new();
        let mut all = version::newest_first(view, &found.dataset)?;
        all.reverse();
        let mut before: Option<super::Row> = None;
        for it in &all {
            if it.state == crate::datasets::State::Draft && !sees {
                continue;
            }
            let row = found.rows.iter().find(|row| row.is_in(it.ordinal)).cloned();
            list.push(difference(&found.file, it, before.as_ref(), row.as_ref()));
            before = row;
        }
        list.reverse();
        Ok(list)
    };
    let all: Vec<Value> = call.db().read(Weight::Point, read).await?;
    let n_all = u64::try_from(all.len()).unwrap_or(u64::MAX);
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    let take = limit.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
    envelope::page(n_all, all.into_iter().skip(skip).take(take).collect())
}

fn difference(
    file: &DataFile,
    version: &version::Version,
    before: Option<&super::Row>,
    row: Option<&super::Row>,
) -> Value {
    let mut json = json!({
        "datasetVersion": version.friendly_number(),
        "versionNumber": version.number,
        "versionMinorNumber": version.minor,
        "versionState": version.state.name(),
        "contributors": version.contributors.join(", "),
        "publishedDate": version.release_time.as_deref().and_then(|it| it.get(..10)).unwrap_or_default(),
        "versionNote": version.version_note,
    });
    if let Some(map) = json.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
    if row.is_some() {
        json["datafileId"] = file.id.into();
        json["persistentId"] = file.pid.as_deref().unwrap_or_default().into();
    }
    let change = match (before, row) {
        (None, Some(_)) => json!({"file": "Added"}),
        (Some(_), None) => json!({"file": "Deleted"}),
        (Some(a), Some(b)) if a != b => {
            let mut list = Vec::new();
            for (what, is_other, is_new) in [
                ("Description", a.description != b.description, a.description.is_empty()),
                ("File Name", a.label != b.label, false),
                ("File Path", a.directory != b.directory, a.directory.is_empty()),
            ] {
                if is_other {
                    list.push(json!({"name": what, "action": if is_new { "Added" } else { "Changed" }}));
                }
            }
            let mut change = json!({});
            if a.restricted != b.restricted {
                change["fileAccess"] = if b.restricted { "Restricted" } else { "Unrestricted" }.into();
            }
            if a.categories != b.categories {
                let n = |from: &[String], to: &[String]| to.iter().filter(|it| !from.contains(it)).count();
                change["fileTags"] = json!({"Added": n(&a.categories, &b.categories), "Deleted": n(&b.categories, &a.categories)});
            }
            if !list.is_empty() {
                change["fileMetadata"] = list.into();
            }
            change
        }
        _ => Value::Null,
    };
    if !change.is_null() {
        json["fileDifferenceSummary"] = change;
    }
    json
}

async fn redetect(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let is_dry = call.query.is_true("dryRun");
    let find = wanted.clone();
    let read = move |view: &mut View<'_>| {
        let file = find.find(view)?;
        let found = Found::of(view, file)?;
        permissions::require(view, &asker, found.dataset.place(), Permission::EditDataset)?;
        Ok::<_, ApiError>(found)
    };
    let found = call.db().read(Weight::Point, read).await?;
    let blob =
        found.file.blob.as_deref().ok_or_else(|| ApiError::bad_request("The file's bytes are elsewhere."))?;
    let blob = super::incoming::blob_of(blob)?;
    let end = blob.length.min(types::HEAD_BYTES as u64);
    let blobs = call.app.context.blobs();
    let mut reading =
        blobs.get(call.tenant(), &blob, Some(0..end)).await.map_err(super::receive::store_fault)?;
    let mut head = Vec::new();
    while let Some(piece) =
        futures_util::TryStreamExt::try_next(&mut reading).await.map_err(super::receive::store_fault)?
    {
        head.extend_from_slice(&piece);
    }
    let label = found.newest_row().map(|it| it.label.clone()).unwrap_or_default();
    let new_type = types::detect(None, &label, &head);
    let old_type = found.file.content_type.clone();
    if !is_dry && new_type != old_type {
        let (app, new_type) = (call.app.clone(), new_type.clone());
        let write = move |txn: &mut Txn<'_>| {
            let mut file = wanted.find(txn)?;
            file.content_type.clone_from(&new_type);
            rows::put_file(txn, &file)?;
            crate::search::index_file(txn, &app, &found.dataset, &file)
        };
        call.db().write(write).await?;
    }
    envelope::ok(json!({"dryRun": is_dry, "oldContentType": old_type, "newContentType": new_type}))
}
