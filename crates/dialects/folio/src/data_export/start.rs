//! A job before it runs: its number, its profile, and who runs it.

use pinakes_store::{Direction, Expr, Query, StoreError, Txn, View};
use serde_json::{Value, json};

use crate::data_export::jobs::{JOBS, invalid};
use crate::data_export::profiles::{JOB_PROFILES, default_of};
use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::FolioError;

/// Creates a job that has not started. Its number follows that of the last job.
pub(super) fn new_job(
    txn: &mut Txn<'_>,
    id: &str,
    profile: &Value,
    by: &Value,
    file_name: &str,
    now_ms: i64,
) -> Result<Value, StoreError> {
    let last = Query::filter(Expr::All).sorted("hrId", Direction::Descending).window(0, 1);
    let last = txn.find(&JOBS.kind, &last)?.first().map(|it| it.json()).transpose()?;
    let number = last.and_then(|it| it.get("hrId")?.as_u64()).unwrap_or(0) + 1;
    let job = json!({
        "id": id, "hrId": number, "jobProfileId": profile.get("id"), "jobProfileName": profile.get("name"),
        "progress": {"exported": 0, "failed": 0, "duplicatedSrs": 0, "total": 0, "readIds": 0},
        "status": "NEW", "runBy": by, "lastUpdatedDate": dates::rmb(now_ms),
        "exportedFiles": [{"fileName": file_name}],
    });
    txn.insert(&JOBS.kind, id, &job)?;
    Ok(job)
}

/// Returns the user who runs a job, as it is shown.
pub(super) fn run_by(call: &Call) -> Value {
    let user = call.asker.user();
    json!({
        "userId": call.asker.user_id(), "firstName": user.and_then(|it| it.first_name.clone()),
        "lastName": user.and_then(|it| it.last_name.clone()),
    })
}

/// Returns the requested job profile, or the default one of a record type.
pub(super) fn profile(view: &mut View<'_>, id: Option<&str>, record_type: &str) -> Result<Value, FolioError> {
    let id = id.map_or_else(|| default_of(record_type).to_owned(), str::to_owned);
    match view.get(&JOB_PROFILES.kind, &id)? {
        Some(record) => Ok(record.json()?),
        None => Err(invalid("jobProfileId", &id, format!("JobProfile with id {id} not found"))),
    }
}
