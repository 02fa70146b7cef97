//! Locks of datasets, as clients poll them (section 5.6 of the contract).

use pinakes_store::{Expr, Query, Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, DATASET, Dataset, Lock};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{changes, envelope, permissions, stored};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/{id}/locks", list)
        .delete("/datasets/{id}/locks", remove)
        .post("/datasets/{id}/lock/{type}", add)
        .get("/datasets/locks", list_all)
}

/// Types of locks.
const REASONS: [&str; 8] = [
    "Ingest",
    "Workflow",
    "InReview",
    "DcmUpload",
    "GlobusUpload",
    "finalizePublication",
    "EditInProgress",
    "FileValidationFailed",
];

/// Returns the lock type that a text names. Errors: 400.
fn reason(text: &str) -> Result<&'static str, ApiError> {
    let found = REASONS.iter().find(|it| it.eq_ignore_ascii_case(text));
    found.copied().ok_or_else(|| {
        ApiError::bad_request(format!(
            "Invalid lock type value: {text}; valid lock types: {}",
            REASONS.join(", ")
        ))
    })
}

impl Lock {
    fn json(&self, dataset: &Dataset) -> Value {
        json!({
            "lockType": self.lock_type, "date": self.date, "user": self.user, "dataset": dataset.pid,
            "message": self.message,
        })
    }
}

async fn list(call: Call) -> Answer {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let ty = call.query.filled("type").map(reason).transpose()?;
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let dataset = wanted.find(view)?;
        if dataset.released.is_none() {
            permissions::require(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
        }
        let wanted = dataset.locks.iter().filter(|it| ty.is_none_or(|ty| it.lock_type == ty));
        Ok(wanted.map(|it| it.json(&dataset)).collect())
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn list_all(call: Call) -> Answer {
    let user = call.asker.user()?.clone();
    let ty = call.query.filled("type").map(reason).transpose()?;
    let by = call.query.filled("userIdentifier").map(str::to_owned);
    if !user.superuser && by.as_deref() != Some(user.name.as_str()) {
        return Err(ApiError::forbidden("Only superusers can see the locks of others."));
    }
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let query = Query::filter(Expr::Is("isLocked".into(), true.into()));
        let all: Vec<Dataset> = stored::find(view, &DATASET, &query)?;
        let each = all.iter().flat_map(|dataset| {
            let (ty, by) = (ty, by.as_deref());
            let wanted = dataset.locks.iter().filter(move |it| {
                ty.is_none_or(|ty| it.lock_type == ty) && by.is_none_or(|by| it.user == by)
            });
            wanted.map(move |it| it.json(dataset))
        });
        Ok(each.collect())
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

async fn add(call: Call) -> Answer {
    let user = call.asker.superuser("This API end point can be used by superusers only.")?.clone();
    let ty = reason(call.param("type"))?;
    let (app, wanted) = (call.app.clone(), Wanted::of(&call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut dataset = wanted.find(txn)?;
        if dataset.locks.iter().any(|it| it.lock_type == ty) {
            return Err(ApiError::forbidden(format!("dataset already locked with lock type {ty}")));
        }
        dataset.locks.push(Lock::new(ty, &user.name, app.now_ms()));
        datasets::put(txn, &dataset)?;
        changes::dataset(txn, &app, dataset.id)
    };
    call.db().write(write).await?;
    envelope::message(format!("dataset locked with lock type {ty}"))
}

async fn remove(call: Call) -> Answer {
    call.asker.superuser("This API end point can be used by superusers only.")?;
    let ty = call.query.filled("type").map(reason).transpose()?;
    let (app, wanted) = (call.app.clone(), Wanted::of(&call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<bool, ApiError> {
        let mut dataset = wanted.find(txn)?;
        let before = dataset.locks.len();
        dataset.locks.retain(|it| ty.is_some_and(|ty| it.lock_type != ty));
        datasets::put(txn, &dataset)?;
        changes::dataset(txn, &app, dataset.id)?;
        Ok(dataset.locks.len() != before)
    };
    let removed = call.db().write(write).await?;
    envelope::message(match (removed, ty) {
        (true, Some(ty)) => format!("lock type {ty} removed"),
        (true, None) => "locks removed".to_owned(),
        (false, Some(ty)) => format!("no lock type {ty} on the dataset"),
        (false, None) => "dataset not locked".to_owned(),
    })
}
