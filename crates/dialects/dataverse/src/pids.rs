//! Management of persistent identifiers: `/api/pids`, the generator of a dataset's identifiers, and re-registering
//! handles.
//!
//! Identifiers come from the single provider in the configuration. It manages them itself, so reserving one and
//! releasing it only changes records here and calls no other service.

use pinakes_store::{Expr, Query, Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, DATASET, Dataset, canonical_pid};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{envelope, permissions, stored};

/// Name of the provider.
const PROVIDER: &str = "fake";
/// Setting of a dataset: its identifier was released.
const GIVEN_BACK: &str = "pidGivenBack";
const REFUSAL: &str = "Forbidden. You must be a superuser.";

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/pids", show)
        .get("/pids/unreserved", unreserved)
        .get("/pids/providers", providers)
        .get("/pids/providers/{*pid}", provider_of)
        .post("/pids/{id}/reserve", reserve)
        .delete("/pids/{id}/delete", give_back)
        .get("/datasets/{id}/pidGenerator", generator)
        .put("/datasets/{id}/pidGenerator", set_generator)
        .delete("/datasets/{id}/pidGenerator", reset_generator)
        .put("/datasets/{id}/pidReconcile", reconcile)
        .post("/admin/{id}/reregisterHDLToPID", reregister_handle)
        .get("/admin/{id}/registerDataFile", files_have_none)
        .get("/admin/registerDataFileAll", files_have_none)
        .get("/admin/registerDataFiles/{alias}", files_have_none)
}

/// Answers with the state of an identifier: `findable` if the dataset is published, `registered` if it was published
/// but nothing is public any more, otherwise `draft`.
async fn show(call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    let missing = || ApiError::bad_request("The parameter persistentId is missing.");
    let pid = canonical_pid(call.query.filled("persistentId").ok_or_else(missing)?);
    if !pid.starts_with("doi:") {
        return Err(ApiError::bad_request("Only doi: is supported."));
    }
    let unknown = ApiError::not_found(format!("Dataset with Persistent ID {pid} not found."));
    let found = call.db().read(Weight::Point, move |view| datasets::by_pid(view, &pid)).await?;
    let dataset = found.ok_or(unknown)?;
    let state = match (dataset.released.is_some(), dataset.was_released()) {
        (true, _) => "findable",
        (false, true) => "registered",
        (false, false) => "draft",
    };
    let id = format!("{}/{}", dataset.authority, dataset.identifier);
    envelope::ok(json!({"id": id, "state": state}))
}

/// Lists datasets that were never published and whose identifiers were released.
async fn unreserved(call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    let find = |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let drafts: Vec<Dataset> =
            stored::find(view, &DATASET, &Query::filter(Expr::Exists("draft".into())))?;
        let given_back = drafts.iter().filter(|it| !it.was_released() && it.more.contains_key(GIVEN_BACK));
        Ok(given_back.map(|it| json!({"id": it.id, "pid": it.pid})).collect())
    };
    let found = call.db().read(Weight::Scan, find).await?;
    envelope::ok(json!({"numUnreserved": found.len(), "count": found.len(), "pids": found}))
}

async fn providers(call: Call) -> Answer {
    call.asker.user()?;
    let settings = &call.app.settings;
    let specification = json!({
        "label": "Provider of this installation",
        "type": "FAKE",
        "protocol": settings.pid_protocol,
        "authority": settings.pid_authority,
        "separator": "/",
        "shoulder": settings.pid_shoulder,
        "identifierGenerationStyle": "randomString",
        "datafilePidFormat": "DEPENDENT",
        "managedSet": [],
        "excludedSet": [],
    });
    envelope::ok(json!({ PROVIDER: specification }))
}

/// Answers with the provider that manages an identifier.
async fn provider_of(call: Call) -> Answer {
    call.asker.user()?;
    let pid = canonical_pid(call.param("pid"));
    datasets::create::own_pid(&call.app, &pid)
        .map_err(|_| ApiError::not_found(format!("No provider found for PID: {pid}")))?;
    envelope::ok(PROVIDER)
}

/// Changes the dataset of the path, for superusers. Errors: 401 for others, because it is a command on a dataset.
async fn changed(
    call: &Call,
    change: impl Fn(&mut Dataset) -> Result<(), ApiError> + Send + 'static,
) -> Result<String, ApiError> {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let mut dataset = wanted.find(txn)?;
        if !asker.is_superuser() {
            return Err(permissions::refusal(&asker));
        }
        change(&mut dataset)?;
        datasets::put(txn, &dataset)?;
        Ok(dataset.pid)
    };
    call.db().write(write).await
}

async fn reserve(call: Call) -> Answer {
    let pid = changed(&call, |dataset| {
        dataset.more.remove(GIVEN_BACK);
        Ok(())
    });
    envelope::message(format!("PID reserved for {}", pid.await?))
}

async fn give_back(call: Call) -> Answer {
    let pid = changed(&call, |dataset| {
        if dataset.was_released() {
            return Err(ApiError::bad_request("Not allowed for Datasets that have been published."));
        }
        dataset.more.insert(GIVEN_BACK.into(), true.into());
        Ok(())
    });
    envelope::message(format!("PID deleted for {}", pid.await?))
}

/// Returns the dataset of the path, after checking that the caller has `permission` on it.
async fn permitted(call: &Call, permission: Permission) -> Result<Dataset, ApiError> {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(call)?);
    let find = move |view: &mut View<'_>| -> Result<Dataset, ApiError> {
        let dataset = wanted.find(view)?;
        permissions::require(view, &asker, dataset.place(), permission)?;
        Ok(dataset)
    };
    call.db().read(Weight::Point, find).await
}

async fn generator(call: Call) -> Answer {
    permitted(&call, Permission::EditDataset).await?;
    envelope::message(PROVIDER)
}

async fn set_generator(mut call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    permitted(&call, Permission::EditDataset).await?;
    let named = call.text().await?;
    match named.trim_matches('"') == PROVIDER {
        true => envelope::message(format!("PID Generator set to: {PROVIDER}")),
        false => Err(ApiError::not_found("No PID Generator configured for the give id.")),
    }
}

async fn reset_generator(call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    permitted(&call, Permission::EditDataset).await?;
    envelope::message(format!("Pid Generator reset to default: {PROVIDER}"))
}

/// Does nothing: there is only one provider, so every identifier is already managed by it.
async fn reconcile(call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    let dataset = permitted(&call, Permission::EditDataset).await?;
    envelope::message(format!("PID of dataset {} needs no change.", dataset.pid))
}

async fn reregister_handle(call: Call) -> Answer {
    if !call.asker.is_superuser() {
        return Err(ApiError::unauthorized(REFUSAL));
    }
    let dataset = permitted(&call, Permission::EditDataset).await?;
    if call.app.settings.pid_protocol == "hdl" {
        return Err(ApiError::bad_request(
            "May not migrate while installation protocol set to \"hdl\". Protocol must be \"doi\"",
        ));
    }
    if dataset.protocol != "hdl" {
        return Err(ApiError::bad_request("Dataset was not registered as a HDL. It cannot be migrated."));
    }
    Err(ApiError::internal(format!("Failed to migrate Dataset Handle id: {}", dataset.id)))
}

async fn files_have_none(call: Call) -> Answer {
    call.asker.user()?;
    Err(ApiError::forbidden("PIDs are not enabled for this file's collection."))
}
