//! Checks of stored data: metadata of datasets, checksums of files; and repairs that only older installations needed.

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{Expr, Txn, View, Weight};
use serde_json::{Value, json};

use super::integrity::computed;
use crate::app::Call;
use crate::blocks::Fields;
use crate::collections::{self, write};
use crate::datasets::wanted::Wanted;
use crate::datasets::{DATASET, Dataset, schema, version};
use crate::error::{Answer, ApiError};
use crate::files::checksum::Algorithm;
use crate::files::{DataFile, rows};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{assignments, envelope, permissions, site_settings, stored};

/// Datasets that are checked in one read.
const AT_ONCE: usize = 100;
/// Maximum number of collections below one that are processed.
const COLLECTIONS: usize = 100_000;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/validate/datasets", check_all)
        .get("/admin/validate/dataset/{id}", check_one)
        .get("/admin/validate/dataset/files/{id}", check_files)
        .get("/admin/datafiles/integrity/fixmissingoriginaltypes", nothing_missing)
        .get("/admin/datafiles/integrity/fixmissingoriginalsizes", nothing_missing)
        .get("/admin/dataverse/{alias}/addRoleAssignmentsToChildren", inherit_below)
        .get("/admin/isOrcid", no_orcid)
        .get("/datasets/{id}/cleanStorage", clean_storage)
        .get("/datasets/{id}/versions/{version}/customlicense", custom_license)
        .get("/files/fixityAlgorithm", fixity_algorithm)
}

/// Returns what is wrong with the newest version of a dataset; `None` if nothing is.
fn fault(
    view: &mut View<'_>,
    registry: &crate::blocks::Registry,
    dataset: &Dataset,
) -> Result<Option<String>, ApiError> {
    let newest = dataset.draft.as_ref().map(|it| it.version).or(dataset.last.as_ref().map(|it| it.version));
    let Some(newest) = newest.filter(|_| dataset.harvested_by.is_none()) else { return Ok(None) };
    let version = version::of_dataset(view, dataset, newest)?;
    let fields = Fields::stored(registry, &Value::Object(version.metadata_blocks));
    let owner = collections::named_by_record(view, dataset.owner)?;
    match schema::check_fields(view, registry, &owner, &fields) {
        Ok(()) => Ok(None),
        Err(error) if error.status == StatusCode::FORBIDDEN => Ok(Some(error.message)),
        Err(error) => Err(error),
    }
}

fn told(dataset: &Dataset, fault: Option<String>) -> Value {
    let status = if fault.is_none() { "valid" } else { "invalid" };
    Value::Object(envelope::object(json!({
        "datasetId": dataset.id, "identifier": dataset.pid, "status": status, "errorMessages": fault.map(|it| [it]),
    })))
}

/// Checks every dataset, one after the other; the answer is not enveloped.
async fn check_all(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let all = |view: &mut View<'_>| rows::ids_of(view, &DATASET, Expr::All);
    let ids = call.db().read(Weight::Scan, all).await?;
    let mut list = Vec::new();
    for part in ids.chunks(AT_ONCE) {
        let (part, registry) = (part.to_vec(), registry.clone());
        let check = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
            let mut told_of = Vec::new();
            for id in &part {
                let Some(dataset) = stored::get::<Dataset>(view, &DATASET, id)? else { continue };
                let fault = fault(view, &registry, &dataset)?;
                told_of.push(told(&dataset, fault));
            }
            Ok(told_of)
        };
        list.extend(call.db().read(Weight::Scan, check).await?);
    }
    Ok(envelope::raw_json(StatusCode::OK, &json!({"datasets": list})))
}

async fn check_one(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let wanted = Wanted::of(&call)?;
    let check = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let dataset = wanted.find(view)?;
        let fault = fault(view, &registry, &dataset)?;
        Ok(told(&dataset, fault))
    };
    envelope::ok(call.db().read(Weight::Point, check).await?)
}

/// Compares the files of a dataset with their checksums; the answer is not enveloped.
async fn check_files(call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let all = move |view: &mut View<'_>| -> Result<Vec<DataFile>, ApiError> {
        let dataset = wanted.find(view)?;
        let of = Expr::Is("dataset".into(), dataset.id.into());
        let mut files = Vec::new();
        for id in rows::ids_of(view, &crate::files::kinds::DATA_FILE, of)? {
            files.extend(rows::data_file(view, id.parse().unwrap_or_default())?);
        }
        Ok(files)
    };
    let mut list = Vec::new();
    for file in call.db().read(Weight::Scan, all).await? {
        let mut entry = json!({"datafileId": file.id, "storageIdentifier": file.storage_identifier});
        match computed(&call, &file, Algorithm::named(&file.checksum_type)).await {
            Ok(checksum) if checksum == file.checksum => entry["status"] = "valid".into(),
            Ok(_) => {
                entry["status"] = "invalid".into();
                entry["errorMessage"] = format!("Checksum mismatch for datafile id {}", file.id).into();
            }
            Err(error) => {
                entry["status"] = "invalid".into();
                entry["errorMessage"] = error.message.into();
            }
        }
        list.push(entry);
    }
    Ok(envelope::raw_json(StatusCode::OK, &json!({"dataFiles": list})))
}

/// Answers that nothing is missing: type and size of deposited tables are recorded when they arrive.
async fn nothing_missing(_: Call) -> Answer {
    envelope::message(
        "All the tabular files in the database already have the original types set correctly; exiting.",
    )
}

/// Copies the role assignments of a collection to all collections below it, as `:InheritParentRoleAssignments` says.
async fn inherit_below(call: Call) -> Answer {
    let (alias, actor) = (call.param("alias").to_owned(), assignments::actor(&call));
    let write = move |txn: &mut Txn<'_>| -> Result<Vec<i64>, ApiError> {
        if site_settings::get(txn, ":InheritParentRoleAssignments")?.is_none() {
            return Err(ApiError::bad_request(
                "InheritParentRoleAssignments does not list any roles on this instance",
            ));
        }
        let mut waiting = vec![collections::find(txn, &alias)?];
        let mut changed = Vec::new();
        while let Some(parent) = waiting.pop() {
            for child in collections::children(txn, parent.id)? {
                write::inherit_assignments(txn, &actor, &parent, &child, "")?;
                changed.push(child.id);
                if changed.len() < COLLECTIONS {
                    waiting.push(child);
                }
            }
        }
        Ok(changed)
    };
    envelope::ok(json!({"Dataverses Updated": call.db().write(write).await?}))
}

async fn no_orcid(_: Call) -> Answer {
    envelope::message("no orcid for you.")
}

/// Answers that nothing was deleted: the server itself sweeps files that no record owns.
async fn clean_storage(call: Call) -> Answer {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let check = move |view: &mut View<'_>| -> Result<(), ApiError> {
        let dataset = wanted.find(view)?;
        permissions::require(view, &asker, dataset.place(), Permission::EditDataset)
    };
    call.db().read(Weight::Point, check).await?;
    envelope::message("Found: \nDeleted: ")
}

/// Redirects to the page with the terms of use. Errors: 404 for a version with a licence.
async fn custom_license(call: Call) -> Answer {
    let (asker, wanted, text) = (call.asker.clone(), Wanted::of(&call)?, call.param("version").to_owned());
    let find = move |view: &mut View<'_>| -> Result<(String, String), ApiError> {
        let dataset = wanted.find(view)?;
        let version = version::find(view, &asker, &dataset, &text, version::Withdrawn::Shown)?;
        if version.license.is_some() {
            return Err(ApiError::not_found("This Dataset has no custom license"));
        }
        Ok((dataset.pid, version.friendly_number()))
    };
    let (pid, number) = call.db().read(Weight::Point, find).await?;
    let url = format!("{}/dataset.xhtml?persistentId={pid}&version={number}", call.site_url());
    let response =
        envelope::raw_json(StatusCode::SEE_OTHER, &json!({"status": "OK", "data": {"message": url}}));
    Ok(answer::with_header(response, LOCATION, &url))
}

async fn fixity_algorithm(call: Call) -> Answer {
    let name = ":FileFixityChecksumAlgorithm";
    let set = call.db().read(Weight::Point, move |view| site_settings::get(view, name)).await?;
    envelope::message(Algorithm::named(set.as_deref().unwrap_or("MD5")).name())
}
