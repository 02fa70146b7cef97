//! Archival status of versions, as reported by the program that submits them to an archive (section T3 of the
//! contract).

use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value};

use crate::app::Call;
use crate::asker::Asker;
use crate::datasets::Version;
use crate::datasets::version::{self, Withdrawn};
use crate::datasets::wanted::Wanted;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{envelope, site_settings};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    const PATH: &str = "/datasets/{id}/{version}/archivalStatus";
    routes
        .get(PATH, show)
        .put(PATH, set)
        .delete(PATH, delete)
        .post("/admin/submitDatasetVersionToArchive/{id}/{version}", submit)
        .get("/admin/submitDatasetVersionToArchive/{id}/{version}", submit)
        .post("/admin/archiveAllUnarchivedDatasetVersions", submit_all)
}

/// Possible states of archiving.
const STATES: [&str; 4] = ["pending", "success", "failure", "obsolete"];

/// Returns the version of the path, for superusers. Errors: 403 for others.
fn named(view: &mut View<'_>, asker: &Asker, wanted: &Wanted, text: &str) -> Result<Version, ApiError> {
    asker.superuser("Superusers only.")?;
    let dataset = wanted.find(view)?;
    version::find(view, asker, &dataset, text, Withdrawn::Shown)
}

async fn show(call: Call) -> Answer {
    let (asker, wanted, text) = (call.asker.clone(), Wanted::of(&call)?, call.param("version").to_owned());
    let read = move |view: &mut View<'_>| Ok::<_, ApiError>(named(view, &asker, &wanted, &text)?.archival);
    let found = call.db().read(Weight::Point, read).await?;
    if found.is_empty() {
        return Err(ApiError::not_found("This dataset version has not been archived"));
    }
    envelope::ok(found)
}

async fn write(call: &Call, status: Map<String, Value>) -> Result<(), ApiError> {
    let (asker, wanted, text) = (call.asker.clone(), Wanted::of(call)?, call.param("version").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut version = named(txn, &asker, &wanted, &text)?;
        version.archival.clone_from(&status);
        version::put(txn, &version)
    };
    call.db().write(write).await
}

async fn set(mut call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let body = call.object().await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let is_state = text("status").is_some_and(|it| STATES.contains(&it));
    if !is_state || text("message").is_none() {
        return Err(ApiError::bad_request("Unacceptable status format"));
    }
    write(&call, body).await?;
    envelope::message("Status updated")
}

async fn delete(call: Call) -> Answer {
    write(&call, Map::new()).await?;
    envelope::message("Status deleted")
}

/// The setting that names the archiver class; this server includes none.
const ARCHIVER: &str = ":ArchiverClassName";

/// Refuses to submit a version to an archive. Errors: 400 for a version that does not exist or was submitted before;
/// 500, because there is no archiver.
async fn submit(call: Call) -> Answer {
    let (asker, wanted, text) = (call.asker.clone(), Wanted::of(&call)?, call.param("version").to_owned());
    call.asker.user()?;
    let read = move |view: &mut View<'_>| -> Result<Version, ApiError> {
        let dataset = wanted.find(view)?;
        version::find(view, &asker, &dataset, &text, Withdrawn::Shown)
            .map_err(|_| ApiError::bad_request("Requested version not found."))
    };
    let version = call.db().read(Weight::Point, read).await?;
    if !version.archival.is_empty() {
        return Err(ApiError::bad_request("Version was already submitted for archiving."));
    }
    Err(no_archiver(&call).await?)
}

async fn submit_all(call: Call) -> Answer {
    call.asker.user()?;
    Err(no_archiver(&call).await?)
}

async fn no_archiver(call: &Call) -> Result<ApiError, ApiError> {
    let named = call.db().read(Weight::Point, |view| site_settings::get(view, ARCHIVER)).await?;
    let name = named.unwrap_or_else(|| "null".to_owned());
    Ok(ApiError::internal(format!("Could not find Archiver class: {name}")))
}
